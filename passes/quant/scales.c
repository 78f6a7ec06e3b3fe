/* Scales: from ranges that states remember, from weights themselves, or said. */
#include "passes/quant/scale_parts.h"

#include <math.h>

#include "ops/card/make.h"
#include "ops/card/words.h"
#include "ops/quant/float_grid.h"
#include "ops/quant/observe.h"
#include "ops/quant/quantize.h"
#include "passes/codes/at_hand.h"
#include "passes/codes/search.h"
#include "passes/learned/learned.h"
#include "passes/quant/phases.h"

static DType codes_between(int64_t least, int64_t largest)
{
    if (least < 0)
        return least >= INT8_MIN && largest <= INT8_MAX ? I8 : least >= INT16_MIN && largest <= INT16_MAX ? I16 : I32;
    return largest <= UINT8_MAX ? U8 : U16;
}

DType quant_codes_of(const QuantNodes *q, int64_t *least, int64_t *largest)
{
    Quantizer as = *q->by;
    if (quantizer_is_float(&as)) {
        *largest = (int64_t)float_codes_most(quantizer_float_codes(&as));
        *least = -*largest;
        return quantizer_float_codes(&as);
    }
    if (as.format == FORMAT_EITHER)
        as.format = q->never_negative ? FORMAT_UINT : FORMAT_INT;
    if (as.format == FORMAT_BINARY && q->never_negative)
        as.format = FORMAT_UINT; /* 0 and 1 */
    quantizer_codes(&as, least, largest);
    if (scale_is_tanh(q)) { /* its numbers lie beside 0: 2 c - n are whole */
        *largest = ((int64_t)1 << q->by->bits) - 1;
        *least = -*largest;
    }
    return codes_between(*least, *largest);
}

double quant_most_of(const QuantNodes *q)
{
    int64_t least, largest;
    const DType codes = quant_codes_of(q, &least, &largest);
    return dtype_is_float(codes) ? (double)float_codes_most(codes) : (double)largest;
}

/* ---- from a range ---- */

static RangeScaleAttr range_of(const QuantNodes *q)
{
    int64_t least, largest;
    const DType codes = quant_codes_of(q, &least, &largest);
    const bool pow2 = q->by->part[QUANT_SCALE].value == SCALE_POW2, floats = dtype_is_float(codes);
    return (RangeScaleAttr){ .least = floats ? 0 : least, /* their type says it all */
                             .largest = floats ? 0 : largest,
                             .symmetric = scale_zero_is_0(q),
                             .pow2 = pow2,
                             .most = isfinite(q->most) && !pow2 ? (f32)q->most : 0,
                             .to = (int)codes + 1 };
}

static Status scale_of_range(QuantNodes *q, Build *b, Node *lo, Node *hi)
{
    const RangeScaleAttr at = range_of(q);
    Node *both = build_node_n(b, OP_range_scale, &at, 2, (Node *[]){ lo, hi }, 2);
    q->scale = both ? build_part(b, both, 0) : NULL;
    q->zero = both && !scale_zero_is_0(q) ? build_part(b, both, 1) : NULL;
    return b->status;
}

static Node *number(Graph *g, Build *b, const Type *type, double v)
{
    Tensor *t = tensor_new(g->arena, type);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, v);
    return build_const(b, t);
}

/* A scale that is said. */
static Status scale_said(QuantNodes *q, Build *b)
{
    q->scale = number(b->graph, b, type_scalar(&b->graph->ir->types, F32), q->by->part[QUANT_SOURCE].number);
    return b->status;
}

/* Codes up to the largest stand for numbers up to 1. */
static Status scale_of_steps(QuantNodes *q, Build *b)
{
    int64_t least, largest;
    quant_codes_of(q, &least, &largest);
    q->scale = build_scalar(b, F32, (double)(1.0f / (float)largest));
    return b->status;
}

/* A range that is known before anything is seen. */
static Status scale_known(QuantNodes *q, Build *b)
{
    Node *hi = build_scalar(b, F32, q->within), *lo = build_scalar(b, F32, q->never_negative ? 0 : -q->within);
    TRY(b->status);
    return scale_of_range(q, b, lo, hi);
}

