#include "passes/lowbit/dynamic_codes.h"

#include "ops/quant/quantize.h"
#include "passes/lowbit/dynamic_parts.h"

bool dynamic_says(const Dynamic *d, QuantField field, QuantValue value)
{
    return quantizer_says(d->q, field, value);
}

/* ---- what has none ---- */

Status dynamic_refuse(const Dynamic *d, const char *wanted, const char *instead)
{
    const Graph *g = d->b->graph;
    Message *m = message_new(g->ir->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(d->x),
                             "%s: has no codes with scales of what is at hand: wanted are %s",
                             quantizer_text(d->q, g->arena), wanted);
    message_try(m, "%s", instead);
    return message_send(m);
}

static Status check_codes(const Dynamic *d)
{
    if (!quantizer_is_integer(d->q) && d->q->bits > 2)
        return OK;
    if (d->q->format != FORMAT_INT || d->q->bits < 2 || d->q->bits > 16)
        return dynamic_refuse(d, "signed integers of 2 to 16 bits, or floats", "int8");
    return dynamic_says(d, QUANT_ZERO, ZERO_SYM) ? OK : dynamic_refuse(d, "0 with the code 0", "int8:sym");
}

static Status check(const Dynamic *d)
{
    const QuantPart *part = d->q->part;
    TRY(check_codes(d));
    if (!dynamic_says(d, QUANT_SOURCE, SOURCE_DYNAMIC))
        return dynamic_refuse(d, "scales of what is at hand", "dynamic");
    if (!dynamic_says(d, QUANT_ROUNDING, ROUNDING_RNE) && !dynamic_says(d, QUANT_ROUNDING, ROUNDING_SR))
        return dynamic_refuse(d, "rounding to the nearest, or by chance", "rne, or sr");
    if (part[QUANT_BITS].value)
        return dynamic_refuse(d, "bits that are said", "int8");
    if (dynamic_says(d, QUANT_CHOICE, CHOICE_4OR6) && !dynamic_says(d, QUANT_SCALE, SCALE_F32) &&
        !dynamic_says(d, QUANT_SCALE, SCALE_E4M3))
        return dynamic_refuse(d, "scales in f32 or e4m3 where the largest becomes 4 or 6", "e2m1:block=16:e4m3:4or6");
    if (part[QUANT_TURN].value && d->x->type->dims[d->axis] % part[QUANT_TURN].size[0])
        return dynamic_refuse(d, "a multiple of 16 along the sum of what is turned", "a batch of a multiple of 16");
    return OK;
}

/* ---- codes ---- */

/* Floats of few bits: their type, the largest number, and the power of two in it. */
static void open_floats(Dynamic *d)
{
    static const struct {
        QuantFormat format;
        DType code;
        double most;
        int top;
    } formats[] = {
        { FORMAT_E4M3, F8E4M3, 448, 8 }, { FORMAT_E5M2, F8E5M2, 57344, 15 }, { FORMAT_E2M3, F6E2M3, 7.5, 2 },
        { FORMAT_E3M2, F6E3M2, 28, 4 },  { FORMAT_E2M1, F4E2M1, 6, 2 },
    };
    for (size_t i = 0; i < COUNT(formats); i++)
        if (formats[i].format == d->q->format) {
            d->code = formats[i].code;
            d->most = formats[i].most;
            d->top = formats[i].top;
        }
}

/* A grain of rows is one of blocks that are as long as the rows. */
static void open_grain(Dynamic *d)
{
    const QuantPart *said = &d->q->part[QUANT_GRAIN];
    const Type *t = d->x->type;
    const bool tile = said->value == GRAIN_TILE, block = said->value == GRAIN_BLOCK || said->value == GRAIN_GROUP;
    d->grain = quant_whole;
    if (said->value == GRAIN_TENSOR || !t->rank)
        return;
    d->grain.axis = d->axis;
    d->grain.block = tile || block ? said->size[tile] : t->dims[d->axis];
    if (d->grain.block > t->dims[d->axis])
        d->grain.block = t->dims[d->axis];
    if (tile && t->rank > 1) {
        d->grain.across = d->axis == t->rank - 1 ? d->axis - 1 : d->axis + 1;
        d->grain.wide = said->size[0];
    }
}

static void open_codes(Dynamic *d)
{
    open_grain(d);
    if (!quantizer_is_integer(d->q)) {
        open_floats(d);
        return;
    }
    quantizer_codes(d->q, &d->lo, &d->hi);
    d->code = d->hi <= INT8_MAX ? I8 : I16;
    d->most = (double)d->hi;
    d->top = d->q->bits - 2;
}

Node *dynamic_quantized(Dynamic *d, Node *scale, bool plain)
{
    const bool chance = !plain && dynamic_says(d, QUANT_ROUNDING, ROUNDING_SR);
    QuantizeAttr at = { .axis = d->axis,
                        .block_size = d->grain.block,
                        .output_dtype = (int)d->code + 1,
                        .saturate = true,
                        .rounding = chance ? ROUND_SR : ROUND_RNE,
                        .mask = MASK_NONE,
                        .gain = 1 };
    double least, most;
    if (!dtype_is_float(d->code)) {
        code_range(d->code, &least, &most);
        if ((double)d->lo != least || (double)d->hi != most) {
            at.least = d->lo;
            at.largest = d->hi;
        }
    }
    Node *in[] = { d->x, scale, NULL, d->draw };
    return scale ? build_node(d->b, OP_quantize_linear, &at, chance ? 4 : 2, in) : NULL;
}

Node *dynamic_number(Dynamic *d, Node *codes, Node *scale)
{
    const bool wide = scale && scale->type->dtype == F32;
    const DequantizeAttr back = { .axis = d->axis,
                                  .block_size = d->grain.block,
                                  .output_dtype = wide ? 0 : (int)F32 + 1 };
    return codes ? CALL_ATTR(d->b, dequantize_linear, back, codes, scale) : NULL;
}

/* Whether there is one scale along the sum, for whoever multiplies codes. */
static bool leaves_sums(const Dynamic *d)
{
    return d->grain.axis == QUANT_WHOLE || (d->grain.block == d->x->type->dims[d->axis] && d->grain.wide == 1);
}

Status dynamic_codes(Build *b, Node *x, const Quantizer *q, int axis, Node *draw, DynamicCodes *to)
{
    Dynamic d = { .b = b, .x = x, .draw = draw, .q = q, .axis = axis };
    *to = (DynamicCodes){ 0 };
    TRY(check(&d));
    if (q->part[QUANT_TURN].value)
        d.x = dynamic_turned(&d);
    TRY(b->status);
    open_codes(&d);
    Node *scale = dynamic_scale(&d);
    to->codes = dynamic_quantized(&d, scale, false);
    to->number = dynamic_number(&d, to->codes, scale);
    if (to->number && leaves_sums(&d))
        to->scale = build_cast(b, scale, F32);
    return b->status;
}
