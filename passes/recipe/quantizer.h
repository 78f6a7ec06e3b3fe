/* A quantizer as plain data: orthogonal fields, each of which knows where it came from; and what a step is quantized with.
 *
 * Nothing here computes.  What a target or an engine cannot do it refuses by these fields; none is ever taken for another. */
#ifndef PASSES_RECIPE_QUANTIZER_H
#define PASSES_RECIPE_QUANTIZER_H

#include <math.h>

#include "base/diag.h"
#include "ir/type.h"
#include "passes/quantizers.def"
#include "passes/target/target.h"

typedef enum QuantFormat {
#define FORMAT(id, ...) FORMAT_##id,
    QUANT_FORMATS(FORMAT)
#undef FORMAT
} QuantFormat;

typedef enum QuantField {
#define FIELD(id, ...) QUANT_##id,
    QUANT_FIELDS(FIELD)
#undef FIELD
        QUANT_FIELD_COUNT
} QuantField;

/* The values of fields, as QUANT_WORDS lists them; 0 is what there is without a word for it. */
typedef enum QuantValue {
    QUANT_NOTHING,
#define WORD(field, word, value, ...) value,
    QUANT_WORDS(WORD)
#undef WORD
        SOURCE_PRODUCT, /* of biases: the scale of the data times that of the weights */
} QuantValue;

typedef enum QuantOperand {
#define OPERAND(id, ...) OPERAND_##id,
    QUANT_OPERANDS(OPERAND)
#undef OPERAND
        QUANT_OPERAND_COUNT
} QuantOperand;

typedef enum QuantProduct {
#define PRODUCT(id, ...) PRODUCT_##id,
    QUANT_PRODUCTS(PRODUCT)
#undef PRODUCT
        QUANT_PRODUCT_COUNT
} QuantProduct;

/* One field: its value, the numbers that belong to it, and who decided it. */
typedef struct QuantPart {
    QuantValue value;
    double number;   /* of const, ema, pct, sigma, init */
    int64_t size[2]; /* of group, block, tile, stats, hadamard */
    const char *from;
} QuantPart;

typedef struct Quantizer {
    bool on;
    QuantFormat format;
    int bits;
    QuantPart part[QUANT_FIELD_COUNT];
    const char *from; /* who decided that, and on which format */
} Quantizer;

/* Bits of the first and the last layer. */
typedef struct QuantEnd {
    bool said;
    int bits; /* 0: it is not quantized */
    const char *from;
} QuantEnd;

/* What a step, or a part of it, is quantized with. */
typedef struct QuantSpec {
    Quantizer of[QUANT_OPERAND_COUNT];
    QuantEnd first, last;
    double budget;         /* bytes of codes of weights, whose bits are learned; 0: nobody says */
    int64_t weights_first; /* steps in which weights alone are quantized; 0: none */
} QuantSpec;

/* Quantizer.from of an operand that nothing was said of. */
extern const char quantizer_unsaid[];

/* QuantPart.from of what nobody said. */
extern const char quantizer_default[];

/* Whether a field has that value. */
static inline bool quantizer_says(const Quantizer *q, QuantField field, QuantValue value)
{
    return q->part[field].value == value;
}

/* Codes of more bits have no thresholds of their own (n2uq). */
#define QUANT_THRESHOLD_BITS 4

/* Whether a quantizer's codes are integers. */
bool quantizer_is_integer(const Quantizer *q);

/* Whether they are floats of few bits, and the element type of those. */
bool quantizer_is_float(const Quantizer *q);
DType quantizer_float_codes(const Quantizer *q);

/* Whether its scales are codes themselves: E8M0, or E4M3 beside one number of the tensor. */
bool quantizer_has_coded_scale(const Quantizer *q);

/* Whether its scale is trained. */
bool quantizer_is_learned(const Quantizer *q);

/* Whether a spec is of products whose operands become codes as they are needed, forward and backward, not of a model that
 * is deployed quantized: gradients are quantized, or weights and data both have the scale of what is at hand, no ternary
 * ones. */
bool quantizer_is_of_products(const QuantSpec *s);

/* Whether what it writes is all that there is: codes are the parameters. */
bool quantizer_is_stored(const Quantizer *q);

/* Whether two quantizers do the same, whoever said so. */
bool quantizer_same(const Quantizer *a, const Quantizer *b);

/* The least and the largest code of integers, and of ternary ones; of EITHER those of signed ones. */
void quantizer_codes(const Quantizer *q, int64_t *least, int64_t *largest);

/* Decides what words left open, as weights, activations and the others want it. */
void quantizer_fill(Quantizer *q, QuantOperand operand);

/* The same for a target: how it rounds where nobody says how. */
void quantizer_fill_rounding(Quantizer *q, QuantOperand operand, const QuantTarget *target);

/* The words of the roundings that a target has for data or for weights, the usual one first; null: any. */
const char *quantizer_roundings(const QuantTarget *target, bool data);

/* The word of a rounding, and the rounding of a word, or of the first of several. */
const char *quantizer_rounding_word(QuantValue rounding);
QuantValue quantizer_rounding_called(const char *words);

/* What of a whole record does not go together, and what to write instead; null: nothing. */
const char *quantizer_wrong(const Quantizer *q, QuantOperand operand, const char **instead);

/* Reads SPEC (docs/quantization.md) for the target of that name, whose row says what presets stand for; USAGE with what to
 * write instead where something is unknown, said twice or does not go together. */
Status quantizer_read(QuantSpec *to, const char *option, const char *text, const char *target, Arena *arena,
                      Diag *diag);

/* The same for a row, which may be one of a file. */
Status quantizer_read_for(QuantSpec *to, const char *option, const char *text, const QuantTarget *target, Arena *arena,
                          Diag *diag);

/* Reads what stands behind an operand's '=': off, or FORMAT:WORDS.  `from` is who says it. */
Status quantizer_read_one(Quantizer *to, QuantOperand operand, Place place, const char *from, const char *text,
                          Arena *arena, Diag *diag);

/* Lays over a spec what another one says of operands, first and last: a layer that is read later. */
void quantizer_lay_over(QuantSpec *spec, const QuantSpec *over);

/* The nearest quantizer to one of data, or of a weight, that nothing places. */
Quantizer quantizer_mended(const Quantizer *q, bool data);

/* The spec of a preset in full for a target; null: it is none. */
const char *quantizer_preset(const char *name, const QuantTarget *target, Arena *arena);

/* A spec in the words that are read, every field said. */
const char *quantizer_spec_text(const QuantSpec *s, Arena *arena);

/* "w", "a" ..: what an operand is called there. */
const char *quantizer_operand_word(QuantOperand operand);

/* One quantizer so: "int8:channel:minmax:f32:sym:narrow:rne:mask=pass". */
const char *quantizer_text(const Quantizer *q, Arena *arena);

/* Every role and every field of it with its meaning and where it came from, a line each. */
void quantizer_explain(Text *to, const QuantSpec *s);

#endif
