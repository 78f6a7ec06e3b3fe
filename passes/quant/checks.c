/* What is refused, and what to write instead: quantizers that nothing makes scales for, and what of a call neither its target
 * nor its other readers have. */
#include "passes/quant/scale_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ops/card/words.h"
#include "passes/target/datapath.h"

Status scale_refused(const QuantScales *s, const QuantNodes *q, const Node *value, bool data, const char *wanted)
{
    Arena *scratch = s->p->run->scratch;
    const Quantizer other = quantizer_mended(q->by, data);
    const char *operand = data ? "a" : "w";
    Message *m = message_new(s->p->run->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(value),
                             "%s=%s: nothing quantizes %s so: wanted are %s", operand, quantizer_text(q->by, scratch),
                             q->name, wanted);
    message_try(m, "%s=%s", operand, quantizer_text(&other, scratch));
    return message_send(m);
}

static Status check_ternary(const QuantScales *s, const QuantNodes *q, const Node *value)
{
    const QuantPart *part = q->by->part;
    if (q->grain.block)
        return scale_refused(s, q, value, false, "one scale for all that are ternary, or one a channel");
    if ((scale_source(q) != SOURCE_DYNAMIC && scale_source(q) != SOURCE_TWN) || part[QUANT_SCALE].value != SCALE_F32)
        return scale_refused(s, q, value, false, "ternary codes by the mean at hand (dynamic, twn), in f32");
    if (part[QUANT_ROUNDING].value != ROUNDING_RNE || part[QUANT_MASTER].value || part[QUANT_TURN].value)
        return scale_refused(s, q, value, false, "ternary codes to the nearest, a copy in f32, nothing turned");
    return OK;
}

static Status check_binary(const QuantScales *s, const QuantNodes *q, const Node *value, bool data)
{
    const QuantPart *part = q->by->part;
    if (data && !q->never_negative)
        return scale_refused(s, q, value, data, "data of one bit that are never below 0, as behind a Relu");
    if (data ? scale_source(q) != SOURCE_LSQ || part[QUANT_GRAIN].value != GRAIN_TENSOR
             : scale_source(q) != SOURCE_DYNAMIC || q->grain.block)
        return scale_refused(s, q, value, data,
                             data ? "one learned scale (lsq)" : "the mean at hand (dynamic), of all or a channel");
    if (part[QUANT_SCALE].value != SCALE_F32 || part[QUANT_ROUNDING].value != ROUNDING_RNE ||
        part[QUANT_MASTER].value || part[QUANT_TURN].value)
        return scale_refused(s, q, value, data,
                             "one bit with scales in f32, to the nearest, a copy in f32, nothing turned");
    return OK;
}

/* 2^k numbers from -1 to 1, of which the codes are odd, or from 0 to 1. */
static Status check_dorefa(const QuantScales *s, const QuantNodes *q, const Node *value, bool data)
{
    int64_t least, largest;
    quant_codes_of(q, &least, &largest);
    if (data ? least < 0 : !scale_is_tanh(q) || largest > INT8_MAX)
        return scale_refused(s, q, value, data, data ? "codes from 0 on" : "int1 to int7 of dorefa (first=7, last=7)");
    if (!scale_zero_is_0(q) || q->by->part[QUANT_SCALE].value != SCALE_F32)
        return scale_refused(s, q, value, data, "sym and f32 beside dorefa");
    return data ? OK
           : q->grain.axis == QUANT_WHOLE && !q->grain.block
               ? OK
               : scale_refused(s, q, value, data, "one scale for all (tensor) beside dorefa");
}

static Status check_grain_of_data(const QuantScales *s, const QuantNodes *q, const Node *value)
{
    if (quant_goes_by_rows(q->by))
        return scale_source(q) == SOURCE_DYNAMIC
                   ? OK
                   : scale_refused(s, q, value, true, "dynamic scales of rows and blocks, which are of one batch");
    return q->by->part[QUANT_GRAIN].value == GRAIN_TENSOR
               ? OK
               : scale_refused(s, q, value, true, "one scale for all data, one a row, or one a block of a row");
}

