/* open-ranges: scales of what is at hand, as others compute them: a file has no word for them.
 *
 *     graph @f(%lo: f32[2], %hi: f32[2]) -> (%s) {
 *         %0: (f32[2], i8[2]) = range_scale(%lo, %hi, least=-127, largest=127, symmetric=true, to=i8)
 *         %s: f32[2] = part(%0, index=0)
 *     }
 *     ==>
 *     graph @f(%lo: f32[2], %hi: f32[2]) -> (%s = %10) {
 *         %0: f32[2] = neg(%lo)
 *         %1: f32[2] = max(%0, %hi)
 *         const %2: f32[] = 127
 *         %3: f32[2] = div(%1, %2)
 *         const %4: f32[] = 5.9604645e-8
 *         %5: bool[2] = less_or_equal(%4, %1)
 *         const %6: f32[] = 0x7f800000
 *         %7: bool[2] = less(%1, %6)
 *         %8: bool[2] = and(%5, %7)
 *         const %9: f32[] = 1
 *         %10: f32[2] = where(%8, %3, %9)
 *         %11: (f32[2], i8[2]) = range_scale(%lo, %hi, least=-127, largest=127, symmetric=true, to=i8)
 *         %s: f32[2] = part(%11, index=0)
 *     }
 *
 * The bits are those of the word, wherever its operands are both numbers or both none. */
#include <math.h>

#include "ops/card/make.h"
#include "ops/quant/quantize.h"
#include "passes/engine/pass.h"

static Node *number(Build *b, double v)
{
    return build_scalar(b, F32, v);
}

/* 1 where the range is no range. */
static Node *where_good(Build *b, Node *bound, Node *scale)
{
    Node *good =
        CALL(b, and, CALL(b, less_or_equal, number(b, 0x1p-24), bound), CALL(b, less, bound, number(b, INFINITY)));
    return CALL(b, where, good, scale, number(b, 1));
}

static Node *symmetric_scale(Build *b, Node *lo, Node *hi, double largest)
{
    Node *bound = CALL(b, max, CALL(b, neg, lo), hi);
    return where_good(b, bound, CALL(b, div, bound, number(b, largest)));
}

static Node *affine_scale(Build *b, Node *from, Node *to, double steps)
{
    Node *n = number(b, steps), *below = CALL(b, neg, from);
    Node *reach = CALL(b, sub, to, from), *wide = CALL(b, sub, CALL(b, div, to, n), CALL(b, div, from, n));
    Node *each = CALL(b, where, CALL(b, less, reach, number(b, INFINITY)), CALL(b, div, reach, n), wide);
    return where_good(b, CALL(b, max, to, below), each);
}

/* What is on that side of 0; a NaN is on none. */
static Node *beyond(Build *b, Node *v, bool below)
{
    Node *zero = number(b, 0);
    return CALL(b, where, below ? CALL(b, less, v, zero) : CALL(b, less, zero, v), v, zero);
}

/* No code stands for more than what is said. */
static Node *bounded(Build *b, Node *scale, f32 most, double steps)
{
    if (most <= 0)
        return scale;
    Node *widest = number(b, (double)(most / (f32)steps));
    return CALL(b, where, CALL(b, less, widest, scale), widest, scale);
}

static Status open_range(Node *n, PassRun *run)
{
    const RangeScaleAttr *at = n->attr;
    DType codes = U8;
    double least, largest;
    Build b = build_before(n);
    Node *scale, *zero = NULL;
    attr_dtype(at->to, &codes);
    code_limits(codes, at->least, at->largest, &least, &largest);
    if (at->symmetric) {
        scale = bounded(&b, symmetric_scale(&b, in(n, 0), in(n, 1), largest), at->most, largest);
    } else {
        Node *from = beyond(&b, in(n, 0), true), *to = beyond(&b, in(n, 1), false);
        scale = bounded(&b, affine_scale(&b, from, to, largest - least), at->most, largest - least);
        Node *z = CALL(&b, round, CALL(&b, sub, number(&b, least), CALL(&b, div, from, scale)));
        zero = build_cast(&b, CALL(&b, clip, z, number(&b, least), number(&b, largest)), codes);
    }
    TRY(b.status);
    for (Use *u = n->uses, *next; u; u = next) {
        Node *part = u->user;
        next = u->next;
        if (((const PartAttr *)part->attr)->index == 0)
            graph_replace(part, scale);
        else if (zero)
            graph_replace(part, zero);
    }
    run->changes++;
    return OK;
}

static Status open_ranges(Graph *g, PassRun *run)
{
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (n->op == OP_range_scale && type_results(n->type) == 2 && !((const RangeScaleAttr *)n->attr)->pow2)
            TRY(open_range(n, run));
    }
    return OK;
}

const Pass pass_open_ranges = { .name = "open-ranges", .needs = TYPED, .may = MEANING, .run = open_ranges };
