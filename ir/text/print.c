#include "ir/text/print.h"

#include <inttypes.h>
#include <string.h>

#include "ir/role.h"
#include "ir/text/print_node.h"

enum { WIDEST_HEAD = 120, INDENT = 4 };

/* A graph whose nodes are partly printed. */
typedef struct Open {
    const Graph *graph;
    const Node *next;
    int region; /* which of its owner's */
} Open;

static void number(Numbering *numbers, const Node *n, uint64_t *next)
{
    if (!n->name)
        *(uint64_t *)fact(&numbers->numbers, n) = (*next)++;
}

/* A node, then the parameters of its regions, then what is in them: numbers run on, each says one value. */
Numbering numbering_of(const Graph *g, Arena *scratch)
{
    Numbering numbers = { facts_open(scratch, sizeof(uint64_t)) };
    Graph *top = (Graph *)(uintptr_t)g;
    uint64_t next = 0;
    for (size_t i = 0; i < g->n_inputs; i++)
        number(&numbers, g->inputs[i], &next);
    for (Node *n = walk_first(top); n; n = walk_next(top, n)) {
        number(&numbers, n, &next);
        for (int r = 0; r < n->n_regions; r++)
            for (size_t i = 0; i < n->regions[r]->n_inputs; i++)
                number(&numbers, n->regions[r]->inputs[i], &next);
    }
    return numbers;
}

void print_value(Text *out, Numbering *numbers, const Node *n)
{
    if (n && n->name)
        print_name(out, '%', n->name);
    else if (n)
        text_printf(out, "%%%" PRIu64, *(uint64_t *)fact(&numbers->numbers, n));
    else
        text_char(out, '_');
}

static void print_typed(Printer *p, const Node *n)
{
    print_value(p->out, p->numbers, n);
    text_add(p->out, ": ");
    type_print(p->out, n->type);
}

static void print_text_mark(Text *out, const char *word, const char *text)
{
    if (!text)
        return;
    text_printf(out, " %s=", word);
    text_quote(out, text, strlen(text));
}

static void print_marks(Text *out, const Node *n)
{
    if (n->src)
        text_printf(out, " !%" PRIu32, n->src);
    if (n->flags & NODE_OURS)
        text_add(out, " ours");
    if (n->flags & NODE_TRAINED)
        text_add(out, " trained");
    if (n->flags & NODE_PARAMETER)
        text_add(out, " parameter");
    if (n->flags & NODE_FIXED)
        text_add(out, " fixed");
    if (n->flags & NODE_TURNED)
        text_add(out, " turned");
    if (n->flags & NODE_BACKWARD)
        text_add(out, " side=backward");
    if (n->flags & NODE_UPDATE)
        text_add(out, " side=update");
    print_text_mark(out, "node", n->label);
}

static void print_value_of(Printer *p, const Node *n, Payload *value)
{
    if (!value)
        return;
    text_add(p->out, " = ");
    print_payload(p, value, n->name);
}

/* Parameters and results of bodies have no role. */
static void print_role(Printer *p, const Graph *g, RoleKind kind, const char *name, RoleMark mark)
{
    if (g != g->root || !role_is_said(kind, name, mark))
        return;
    text_printf(p->out, " role=%s", role_words(kind)[mark.role]);
    if (mark.of) {
        text_add(p->out, " of=");
        print_name(p->out, '%', mark.of);
    }
}

static void print_input(Printer *p, const Node *n)
{
    if (n->op == OP_state)
        text_add(p->out, "state ");
    print_typed(p, n);
    print_value_of(p, n, state_initial(n));
    print_role(p, n->graph, n->op == OP_state ? ROLES_OF_STATES : ROLES_OF_INPUTS, n->name, node_role(n));
    print_text_mark(p->out, "stored", node_stored(n));
    print_marks(p->out, n);
}

static void print_result(Printer *p, const Graph *g, int i)
{
    const Node *n = graph_result(g, i);
    const char *name = graph_result_name(g, i);
    if (name && (!n || !n->name || strcmp(name, n->name) != 0)) {
        print_name(p->out, '%', name);
        text_add(p->out, " = ");
    }
    print_value(p->out, p->numbers, n);
    print_role(p, g, ROLES_OF_RESULTS, name, graph_result_mark(g, i));
}

static void print_separator(Text *out, bool first, int broken)
{
    if (!first)
        text_char(out, ',');
    if (broken) {
        text_char(out, '\n');
        text_pad(out, (size_t)broken);
    } else if (!first) {
        text_char(out, ' ');
    }
}