/* ---- from what is at hand ---- */

/* The mean of |w|, which is where -1, 0 and 1, or the two of them, lie. */
static Status scale_of_mean(QuantNodes *q, Build *b, Node *weight)
{
    Node *mean = quant_fold(b, FOLD_MEAN, &q->grain, CALL(b, abs, weight));
    mean = quant_as_scales(b, &q->grain, mean, weight->type);
    q->scale = CALL(b, max, mean, build_scalar(b, F32, QUANT_TERNARY_FLOOR));
    return b->status;
}

/* Ternary weights of TWN: what is larger than 0.7 of the mean size is 1, of the mean of those that are; the others are 0. */
static Status scale_of_kept(QuantNodes *q, Build *b, Node *weight)
{
    const int axis = q->grain.axis == QUANT_WHOLE ? -1 : q->grain.axis;
    Node *zero = build_scalar(b, F32, 0), *one = build_scalar(b, F32, 1), *size = CALL(b, abs, weight);
    Node *mean = quant_as_scales(b, &q->grain, quant_fold(b, FOLD_MEAN, &q->grain, size), weight->type);
    q->threshold = CALL(b, mul, mean, build_scalar(b, F32, QUANT_TERNARY_PART));
    Node *kept = CALL(b, abs, learned_ternary(b, weight, q->threshold, one, axis));
    Node *sum = quant_fold(b, FOLD_MEAN, &q->grain, CALL(b, where, CALL(b, less, zero, kept), size, zero));
    Node *share = quant_fold(b, FOLD_MEAN, &q->grain, kept);
    Node *of_kept = CALL(b, div, sum, CALL(b, max, share, build_scalar(b, F32, 0x1p-30)));
    of_kept = quant_as_scales(b, &q->grain, of_kept, weight->type);
    q->scale = CALL(b, max, of_kept, build_scalar(b, F32, QUANT_TERNARY_FLOOR));
    return b->status;
}

/* The largest of each row, at the least the floor, over the largest code. */
static Status scale_of_sizes(QuantNodes *q, Build *b, Node *value)
{
    Node *most = quant_fold(b, FOLD_LARGEST, &q->grain, CALL(b, abs, value));
    most = quant_as_scales(b, &q->grain, most, value->type);
    q->scale = CALL(b, div, CALL(b, max, most, build_scalar(b, F32, q->floor)), build_scalar(b, F32, quant_most_of(q)));
    return b->status;
}

/* Scales that are codes (E8M0, E4M3), and those that 4 or 6 are tried for: those of products, of weights in a form that
 * files have. */
static Status scale_at_hand(const QuantScales *s, QuantNodes *q, Build *b, Node *value)
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

/* ---- ranges of data ---- */

/* The first range: nothing was seen, or what the quantizer says it starts with. */
static Payload *first_range(Graph *g, const QuantNodes *q, const Type *type)
{
    const QuantPart *start = &q->by->part[QUANT_START];
    if (!start->value)
        return NULL;
    Tensor *t = tensor_new(g->arena, type);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, 0);
    tensor_set_f64(t, OBSERVED_LO, q->never_negative ? 0 : -start->number);
    tensor_set_f64(t, OBSERVED_HI, start->number);
    tensor_set_f64(t, OBSERVED_SEEN, 1);
    return payload_of(g->arena, t);
}