static Status check_levels(const QuantScales *s, const QuantNodes *q, const Node *value)
{
    int64_t least, largest;
    quant_codes_of(q, &least, &largest);
    return least < 0 || q->by->part[QUANT_ROUNDING].value != ROUNDING_RNE
               ? scale_refused(s, q, value, true, "codes from 0 on, and no rounding beside thresholds")
               : OK;
}

static Status check_learned(const QuantScales *s, const QuantNodes *q, const Node *value, bool data)
{
    const QuantPart *part = q->by->part;
    if (scale_source(q) != SOURCE_TQT && part[QUANT_SCALE].value == SCALE_POW2)
        return scale_refused(s, q, value, data, "scales in f32 of what is learned");
    if (part[QUANT_ZERO].value == ZERO_ASYM && (!data || scale_source(q) != SOURCE_STATS))
        return scale_refused(s, q, value, data, "sym, or a learned code of 0, beside a learned scale");
    if (part[QUANT_ZERO].value == ZERO_LEARNED && q->grain.block)
        return scale_refused(s, q, value, data, "one scale for all, or one a channel, beside a learned code of 0");
    if (scale_source(q) == SOURCE_N2UQ)
        TRY(check_levels(s, q, value));
    return data ? check_grain_of_data(s, q, value) : OK;
}

/* What is said of a scale and would not hold: a start that nothing remembers, a number that is no power of two. */
static Status check_start(const QuantScales *s, const QuantNodes *q, const Node *value, bool data)
{
    const QuantPart *part = q->by->part;
    const QuantValue from = scale_source(q);
    const bool remembers = data && from != SOURCE_CONST && from != SOURCE_DYNAMIC && from != SOURCE_DOREFA &&
                           (from == SOURCE_STATS || !quantizer_is_learned(q->by));
    int e;
    if (part[QUANT_START].value && !remembers)
        return scale_refused(s, q, value, data,
                             "init= of ranges that are remembered: ema, minmax and the like of data");
    if (from == SOURCE_CONST && part[QUANT_SCALE].value == SCALE_POW2 && frexp(part[QUANT_SOURCE].number, &e) != 0.5)
        return scale_refused(s, q, value, data, "a scale that is a power of two");
    return OK;
}

/* Floats of few bits: their scale is what the largest number of the format stands for. */
static Status check_float(const QuantScales *s, const QuantNodes *q, const Node *value, bool data)
{
    const QuantPart *part = q->by->part;
    const QuantValue from = scale_source(q);
    const bool seen = data && (from == SOURCE_EMA || from == SOURCE_PCT),
               learned = from == SOURCE_LSQ || from == SOURCE_TQT || from == SOURCE_STATS,
               either = from == SOURCE_MINMAX || from == SOURCE_SIGMA || from == SOURCE_CONST || from == SOURCE_DYNAMIC;
    if (!seen && !either && !learned)
        return scale_refused(
            s, q, value, data,
            data ? "ema, minmax, pct=P, sigma=K, const=S, dynamic, lsq, tqt or stats=N beside codes that are floats"
                 : "minmax, sigma=K, const=S, dynamic, lsq, tqt or stats=N beside codes that are floats");
    if (part[QUANT_ROUNDING].value != ROUNDING_RNE)
        return scale_refused(s, q, value, data, "codes that are floats to the nearest (rne)");
    return OK;
}

static Status no_e8m0(const QuantScales *s, const QuantNodes *q, const Node *value, const char *why)
{
    Arena *scratch = s->p->run->scratch;
    Quantizer other = *q->by;
    other.part[QUANT_SCALE].value = SCALE_F32;
    Message *m = message_new(s->p->run->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(value), "a=%s: %s",
                             quantizer_text(q->by, scratch), why);
    message_try(m, "--for generic");
    message_try(m, "a=%s", quantizer_text(&other, scratch));
    return message_send(m);
}