/* `broken`: the column of items that stand on lines of their own, 0 for all on one. */
static void print_head(Printer *p, const Graph *g, int broken)
{
    text_char(p->out, '(');
    for (size_t i = 0; i < g->n_inputs; i++) {
        print_separator(p->out, i == 0, broken);
        print_input(p, g->inputs[i]);
    }
    text_add(p->out, ") -> (");
    for (int i = 0; i < graph_n_results(g); i++) {
        print_separator(p->out, i == 0, broken);
        print_result(p, g, i);
    }
    text_char(p->out, ')');
}

static void print_signature(Printer *p, const Graph *g, int depth)
{
    Text *out = p->out;
    const size_t start = out->n;
    print_head(p, g, 0);
    if (out->n - start <= WIDEST_HEAD)
        return;
    out->n = start;
    out->p[start] = 0;
    print_head(p, g, (depth + 2) * INDENT);
}

static void print_call(Printer *p, const Node *n)
{
    const bool value = n->op == OP_const || n->op == OP_param;
    if (value)
        text_add(p->out, n->op == OP_const ? "const " : "param ");
    print_typed(p, n);
    if (value) {
        print_value_of(p, n, node_payload(n));
        return;
    }
    text_add(p->out, " = ");
    text_add(p->out, op_of(n)->name);
    text_char(p->out, '(');
    for (int i = 0; i < n->n_in; i++) {
        if (i)
            text_add(p->out, ", ");
        print_value(p->out, p->numbers, in(n, i));
    }
    print_attrs(p, n, n->n_in == 0);
    text_char(p->out, ')');
}

static void print_indent(Printer *p, size_t depth)
{
    for (size_t i = 0; i < depth; i++)
        text_add(p->out, "    ");
}

static void print_body(Printer *p, const Graph *g, Arena *scratch)
{
    Open *stack = NULL;
    size_t depth = 0, cap = 0;
    GROW(scratch, stack, depth, cap);
    stack[depth++] = (Open){ g, g->first, 0 };
    while (depth) {
        Open *top = &stack[depth - 1];
        const Node *n = top->next, *owner = top->graph->owner;
        const Graph *enter = NULL;
        int region = 0;
        if (n) {
            top->next = n->next;
            print_indent(p, depth);
            print_call(p, n);
            enter = n->n_regions ? n->regions[0] : NULL;
        } else {
            print_indent(p, --depth);
            text_char(p->out, '}');
            region = top->region + 1;
            n = depth ? owner : NULL;
            enter = n && region < n->n_regions ? n->regions[region] : NULL;
        }
        if (enter) {
            text_add(p->out, " { ");
            print_signature(p, enter, (int)depth);
            GROW(scratch, stack, depth, cap);
            stack[depth++] = (Open){ enter, enter->first, region };
        } else if (n) {
            print_marks(p->out, n);
        }
        text_char(p->out, '\n');
    }
}

static void print_origins(Text *out, const CodePlaces *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const CodePlace *o = &all->list[i];
        text_printf(out, "    origin !%" PRIu32, o->first);
        if (o->last > o->first)
            text_printf(out, " to !%" PRIu32, o->last);
        print_text_mark(out, "module", o->module);
        print_text_mark(out, "line", o->line);
        text_char(out, '\n');
    }
}

Status print_graph(Text *out, const Graph *g, Blobs *blobs)
{
    Arena scratch;
    arena_open(&scratch, g->ir->memory);
    Numbering numbers = numbering_of(g, &scratch);
    Printer p = { .out = out, .blobs = blobs, .numbers = &numbers, .memory = g->ir->memory, .diag = g->ir->diag };
    text_add(out, "graph ");
    print_name(out, '@', g->name ? g->name : "");
    print_signature(&p, g, 0);
    text_add(out, " {\n");
    print_origins(out, &g->code_places);
    print_body(&p, g, &scratch);
    arena_close(&scratch);
    return p.status;
}

Status print_module(Text *out, const Module *m, Blobs *blobs)
{
    for (size_t i = 0; i < m->n_graphs; i++) {
        if (i)
            text_char(out, '\n');
        TRY(print_graph(out, m->graphs[i], blobs));
    }
    return OK;
}

void print_line(Text *out, Numbering *numbers, const Node *n)
{
    const Ir *ir = n->graph->ir;
    Printer p = { .out = out, .numbers = numbers, .memory = ir->memory, .diag = ir->diag, .brief = true };
    if (n->op == OP_input || n->op == OP_state)
        print_input(&p, n);
    else
        print_call(&p, n);
}
