/* Which quantizers nothing makes scales for, and what to write instead. */
#include "passes/quant/scale_parts.h"

#include <math.h>

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
    if (quant_has_rows(q->by))
        return scale_source(q) == SOURCE_DYNAMIC
                   ? OK
                   : scale_refused(s, q, value, true, "dynamic scales of rows, which are of one batch");
    return q->by->part[QUANT_GRAIN].value == GRAIN_TENSOR
               ? OK
               : scale_refused(s, q, value, true, "one scale for all data, or one a row");
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

Status scale_check(const QuantScales *s, const QuantNodes *q, const Node *value, bool data)
{
    const QuantPart *part = q->by->part;
    int64_t least, largest;
    if (q->by->format == FORMAT_TERNARY && !data)
        return check_ternary(s, q, value);
    if (q->by->format == FORMAT_BINARY)
        return check_binary(s, q, value, data);
    if (!quantizer_is_integer(q->by))
        return scale_refused(s, q, value, data, "codes that are integers");
    if (scale_source(q) == SOURCE_DOREFA)
        TRY(check_dorefa(s, q, value, data));
    quant_codes_of(q, &least, &largest);
    if (scale_zero_is_0(q) && largest <= 0)
        return scale_refused(s, q, value, data, "codes above that of 0");
    if (part[QUANT_SCALE].value != SCALE_F32 && part[QUANT_SCALE].value != SCALE_POW2)
        return scale_refused(s, q, value, data, "scales in f32, or powers of two");
    if (part[QUANT_ROUNDING].value == ROUNDING_SR || part[QUANT_ROUNDING].value == ROUNDING_MS_EDEN)
        return scale_refused(s, q, value, data, "roundings that are no chance");
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
