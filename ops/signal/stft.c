/* stft: spectra of overlapping frames of a signal. */
#include "ops/signal/spectrum.h"

static const AttrSpec stft_attrs[] = {
    ATTR(StftAttr, onesided, BOOL, true),
    ATTR_LAST,
};

enum { SIGNAL, STEP, WINDOW, LENGTH };

/* The frame length, -1 while it is not known; false after a complaint. */
static bool frame_length(Infer *q, const Type *x, int64_t *length)
{
    const Type *w = infer_has(q, WINDOW) ? q->in[WINDOW] : NULL;
    *length = w ? (w->rank == 1 ? w->dims[0] : DIM_UNKNOWN) : infer_has(q, LENGTH) || x->rank < 0 ? -1 : x->dims[1];
    int64_t said;
    if (!infer_number(q, LENGTH, &said))
        return true;
    if (said < 1 || said > q->ir->limits.dim)
        infer_fail(q, "cannot have frames of %" PRId64, said);
    else if (w && *length >= 0 && *length != said)
        infer_fail(q, "has frames of %" PRId64 " but a window of %" PRId64, said, *length);
    else
        *length = said;
    return *length == said;
}

static bool check_operands(Infer *q, const Type *x)
{
    const StftAttr *at = q->attr;
    const Type *w = infer_has(q, WINDOW) ? infer_tensor(q, WINDOW) : NULL;
    int64_t step;
    if (!dtype_is_float(x->dtype) || dtype_bits(x->dtype) < 16)
        infer_fail(q, "transforms floats of 16 to 64 bits, got %s", dtype_name(x->dtype));
    else if (x->rank >= 0 && x->rank != 3)
        infer_fail(q, "wants [batch, length, 1 or 2], got rank %d", x->rank);
    else if (x->rank == 3 && x->dims[2] >= 0 && x->dims[2] != 1 && x->dims[2] != 2)
        infer_fail(q, "wants 1 or 2 as the last dimension, got %" PRId64, x->dims[2]);
    else if (x->rank == 3 && x->dims[2] == 2 && at->onesided)
        infer_fail(q, "has one-sided spectra of real signals only");
    else if (infer_has(q, WINDOW) && (!w || w->dtype != x->dtype || (w->rank >= 0 && w->rank != 1)))
        infer_fail(q, "wants a window of rank 1 and of the type of the signal");
    else if (infer_number(q, STEP, &step) && (step < 1 || step > q->ir->limits.dim))
        infer_fail(q, "cannot step by %" PRId64, step);
    else
        return true;
    return false;
}

static const Type *infer_stft(Infer *q)
{
    const StftAttr *at = q->attr;
    const Type *x = infer_tensor(q, SIGNAL);
    int64_t length, step;
    if (!x || !infer_tensor(q, STEP) || !infer_integer(q, STEP) || !infer_integer(q, LENGTH) || !check_operands(q, x) ||
        !frame_length(q, x, &length))
        return NULL;
    int64_t dims[] = { x->rank == 3 ? x->dims[0] : DIM_UNKNOWN, DIM_UNKNOWN, length, 2 };
    if (at->onesided && length >= 0)
        dims[2] = length / 2 + 1;
    if (x->rank == 3 && length >= 0 && x->dims[1] >= 0) {
        if (length > x->dims[1])
            return infer_fail(q, "has frames of %" PRId64 " in a signal of %" PRId64, length, x->dims[1]);
        if (infer_number(q, STEP, &step))
            dims[1] = (x->dims[1] - length) / step + 1;
    }
    return type_tensor(q->types, x->dtype, 4, dims);
}

#define FRAMES(T)                                                                                                      \
    static void frames_##T(Eval *e, const Spectrum *t, int64_t frames)                                                 \
    {                                                                                                                  \
        const Type *type = e->in[SIGNAL]->type;                                                                        \
        const int64_t size = type->dims[1], parts = type->dims[2], step = eval_int(e, STEP, 0);                        \
        const T *x = eval_##T(e, SIGNAL), *window = eval_has(e, WINDOW) ? eval_##T(e, WINDOW) : NULL;                  \
        T *y = eval_out_##T(e, 0), *row = eval_scratch(e, (size_t)t->n, 2 * sizeof *row);                              \
        for (int64_t i = 0; i < type->dims[0] * frames; i++) {                                                         \
            const T *from = x + (i / frames * size + i % frames * step) * parts;                                       \
            for (int64_t k = 0; k < t->n; k++) {                                                                       \
                const T w = window ? window[k] : 1;                                                                    \
                row[2 * k] = from[k * parts] * w;                                                                      \
                row[2 * k + 1] = parts == 2 ? from[k * parts + 1] * w : 0;                                             \
            }                                                                                                          \
            spectrum_row_##T(t, row, y + i * t->bins * 2, 2);                                                          \
        }                                                                                                              \
    }
FRAMES(f32)
FRAMES(f64)
#undef FRAMES

static Status eval_stft(Eval *e)
{
    const int64_t said = eval_has(e, LENGTH) ? eval_int(e, LENGTH, 0) : -1;
    const int64_t n = said >= 0 ? said : eval_has(e, WINDOW) ? eval_elements(e, WINDOW) : e->in[SIGNAL]->type->dims[1];
    const Type *y = eval_type(e, 0);
    const Spectrum t = spectrum_open(e, n, y->dims[2], false, false);
    (eval_is_f64(e) ? frames_f64 : frames_f32)(e, &t, y->dims[1]);
    return OK;
}

static Node *sample_stft(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F64, F16, BF16 };
    const DType dtype = types[rng_below(rng, 4)];
    const StftAttr at = { .onesided = variant & 1 };
    const int64_t dims[] = { rng_below(rng, 3), rng_range(rng, 8, 20), at.onesided ? 1 : rng_range(rng, 1, 2) };
    const int64_t length = rng_range(rng, 1, 8);
    const double step = (double)rng_range(rng, 1, 5);
    Node *ins[4] = { sample_tensor(b, rng, dtype, 3, dims, -2, 2),
                     sample_tensor(b, rng, rng_below(rng, 2) ? I32 : I64, 0, NULL, step, step) };
    if (variant & 2)
        ins[2] = sample_tensor(b, rng, dtype, 1, &length, 0, 1);
    if (variant & 4)
        ins[3] = sample_tensor(b, rng, I64, 0, NULL, (double)length, (double)length);
    return build_node(b, OP_stft, &at, variant & 4 ? 4 : variant & 2 ? 3 : 2, ins);
}

const OpDef op_stft = {
    .name = "stft",
    .min_in = 2,
    .max_in = 4,
    .attrs = stft_attrs,
    .infer = infer_stft,
    .eval = eval_stft,
    .sample = sample_stft,
    .n_variants = 24,
    .adjoint = adjoint_stft,
    .differentiable = 1u << SIGNAL | 1u << WINDOW,
    .weight = 50,
    .access.kind = ACCESS_CONTRACT,
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER, QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .onnx = { "STFT", 17, NULL },
};
