/* The nearest quantizer to one that nothing here does: for messages. */
#include "passes/recipe/quantizer.h"

static void set(Quantizer *q, QuantField field, QuantValue value)
{
    q->part[field] = (QuantPart){ .value = value, .from = "" };
}

static bool is(const Quantizer *q, QuantField field, QuantValue value)
{
    return q->part[field].value == value;
}

static void mend_codes(Quantizer *q, bool data)
{
    int64_t least, largest;
    if (data && (q->format == FORMAT_E2M3 || q->format == FORMAT_E3M2)) { /* which no file rounds to */
        q->format = FORMAT_E4M3;
        q->bits = 8;
    }
    if (quantizer_is_float(q)) {
        set(q, QUANT_ROUNDING, ROUNDING_RNE);
    } else if (!quantizer_is_integer(q)) {
        q->format = FORMAT_INT;
        q->bits = 8;
        set(q, QUANT_RANGE, RANGE_NARROW);
        set(q, QUANT_CHOICE, CHOICE_ABSMAX);
    }
    set(q, QUANT_BITS, QUANT_NOTHING);
    set(q, QUANT_MASTER, QUANT_NOTHING);
    set(q, QUANT_FIRST, QUANT_NOTHING);
    set(q, QUANT_TURN, QUANT_NOTHING);
    if (quantizer_is_float(q))
        return;
    quantizer_codes(q, &least, &largest);
    if (q->bits == 1 && largest <= 0)
        q->bits = 2;
    if (data || is(q, QUANT_ROUNDING, ROUNDING_SR) || is(q, QUANT_ROUNDING, ROUNDING_MS_EDEN))
        set(q, QUANT_ROUNDING, ROUNDING_RNE);
}

static bool is_known_source(QuantValue v, bool data)
{
    return v == SOURCE_CONST || v == SOURCE_MINMAX || v == SOURCE_DYNAMIC || v == SOURCE_LSQ || v == SOURCE_STATS ||
           v == SOURCE_LSQ_PLUS || v == SOURCE_TQT || v == SOURCE_MSE || v == SOURCE_KL || v == SOURCE_SIGMA ||
           v == (data ? SOURCE_EMA : SOURCE_HQO) || (data && (v == SOURCE_PCT || v == SOURCE_PACT || v == SOURCE_N2UQ));
}

/* Of codes that are floats: what needs no codes between which numbers lie. */
static bool is_source_of_floats(QuantValue v, bool data)
{
    return v == SOURCE_CONST || v == SOURCE_MINMAX || v == SOURCE_DYNAMIC || v == SOURCE_SIGMA || v == SOURCE_LSQ ||
           v == SOURCE_TQT || v == SOURCE_STATS || (data && (v == SOURCE_EMA || v == SOURCE_PCT));
}

/* Whether the range is one of several that are tried. */
static bool is_searched(const Quantizer *q)
{
    return is(q, QUANT_SOURCE, SOURCE_MSE) || is(q, QUANT_SOURCE, SOURCE_KL) || is(q, QUANT_SOURCE, SOURCE_HQO);
}

static bool has_blocks(const Quantizer *q)
{
    return is(q, QUANT_GRAIN, GRAIN_GROUP) || is(q, QUANT_GRAIN, GRAIN_BLOCK) || is(q, QUANT_GRAIN, GRAIN_TILE);
}

/* What is learned beside a scale belongs to some of them. */
static void mend_learned(Quantizer *q)
{
    if (is(q, QUANT_SOURCE, SOURCE_N2UQ)) {
        q->format = FORMAT_UINT;
        q->bits = q->bits > QUANT_THRESHOLD_BITS ? QUANT_THRESHOLD_BITS : q->bits;
        set(q, QUANT_ROUNDING, ROUNDING_RNE);
    }
    if ((is(q, QUANT_SOURCE, SOURCE_PACT) && q->format == FORMAT_INT) ||
        (is(q, QUANT_SOURCE, SOURCE_LSQ_PLUS) && has_blocks(q)))
        set(q, QUANT_SOURCE, SOURCE_LSQ);
    if (is(q, QUANT_SOURCE, SOURCE_LSQ_PLUS))
        set(q, QUANT_ZERO, ZERO_LEARNED);
    else if (quantizer_is_learned(q) || is(q, QUANT_ZERO, ZERO_LEARNED) || is(q, QUANT_SOURCE, SOURCE_HQO))
        set(q, QUANT_ZERO, ZERO_SYM);
}

