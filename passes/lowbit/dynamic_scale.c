/* Scales of what is at hand: f32, powers of two, E8M0, E4M3 beside one number of the tensor. */
#include <math.h>

#include "passes/lowbit/dynamic_parts.h"

/* Below it the largest of what shares a scale counts as that. */
#define LEAST_LARGEST 1e-12

/* Scales of E4M3: the largest, the least above 0, and with a choice of 4 or 6 that of the largest block with 4: with 6 it is
 * 256. */
#define E4M3_MOST      448.0
#define E4M3_LEAST     0x1p-9
#define E4M3_MOST_OF_4 384.0

static Node *number(Dynamic *d, double v)
{
    return build_scalar(d->b, F32, v);
}

/* |x| in f32. */
static Node *sizes(Dynamic *d)
{
    return CALL(d->b, abs, make_cast(d->b, d->x, F32));
}

static Node *largest_of_all(Dynamic *d)
{
    const int rank = d->x->type->rank;
    return rank ? make_reduce_from(d->b, OP_reduce_max, sizes(d), 0, rank) : sizes(d);
}

/* The largest |x| of what shares a scale; a NaN among them is one. */
static Node *largest(Dynamic *d)
{
    if (d->grain.axis == QUANT_WHOLE)
        return largest_of_all(d);
    Node *most = quant_fold(d->b, FOLD_LARGEST, &d->grain, sizes(d));
    return quant_as_scales(d->b, &d->grain, most, d->x->type);
}

static Node *at_least(Dynamic *d, Node *x, double least)
{
    return CALL(d->b, max, x, number(d, least));
}

static Node *cast(Dynamic *d, Node *x, DType to, int round_mode)
{
    const CastAttr at = { .to = (int)to + 1, .saturate = true, .round_mode = round_mode };
    return CALL_ATTR(d->b, cast, at, x);
}

enum { UP, DOWN };

/* The power of two that is not below the largest over the largest code: nothing saturates. */
static Node *power_above(Dynamic *d, Node *scale)
{
    return build_cast(d->b, cast(d, scale, F8E8M0, UP), F32);
}

/* 2^(floor(log2 largest) - top), as the OCP's MX has it: numbers beyond the largest code saturate.  An infinity counts
 * as 2^128. */
static Node *shared_exponent(Dynamic *d, Node *most)
{
    Node *scale = CALL(d->b, mul, most, number(d, ldexp(1, -d->top)));
    return cast(d, CALL(d->b, min, scale, number(d, ldexp(1, 128 - d->top))), F8E8M0, DOWN);
}

/* One number of the tensor, with which the largest block has the largest scale of E4M3. */
static Node *tensor_number(Dynamic *d)
{
    const double codes = dynamic_says(d, QUANT_CHOICE, CHOICE_4OR6) ? E4M3_MOST_OF_4 * 4 : E4M3_MOST * d->most;
    Node *most = d->x->type->rank ? make_reshape(d->b, largest_of_all(d), 0, NULL) : largest_of_all(d);
    return CALL(d->b, div, at_least(d, most, LEAST_LARGEST), number(d, codes));
}

/* Scales for a largest code of `most`; `all`: the number of the tensor. */
static Node *scale_for(Dynamic *d, Node *size, Node *all, double most)
{
    if (!all)
        return CALL(d->b, div, at_least(d, size, LEAST_LARGEST), number(d, most));
    Node *block = CALL(d->b, div, CALL(d->b, div, size, number(d, most)), all);
    block = cast(d, at_least(d, block, E4M3_LEAST), F8E4M3, UP);
    return CALL(d->b, mul, build_cast(d->b, block, F32), all);
}

static Node *spread(Dynamic *d, Node *scale)
{
    return spread_scales(d->b, &d->grain, scale, d->x->type);
}

/* The squared error of what shares a scale. */
static Node *error_of(Dynamic *d, Node *scale)
{
    Node *as_read = spread(d, scale), *codes = dynamic_quantized(d, as_read, true);
    Node *off = CALL(d->b, sub, make_cast(d->b, d->x, F32), dynamic_number(d, codes, as_read));
    Node *square = CALL(d->b, mul, off, off);
    if (d->grain.axis == QUANT_WHOLE)
        return d->x->type->rank ? make_reduce_from(d->b, OP_reduce_sum, square, 0, d->x->type->rank) : square;
    return quant_as_scales(d->b, &d->grain, quant_fold(d->b, FOLD_SUM, &d->grain, square), d->x->type);
}

/* The largest becomes 4 where that errs less than 6. */
static Node *better_scale(Dynamic *d, Node *size, Node *all)
{
    Node *six = scale_for(d, size, all, 6), *four = scale_for(d, size, all, 4);
    return CALL(d->b, where, CALL(d->b, less, error_of(d, four), error_of(d, six)), four, six);
}

Node *dynamic_scale(Dynamic *d)
{
    Node *size = largest(d), *all = dynamic_says(d, QUANT_SCALE, SCALE_E4M3) ? tensor_number(d) : NULL, *scale;
    if (dynamic_says(d, QUANT_SCALE, SCALE_E8M0))
        scale = shared_exponent(d, size);
    else if (dynamic_says(d, QUANT_CHOICE, CHOICE_4OR6))
        scale = better_scale(d, size, all);
    else
        scale = scale_for(d, size, all, d->most);
    if (dynamic_says(d, QUANT_SCALE, SCALE_POW2))
        scale = power_above(d, scale);
    return spread(d, scale);
}
