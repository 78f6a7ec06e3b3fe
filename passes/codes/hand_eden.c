/* MS-EDEN: codes to the nearest, read with other scales, so that numbers have no bias where what they are of is turned at random.
 *
 * A block x becomes codes q by its scale s, and is read as q s c with c = x'x / x'(q s): what it loses in its own direction comes
 * back, and all else that it is off by has no direction, on average over how x was turned.  A scale of E4M3 is s c rounded
 * by chance, which has no bias either; one of f32 is s c. */
#include "ops/card/make.h"
#include "ops/quant/quantize.h"
#include "passes/codes/at_hand.h"

/* c of each block, in the shape of its scales; 1 where there are no codes but 0. */
static Node *stretch(AtHand *h, Node *scale)
{
    const HandRows r = at_hand_rows(h, scale);
    Node *both = at_hand_sum(h, r.x, r.numbers, scale), *own = at_hand_sum(h, r.x, r.x, scale);
    Node *any = CALL(h->b, less, build_scalar(h->b, F32, 0), both);
    return CALL(h->b, where, any, CALL(h->b, div, own, both), build_scalar(h->b, F32, 1));
}

/* The draw of each block: that of its first element. */
static Node *draws_of(AtHand *h, const Type *shape)
{
    Node *rows = quant_rows_of(h->b, &h->grain, h->draw);
    return rows ? make_reshape(h->b, make_slice(h->b, rows, 1, 0, 1, 1), shape->rank, shape->dims) : NULL;
}

/* A scale as a number of E4M3, by chance. */
static Node *by_chance(AtHand *h, Node *scale)
{
    const QuantizeAttr at = {
        .output_dtype = (int)F8E4M3 + 1, .saturate = true, .rounding = ROUND_SR, .mask = MASK_NONE, .gain = 1
    };
    Node *in[] = { scale, build_scalar(h->b, F32, 1), NULL, scale ? draws_of(h, scale->type) : NULL };
    return in[3] ? build_cast(h->b, build_node(h->b, OP_quantize_linear, &at, 4, in), F32) : NULL;
}

Node *at_hand_unbiased(AtHand *h, Node *scale, Node *block, Node *all)
{
    Build *b = h->b;
    Node *c = stretch(h, scale);
    if (!all)
        return c ? CALL(b, mul, scale, c) : NULL;
    Node *e4m3 = build_cast(b, build_cast(b, block, F8E4M3), F32);
    Node *code = c ? by_chance(h, CALL(b, mul, e4m3, c)) : NULL;
    return code ? CALL(b, mul, code, all) : NULL;
}
