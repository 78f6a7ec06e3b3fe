/* inline-branches: an `if` whose condition is a constant is the branch it takes.
 *
 *     graph @f(%x: f32[2]) -> (%y) {
 *         const %yes: bool[] = true
 *         %y: f32[2] = if(%yes, %x) { (%p: f32[2]) -> (%a)
 *             %a: f32[2] = neg(%p)
 *         } { (%q: f32[2]) -> (%b)
 *             %b: f32[2] = exp(%q)
 *         }
 *     }
 *     ==>
 *     graph @f(%x: f32[2]) -> (%y = %a) {
 *         const %yes: bool[] = true
 *         %a: f32[2] = neg(%x)
 *     }
 */
#include "passes/engine/pass.h"

typedef struct Inliner {
    Graph *top;
    Arena *scratch;
    Facts gone; /* of an `if`: it was replaced */
    Map names;  /* of the graph that is filled */
    Graph *names_of;
} Inliner;

/* Whether a node is still part of the graph: no owner above it was replaced. */
static bool is_live(Inliner *l, const Node *n)
{
    for (const Graph *g = n->graph; g->owner; g = g->owner->graph)
        if (*(bool *)fact(&l->gone, g->owner))
            return false;
    return true;
}

static void collect_names(Inliner *l, Graph *g)
{
    if (l->names_of == g)
        return;
    l->names_of = g;
    map_open(&l->names, l->scratch);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->name)
            map_put(&l->names, g->inputs[i]->name, NULL);
    for (Node *n = g->first; n; n = n->next)
        if (n->name)
            map_put(&l->names, n->name, NULL);
}

/* Readers of a parameter read what is given for it. */
static void give(Node *parameter, Node *value)
{
    for (Use *u = parameter->uses, *next; u; u = next) {
        next = u->next;
        node_set_in(u->user, (int)(u - u->user->in), value);
    }
}

/* Names are those of one graph: the second of a name goes without. */
static void move_nodes(Inliner *l, Node *n, Graph *branch)
{
    collect_names(l, n->graph);
    for (Node *k = branch->first, *next; k; k = next) {
        bool fresh = true;
        next = k->next;
        node_adopt(k, n->graph, n);
        if (k->name)
            map_put(&l->names, k->name, &fresh);
        if (!fresh)
            k->name = NULL;
    }
}

static void replace(Node *n, Graph *branch, Node **results)
{
    const bool tuple = n->type->kind == TYPE_TUPLE;
    node_set_ins(branch->ret, 0, NULL);
    if (!tuple) {
        stand_in(n, results[0]);
        return;
    }
    for (Use *u = n->uses, *next; u; u = next) {
        Node *part = u->user;
        next = u->next;
        if (part->op != OP_part)
            continue;
        stand_in(part, results[((const PartAttr *)part->attr)->index]);
        node_remove(part);
    }
}

/* A tuple that leaves whole has no branch to stand for it. */
static bool can_inline(const Node *n)
{
    for (const Use *u = n->uses; u && n->type->kind == TYPE_TUPLE; u = u->next)
        if (u->user->op != OP_part)
            return false;
    return n->uses;
}

static void take_branch(Inliner *l, Node *n, bool yes)
{
    Graph *branch = n->regions[yes ? 0 : 1];
    const int n_results = graph_n_results(branch);
    Node **results = NEWS(l->scratch, Node *, n_results + 1);
    move_nodes(l, n, branch);
    for (size_t i = 0; i < branch->n_inputs; i++)
        give(branch->inputs[i], in(n, 1 + (int)i));
    for (int i = 0; i < n_results; i++)
        results[i] = graph_result(branch, i);
    replace(n, branch, results);
    *(bool *)fact(&l->gone, n) = true;
    node_remove(n);
}

/* One of two bodies runs, once. */
static bool is_choice(const Node *n)
{
    const BodyCard *body = &op_of(n)->body;
    return body->open && !body->turns && n->n_regions == 2;
}

static Status inline_branches(Graph *g, PassRun *run)
{
    Inliner l = { .top = g, .scratch = run->scratch, .gone = facts_open(run->scratch, sizeof(bool)) };
    Node **ifs = NULL;
    size_t n = 0, cap = 0;
    for (Node *k = walk_first(g); k; k = walk_next(g, k))
        if (is_choice(k)) {
            GROW(run->scratch, ifs, n, cap);
            ifs[n++] = k;
        }
    for (size_t i = 0; i < n; i++) {
        const Node *cond = in(ifs[i], 0);
        const Tensor *t = cond && cond->op == OP_const ? node_constant(cond, 64) : NULL;
        if (!t || tensor_elements(t) != 1 || !can_inline(ifs[i]) || !is_live(&l, ifs[i]))
            continue;
        take_branch(&l, ifs[i], tensor_get_i64(t, 0) != 0);
        run->changes++;
    }
    return OK;
}

const Pass pass_inline_branches = { .name = "inline-branches", .needs = TYPED, .may = EXACT, .run = inline_branches };
