/* merge-sides: what the backward side computes again of rows and columns, it reads from the forward side.
 *
 *     graph @f(%x: f32[4,8]) -> (%y, %z) {
 *         const %axes: i64[1] = [1]
 *         %m: f32[4,1] = reduce_max(%x, %axes)
 *         %y: f32[4,8] = sub(%x, %m)
 *         %n: f32[4,1] = reduce_max(%x, %axes) side=backward
 *         %d: f32[4,8] = sub(%x, %n) side=backward
 *         %z: f32[4,8] = exp(%d) side=backward
 *     }
 *     ==>
 *     graph @f(%x: f32[4,8]) -> (%y, %z) {
 *         const %axes: i64[1] = [1]
 *         %m: f32[4,1] = reduce_max(%x, %axes)
 *         %y: f32[4,8] = sub(%x, %m)
 *         %d: f32[4,8] = sub(%x, %m) side=backward
 *         %z: f32[4,8] = exp(%d) side=backward
 *     }
 *
 * A statistic is small beside what it is made of: keeping it costs little, making it costs a pass over everything.  Whatever
 * is as large as its operands is made again: it would have to be kept through the whole forward side. */
#include "passes/engine/equals.h"
#include "passes/engine/pass.h"

enum { SMALLER = 4 }; /* a statistic has at most 1 / SMALLER of the elements that it is made of */

static bool is_sized(const Type *t)
{
    return t->kind == TYPE_TENSOR && type_known(t);
}

/* The most elements that a value had on its way: its own, those of what it is made of, and of what that is made of. */
static int64_t made_of(Facts *sizes, const Node *n)
{
    int64_t most = is_sized(n->type) ? type_elements(n->type) : 0;
    for (int i = 0; i < n->n_in; i++) {
        const Node *def = in(n, i);
        const int64_t *inside = def ? fact(sizes, def) : NULL;
        if (inside && *inside > most)
            most = *inside;
        if (def && is_sized(def->type) && type_elements(def->type) > most)
            most = type_elements(def->type);
    }
    return most;
}

static Status merge_sides(Graph *g, PassRun *run)
{
    Equals equals;
    Facts sizes = facts_open(run->scratch, sizeof(int64_t));
    equals_open(&equals, run->scratch, true);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        const int64_t whole = made_of(&sizes, n);
        *(int64_t *)fact(&sizes, n) = whole;
        Node *first = equals_find(&equals, n);
        if (!first || !is_sized(n->type) || n->op == OP_const || !(n->flags & NODE_BACKWARD) ||
            first->flags & (NODE_BACKWARD | NODE_UPDATE) || type_elements(n->type) > whole / SMALLER)
            continue;
        stand_in(n, first);
        node_remove(n);
        run->changes++;
    }
    return OK;
}

const Pass pass_merge_sides = { .name = "merge-sides", .needs = TYPED, .may = EXACT, .run = merge_sides };
