#include "passes/lowbit/dynamic_codes.h"

#include "passes/lowbit/dynamic_parts.h"

/* ---- what has none ---- */

Status dynamic_refuse(const AtHand *h, const char *wanted, const char *instead)
{
    const Graph *g = h->b->graph;
    Message *m = message_new(g->ir->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(h->x),
                             "%s: has no codes with scales of what is at hand: wanted are %s",
                             quantizer_text(h->q, g->arena), wanted);
    message_try(m, "%s", instead);
    return message_send(m);
}

static Status check_codes(const AtHand *h)
{
    if (!quantizer_is_integer(h->q) && h->q->bits > 2)
        return OK;
    if (h->q->format != FORMAT_INT || h->q->bits < 2 || h->q->bits > 16)
        return dynamic_refuse(h, "signed integers of 2 to 16 bits, or floats", "int8");
    return at_hand_says(h, QUANT_ZERO, ZERO_SYM) ? OK : dynamic_refuse(h, "0 with the code 0", "int8:sym");
}

/* MS-EDEN is right on average over turnings, and stretches scales by what is no power of two. */
static Status check_eden(const AtHand *h)
{
    Quantizer other = *h->q;
    const char *why =
        !other.part[QUANT_TURN].value ? "hadamard=16 beside ms-eden, which is right on average over turnings"
        : !at_hand_says(h, QUANT_SCALE, SCALE_F32) && !at_hand_says(h, QUANT_SCALE, SCALE_E4M3)
            ? "scales in f32 or e4m3 beside ms-eden, which stretches them"
        : !at_hand_says(h, QUANT_CHOICE, CHOICE_ABSMAX) ? "absmax beside ms-eden, which chooses scales by itself"
                                                        : NULL;
    if (!at_hand_says(h, QUANT_ROUNDING, ROUNDING_MS_EDEN) || !why)
        return OK;
    other.part[QUANT_TURN] = (QuantPart){ .value = TURN_HADAMARD, .size = { 16 } };
    other.part[QUANT_CHOICE].value = CHOICE_ABSMAX;
    if (!at_hand_says(h, QUANT_SCALE, SCALE_E4M3))
        other.part[QUANT_SCALE].value = SCALE_F32;
    return dynamic_refuse(h, why, quantizer_text(&other, h->b->graph->arena));
}

static Status check(const AtHand *h)
{
    const QuantPart *part = h->q->part;
    TRY(check_codes(h));
    if (!at_hand_says(h, QUANT_SOURCE, SOURCE_DYNAMIC))
        return dynamic_refuse(h, "scales of what is at hand", "dynamic");
    if (!at_hand_says(h, QUANT_ROUNDING, ROUNDING_RNE) && !at_hand_says(h, QUANT_ROUNDING, ROUNDING_SR) &&
        !at_hand_says(h, QUANT_ROUNDING, ROUNDING_MS_EDEN))
        return dynamic_refuse(h, "rounding to the nearest, by chance, or by ms-eden", "rne, or sr");
    TRY(check_eden(h));
    if (part[QUANT_BITS].value)
        return dynamic_refuse(h, "bits that are said", "int8");
    if (at_hand_says(h, QUANT_CHOICE, CHOICE_4OR6) && !at_hand_says(h, QUANT_SCALE, SCALE_F32) &&
        !at_hand_says(h, QUANT_SCALE, SCALE_E4M3))
        return dynamic_refuse(h, "scales in f32 or e4m3 where the largest becomes 4 or 6", "e2m1:block=16:e4m3:4or6");
    if (part[QUANT_TURN].value && h->x->type->dims[h->axis] % part[QUANT_TURN].size[0])
        return dynamic_refuse(h, "a multiple of 16 along the sum of what is turned", "a batch of a multiple of 16");
    return OK;
}

/* ---- codes ---- */

/* A grain of rows is one of blocks that are as long as the rows. */
static void open_grain(AtHand *h)
{
    const QuantPart *said = &h->q->part[QUANT_GRAIN];
    const Type *t = h->x->type;
    const bool tile = said->value == GRAIN_TILE, block = said->value == GRAIN_BLOCK || said->value == GRAIN_GROUP;
    h->grain = quant_whole;
    if (said->value == GRAIN_TENSOR || !t->rank)
        return;
    h->grain.axis = h->axis;
    h->grain.block = tile || block ? said->size[tile] : t->dims[h->axis];
    if (h->grain.block > t->dims[h->axis])
        h->grain.block = t->dims[h->axis];
    if (tile && t->rank > 1) {
        h->grain.across = h->axis == t->rank - 1 ? h->axis - 1 : h->axis + 1;
        h->grain.wide = said->size[0];
    }
}

/* Whether there is one scale along the sum, for whoever multiplies codes. */
static bool leaves_sums(const AtHand *h)
{
    return h->grain.axis == QUANT_WHOLE || (h->grain.block == h->x->type->dims[h->axis] && h->grain.wide == 1);
}

Status dynamic_codes(Build *b, Node *x, const Quantizer *q, int axis, const DynamicDraws *draws, DynamicCodes *to)
{
    AtHand h = { .b = b, .x = x, .draw = draws ? draws->of_elements : NULL, .q = q, .axis = axis };
    *to = (DynamicCodes){ 0 };
    TRY(check(&h));
    if (q->part[QUANT_TURN].value)
        h.x = dynamic_turned(&h, h.x, draws ? draws->of_turn : NULL);
    TRY(b->status);
    open_grain(&h);
    at_hand_open(&h);
    Node *scale = at_hand_scale(&h);
    to->codes = at_hand_codes(&h, scale, false);
    Node *read = h.told ? h.told : scale;
    to->number = at_hand_number(&h, to->codes, read);
    if (to->number && leaves_sums(&h))
        to->scale = build_cast(b, read, F32);
    return b->status;
}
