#include "passes/lowbit/dynamic_codes.h"

#include "ops/quant/quantize.h"

/* Below it the largest of what shares a scale counts as that. */
#define LEAST_LARGEST 1e-12

typedef struct Dynamic {
    Build *b;
    Node *x, *draw;
    const Quantizer *q;
    int axis;
} Dynamic;

static bool has(const Dynamic *d, QuantField field, QuantValue value)
{
    return d->q->part[field].value == value;
}

/* ---- what has none ---- */

static Status refuse(Dynamic *d, const char *wanted, const char *instead)
{
    const Graph *g = d->b->graph;
    Message *m = message_new(g->ir->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(d->x),
                             "%s: has no codes with scales of what is at hand: wanted are %s",
                             quantizer_text(d->q, g->arena), wanted);
    message_try(m, "%s", instead);
    return message_send(m);
}

static Status check(Dynamic *d)
{
    const QuantPart *part = d->q->part;
    if (d->q->format != FORMAT_INT || d->q->bits < 2 || d->q->bits > 16)
        return refuse(d, "signed integers of 2 to 16 bits", "int8");
    if (!has(d, QUANT_SOURCE, SOURCE_DYNAMIC))
        return refuse(d, "scales of what is at hand", "int8:dynamic");
    if (!has(d, QUANT_GRAIN, GRAIN_TENSOR) && !has(d, QUANT_GRAIN, GRAIN_ROW) && !has(d, QUANT_GRAIN, GRAIN_CHANNEL))
        return refuse(d, "a scale for each row, or one for all", "int8:row");
    if (!has(d, QUANT_SCALE, SCALE_F32))
        return refuse(d, "scales in f32", "int8:f32");
    if (!has(d, QUANT_ZERO, ZERO_SYM))
        return refuse(d, "0 with the code 0", "int8:sym");
    if (!has(d, QUANT_ROUNDING, ROUNDING_RNE) && !has(d, QUANT_ROUNDING, ROUNDING_SR))
        return refuse(d, "rounding to the nearest, or by chance", "int8:sr");
    if (part[QUANT_BITS].value || part[QUANT_TURN].value)
        return refuse(d, "bits that are said, nothing turned", "int8");
    return OK;
}

/* ---- scales ---- */

/* The largest |x| of what shares a scale, in f32, at the least; a NaN among them is one. */
static Node *largest(Dynamic *d)
{
    const bool whole = has(d, QUANT_GRAIN, GRAIN_TENSOR);
    int64_t axes[MAX_RANK];
    int n = 0;
    for (int i = 0; i < d->x->type->rank; i++)
        if (whole || i == d->axis)
            axes[n++] = i;
    Node *size = CALL(d->b, abs, make_cast(d->b, d->x, F32));
    Node *most = n ? build_reduce(d->b, OP_reduce_max, size, n, axes) : size;
    return CALL(d->b, max, most, build_scalar(d->b, F32, LEAST_LARGEST));
}

/* ---- codes ---- */

static int64_t block_of(const Dynamic *d)
{
    return has(d, QUANT_GRAIN, GRAIN_TENSOR) ? 0 : d->x->type->dims[d->axis];
}

static Node *codes_of(Dynamic *d, Node *scale, int64_t lo, int64_t hi)
{
    const bool chance = has(d, QUANT_ROUNDING, ROUNDING_SR);
    const DType codes = hi <= INT8_MAX ? I8 : I16;
    QuantizeAttr at = { .axis = d->axis,
                        .block_size = block_of(d),
                        .output_dtype = (int)codes + 1,
                        .saturate = true,
                        .rounding = chance ? ROUND_SR : ROUND_RNE,
                        .mask = MASK_NONE,
                        .gain = 1 };
    double least, most;
    code_range(codes, &least, &most);
    if ((double)lo != least || (double)hi != most) {
        at.least = lo;
        at.largest = hi;
    }
    Node *in[] = { d->x, scale, NULL, d->draw };
    return build_node(d->b, OP_quantize_linear, &at, chance ? 4 : 2, in);
}

Status dynamic_codes(Build *b, Node *x, const Quantizer *q, int axis, Node *draw, DynamicCodes *to)
{
    Dynamic d = { .b = b, .x = x, .draw = draw, .q = q, .axis = axis };
    int64_t lo, hi;
    *to = (DynamicCodes){ 0 };
    TRY(check(&d));
    quantizer_codes(q, &lo, &hi);
    to->scale = CALL(b, div, largest(&d), build_scalar(b, F32, (double)hi));
    to->codes = to->scale ? codes_of(&d, to->scale, lo, hi) : NULL;
    const DequantizeAttr back = { .axis = axis, .block_size = block_of(&d) };
    to->number = to->codes ? CALL_ATTR(b, dequantize_linear, back, to->codes, to->scale) : NULL;
    return b->status;
}