/* Scales that are codes, or that two are tried for: of what is at hand, of codes in which 0 is the middle. */
static Status check_at_hand(const QuantScales *s, const QuantNodes *q, const Node *value, bool data)
{
    const Quantizer *by = q->by;
    if (!scale_is_at_hand(q))
        return OK;
    if (scale_source(q) != SOURCE_DYNAMIC && (data || scale_source(q) != SOURCE_MINMAX))
        return scale_refused(s, q, value, data,
                             data ? "dynamic beside scales that are codes, and beside 4or6"
                                  : "minmax or dynamic beside scales that are codes, and beside 4or6");
    const QuantTarget *t = quantization_target(s->p->recipe);
    if (data && quantizer_says(by, QUANT_SCALE, SCALE_E8M0) && t->no_e8m0)
        return no_e8m0(s, q, value, t->no_e8m0);
    if (!quantizer_is_float(by) && (by->format != FORMAT_INT || by->bits < 2 || !scale_zero_is_0(q)))
        return scale_refused(s, q, value, data, "signed integers with 0 as 0, or floats, beside scales that are codes");
    return quantizer_says(by, QUANT_CHOICE, CHOICE_4OR6) &&
                   (quantizer_says(by, QUANT_SCALE, SCALE_E8M0) || quantizer_says(by, QUANT_SCALE, SCALE_POW2))
               ? scale_refused(s, q, value, data, "scales in f32 or e4m3 where the largest becomes 4 or 6")
               : OK;
}

/* A rounding that the target lacks, and the quantizer that rounds as it does. */
static Status no_rounding(const QuantScales *s, const QuantNodes *q, const Node *value, bool data, const char *has)
{
    Arena *scratch = s->p->run->scratch;
    const QuantTarget *t = quantization_target(s->p->recipe);
    const char *operand = data ? "a" : "w";
    Quantizer other = quantizer_mended(q->by, data);
    other.part[QUANT_ROUNDING].value = quantizer_rounding_called(has);
    if (scale_source(q) == SOURCE_N2UQ && other.part[QUANT_ROUNDING].value != ROUNDING_RNE) {
        other.part[QUANT_SOURCE].value = SOURCE_LSQ; /* thresholds are no rounding */
        other.part[QUANT_MASK].value = MASK_V;
    }
    Message *m =
        message_new(s->p->run->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(value), "%s=%s: %s rounds %s by %s alone",
                    operand, quantizer_text(q->by, scratch), t->title, data ? "data" : "weights", has);
    message_try(m, "%s=%s", operand, quantizer_text(&other, scratch));
    return message_send(m);
}

/* Draws are for products; others are those of the machine or, where its file has quantizers of them, of that. */
static Status check_rounding(const QuantScales *s, const QuantNodes *q, const Node *value, bool data)
{
    const QuantValue how = q->by->part[QUANT_ROUNDING].value;
    const char *has = quantizer_roundings(quantization_target(s->p->recipe), data);
    if (how == ROUNDING_SR || how == ROUNDING_MS_EDEN)
        return scale_refused(s, q, value, data, "roundings that are no chance");
    if (scale_source(q) == SOURCE_N2UQ && how != ROUNDING_RNE) /* which check_levels refuses */
        return OK;
    return !has || str_listed(has, quantizer_rounding_word(how)) ? OK : no_rounding(s, q, value, data, has);
}

