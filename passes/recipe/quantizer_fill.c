/* What a quantizer is where its words leave it open, and what does not go together. */
#include "passes/recipe/quantizer.h"

#include <string.h>

const char quantizer_default[] = "default";

bool quantizer_is_integer(const Quantizer *q)
{
    return q->format == FORMAT_INT || q->format == FORMAT_UINT || q->format == FORMAT_EITHER;
}

static const struct {
    QuantFormat format;
    DType codes;
} floats[] = {
    { FORMAT_E4M3, F8E4M3 }, { FORMAT_E5M2, F8E5M2 }, { FORMAT_E2M3, F6E2M3 },
    { FORMAT_E3M2, F6E3M2 }, { FORMAT_E2M1, F4E2M1 },
};

bool quantizer_is_float(const Quantizer *q)
{
    bool is = false;
    for (size_t i = 0; i < COUNT(floats); i++)
        is |= floats[i].format == q->format;
    return is;
}

DType quantizer_float_codes(const Quantizer *q)
{
    size_t i = 0;
    while (i + 1 < COUNT(floats) && floats[i].format != q->format)
        i++;
    return floats[i].codes;
}

bool quantizer_is_learned(const Quantizer *q)
{
    const QuantValue v = q->part[QUANT_SOURCE].value;
    return v == SOURCE_LSQ || v == SOURCE_LSQ_PLUS || v == SOURCE_PACT || v == SOURCE_TQT || v == SOURCE_N2UQ ||
           v == SOURCE_STATS;
}

static bool is_dynamic(const Quantizer *q)
{
    return q->on && q->part[QUANT_SOURCE].value == SOURCE_DYNAMIC;
}

bool quantizer_is_of_products(const QuantSpec *s)
{
    const Quantizer *w = &s->of[OPERAND_W], *a = &s->of[OPERAND_A];
    for (int i = OPERAND_G; i < QUANT_OPERAND_COUNT; i++)
        if (s->of[i].on)
            return true;
    return is_dynamic(w) && is_dynamic(a) && w->format != FORMAT_TERNARY && w->format != FORMAT_BINARY;
}

bool quantizer_is_stored(const Quantizer *q)
{
    return q && q->on && q->part[QUANT_MASTER].value == MASTER_NONE;
}

static void by_default(Quantizer *q, QuantField field, QuantValue value, const char *why)
{
    QuantPart *part = &q->part[field];
    if (part->value)
        return;
    *part = (QuantPart){ .value = value, .from = why };
    if (value == SOURCE_EMA)
        part->number = 0.01;
}

/* Blocks, groups and tiles: scales for so many elements. */
static bool has_blocks(const Quantizer *q)
{
    return quantizer_says(q, QUANT_GRAIN, GRAIN_GROUP) || quantizer_says(q, QUANT_GRAIN, GRAIN_BLOCK) ||
           quantizer_says(q, QUANT_GRAIN, GRAIN_TILE);
}

bool quantizer_has_coded_scale(const Quantizer *q)
{
    return quantizer_says(q, QUANT_SCALE, SCALE_E8M0) || quantizer_says(q, QUANT_SCALE, SCALE_E4M3);
}

static void fill_source(Quantizer *q, QuantOperand role)
{
    if (role == OPERAND_B && q->bits == 32)
        by_default(q, QUANT_SOURCE, SOURCE_PRODUCT, "default of biases of 32 bits");
    else if (q->format == FORMAT_TERNARY)
        by_default(q, QUANT_SOURCE, SOURCE_DYNAMIC, "default of -1, 0 and 1");
    else if (q->format == FORMAT_BINARY)
        by_default(q, QUANT_SOURCE, role == OPERAND_A ? SOURCE_LSQ : SOURCE_DYNAMIC, "default of two codes");
    else if (role == OPERAND_W || role == OPERAND_B)
        by_default(q, QUANT_SOURCE, SOURCE_MINMAX, "default of weights");
    else if (role == OPERAND_A && (has_blocks(q) || quantizer_has_coded_scale(q)))
        by_default(q, QUANT_SOURCE, SOURCE_DYNAMIC, "default of blocks of activations");
    else if (role == OPERAND_A)
        by_default(q, QUANT_SOURCE, SOURCE_EMA, "default of activations");
    else
        by_default(q, QUANT_SOURCE, SOURCE_DYNAMIC, "default of what backward quantizes");
}

