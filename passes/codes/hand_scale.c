/* Scales of what is at hand: f32, powers of two, E8M0, E4M3 beside one number of the tensor. */
#include <math.h>

#include "ops/card/make.h"
#include "passes/codes/at_hand.h"

/* Below it the largest of what shares a scale counts as that. */
#define LEAST_LARGEST 1e-12

/* Scales of E4M3: the largest, the least above 0, with a choice of 4 or 6 that of the largest block with 4 (with 6 it is
 * 256), and with ms-eden, which may make it larger. */
#define E4M3_MOST      448.0
#define E4M3_LEAST     0x1p-9
#define E4M3_MOST_OF_4 384.0
#define E4M3_MOST_EDEN 256.0

static Node *number(AtHand *h, double v)
{
    return build_scalar(h->b, F32, v);
}

/* |x| in f32. */
static Node *sizes(AtHand *h)
{
    return CALL(h->b, abs, make_cast(h->b, h->x, F32));
}

static Node *largest_of_all(AtHand *h)
{
    const int rank = h->x->type->rank;
    return rank ? make_reduce_from(h->b, OP_reduce_max, sizes(h), 0, rank) : sizes(h);
}

/* The largest |x| of what shares a scale; a NaN among them is one. */
static Node *largest(AtHand *h)
{
    if (h->grain.axis == QUANT_WHOLE)
        return largest_of_all(h);
    Node *most = quant_fold(h->b, FOLD_LARGEST, &h->grain, sizes(h));
    return quant_as_scales(h->b, &h->grain, most, h->x->type);
}

static Node *at_least(AtHand *h, Node *x, double least)
{
    return CALL(h->b, max, x, number(h, least));
}

static Node *cast(AtHand *h, Node *x, DType to, int round_mode)
{
    const CastAttr at = { .to = (int)to + 1, .saturate = true, .round_mode = round_mode };
    return CALL_ATTR(h->b, cast, at, x);
}

enum { UP, DOWN };

/* The power of two that is not below the largest over the largest code: nothing saturates. */
static Node *power_above(AtHand *h, Node *scale)
{
    return build_cast(h->b, cast(h, scale, F8E8M0, UP), F32);
}

/* 2^(floor(log2 largest) - top), as the OCP's MX has it: numbers beyond the largest code saturate.  An infinity counts
 * as 2^128. */
static Node *shared_exponent(AtHand *h, Node *most)
{
    Node *scale = CALL(h->b, mul, most, number(h, ldexp(1, -h->top)));
    return cast(h, CALL(h->b, min, scale, number(h, ldexp(1, 128 - h->top))), F8E8M0, DOWN);
}

/* One number of the tensor, with which the largest block has the largest scale of E4M3. */
static Node *tensor_number(AtHand *h)
{
    const double codes = at_hand_says(h, QUANT_CHOICE, CHOICE_4OR6)          ? E4M3_MOST_OF_4 * 4
                         : at_hand_says(h, QUANT_ROUNDING, ROUNDING_MS_EDEN) ? E4M3_MOST_EDEN * h->most
                                                                             : E4M3_MOST * h->most;
    Node *most = h->x->type->rank ? make_reshape(h->b, largest_of_all(h), 0, NULL) : largest_of_all(h);
    return CALL(h->b, div, at_least(h, most, LEAST_LARGEST), number(h, codes));
}

/* What a scale is for a largest code of `most`, before it is rounded; `all`: the number of the tensor, in which it counts. */
static Node *unrounded(AtHand *h, Node *size, Node *all, double most)
{
    if (!all)
        return CALL(h->b, div, at_least(h, size, LEAST_LARGEST), number(h, most));
    return at_least(h, CALL(h->b, div, CALL(h->b, div, size, number(h, most)), all), E4M3_LEAST);
}

/* That as a scale. */
static Node *rounded(AtHand *h, Node *scale, Node *all)
{
    return all ? CALL(h->b, mul, build_cast(h->b, cast(h, scale, F8E4M3, UP), F32), all) : scale;
}

HandRows at_hand_rows(AtHand *h, Node *scale)
{
    Build *b = h->b;
    if (!scale)
        return (HandRows){ NULL, NULL };
    Node *x = quant_rows_of(b, &h->grain, make_cast(b, h->x, F32)), *codes;
    scale = make_reshape(b, scale, 2, (int64_t[]){ type_elements(scale->type), 1 });
    Node *v = CALL(b, div, x, scale);
    if (dtype_is_float(h->code))
        codes = build_cast(b, cast(h, v, h->code, UP), F32);
    else
        codes = CALL(b, clip, CALL(b, round, v), number(h, (double)h->lo), number(h, (double)h->hi));
    return (HandRows){ x, CALL(b, mul, codes, scale) };
}

Node *at_hand_sum(AtHand *h, Node *x, Node *y, const Node *scale)
{
    const Type *shape = scale ? scale->type : NULL;
    Node *sum = make_reduce_from(h->b, OP_reduce_sum, CALL(h->b, mul, x, y), 1, 2);
    return sum ? make_reshape(h->b, sum, shape->rank, shape->dims) : NULL;
}

/* The squared error of what shares a scale. */
static Node *error_of(AtHand *h, Node *scale)
{
    const HandRows r = at_hand_rows(h, scale);
    Node *off = CALL(h->b, sub, r.x, r.numbers);
    return at_hand_sum(h, off, off, scale);
}

/* The largest becomes 4 where that errs less than 6: its scale before it is rounded. */
static Node *better_scale(AtHand *h, Node *size, Node *all)
{
    Node *six = unrounded(h, size, all, 6), *four = unrounded(h, size, all, 4);
    Node *with_6 = rounded(h, six, all), *with_4 = rounded(h, four, all);
    return CALL(h->b, where, CALL(h->b, less, error_of(h, with_4), error_of(h, with_6)), four, six);
}

/* Scales of E4M3 times one number, as those who read codes of them have it. */
static Node *as_codes(AtHand *h, Node *scale, Node *all)
{
    return CALL(h->b, dequantize_linear, cast(h, scale, F8E4M3, UP), all);
}

Node *at_hand_scale(AtHand *h)
{
    const bool e4m3 = at_hand_says(h, QUANT_SCALE, SCALE_E4M3);
    Node *size = largest(h), *all = e4m3 ? tensor_number(h) : NULL;
    h->told = NULL;
    if (at_hand_says(h, QUANT_SCALE, SCALE_E8M0))
        return spread_scales(h->b, &h->grain, shared_exponent(h, size), h->x->type);
    const bool tries = at_hand_says(h, QUANT_CHOICE, CHOICE_4OR6);
    Node *wanted = tries ? better_scale(h, size, all) : unrounded(h, size, all, h->most);
    if (e4m3 && h->tells)
        h->told = spread_scales(h->b, &h->grain, as_codes(h, wanted, all), h->x->type);
    Node *scale = rounded(h, wanted, all);
    if (at_hand_says(h, QUANT_ROUNDING, ROUNDING_MS_EDEN))
        h->told = spread_scales(h->b, &h->grain, at_hand_unbiased(h, scale, wanted, all), h->x->type);
    if (at_hand_says(h, QUANT_SCALE, SCALE_POW2))
        scale = power_above(h, scale);
    return spread_scales(h->b, &h->grain, scale, h->x->type);
}
