/* Codes of a format, by scales that are there. */
#include "passes/codes/at_hand.h"

#include <math.h>

#include "ops/card/make.h"
#include "ops/quant/float_grid.h"
#include "ops/quant/quantize.h"

bool at_hand_says(const AtHand *h, QuantField field, QuantValue value)
{
    return quantizer_says(h->q, field, value);
}

void at_hand_open(AtHand *h)
{
    if (!quantizer_is_integer(h->q)) {
        h->code = quantizer_float_codes(h->q);
        h->most = (double)float_codes_most(h->code);
        h->top = ilogb(h->most);
        return;
    }
    quantizer_codes(h->q, &h->lo, &h->hi);
    h->code = h->hi <= INT8_MAX ? I8 : I16;
    h->most = (double)h->hi;
    h->top = h->q->bits - 2;
}

Node *at_hand_codes(AtHand *h, Node *scale, bool plain)
{
    const bool chance = !plain && at_hand_says(h, QUANT_ROUNDING, ROUNDING_SR);
    QuantizeAttr at = { .axis = h->axis,
                        .block_size = h->grain.block,
                        .output_dtype = (int)h->code + 1,
                        .saturate = true,
                        .rounding = chance ? ROUND_SR : ROUND_RNE,
                        .mask = MASK_NONE,
                        .gain = 1 };
    double least, most;
    if (!dtype_is_float(h->code)) {
        code_range(h->code, &least, &most);
        if ((double)h->lo != least || (double)h->hi != most) {
            at.least = h->lo;
            at.largest = h->hi;
        }
    }
    Node *in[] = { h->x, scale, NULL, h->draw };
    return scale ? build_node(h->b, OP_quantize_linear, &at, chance ? 4 : 2, in) : NULL;
}

Node *at_hand_number(AtHand *h, Node *codes, Node *scale)
{
    const bool wide = scale && scale->type->dtype == F32;
    const DequantizeAttr back = { .axis = h->axis,
                                  .block_size = h->grain.block,
                                  .output_dtype = wide ? 0 : (int)F32 + 1 };
    return codes ? CALL_ATTR(h->b, dequantize_linear, back, codes, scale) : NULL;
}