static ObserveAttr observer_of(const QuantNodes *q)
{
    const QuantPart *source = &q->by->part[QUANT_SOURCE];
    const RangeScaleAttr codes = range_of(q);
    ObserveAttr at = { .kind = OBSERVE_MINMAX, .rate = 0.01f, .percentile = 99.99f, .sigma = 3 };
    if (source->value == SOURCE_EMA || source->value == SOURCE_STATS) {
        at.kind = OBSERVE_EMA;
        at.rate = source->value == SOURCE_EMA ? (float)source->number : at.rate;
    } else if (source->value == SOURCE_PCT) {
        at.kind = OBSERVE_PCT;
        at.percentile = (float)source->number;
    } else if (source->value == SOURCE_SIGMA) {
        at.kind = OBSERVE_SIGMA;
        at.sigma = (float)source->number;
    } else if (source->value == SOURCE_MSE || source->value == SOURCE_KL) {
        at.kind = source->value == SOURCE_MSE ? OBSERVE_MSE : OBSERVE_KL;
        at.least = codes.least;
        at.largest = codes.largest;
        at.symmetric = codes.symmetric;
        at.pow2 = codes.pow2;
        at.to = codes.to;
    }
    return at;
}

Build scale_at_start(Graph *g, const Node *of)
{
    Build b = build_at_start(g);
    b.flags = NODE_OURS;
    b.src = of->src;
    b.label = of->label;
    return b;
}

Build scale_behind(Node *value)
{
    Build b = scale_at_start(value->graph, value);
    if (!node_is_input(value) && value->op != OP_state)
        b.before = value->next;
    return b;
}

Status scale_observed(QuantScales *s, QuantNodes *q, Node *value)
{
    Graph *g = s->p->g;
    const ObserveAttr at = observer_of(q);
    const Type *type = type_vector(&g->ir->types, F32, observed_size(at.kind));
    const char *name = name_with(g, RANGE_PREFIX, q->name);
    Node *state = graph_state(g, name, type, &(StateAttr){ first_range(g, q, type), { STATE_quant, NULL } });
    Build start = scale_at_start(g, value), here = scale_behind(value);
    Node *range = build_node_n(&start, OP_observed_range, NULL, 1, &state, 2);
    TRY(start.status);
    Node *lo = build_part(&start, range, 0), *hi = build_part(&start, range, 1);
    TRY(scale_of_range(q, &start, lo, hi));
    Node *next = CALL_ATTR(&here, observe, at, value, state);
    next = phase_until(&here, phase_of_ranges(s, q), next, state);
    TRY(here.status);
    results_add(&s->results, name, next);
    q->state = name;
    return OK;
}

/* ---- which source ---- */

Status scale_of_values(QuantNodes *q, Build *b, Node *value)
{
    Node *lo = quant_fold(b, FOLD_LEAST, &q->grain, value), *hi = quant_fold(b, FOLD_LARGEST, &q->grain, value);
    lo = quant_as_scales(b, &q->grain, lo, value->type);
    hi = quant_as_scales(b, &q->grain, hi, value->type);
    TRY(b->status);
    return scale_of_range(q, b, lo, hi);
}

Status quant_scale_of_data(QuantScales *s, QuantNodes *q, Node *value)
{
    Build here = scale_behind(value);
    TRY(scale_check(s, q, value, true));
    if (scale_is_at_hand(q))
        return scale_at_hand(s, q, &here, value);
    switch (scale_source(q)) {
    case SOURCE_CONST: {
        Build start = scale_at_start(s->p->g, value);
        return scale_said(q, &start);
    }
    case SOURCE_MINMAX:
    case SOURCE_EMA:
    case SOURCE_PCT:
    case SOURCE_MSE:
    case SOURCE_KL:
    case SOURCE_SIGMA:
        if (q->within > 0) {
            Build start = scale_at_start(s->p->g, value);
            return scale_known(q, &start);
        }
        return scale_observed(s, q, value);
    case SOURCE_DOREFA: {
        Build start = scale_at_start(s->p->g, value);
        return scale_of_steps(q, &start);
    }
    case SOURCE_STATS:
        return scale_of_data_seen(s, q, value);
    case SOURCE_LSQ:
    case SOURCE_LSQ_PLUS:
    case SOURCE_PACT:
    case SOURCE_TQT:
    case SOURCE_N2UQ:
        return scale_learned(s, q, value, true);
    case SOURCE_DYNAMIC:
        return q->floor > 0 && scale_zero_is_0(q) ? scale_of_sizes(q, &here, value) : scale_of_values(q, &here, value);
    case SOURCE_HQO:
        return scale_refused(s, q, value, true,
                             "mse, kl or sigma=K: hqo looks at numbers, and a histogram is remembered");
    default:
        return scale_refused(
            s, q, value, true,
            "ema, minmax, pct=P, mse, kl, sigma=K, const=S, dynamic, lsq, lsq+, pact, tqt, dorefa, n2uq or stats=N");
    }
}

