#include "ir/verify.h"

#include <inttypes.h>
#include <string.h>

#include "ir/build.h"
#include "ir/role.h"
#include "ir/text/print.h"

enum { MOST_COMPLAINTS = 100 };

/* What is known of a value. */
typedef struct Mark {
    const Node *node; /* who has this id */
    int64_t reads;
} Mark;

/* A graph whose nodes are partly checked. */
typedef struct Level {
    Graph *graph;
    Node *next;
    int region;
    Map names;
} Level;

typedef struct Verify {
    Graph *top;
    SourceMap *source;
    Diag *diag;
    Arena scratch;
    Facts marks;
    Numbering numbers;
    bool numbered;
    int complaints;
} Verify;

static bool enough(const Verify *v)
{
    return v->complaints >= MOST_COMPLAINTS;
}

static void complain(Verify *v, const Node *n, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void complain(Verify *v, const Node *n, const char *format, ...)
{
    va_list args;
    if (enough(v))
        return;
    va_start(args, format);
    const char *text = arena_vprintf(&v->scratch, format, args);
    va_end(args);
    v->complaints++;
    (void)fail(v->diag, n ? source_map_place(v->source, n) : NOWHERE, "%s", text);
}

static const char *value_text(Verify *v, const Node *n)
{
    Text t;
    if (!n->name && !v->numbered) {
        v->numbers = numbering_of(v->top, &v->scratch);
        v->numbered = true;
    }
    text_open(&t, &v->scratch);
    print_value(&t, &v->numbers, n);
    return text_get(&t);
}

static Mark *mark(Verify *v, const Node *n)
{
    return fact(&v->marks, n);
}

/* Whether the value was defined, in this graph, before now. */
static bool is_defined(Verify *v, const Node *n)
{
    return n->id < v->top->n_ids && mark(v, n)->node == n;
}

static void check_definition(Verify *v, Level *l, Node *n)
{
    bool fresh = true;
    if (n->graph != l->graph) {
        complain(v, n, "%s stands in the list of another graph", value_text(v, n));
    } else if (n->id >= v->top->n_ids) {
        complain(v, n, "id %" PRIu32 " was never given", n->id);
        return;
    }
    Mark *m = mark(v, n);
    if (m->node)
        complain(v, n, "id %" PRIu32 " is that of two nodes", n->id);
    m->node = n;
    if (n->name)
        map_put(&l->names, n->name, &fresh);
    if (!fresh)
        complain(v, n, "two values are called %s", value_text(v, n));
}

/* Operands: there before, and of the same graph. */
static bool check_operands(Verify *v, const Level *l, Node *n, const char *who)
{
    const int before = v->complaints;
    for (int i = 0; i < n->n_in; i++) {
        const Node *def = n->in[i].def;
        if (n->in[i].user != n)
            complain(v, n, "operand %d is in the use list of another node", i);
        if (!def)
            continue;
        if (def->graph != l->graph)
            complain(v, n, "%s reads %s, which is outside of its region", who, value_text(v, def));
        else if (!is_defined(v, def))
            complain(v, n, "%s reads %s before it is defined", who, value_text(v, def));
        else
            mark(v, def)->reads++;
    }
    return v->complaints == before;
}

static bool check_regions(Verify *v, Node *n, const OpDef *def)
{
    const int before = v->complaints;
    if (def->n_regions >= 0 && n->n_regions != def->n_regions)
        complain(v, n, "%s has %d regions, not %d", def->name, def->n_regions, n->n_regions);
    for (int r = 0; r < n->n_regions; r++) {
        const Graph *g = n->regions[r];
        if (g->owner != n || g->root != v->top)
            complain(v, n, "region %d belongs to another node", r);
        for (size_t i = 0; i < g->n_inputs; i++)
            if (g->inputs[i]->op != OP_input)
                complain(v, n, "region %d has state", r);
        for (int i = 0; i < graph_n_results(g); i++)
            if (!graph_result(g, i))
                complain(v, n, "result %d of region %d is absent", i, r);
    }
    return v->complaints == before;
}

static void check_results(Verify *v, const Node *n, const OpDef *def)
{
    const int n_out = type_results(n->type);
    if (def->max_out > 0 && n_out > def->max_out)
        complain(v, n, "%s has at most %d results, not %d", def->name, def->max_out, n_out);
    else if (n_out < def->min_out)
        complain(v, n, "%s has at least %d results, not %d", def->name, def->min_out, n_out);
}

static void check_type(Verify *v, const Node *n, const OpDef *def)
{
    const char *complaint = NULL;
    const Type *type = node_infer(n, &complaint);
    if (!type)
        complain(v, n, "%s %s", def->name, complaint);
    else if (!type_agrees(type, n->type))
        complain(v, n, "%s gives %s, not %s", def->name, type_text(&v->scratch, type), type_text(&v->scratch, n->type));
}

static void check_node(Verify *v, Level *l, Node *n)
{
    if (n->op >= n->graph->ir->ops->n) {
        complain(v, n, "op %d has no card", n->op);
        return;
    }
    const OpDef *def = op_of(n);
    if (n->op == OP_input || n->op == OP_state || n->op == OP_return) {
        complain(v, n, "%s stands among the calls", def->name);
        return;
    }
    check_definition(v, l, n);
    const bool operands = check_operands(v, l, n, def->name), regions = check_regions(v, n, def);
    if (def->attrs && !n->attr) {
        complain(v, n, "%s has no attributes", def->name);
        return;
    }
    if (n->op == OP_const && !node_payload(n))
        complain(v, n, "%s is a constant without a value", value_text(v, n));
    check_results(v, n, def);
    if (operands && regions)
        check_type(v, n, def);
}

static void check_links(Verify *v, const Graph *g)
{
    const Node *prev = NULL;
    for (const Node *n = g->first; n; prev = n, n = n->next)
        if (n->prev != prev)
            complain(v, n, "the list of nodes is torn before %s", value_text(v, n));
    if (g->last != prev)
        complain(v, prev, "the list of nodes does not end where it says");
}

static void check_signature(Verify *v, Level *l)
{
    for (size_t i = 0; i < l->graph->n_inputs; i++) {
        Node *n = l->graph->inputs[i];
        check_definition(v, l, n);
        if (n->op != OP_input && n->op != OP_state) {
            complain(v, n, "%s stands among the inputs", value_text(v, n));
            continue;
        }
        const StateAttr *attr = n->op == OP_state ? n->attr : NULL;
        if (attr && attr->value && attr->value->type != n->type)
            complain(v, n, "%s is %s, its initial value %s", value_text(v, n), type_text(&v->scratch, n->type),
                     type_text(&v->scratch, attr->value->type));
    }
}

/* A result under the name of a state is its next value; the name of an input can only be that input. */
static void check_result_name(Verify *v, const Graph *g, int i, const Map *inputs)
{
    const char *name = graph_result_name(g, i);
    const Node *value = graph_result(g, i);
    const MapEntry *e = name ? map_find(inputs, name) : NULL;
    const Node *input = e ? e->value.p : NULL;
    if (!input || !value || input == value)
        return;
    if (input->op != OP_state)
        complain(v, value, "a result has the name of input %s", value_text(v, input));
    else if (!type_agrees(input->type, value->type))
        complain(v, value, "state %s is %s, its next value %s", value_text(v, input),
                 type_text(&v->scratch, input->type), type_text(&v->scratch, value->type));
}

/* Of whom something is said must be there: a state of this graph, another one. */
static void check_role(Verify *v, const Node *n, const char *name, RoleKind kind, RoleMark mark, const Map *inputs)
{
    const char *word = role_words(kind)[mark.role];
    const RoleOf may = role_may_be_of(kind, mark.role);
    const MapEntry *e = mark.of ? map_find(inputs, mark.of) : NULL;
    const Node *state = e ? e->value.p : NULL;
    if (may == OF_NOTHING && mark.of)
        complain(v, n, "%%%s has the role %s, which is of nothing, and is of %%%s", name, word, mark.of);
    else if (may == OF_STATE && !mark.of)
        complain(v, n, "%%%s has the role %s and does not say of which state", name, word);
    else if (mark.of && kind != ROLES_OF_INPUTS &&
             (!state || state->op != OP_state || (kind == ROLES_OF_STATES && state == n)))
        complain(v, n, "%%%s is the %s of %%%s, which is no other state", name, word, mark.of);
}

static void check_roles(Verify *v, const Graph *g, const Map *inputs)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        const RoleKind kind = n->op == OP_state ? ROLES_OF_STATES : ROLES_OF_INPUTS;
        check_role(v, n, n->name ? n->name : "_", kind, node_role(n), inputs);
    }
    for (int i = 0; i < graph_n_results(g); i++) {
        const char *name = graph_result_name(g, i);
        check_role(v, graph_result(g, i), name ? name : "_", ROLES_OF_RESULTS, graph_result_mark(g, i), inputs);
    }
}