/* Sources that look for a range within the least and the largest. */
static bool cuts(const Quantizer *q)
{
    const QuantValue v = q->part[QUANT_SOURCE].value;
    return v == SOURCE_MSE || v == SOURCE_KL || v == SOURCE_HQO || v == SOURCE_SIGMA || v == SOURCE_PCT;
}

/* With a scale from the largest nothing is outside, so weights pass; where the range is learned, what lies outside moves it. */
static void fill_mask(Quantizer *q, QuantOperand role)
{
    if (quantizer_says(q, QUANT_SOURCE, SOURCE_N2UQ))
        by_default(q, QUANT_MASK, MASK_PASS, "default of n2uq, whose intervals end");
    else if (quantizer_is_learned(q))
        by_default(q, QUANT_MASK, MASK_V, "default of learned scales");
    else if (role == OPERAND_A && quantizer_says(q, QUANT_SOURCE, SOURCE_DOREFA))
        by_default(q, QUANT_MASK, MASK_V, "default of dorefa");
    else if (role == OPERAND_A && q->part[QUANT_SOURCE].value != SOURCE_DYNAMIC)
        by_default(q, QUANT_MASK, MASK_Q, "default of activations");
    else if (cuts(q))
        by_default(q, QUANT_MASK, MASK_Q, "default of ranges that cut");
    else
        by_default(q, QUANT_MASK, MASK_PASS, "default where the largest sets the scale");
}

void quantizer_fill(Quantizer *q, QuantOperand role)
{
    if (q->format == FORMAT_BF16) { /* which have no scale */
        by_default(q, QUANT_ROUNDING, ROUNDING_RNE, quantizer_default);
        return;
    }
    const bool weights = role == OPERAND_W || role == OPERAND_B || role == OPERAND_W_DGRAD;
    if (weights || role == OPERAND_A)
        by_default(q, QUANT_GRAIN, weights ? GRAIN_CHANNEL : GRAIN_TENSOR,
                   weights ? "default of weights" : "default of activations");
    else
        by_default(q, QUANT_GRAIN, GRAIN_ROW, "default of what backward quantizes");
    fill_source(q, role);
    if (quantizer_says(q, QUANT_SOURCE, SOURCE_TQT))
        by_default(q, QUANT_SCALE, SCALE_POW2, "default of tqt");
    by_default(q, QUANT_SCALE, SCALE_F32, "default");
    if (quantizer_says(q, QUANT_SOURCE, SOURCE_LSQ_PLUS))
        by_default(q, QUANT_ZERO, ZERO_LEARNED, "default of lsq+");
    by_default(q, QUANT_ZERO, ZERO_SYM, "default");
    if (quantizer_is_integer(q)) {
        const bool narrow = weights && q->format == FORMAT_INT && q->bits > 1 && q->bits <= 16;
        by_default(q, QUANT_RANGE, narrow ? RANGE_NARROW : RANGE_FULL,
                   narrow ? "default of signed weights" : "default");
    }
    by_default(q, QUANT_ROUNDING, ROUNDING_RNE, quantizer_default);
    by_default(q, QUANT_CHOICE, CHOICE_ABSMAX, "default");
    fill_mask(q, role);
}

static const struct {
    const char *word;
    QuantValue value;
} roundings[] = {
#define WORD(field, word, value, ...) { QUANT_##field == QUANT_ROUNDING ? word : NULL, value },
    QUANT_WORDS(WORD)
#undef WORD
};

const char *quantizer_rounding_word(QuantValue rounding)
{
    for (size_t i = 0; i < COUNT(roundings); i++)
        if (roundings[i].value == rounding)
            return roundings[i].word;
    return NULL;
}

QuantValue quantizer_rounding_called(const char *words)
{
    const size_t n = strcspn(words, " ");
    for (size_t i = 0; i < COUNT(roundings); i++)
        if (roundings[i].word && strlen(roundings[i].word) == n && memcmp(roundings[i].word, words, n) == 0)
            return roundings[i].value;
    return QUANT_NOTHING;
}

