/* hann_window, hamming_window, blackman_window, mel_weight_matrix: constants of signal processing, made in f64. */
#include <math.h>

#include "ops/signal/spectrum.h"
#include "ops/signal/unit_circle.h"

typedef struct TaperAttr {
    int output_datatype; /* DType + 1 */
    bool periodic;
} TaperAttr;

static const AttrSpec taper_attrs[] = {
    ATTR(TaperAttr, output_datatype, DTYPE, (int)F32 + 1),
    ATTR(TaperAttr, periodic, BOOL, true),
    ATTR_LAST,
};

typedef struct MelAttr {
    int output_datatype; /* DType + 1 */
} MelAttr;

static const AttrSpec mel_attrs[] = {
    ATTR(MelAttr, output_datatype, DTYPE, (int)F32 + 1),
    ATTR_LAST,
};

static bool result_type(Infer *q, int said, DType *dtype)
{
    const bool known = attr_dtype(said, dtype);
    const bool number = known && (dtype_is_integer(*dtype) || dtype_is_float(*dtype)) && dtype_bits(*dtype) >= 8;
    if (!number)
        infer_fail(q, "cannot give that type");
    return number;
}

static const Type *infer_taper(Infer *q)
{
    DType dtype;
    int64_t n = DIM_UNKNOWN;
    if (!infer_tensor(q, 0) || !infer_integer(q, 0) ||
        !result_type(q, ((const TaperAttr *)q->attr)->output_datatype, &dtype))
        return NULL;
    if (infer_number(q, 0, &n) && (n < 0 || n > q->ir->limits.dim))
        return infer_fail(q, "cannot be %" PRId64 " long", n);
    return type_vector(q->types, dtype, n);
}

/* a - b cos(2 pi i / n) + c cos(4 pi i / n); the symmetric form ends where it began. */
static Status taper(Eval *e, double a, double b, double c)
{
    const TaperAttr *at = e->attr;
    const int64_t size = eval_int(e, 0, 0), n = at->periodic || size < 2 ? size : size - 1;
    f64 *y = eval_out_f64(e, 0);
    for (int64_t i = 0; i < size; i++) {
        const UnitRoot once = unit_root(i % n, n), twice = unit_root(2 * i % n, n);
        y[i] = size == 1 && !at->periodic ? 1 : a - b * once.c + c * twice.c;
    }
    return OK;
}

static Status eval_hann_window(Eval *e)
{
    return taper(e, 0.5, 0.5, 0);
}

static Status eval_hamming_window(Eval *e)
{
    return taper(e, 25.0 / 46.0, 21.0 / 46.0, 0);
}

static Status eval_blackman_window(Eval *e)
{
    return taper(e, 0.42, 0.5, 0.08);
}

enum { BINS, LENGTH, RATE, LOWER, UPPER };

static bool check_edge(Infer *q, int i)
{
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    const int64_t n = type_elements(t);
    const bool one = n < 0 || n == 1;
    if (!one || !dtype_is_float(t->dtype))
        infer_fail(q, "operand %d must be one float, got %s", i, type_text(q->scratch, t));
    return one && dtype_is_float(t->dtype);
}

static const Type *infer_mel_weight_matrix(Infer *q)
{
    DType dtype;
    int64_t bins = DIM_UNKNOWN, length = DIM_UNKNOWN;
    for (int i = BINS; i <= RATE; i++)
        if (!infer_tensor(q, i) || !infer_integer(q, i))
            return NULL;
    if (!check_edge(q, LOWER) || !check_edge(q, UPPER) ||
        !result_type(q, ((const MelAttr *)q->attr)->output_datatype, &dtype))
        return NULL;
    if (infer_number(q, BINS, &bins) && (bins < 0 || bins > q->ir->limits.dim))
        return infer_fail(q, "cannot have %" PRId64 " bins", bins);
    if (infer_number(q, LENGTH, &length) && (length < 0 || length > q->ir->limits.dim))
        return infer_fail(q, "cannot have a transform of %" PRId64, length);
    const int64_t dims[] = { length < 0 ? DIM_UNKNOWN : length / 2 + 1, bins };
    return type_tensor(q->types, dtype, 2, dims);
}

static double mel_of(double hertz)
{
    return 2595.0 * log10(1.0 + hertz / 700.0);
}

/* The spectrogram bin at a point of the mel scale. */
static double bin_at(double mel, int64_t length, int64_t rate)
{
    return floor((double)(length + 1) * (700.0 * (pow(10.0, mel / 2595.0) - 1.0)) / (double)rate);
}

