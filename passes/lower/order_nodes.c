/* order-nodes: puts calls into the order that they run in: the parts of a step one after the other (ir/step_part.h).
 *
 *     graph @f(%x: f32[2]) -> (%dx, %loss) {
 *         const %axes: i64[1] = [0]
 *         %dx: f32[2] = exp(%x) side=backward
 *         %loss: f32[] = reduce_sum(%x, %axes, keepdims=false)
 *     }
 *     ==>
 *     graph @f(%x: f32[2]) -> (%dx, %loss) {
 *         const %axes: i64[1] = [0]
 *         %loss: f32[] = reduce_sum(%x, %axes, keepdims=false)
 *         %dx: f32[2] = exp(%x) side=backward
 *     }
 *
 * Within a part the order stays, which is that of who made the graph: what is made is read soon.  Where all that a part of
 * the update makes is small, or the next value of a state, calls that read nothing of each other come together instead:
 * they can run side by side.  On the backward side, what rows, reductions and moves make of the forward side's values (a
 * look at one that is kept, one that is made again) could run at any time, and runs right before who first reads it. */
#include "ir/step_part.h"
#include "passes/engine/pass.h"
#include "passes/lower/lateness.h"

enum { SMALL_BYTES = 4096, MOST_LEVELS = 64 };

typedef struct Order {
    Graph *graph;
    Facts parts;  /* int: StepPart */
    Facts levels; /* int: calls of its part that have to run before, one after the other */
} Order;

static int part_of(Order *o, const Node *n)
{
    return *(int *)fact(&o->parts, n);
}

static bool is_next_value(const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (!node_is_return(u->user))
            return false;
    return n->uses != NULL;
}

/* Whether keeping what a node makes costs next to nothing. */
static bool is_small(const Node *n, int part)
{
    size_t bytes = 0;
    if (n->type->kind != TYPE_TENSOR || node_is_input(n) || n->op == OP_const || n->op == OP_param)
        return true; /* parts are asked one by one */
    return (type_bytes(n->type, &bytes) && bytes <= SMALL_BYTES) || (part == STEP_LATE && is_next_value(n));
}

/* How many levels a part has; 0: its order stays. */
static int find_levels(Order *o, int part)
{
    int levels = 0;
    for (const Node *n = o->graph->first; n; n = n->next) {
        if (part_of(o, n) != part)
            continue;
        int *level = fact(&o->levels, n);
        for (int i = 0; i < n->n_in; i++)
            if (in(n, i) && part_of(o, in(n, i)) == part && *(int *)fact(&o->levels, in(n, i)) >= *level)
                *level = *(int *)fact(&o->levels, in(n, i)) + (n->op != OP_part);
        if (!is_small(n, part) || *level >= MOST_LEVELS)
            return 0;
        levels = *level >= levels ? *level + 1 : levels;
    }
    return levels;
}

/* Puts the nodes of a part and of a level behind all others, in their order; -1: of every level. */
static void move_to_end(Order *o, int part, int level)
{
    Node *last = o->graph->last;
    for (Node *n = o->graph->first, *next; n; n = next) {
        next = n == last ? NULL : n->next;
        if (part_of(o, n) == part && (level < 0 || *(int *)fact(&o->levels, n) == level))
            node_move(n, NULL);
    }
}

static bool is_in_order(Order *o)
{
    int part = STEP_FORWARD, level = 0;
    for (Node *n = o->graph->first; n; n = n->next) {
        const int p = part_of(o, n), l = *(int *)fact(&o->levels, n);
        if (p < part || (p == part && l < level))
            return false;
        part = p, level = l;
    }
    return true;
}

static BackwardCalls backward_calls(Order *o, Arena *scratch)
{
    size_t n = 0;
    for (const Node *k = o->graph->first; k; k = k->next)
        n += part_of(o, k) == STEP_BACKWARD;
    BackwardCalls b = { NEWS(scratch, Node *, n + 1), NEWS(scratch, int, n + 1), 0 };
    for (Node *k = o->graph->first; k; k = k->next)
        if (part_of(o, k) == STEP_BACKWARD) {
            b.unit[b.n] = b.n;
            b.calls[b.n++] = k;
        }
    return b;
}

static Status order_nodes(Graph *g, PassRun *run)
{
    Order o = { g, step_parts(g, run->scratch), facts_open(run->scratch, sizeof(int)) };
    int levels[STEP_LATE + 1] = { 0 };
    for (int part = STEP_FIND; part <= STEP_LATE; part++) {
        levels[part] = find_levels(&o, part);
        for (const Node *n = g->first; n && !levels[part]; n = n->next)
            if (part_of(&o, n) == part)
                *(int *)fact(&o.levels, n) = 0;
    }
    BackwardCalls back = backward_calls(&o, run->scratch);
    if (!backward_calls_late(&back, run->scratch) && is_in_order(&o))
        return OK;
    run->changes++;
    for (int i = 0; i < back.n; i++)
        node_move(back.calls[i], NULL);
    for (int part = STEP_BACKWARD + 1; part <= STEP_LATE; part++)
        for (int level = levels[part] ? 0 : -1; level < (levels[part] ? levels[part] : 0); level++)
            move_to_end(&o, part, level);
    return OK;
}

const Pass pass_order_nodes = { .name = "order-nodes", .needs = TYPED, .may = EXACT, .run = order_nodes };