const char *quantizer_roundings(const QuantTarget *target, bool data)
{
    if (!data)
        return target->weight_rounding;
    return target->data_rounding ? target->data_rounding : "rne";
}

void quantizer_fill_rounding(Quantizer *q, QuantOperand role, const QuantTarget *target)
{
    const char *has = role == OPERAND_A || role == OPERAND_W ? quantizer_roundings(target, role == OPERAND_A) : NULL;
    QuantPart *part = &q->part[QUANT_ROUNDING];
    if (has && quantizer_is_integer(q) && part->from == quantizer_default)
        part->value = quantizer_rounding_called(has);
}

void quantizer_codes(const Quantizer *q, int64_t *least, int64_t *largest)
{
    const int64_t half = (int64_t)1 << (q->bits - 1);
    const bool narrow = q->part[QUANT_RANGE].value == RANGE_NARROW || q->format == FORMAT_TERNARY;
    if (q->format == FORMAT_BINARY) {
        *least = -1;
        *largest = 1;
    } else if (q->format == FORMAT_UINT) {
        *least = 0;
        *largest = 2 * half - 1 - narrow;
    } else {
        *least = narrow ? 1 - half : -half;
        *largest = half - 1;
    }
}

/* ---- what does not go together ---- */

static const char *wrong_with_format(const Quantizer *q, const char **instead)
{
    const bool integer = quantizer_is_integer(q);
    int64_t least, largest;
    *instead = "int8";
    if (!integer && !quantizer_says(q, QUANT_ZERO, ZERO_SYM))
        return "a zero point belongs to integers";
    if (!integer && q->part[QUANT_RANGE].value)
        return "narrow and full belong to integers";
    if (!integer && q->part[QUANT_BITS].value)
        return "learned bits belong to integers";
    *instead = integer ? "absmax" : "e2m1";
    if (quantizer_says(q, QUANT_CHOICE, CHOICE_4OR6) && q->format != FORMAT_E2M1)
        return "4or6 belongs to e2m1";
    if (!integer)
        return NULL;
    quantizer_codes(q, &least, &largest);
    *instead = "binary";
    return least >= largest ? "one code is all that is left" : NULL;
}

/* Floats of 16 bits are a way to store weights, and have no scale to speak of. */
static const char *wrong_with_floats(const Quantizer *q, QuantOperand role, const char **instead)
{
    *instead = role == OPERAND_W ? "bf16:sr:stored" : "--amp bf16, which rounds what products read";
    if (role != OPERAND_W || !q->part[QUANT_MASTER].value)
        return "bf16 is what weights are stored in";
    for (size_t i = 0; i < COUNT(q->part); i++)
        if (q->part[i].value && i != QUANT_ROUNDING && i != QUANT_MASTER && i != QUANT_FIRST)
            return "bf16 has no scale: its words are rne or sr, stored and from=sr";
    return quantizer_says(q, QUANT_ROUNDING, ROUNDING_RNE) || quantizer_says(q, QUANT_ROUNDING, ROUNDING_SR)
               ? NULL
               : "bf16 is rounded by rne or sr";
}

/* Scales and codes of 0 that go together: learned quantizers say what they learn. */
static const char *wrong_with_learned(const Quantizer *q, const char **instead)
{
    const bool plus = quantizer_says(q, QUANT_SOURCE, SOURCE_LSQ_PLUS),
               tqt = quantizer_says(q, QUANT_SOURCE, SOURCE_TQT), zero = quantizer_says(q, QUANT_ZERO, ZERO_LEARNED);
    *instead = "lsq";
    if (plus && !zero)
        return "lsq+ learns where 0 lies";
    if (tqt && !quantizer_says(q, QUANT_SCALE, SCALE_POW2))
        return "the scales of tqt are powers of two";
    *instead = "sym";
    if (quantizer_says(q, QUANT_SOURCE, SOURCE_CONST) && quantizer_says(q, QUANT_ZERO, ZERO_ASYM))
        return "a scale that is said leaves open which code stands for 0";
    return zero && !plus && !quantizer_says(q, QUANT_SOURCE, SOURCE_LSQ)
               ? "a learned code of 0 belongs to learned scales"
               : NULL;
}