/* A range that is looked for in the weight itself. */
static Status scale_searched(QuantScales *s, QuantNodes *q, Build *b, Node *weight)
{
    const RangeScaleAttr codes = range_of(q);
    Node *lo, *hi;
    if (!type_known(weight->type))
        return scale_refused(s, q, weight, false,
                             "minmax: nobody knows the shape of the weight while the batch is open");
    if (q->by->bits > 16 && scale_source(q) != SOURCE_SIGMA)
        return scale_refused(s, q, weight, false, "codes of 16 bits or less, of which some are tried");
    if (scale_source(q) == SOURCE_HQO && !codes.symmetric)
        return scale_refused(s, q, weight, false, "sym: hqo looks for a scale");
    TRY(codes_search(b, q->by, &q->grain, weight, &codes, &lo, &hi));
    return scale_of_range(q, b, lo, hi);
}

static Status scale_by_source(QuantScales *s, QuantNodes *q, Build *b, Node *weight)
{
    switch (scale_source(q)) {
    case SOURCE_CONST:
        q->grain = q->grain.block ? quant_whole : q->grain;
        return scale_said(q, b);
    case SOURCE_DOREFA:
        return scale_of_steps(q, b);
    case SOURCE_MINMAX:
    case SOURCE_DYNAMIC:
        return q->by->format == FORMAT_TERNARY || q->by->format == FORMAT_BINARY ? scale_of_mean(q, b, weight)
                                                                                 : scale_of_values(q, b, weight);
    case SOURCE_TWN:
        return scale_of_kept(q, b, weight);
    case SOURCE_LSQ:
    case SOURCE_LSQ_PLUS:
    case SOURCE_TQT:
        return scale_learned(s, q, weight, false);
    case SOURCE_STATS:
        return scale_of_weight_seen(s, q, b, weight);
    case SOURCE_MSE:
    case SOURCE_KL:
    case SOURCE_HQO:
    case SOURCE_SIGMA:
        return scale_searched(s, q, b, weight);
    default:
        return scale_refused(s, q, weight, false,
                             "minmax, mse, kl, hqo, sigma=K, const=S, lsq, lsq+, tqt, dorefa or stats=N");
    }
}

Status quant_scale_of_weight(QuantScales *s, QuantNodes *q, Build *b, Node *weight)
{
    TRY(scale_check(s, q, weight, false));
    if (scale_is_at_hand(q))
        return scale_at_hand(s, q, b, weight);
    TRY(scale_by_source(s, q, b, weight));
    if (scale_source(q) == SOURCE_CONST)
        return OK;
    q->scale = spread_scales(b, &q->grain, q->scale, weight->type);
    q->zero = spread_scales(b, &q->grain, q->zero, weight->type);
    return b->status;
}

/* ---- quantizers ---- */

static int mask_of(const Quantizer *q)
{
    const QuantValue v = q->part[QUANT_MASK].value;
    return (int)(v == MASK_V ? MASK_BY_VALUE : v == MASK_PASS ? MASK_NONE : MASK_BY_CODE);
}

static int rounding_of(const Quantizer *q)
{
    static const struct {
        QuantValue said;
        int rounding;
    } roundings[] = {
        { ROUNDING_HALF_UP, ROUND_HALF_UP }, { ROUNDING_HALF_DOWN, ROUND_HALF_DOWN }, { ROUNDING_CEIL, ROUND_CEIL },
        { ROUNDING_FLOOR, ROUND_FLOOR },     { ROUNDING_ZERO, ROUND_ZERO },           { ROUNDING_AWAY, ROUND_AWAY },
    };
    for (size_t i = 0; i < COUNT(roundings); i++)
        if (q->part[QUANT_ROUNDING].value == roundings[i].said)
            return roundings[i].rounding;
    return ROUND_RNE;
}