/* Data have one scale, one a row, or one a block of a row. */
static void mend_grain_of_data(Quantizer *q)
{
    QuantPart *grain = &q->part[QUANT_GRAIN];
    if (is(q, QUANT_GRAIN, GRAIN_TILE))
        *grain = (QuantPart){ .value = GRAIN_BLOCK, .size = { grain->size[1] }, .from = "" };
    if (is(q, QUANT_GRAIN, GRAIN_ROW) || has_blocks(q))
        set(q, QUANT_SOURCE, SOURCE_DYNAMIC);
    else
        set(q, QUANT_GRAIN, GRAIN_TENSOR);
}

/* Scales that are codes are of what is at hand, and of codes whose 0 is in the middle; two of them are tried of floats. */
static void mend_coded(Quantizer *q, bool data)
{
    const bool at_hand = is(q, QUANT_SOURCE, SOURCE_DYNAMIC) || (!data && is(q, QUANT_SOURCE, SOURCE_MINMAX)),
               middle = quantizer_is_float(q) || (q->format == FORMAT_INT && q->bits >= 2);
    if (quantizer_has_coded_scale(q) && (!at_hand || !middle || (is(q, QUANT_SCALE, SCALE_E4M3) && !has_blocks(q))))
        set(q, QUANT_SCALE, SCALE_F32);
    if (quantizer_has_coded_scale(q))
        set(q, QUANT_ZERO, ZERO_SYM);
    if (!at_hand || is(q, QUANT_SCALE, SCALE_E8M0) || is(q, QUANT_SCALE, SCALE_POW2))
        set(q, QUANT_CHOICE, CHOICE_ABSMAX);
}

static void mend_scale(Quantizer *q, bool data)
{
    if (data)
        mend_grain_of_data(q);
    if (quantizer_is_float(q) && !is_source_of_floats(q->part[QUANT_SOURCE].value, data))
        set(q, QUANT_SOURCE, SOURCE_MINMAX);
    if (!is_known_source(q->part[QUANT_SOURCE].value, data) || (!data && q->bits > 16 && is_searched(q)))
        set(q, QUANT_SOURCE, data ? SOURCE_DYNAMIC : SOURCE_MINMAX);
    if (is(q, QUANT_SOURCE, SOURCE_TQT))
        set(q, QUANT_SCALE, SCALE_POW2);
    else if ((!is(q, QUANT_SCALE, SCALE_POW2) && !quantizer_has_coded_scale(q)) || quantizer_is_learned(q) ||
             (data && is(q, QUANT_SOURCE, SOURCE_DYNAMIC) && is(q, QUANT_SCALE, SCALE_POW2)))
        set(q, QUANT_SCALE, SCALE_F32);
    mend_coded(q, data);
    mend_learned(q);
    const QuantValue from = q->part[QUANT_SOURCE].value;
    if (!data || from == SOURCE_CONST || from == SOURCE_DYNAMIC || (quantizer_is_learned(q) && from != SOURCE_STATS))
        set(q, QUANT_START, QUANT_NOTHING);
    if (from == SOURCE_CONST)
        set(q, QUANT_SCALE, SCALE_F32);
}

Quantizer quantizer_mended(const Quantizer *q, bool data)
{
    Quantizer other = *q;
    mend_codes(&other, data);
    mend_scale(&other, data);
    mend_codes(&other, data); /* a zero point may be gone */
    return other;
}