/* What a source is for, where it is not for everything. */
static const char *wrong_with_purpose(const Quantizer *q, QuantOperand role, const char **instead)
{
    *instead = "uint8:pact";
    if (quantizer_says(q, QUANT_SOURCE, SOURCE_PACT) && q->format == FORMAT_INT)
        return "pact learns the upper end of what is never below 0";
    *instead = "a=uint4:n2uq";
    if (quantizer_says(q, QUANT_SOURCE, SOURCE_N2UQ) &&
        (role != OPERAND_A || q->format == FORMAT_INT || q->bits > QUANT_THRESHOLD_BITS))
        return "n2uq counts up to 15 thresholds of data from 0 on";
    *instead = "mask=pass";
    if (quantizer_says(q, QUANT_SOURCE, SOURCE_N2UQ) && !quantizer_says(q, QUANT_MASK, MASK_PASS))
        return "the intervals of n2uq say where gradients pass";
    *instead = "w=ternary:twn";
    if (quantizer_says(q, QUANT_SOURCE, SOURCE_TWN) && (role != OPERAND_W || q->format != FORMAT_TERNARY))
        return "twn belongs to ternary weights";
    *instead = "a=uint4:dorefa";
    return quantizer_says(q, QUANT_SOURCE, SOURCE_DOREFA) && role != OPERAND_W &&
                   (role != OPERAND_A || q->format == FORMAT_INT)
               ? "dorefa belongs to weights, and to data from 0 to 1"
               : NULL;
}

static const char *wrong_with_source(const Quantizer *q, QuantOperand role, const char **instead)
{
    const bool state = role == OPERAND_W || role == OPERAND_A;
    *instead = "dynamic";
    if (quantizer_is_learned(q) && !state)
        return "only scales of weights and activations are learned";
    *instead = "block=32";
    if (quantizer_says(q, QUANT_SCALE, SCALE_E4M3) && !has_blocks(q))
        return "a scale of 8 bits beside one number of the tensor belongs to blocks";
    *instead = "block=16";
    if (quantizer_says(q, QUANT_TURN, TURN_HADAMARD) && !(has_blocks(q) && q->part[QUANT_GRAIN].size[0] % 16 == 0))
        return "hadamard=16 turns blocks of a multiple of 16";
    *instead = "w=int8:stored";
    if (q->part[QUANT_MASTER].value && role != OPERAND_W)
        return "stored belongs to weights";
    *instead = "w=int8:sr:stored:from=sr";
    if (q->part[QUANT_FIRST].value && !q->part[QUANT_MASTER].value)
        return "from=sr is how floats become codes that are stored";
    *instead = "dynamic";
    if (q->part[QUANT_MASTER].value && !quantizer_says(q, QUANT_SOURCE, SOURCE_DYNAMIC) &&
        !quantizer_says(q, QUANT_SOURCE, SOURCE_MINMAX))
        return "weights that are stored have the scale of their largest";
    return wrong_with_purpose(q, role, instead);
}

const char *quantizer_wrong(const Quantizer *q, QuantOperand role, const char **instead)
{
    if (q->format == FORMAT_BF16)
        return wrong_with_floats(q, role, instead);
    const char *wrong = wrong_with_format(q, instead);
    wrong = wrong ? wrong : wrong_with_learned(q, instead);
    return wrong ? wrong : wrong_with_source(q, role, instead);
}

bool quantizer_same(const Quantizer *a, const Quantizer *b)
{
    bool same = a->on == b->on && a->format == b->format && a->bits == b->bits;
    for (size_t i = 0; i < COUNT(a->part); i++) {
        const QuantPart *x = &a->part[i], *y = &b->part[i];
        same &= x->value == y->value && x->number == y->number && x->size[0] == y->size[0] && x->size[1] == y->size[1];
    }
    return same;
}

void quantizer_lay_over(QuantSpec *spec, const QuantSpec *over)
{
    for (size_t i = 0; i < COUNT(spec->of); i++)
        if (over->of[i].on || strcmp(over->of[i].from, quantizer_unsaid) != 0)
            spec->of[i] = over->of[i];
    if (over->first.said)
        spec->first = over->first;
    if (over->last.said)
        spec->last = over->last;
}