/* 1 / sqrt(N largest), N being the elements that share a scale: of data, those of one sample. */
static float gain_of(const QuantNodes *q, const Node *value)
{
    const Type *t = value->type;
    double n = quant_sharing(&q->grain, t);
    if (q->grain.axis == QUANT_WHOLE && !quant_weight_of((Node *)value) && t->rank > 0)
        n /= (double)t->dims[0];
    return (float)(1 / sqrt(n * quant_most_of(q)));
}

/* What is learned as a bound, or beside thresholds, has no factor. */
static bool is_threshold(const QuantNodes *q)
{
    return scale_source(q) == SOURCE_PACT || scale_source(q) == SOURCE_TQT || scale_source(q) == SOURCE_N2UQ || q->end;
}

/* As the words have it; one scale for all has none, and their default. */
static int64_t axis_of(const QuantNodes *q)
{
    return q->grain.axis == QUANT_WHOLE ? 1 : q->grain.axis;
}

Node *quant_codes(Build *b, const QuantNodes *q, Node *value)
{
    int64_t least, largest;
    double lo, hi;
    const DType codes = quant_codes_of(q, &least, &largest);
    const bool learned = quantizer_is_learned(q->by);
    QuantizeAttr at = { .axis = axis_of(q),
                        .block_size = q->grain.block,
                        .output_dtype = q->zero ? 0 : (int)codes + 1,
                        .saturate = true,
                        .rounding = rounding_of(q->by),
                        .mask = q->end ? MASK_NONE : mask_of(q->by),
                        .learned = learned,
                        .gain = learned && !is_threshold(q) ? gain_of(q, value) : 1,
                        .ends = scale_source(q) == SOURCE_PACT,
                        .learned_zero = q->zero && q->by->part[QUANT_ZERO].value == ZERO_LEARNED };
    code_range(codes, &lo, &hi);
    if (!dtype_is_float(codes) && ((double)least != lo || (double)largest != hi)) {
        at.least = least;
        at.largest = largest;
    }
    if (q->levels.widths)
        value = CALL(b, mul, q->scale, learned_levels(b, value, q->levels.widths, q->levels.start, (int)largest));
    if (q->end)
        value = learned_within(b, value, q->end, q->grain.axis == QUANT_WHOLE ? -1 : q->grain.axis);
    if (q->by->format == FORMAT_BINARY && !q->never_negative)
        value = learned_signs(b, value, q->scale, q->grain.axis == QUANT_WHOLE ? -1 : q->grain.axis);
    if (scale_source(q) == SOURCE_TWN)
        value = learned_ternary(b, value, q->threshold, q->scale, q->grain.axis == QUANT_WHOLE ? -1 : q->grain.axis);
    if (scale_is_tanh(q))
        value = learned_tanh(b, value, largest);
    return build_node(b, OP_quantize_linear, &at, q->zero ? 3 : 2, (Node *[]){ value, q->scale, q->zero });
}

Node *quant_number(Build *b, const QuantNodes *q, Node *codes)
{
    Node *scale = q->told ? q->told : q->scale;
    const DequantizeAttr at = { .axis = axis_of(q),
                                .block_size = q->grain.block,
                                .output_dtype = scale->type->dtype == F32 ? 0 : (int)F32 + 1 };
    return build_node(b, OP_dequantize_linear, &at, q->zero ? 3 : 2, (Node *[]){ codes, scale, q->zero });
}

Node *quant_bias(Build *b, Node *bias, Node *data_scale, Node *weight_scale)
{
    Node *scale = CALL(b, mul, data_scale, weight_scale);
    const QuantizeAttr at = { .axis = 0, .output_dtype = (int)I32 + 1, .saturate = true, .mask = MASK_NONE, .gain = 1 };
    const DequantizeAttr back = { .axis = 0 };
    return CALL_ATTR(b, dequantize_linear, back, CALL_ATTR(b, quantize_linear, at, bias, scale), scale);
}
