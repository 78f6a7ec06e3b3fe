/* Scales that are codes (E8M0, E4M3), and those that 4 or 6 are tried for: those of products (passes/codes), in a form that files
 * have. */
#include "ops/card/make.h"
#include "passes/codes/at_hand.h"
#include "passes/quant/scale_parts.h"

Status scale_at_hand(const QuantScales *s, QuantNodes *q, Build *b, Node *value)
{
    const QuantTarget *t = quantization_target(s->p->recipe);
    const bool whole = q->grain.axis == QUANT_WHOLE;
    AtHand h = { .b = b,
                 .x = value,
                 .q = q->by,
                 .axis = whole ? 1 : q->grain.axis,
                 .grain = q->grain,
                 .tells = q->stored && !t->no_float_weights };
    at_hand_open(&h);
    q->scale = at_hand_scale(&h);
    q->told = h.told;
    if (whole && q->scale)
        q->scale = make_reshape(b, q->scale, 0, NULL);
    if (t->no_e8m0 && q->scale)
        q->scale = build_cast(b, q->scale, F32);
    return b->status;
}
