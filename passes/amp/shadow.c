/* shadow: a weight that is read narrow is kept narrow as well, and what the update writes it writes both.
 *
 *     graph @f(%x: bf16[3,2], state %w: f32[2,2] trained) -> (%y, %w = %next) {
 *         %1: bf16[2,2] = amp_cast(%w, to=bf16) ours
 *         %y: bf16[3,2] = matmul(%x, %1)
 *         %next: f32[2,2] = neg(%w) side=update
 *     }
 *     ==>
 *     graph @f(
 *             %x: bf16[3,2],
 *             state %w: f32[2,2] trained,
 *             state %"qcc.shadow/w": bf16[2,2] role=shadow of=%w) -> (
 *             %y,
 *             %w = %next,
 *             %"qcc.shadow/w" = %1) {
 *         %0: bf16[2,2] = amp_cast(%w, to=bf16) ours
 *         %y: bf16[3,2] = matmul(%x, %"qcc.shadow/w")
 *         %next: f32[2,2] = neg(%w) side=update
 *         %1: bf16[2,2] = amp_cast(%next, to=bf16) ours side=update
 *     }
 *
 * So no step casts a weight.  Shadows follow their masters (ops/update/shadow.h); what is not trained and never changes has one
 * too.  Tables of which a step reads fewer rows than they have are cast behind the gather instead, unless they have a
 * shadow anyway. */
#include "ops/update/shadow.h"

#include <string.h>

#include "passes/engine/pass.h"
#include "passes/engine/results.h"

static bool narrows(const Node *n)
{
    return n->op == OP_amp_cast && (n->type->dtype == F16 || n->type->dtype == BF16);
}

static bool has_side(const Node *n)
{
    return (n->flags & NODE_UPDATE) == 0;
}

/* A reader of `x` on the forward or backward side that wants it as `t`, or, where t is BOOL, narrow in any way. */
static Node *narrow_reader(const Node *x, DType t)
{
    for (const Use *u = x->uses; u; u = u->next)
        if (narrows(u->user) && has_side(u->user) && u->user->uses && (t == BOOL || u->user->type->dtype == t))
            return u->user;
    return NULL;
}

/* Weights, and what never changes; running statistics and states of ours are read as they are. */
static bool may_have_shadow(const Node *n, const Results *results)
{
    return n->op == OP_state && n->name && n->type->kind == TYPE_TENSOR && n->type->dtype == F32 &&
           type_known(n->type) && is_model_state(n) && (n->flags & NODE_TRAINED || results_next(results, n) < 0);
}

/* ---- tables ---- */

static bool fetches(const Node *n, const Node *table)
{
    return op_looks_up(op_of(n)) && in(n, 0) == table && in(n, 1) != table;
}

/* Whether all that reads the narrow table are gathers that fetch less than it holds. */
static bool only_fetched(const Node *narrow)
{
    int64_t rows = 0;
    for (const Use *u = narrow->uses; u; u = u->next) {
        if (!fetches(u->user, narrow) || !type_known(u->user->type))
            return false;
        rows += type_elements(u->user->type);
    }
    return rows < type_elements(narrow->type);
}

/* Fetches rows of the master and casts these. */
static Status cast_behind(Node *gather, Node *master, DType t)
{
    Build b = build_before(gather);
    Node *ins[] = { master, in(gather, 1) };
    Node *rows = build_node(&b, gather->op, gather->attr, 2, ins);
    Node *narrow = rows ? build_amp_cast(&b, rows, t) : NULL;
    TRY(b.status);
    stand_in(gather, narrow);
    return OK;
}

static Status cast_rows(Node *table, Node *narrow)
{
    while (narrow->uses) {
        Node *gather = narrow->uses->user;
        TRY(cast_behind(gather, table, narrow->type->dtype));
        node_remove(gather);
    }
    return OK;
}

/* Rows that are cast behind the gather come from the shadow, which is there. */
static void fetch_narrow(Node *master, Node *shadow)
{
    for (Use *u = master->uses, *next; u; u = next) {
        Node *gather = u->user, *cast = gather->uses ? gather->uses->user : NULL;
        next = u->next;
        if (!fetches(gather, master) || !has_side(gather) || node_n_uses(gather) != 1 || !narrows(cast) ||
            cast->type->dtype != shadow->type->dtype)
            continue;
        Build b = build_before(gather);
        Node *ins[] = { shadow, in(gather, 1) };
        Node *rows = build_node(&b, gather->op, gather->attr, 2, ins);
        if (rows)
            stand_in(cast, rows);
    }
}

/* ---- the pass ---- */

static void give_shadow(Results *results, Node *master, DType t)
{
    Graph *g = master->graph;
    const char *name = name_with(g, SHADOW_PREFIX, master->name);
    const StateAttr attr = { NULL, { STATE_shadow, master->name } };
    Node *shadow = graph_state(g, name, type_with_dtype(&g->ir->types, master->type, t), &attr), *cast;
    while ((cast = narrow_reader(master, t)))
        graph_replace(cast, shadow);
    fetch_narrow(master, shadow);
    const int next = results_next(results, master);
    if (next < 0)
        return;
    Build b = build_at_end(g);
    b.flags = NODE_OURS | NODE_UPDATE;
    results_add(results, name, build_amp_cast(&b, results->node[next], t));
}

static Status shadow(Graph *g, PassRun *run)
{
    const size_t n = g->n_inputs;
    const Results before = results_of(g, run->scratch);
    Node **masters = NEWS(run->scratch, Node *, n + 1), *narrow;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        Node *x = g->inputs[i];
        if (!may_have_shadow(x, &before))
            continue;
        while ((narrow = narrow_reader(x, BOOL)) && only_fetched(narrow))
            TRY(cast_rows(x, narrow));
        if (narrow_reader(x, BOOL))
            masters[k++] = x;
    }
    Results results = results_of(g, run->scratch);
    for (size_t i = 0; i < k; i++)
        give_shadow(&results, masters[i], narrow_reader(masters[i], BOOL)->type->dtype);
    if (k)
        results_set(&results);
    run->changes += (int64_t)k;
    return OK;
}

const Pass pass_shadow = { .name = "shadow", .needs = TYPED, .may = EXACT, .run = shadow };
