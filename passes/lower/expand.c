/* expand: opens composites into rows, reductions, moves and products, so that fusion can put them together anew.
 *
 *     graph @f(%x: f32[2,3]) -> (%y) {
 *         %y: f32[2,3] = softmax(%x)
 *     }
 *     ==>
 *     graph @f(%x: f32[2,3]) -> (%y) {
 *         const %0: i64[1] = [-1]
 *         %1: f32[2,1] = reduce_max(%x, %0)
 *         %2: f32[2,3] = sub(%x, %1)
 *         %3: f32[2,3] = exp(%2)
 *         const %4: i64[1] = [-1]
 *         %5: f32[2,1] = reduce_sum(%3, %4)
 *         %y: f32[2,3] = div(%3, %5)
 *     }
 *
 * Who reads one of several results of such a call reads the value itself.  What one launch serves whole stays closed
 * (AccessCard.served_whole and serves), and so do calls whose expansion depends on values that only a run knows.  Some
 * calls are opened that the evaluator computes whole (OpDef.open): quantizers, dequantizers and observers are rows and
 * reductions then, which fuse with what they stand beside. */
#include "ops/control/reverse.h"
#include "passes/engine/pass.h"

static bool is_served(const Node *n)
{
    const AccessCard *card = &op_of(n)->access;
    return card->served_whole && (!card->serves || card->serves(n));
}

static bool is_opened(const Node *n)
{
    return ((op_of(n)->expand && !is_served(n)) || op_of(n)->open) && type_known(n->type);
}

/* Opens a call; what stands in its place is opened in its turn, so the walk goes on from before it. */
static Status open_call(Node *n, Node **next, PassRun *run)
{
    Graph *g = n->graph;
    Node *before = n->prev;
    Status status = OK;
    if (op_of(n)->open ? reverse_open(n, &status) : reverse_inline(n, &status)) {
        *next = before ? before->next : g->first;
        run->changes++;
    }
    return status;
}

/* A part of a tuple is what was put there. */
static bool reads_held(Node *n, PassRun *run)
{
    Node *held = n->op == OP_part ? in(n, 0) : NULL;
    if (!held || held->op == OP_part || !node_is_holder(held))
        return false;
    stand_in(n, in(held, ((const PartAttr *)n->attr)->index));
    node_remove(n);
    run->changes++;
    return true;
}

static Status expand_in(Graph *g, PassRun *run)
{
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (!reads_held(n, run) && is_opened(n))
            TRY(open_call(n, &next, run));
    }
    return OK;
}

static Status expand(Graph *g, PassRun *run)
{
    TRY(expand_in(g, run));
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        for (int r = 0; r < n->n_regions; r++)
            TRY(expand_in(n->regions[r], run));
    return OK;
}

const Pass pass_expand = { .name = "expand", .needs = TYPED, .may = EXACT, .run = expand };