static void check_result_names(Verify *v, const Graph *g)
{
    Map inputs, names;
    map_open(&inputs, &v->scratch);
    map_open(&names, &v->scratch);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->name)
            map_put(&inputs, g->inputs[i]->name, NULL)->value.p = g->inputs[i];
    for (int i = 0; i < graph_n_results(g); i++) {
        const char *name = graph_result_name(g, i);
        bool fresh = true;
        if (name)
            map_put(&names, name, &fresh);
        if (!fresh)
            complain(v, graph_result(g, i), "two results are called %%%s", name);
        check_result_name(v, g, i, &inputs);
    }
    check_roles(v, g, &inputs);
}

static void check_uses(Verify *v, const Node *n)
{
    const int64_t reads = mark(v, n)->reads;
    const Use *prev = NULL;
    int64_t count = 0;
    for (const Use *u = n->uses; u && count <= reads; prev = u, u = u->next, count++)
        if (u->def != n || u->prev != prev || !u->user || u < u->user->in || u >= u->user->in + u->user->n_in)
            complain(v, n, "the use list of %s is torn", value_text(v, n));
    if (count != reads && mark(v, n)->node == n)
        complain(v, n, "%s has %" PRId64 " readers, its use list another number", value_text(v, n), reads);
}

static void check_end(Verify *v, Level *l)
{
    Graph *g = l->graph;
    check_operands(v, l, g->ret, "return");
    if (g == v->top)
        check_result_names(v, g);
    for (size_t i = 0; i < g->n_inputs; i++)
        check_uses(v, g->inputs[i]);
    for (const Node *n = g->first; n && !enough(v); n = n->next)
        check_uses(v, n);
}

