/* bound-picks: of a gather of one element of each row, what can refuse becomes a call of its own.
 *
 *     graph @f(%x: f32[2,3], %i: i64[2,1]) -> (%y) {
 *         %e: f32[2,3] = exp(%x)
 *         %y: f32[2,1] = gather_elements(%e, %i, axis=1)
 *     }
 *     ==>
 *     graph @f(%x: f32[2,3], %i: i64[2,1]) -> (%y) {
 *         %e: f32[2,3] = exp(%x)
 *         const %0: i64[1] = [2]
 *         %1: i64[2] = reshape(%i, %0, allowzero=true)
 *         const %2: i64[3] = [0, 1, 2]
 *         %3: i64[2] = gather_elements(%2, %1)
 *         const %4: i64[2] = [2, 1]
 *         %5: i64[2,1] = reshape(%3, %4, allowzero=true)
 *         const %6: i64[] = 0
 *         const %7: i64[] = 2
 *         %8: i64[2,1] = clip(%5, %6, %7)
 *         %y: f32[2,1] = gather_elements(%e, %8, axis=1)
 *     }
 *
 * The indices are looked up among all that there are: that counts those from the end from the beginning, and
 * complains as the gather would, of the same index at the same position.  What is left of the gather can be a
 * member of the region that makes its operand, which then need not be kept: the log-probabilities of a cross-
 * entropy. */
#include "ops/card/make.h"
#include "ops/region/region.h"
#include "passes/engine/pass.h"

enum { MOST_INDICES = 1 << 20 }; /* of a row: they are listed */

static bool is_bounded(const Node *n)
{
    Reduction r;
    return !region_fetches(n, &r) || region_picks(n, &r) || !region_maps(in(n, 0)) || in(n, 1)->op == OP_const ||
           in(n, 0)->type->dims[__builtin_ctz(r.axes)] > MOST_INDICES;
}

static Status bound(Node *n, PassRun *run)
{
    Reduction r;
    region_fetches(n, &r);
    const Type *index = in(n, 1)->type;
    const int64_t extent = in(n, 0)->type->dims[__builtin_ctz(r.axes)], count = type_elements(index);
    int64_t *all = NEWS(run->scratch, int64_t, extent);
    for (int64_t i = 0; i < extent; i++)
        all[i] = i;
    Build b = build_before(n);
    Node *flat = make_reshape(&b, build_cast(&b, in(n, 1), I64), 1, &count);
    Node *there = CALL(&b, gather_elements, build_i64s(&b, (int)extent, all), flat);
    Node *whole = make_reshape(&b, there, index->rank, index->dims);
    Node *inside = CALL(&b, clip, whole, build_scalar(&b, I64, 0), build_scalar(&b, I64, (double)extent - 1));
    TRY(b.status);
    node_set_in(n, 1, inside);
    run->changes++;
    return OK;
}

static Status bound_picks(Graph *g, PassRun *run)
{
    for (Node *n = g->first; n; n = n->next)
        if (!is_bounded(n))
            TRY(bound(n, run));
    return OK;
}

const Pass pass_bound_picks = { .name = "bound-picks", .needs = TYPED, .may = EXACT, .run = bound_picks };