Status scale_check(const QuantScales *s, const QuantNodes *q, const Node *value, bool data)
{
    const QuantPart *part = q->by->part;
    int64_t least, largest;
    if (q->by->format == FORMAT_TERNARY && !data) {
        TRY(check_ternary(s, q, value));
        return check_rounding(s, q, value, data);
    }
    if (q->by->format == FORMAT_BINARY) {
        TRY(check_binary(s, q, value, data));
        return data ? check_rounding(s, q, value, data) : OK; /* signs are not rounded */
    }
    if (quantizer_is_float(q->by))
        TRY(check_float(s, q, value, data));
    else if (!quantizer_is_integer(q->by))
        return scale_refused(s, q, value, data, "codes that are integers, or floats of few bits");
    if (scale_source(q) == SOURCE_DOREFA)
        TRY(check_dorefa(s, q, value, data));
    quant_codes_of(q, &least, &largest);
    if ((scale_zero_is_0(q) || quantizer_is_learned(q->by)) && largest <= 0)
        return scale_refused(s, q, value, data, "codes above that of 0");
    TRY(check_at_hand(s, q, value, data));
    TRY(check_rounding(s, q, value, data));
    if (part[QUANT_BITS].value)
        TRY(scale_check_bits(s, q, value, data));
    if (part[QUANT_MASTER].value || part[QUANT_TURN].value)
        return scale_refused(s, q, value, data, "a copy in f32, nothing turned");
    TRY(check_start(s, q, value, data));
    if (quantizer_is_learned(q->by))
        return check_learned(s, q, value, data);
    if (data && scale_source(q) == SOURCE_DYNAMIC && part[QUANT_SCALE].value == SCALE_POW2)
        return scale_refused(s, q, value, data, "scales in f32 of what is dynamic");
    return data ? check_grain_of_data(s, q, value) : OK;
}

/* ---- of calls ---- */

bool quant_has_weight(const Node *n)
{
    return quant_weight_of(in(n, 0)) || quant_weight_of(in(n, 1));
}

/* What a target cannot run, or another form of, is refused before anything is trained: blocks of weights beside codes ... */
static Status check_blocks(Placement *p, const Node *n, const QuantCallMark *c)
{
    enum { PACKED = 4 };
    const QuantTarget *t = quantization_target(p->recipe);
    if (!t->no_blocks || !quant_splits_sums(c->weight) || !c->data || !quant_has_weight(n) ||
        quant_goes_by_rows(c->data) || (c->weight->bits <= PACKED && !t->whole_bytes) || c->weight->bits > 8)
        return OK;
    Message *m =
        message_new(p->run->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(n), "w=%s with a=%s: %s",
                    quantizer_text(c->weight, p->run->scratch), quantizer_text(c->data, p->run->scratch), t->no_blocks);
    message_try(m, "w=int%d:channel", c->weight->bits);
    message_try(m, t->whole_bytes ? "a=off" : "a=off, or four bits and fewer of weights, which it leaves float");
    message_try(m, "--for generic");
    return message_send(m);
}

/* ... scales that are not one for all or one a channel, also where nothing is codes beside them ... */
static Status check_groups(Placement *p, const Node *n, const QuantCallMark *c)
{
    const QuantTarget *t = quantization_target(p->recipe);
    const bool rows = c->data && quant_goes_by_rows(c->data), groups = c->weight && quant_splits_sums(c->weight);
    if (!t->no_groups || !(rows || groups))
        return OK;
    const Quantizer *q = groups ? c->weight : c->data;
    Message *m = message_new(p->run->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(n), "%s=%s: %s", groups ? "w" : "a",
                             quantizer_text(q, p->run->scratch), t->no_groups);
    message_try(m, groups ? "w=int%d:channel" : "a=int%d:tensor", q->bits);
    message_try(m, "--for generic");
    return message_send(m);
}

/* ... and a Clip between a Q and a DQ, which codes of data need that are not all of a byte. */
static Status check_bytes(Placement *p, const Node *n, const QuantCallMark *c)
{
    const QuantTarget *t = quantization_target(p->recipe);
    const Quantizer *a = c->data;
    if (!t->whole_bytes || !a ||
        (a->format == FORMAT_INT && a->bits == 8 && !quantizer_says(a, QUANT_RANGE, RANGE_NARROW) &&
         !quant_goes_by_rows(a)))
        return OK;
    Message *m = message_new(p->run->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(n),
                             "a=%s: %s reads data as int8, all of its codes, with one scale",
                             quantizer_text(a, p->run->scratch), t->title);
    message_try(m, "a=int8:sym");
    message_try(m, "--for generic");
    return message_send(m);
}