/* One triangle, rising from `left` to 1 at `centre`, falling to `right`; bins outside the spectrogram are cut off. */
static void triangle(f64 *y, int64_t rows, int64_t columns, int64_t left, int64_t centre, int64_t right)
{
    for (int64_t j = left > 0 ? left : 0; j <= centre && j < rows; j++)
        y[j * columns] = left == centre ? 1 : (double)(j - left) / (double)(centre - left);
    for (int64_t j = centre > 0 ? centre : 0; j < right && j < rows; j++)
        y[j * columns] = (double)(right - j) / (double)(right - centre);
}

static Status eval_mel_weight_matrix(Eval *e)
{
    const int64_t bins = eval_int(e, BINS, 0), length = eval_int(e, LENGTH, 0), rate = eval_int(e, RATE, 0);
    const double low = mel_of(eval_float(e, LOWER, 0)), high = mel_of(eval_float(e, UPPER, 0));
    const int64_t rows = length / 2 + 1;
    if (rate < 1)
        return eval_fail(e, "has a sample rate of %" PRId64, rate);
    if (!(low >= 0) || !(high >= low) || !(high < 1e9))
        return eval_fail(e, "has edges at %g and %g hertz", eval_float(e, LOWER, 0), eval_float(e, UPPER, 0));
    f64 *y = eval_out_f64(e, 0);
    for (int64_t i = 0; i < rows * bins; i++)
        y[i] = 0;
    const double step = (high - low) / (double)(bins + 2);
    for (int64_t i = 0; i < bins; i++) {
        double at[3];
        for (int k = 0; k < 3; k++) {
            at[k] = bin_at((double)(i + k) * step + low, length, rate);
            if (!(at[k] < 0x1p52))
                return eval_fail(e, "has edges at %g and %g hertz", eval_float(e, LOWER, 0), eval_float(e, UPPER, 0));
        }
        triangle(y + i, rows, bins, (int64_t)at[0], (int64_t)at[1], (int64_t)at[2]);
    }
    return OK;
}

static const DType given_types[] = { F32, F64, F16, BF16, I64, U8, I32 };

static Node *sample_taper(Build *b, Rng *rng, int variant, Op op)
{
    const TaperAttr at = { .output_datatype = (int)given_types[variant % 7] + 1, .periodic = variant % 2 };
    const double size = (double)rng_below(rng, 12);
    Node *n = sample_tensor(b, rng, rng_below(rng, 2) ? I32 : I64, 0, NULL, size, size);
    return build_node(b, op, &at, 1, &n);
}

static Node *sample_hann_window(Build *b, Rng *rng, int variant)
{
    return sample_taper(b, rng, variant, OP_hann_window);
}

static Node *sample_hamming_window(Build *b, Rng *rng, int variant)
{
    return sample_taper(b, rng, variant, OP_hamming_window);
}

static Node *sample_blackman_window(Build *b, Rng *rng, int variant)
{
    return sample_taper(b, rng, variant, OP_blackman_window);
}

static Node *sample_mel_weight_matrix(Build *b, Rng *rng, int variant)
{
    const MelAttr at = { .output_datatype = (int)given_types[variant % 7] + 1 };
    const DType sizes = variant % 2 ? I32 : I64, edges = variant % 3 ? F32 : F64;
    Node *ins[] = { sample_tensor(b, rng, sizes, 0, NULL, 0, 10), sample_tensor(b, rng, sizes, 0, NULL, 1, 40),
                    sample_tensor(b, rng, sizes, 0, NULL, 8000, 16000), sample_tensor(b, rng, edges, 0, NULL, 0, 100),
                    sample_tensor(b, rng, edges, 0, NULL, 1000, 9000) };
    return build_node(b, OP_mel_weight_matrix, &at, 5, ins);
}

#define TAPER_CARD(WORD, ONNX, N_IN, ATTRS, INFER)                                                                     \
    const OpDef op_##WORD = {                                                                                          \
        .name = #WORD,                                                                                                 \
        .min_in = N_IN,                                                                                                \
        .max_in = N_IN,                                                                                                \
        .attrs = ATTRS,                                                                                                \
        .infer = INFER,                                                                                                \
        .eval = eval_##WORD,                                                                                           \
        .sample = sample_##WORD,                                                                                       \
        .n_variants = 28,                                                                                              \
        .access.kind = ACCESS_ROW,                                                                                     \
        .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },                                                            \
        .quant = { .in = { QUANT_NEVER }, .out = { QUANT_FLOAT } },                                                    \
        .onnx = { ONNX, 17, NULL },                                                                                    \
    }
TAPER_CARD(hann_window, "HannWindow", 1, taper_attrs, infer_taper);
TAPER_CARD(hamming_window, "HammingWindow", 1, taper_attrs, infer_taper);
TAPER_CARD(blackman_window, "BlackmanWindow", 1, taper_attrs, infer_taper);
TAPER_CARD(mel_weight_matrix, "MelWeightMatrix", 5, mel_attrs, infer_mel_weight_matrix);