static void check_graphs(Verify *v)
{
    Level *stack = NULL;
    size_t depth = 0, cap = 0;
    Graph *enter = v->top;
    int region = 0;
    for (;;) {
        if (enter) {
            GROW(&v->scratch, stack, depth, cap);
            Level *l = &stack[depth++];
            *l = (Level){ .graph = enter, .next = enter->first, .region = region };
            map_open(&l->names, &v->scratch);
            check_links(v, enter);
            check_signature(v, l);
            enter = NULL;
        }
        if (!depth || enough(v))
            return;
        Level *l = &stack[depth - 1];
        Node *n = l->next;
        if (n) {
            l->next = n->next;
            check_node(v, l, n);
            region = 0;
        } else {
            check_end(v, l);
            region = l->region + 1;
            n = --depth ? l->graph->owner : NULL;
        }
        if (n && region < n->n_regions)
            enter = n->regions[region];
    }
}

Status verify(Graph *g, SourceMap *source)
{
    Verify v = { .top = g, .source = source, .diag = g->ir->diag };
    arena_open(&v.scratch, g->ir->memory);
    v.marks = facts_open(&v.scratch, sizeof(Mark));
    check_graphs(&v);
    arena_close(&v.scratch);
    return v.complaints ? INVALID : OK;
}

static Status check_shared(const Graph *g, Map *states, SourceMap *source)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        bool fresh = false;
        MapEntry *e = n->op == OP_state && n->name ? map_put(states, n->name, &fresh) : NULL;
        if (!e)
            continue;
        if (fresh)
            e->value.cp = n->type;
        else if (e->value.cp != n->type)
            return fail(g->ir->diag, source_map_place(source, n), "state %s has another type in another graph",
                        n->name);
    }
    return OK;
}

Status verify_module(const Module *m, SourceMap *source)
{
    Status status = OK;
    Arena scratch;
    Map states;
    arena_open(&scratch, m->ir->memory);
    map_open(&states, &scratch);
    for (size_t i = 0; i < m->n_graphs; i++) {
        if (verify(m->graphs[i], source) != OK || check_shared(m->graphs[i], &states, source) != OK)
            status = INVALID;
    }
    arena_close(&scratch);
    return status;
}