static Message *no_such_floats(Placement *p, const Node *n, const Quantizer *q, bool data, const char *why)
{
    return message_new(p->run->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(n), "%s=%s: %s", data ? "a" : "w",
                       quantizer_text(q, p->run->scratch), why);
}

/* Why a target has no such codes, and what there is instead; null: it has them. */
static const char *why_no_floats(const QuantTarget *t, const Quantizer *q, bool data, bool beside, const char **instead)
{
    *instead = data ? "a=int8" : "w=int8";
    if (!data && t->no_float_weights)
        return t->no_float_weights;
    if (!data && beside && t->no_float_products)
        *instead = "a=off";
    if (data || beside)
        return t->no_float_products;
    *instead = "w=e4m3";
    return q->format == FORMAT_E2M1 ? t->no_half_floats : NULL;
}

/* Codes that are floats: who has them, and how many bits they have. */
static Status check_floats(Placement *p, const Node *n, const QuantCallMark *c, bool data)
{
    const Quantizer *q = &c->spec->of[data ? OPERAND_A : OPERAND_W];
    const QuantEnd *end = c->first && c->spec->first.said ? &c->spec->first : c->last ? &c->spec->last : NULL;
    const bool product = quant_multiplies(op_of(n)), ends = end && end->said,
               here = data ? product : quant_has_weight(n);
    const char *instead, *title = data ? "a" : "w";
    if (!q->on || !quantizer_is_float(q) || quantizer_is_stored(q) || !here || (ends && !end->bits))
        return OK;
    const Quantizer other = quantizer_mended(q, data);
    const QuantTarget *t = quantization_target(p->recipe);
    const char *why = why_no_floats(t, q, data, product && c->spec->of[OPERAND_A].on, &instead);
    Message *m = NULL;
    if (why) {
        m = no_such_floats(p, n, q, data, why);
        message_try(m, "--for generic");
        message_try(m, "%s", instead);
    } else if (!data && quant_is_table(n) && !t->quants) {
        m = no_such_floats(p, n, q, data, "files look up no rows of such codes");
        message_try(m, "w=int8");
    } else if (data && other.format != q->format && !t->quants) {
        m = no_such_floats(p, n, q, data,
                           "ONNX has no floats of 6 bits that data could be rounded to; weights alone have them");
        message_try(m, "%s=%s", title, quantizer_text(&other, p->run->scratch));
    } else if (ends && end->bits != q->bits) {
        m = no_such_floats(p, n, q, data, "a first or a last layer has the bits of the format, or stays");
        message_try(m, "first=off or last=off, or --quant-op for that layer");
    }
    return m ? message_send(m) : OK;
}

/* A value that a product wants as floats of few bits, and another one as integers, is neither. */
Status quant_check_format(Placement *p, Node *n, int i, const Quantizer *q)
{
    const QuantValueMark *v = quant_value(p, in(n, i));
    if (!q || !v->by || v->by->format == q->format || (!quantizer_is_float(q) && !quantizer_is_float(v->by)))
        return OK;
    Message *m = no_such_floats(p, n, q, true,
                                arena_printf(p->run->scratch, "%s reads the same value as %s",
                                             node_place(v->asked).where, quantizer_text(v->by, p->run->scratch)));
    message_try(m, "one format for all that read it");
    return message_send(m);
}

Status quant_check_floats(Placement *p, const Node *n, const QuantCallMark *c)
{
    TRY(check_floats(p, n, c, false));
    return check_floats(p, n, c, true);
}

/* ---- what the products of a machine of somebody's own take (passes/target/datapath.h) ---- */

/* The word of a grain in texts. */
static const char *grain_word(const Quantizer *q)
{
    switch (q->part[QUANT_GRAIN].value) {
    case GRAIN_TENSOR:
        return "tensor";
    case GRAIN_GROUP:
        return "group";
    case GRAIN_BLOCK:
        return "block";
    case GRAIN_TILE:
        return "tile";
    default: /* channel, and a row, which is one of the result */
        return "channel";
    }
}

static Message *machine_refuses(Placement *p, const Node *n, const Quantizer *q, bool data, const char *has)
{
    const QuantTarget *t = quantization_target(p->recipe);
    return message_new(p->run->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(n), "%s=%s: %s has %s", data ? "a" : "w",
                       quantizer_text(q, p->run->scratch), t->title, has);
}

static Status check_own_grain(Placement *p, const Node *n, const Quantizer *q)
{
    const char *op = op_of(n)->name, *has = target_grains(quantization_target(p->recipe), op, p->run->scratch);
    if (!has || str_listed(has, grain_word(q)))
        return OK;
    Message *m = machine_refuses(p, n, q, false,
                                 *has ? arena_printf(p->run->scratch, "%s for weights of %s", has, op)
                                      : arena_printf(p->run->scratch, "no codes of weights of %s", op));
    if (*has)
        message_try(m, "w=%s%d:%.*s", q->format == FORMAT_UINT ? "uint" : "int", q->bits, (int)strcspn(has, " "), has);
    else
        message_try(m, "--quant-op 'op:%s=off'", op_title(p->run->scratch, n));
    return message_send(m);
}

/* A first or a last layer has bits of its own. */
static const char *own_bits(const QuantCallMark *c)
{
    return c->first && c->spec->first.said ? "first" : c->last && c->spec->last.said ? "last" : NULL;
}

static Status check_own_bits(Placement *p, const Node *n, const QuantCallMark *c, bool data)
{
    const QuantTarget *t = quantization_target(p->recipe);
    const Quantizer *q = data ? c->data : c->weight;
    const char *has = data ? t->data_bits : t->weight_bits, *end = own_bits(c);
    if (!has || str_listed(has, arena_printf(p->run->scratch, "%d", q->bits)))
        return OK;
    Message *m =
        machine_refuses(p, n, q, data, arena_printf(p->run->scratch, "%s of %s bits", data ? "data" : "weights", has));
    if (end)
        message_try(m, "%s=off, or --quant-op for that layer", end);
    else
        message_try(m, "%s=%s%d", data ? "a" : "w", q->format == FORMAT_UINT ? "uint" : "int", atoi(has));
    return message_send(m);
}

static Status check_own_scale(Placement *p, const Node *n, const Quantizer *q, bool data)
{
    Quantizer other = *q;
    if (!quantization_target(p->recipe)->pow2_scales || q->part[QUANT_SCALE].value == SCALE_POW2)
        return OK;
    Message *m = machine_refuses(p, n, q, data, "scales that are powers of two");
    other.part[QUANT_SCALE].value = SCALE_POW2;
    message_try(m, "%s=%s", data ? "a" : "w", quantizer_text(&other, p->run->scratch));
    return message_send(m);
}

static Status check_datapath(Placement *p, const Node *n, const QuantCallMark *c)
{
    if (!c->weight || !c->data)
        return OK;
    if (quant_has_weight(n)) {
        TRY(check_own_grain(p, n, c->weight));
        TRY(check_own_bits(p, n, c, false));
        TRY(check_own_scale(p, n, c->weight, false));
    }
    TRY(check_own_bits(p, n, c, true));
    return check_own_scale(p, n, c->data, true);
}

Status quant_check_target(Placement *p, const Node *n, const QuantCallMark *c)
{
    TRY(check_groups(p, n, c));
    TRY(check_blocks(p, n, c));
    TRY(check_bytes(p, n, c));
    return check_datapath(p, n, c);
}
