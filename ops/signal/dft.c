/* dft: one axis of complex (or real) numbers to their spectrum and back. */
#include "ops/signal/spectrum.h"

static const AttrSpec dft_attrs[] = {
    ATTR(DftAttr, inverse, BOOL, false),
    ATTR(DftAttr, onesided, BOOL, false),
    ATTR_LAST,
};

enum { SIGNAL, LENGTH, AXIS };

/* The axis of the transform: never the last, which holds the parts of a complex number. */
static bool find_axis(Infer *q, int rank, int *axis)
{
    int64_t said = -2;
    infer_number(q, AXIS, &said);
    if (!infer_axis(q, said, rank, axis))
        return false;
    if (*axis == rank - 1)
        infer_fail(q, "cannot transform the last axis, which holds real and imaginary parts");
    return *axis != rank - 1;
}

int64_t dft_length(const DftAttr *at, int64_t extent)
{
    return at->inverse && at->onesided && extent > 0 ? 2 * (extent - 1) : extent;
}

static int64_t bins_of(const DftAttr *at, int64_t length)
{
    return at->onesided && !at->inverse && length >= 0 ? length / 2 + 1 : length;
}

static bool check_parts(Infer *q, const Type *x)
{
    const DftAttr *at = q->attr;
    const int64_t parts = x->dims[x->rank - 1];
    if (parts >= 0 && parts != 1 && parts != 2)
        infer_fail(q, "wants 1 or 2 as the last dimension, got %" PRId64, parts);
    else if (at->onesided && !at->inverse && parts == 2)
        infer_fail(q, "has a one-sided spectrum of real signals only");
    else if (at->onesided && at->inverse && parts == 1)
        infer_fail(q, "inverts one-sided spectra of complex numbers only");
    else
        return true;
    return false;
}

static const Type *infer_dft(Infer *q)
{
    const DftAttr *at = q->attr;
    const Type *x = infer_tensor(q, SIGNAL);
    int axis;
    int64_t dims[MAX_RANK], length;
    if (!x || !infer_integer(q, LENGTH) || !infer_integer(q, AXIS))
        return NULL;
    if (!dtype_is_float(x->dtype) || dtype_bits(x->dtype) < 16)
        return infer_fail(q, "transforms floats of 16 to 64 bits, got %s", dtype_name(x->dtype));
    if (x->rank < 0)
        return x;
    if (x->rank < 2)
        return infer_fail(q, "wants two dimensions at least, got %d", x->rank);
    if (!check_parts(q, x))
        return NULL;
    const bool somewhere = infer_has(q, AXIS) && !infer_number(q, AXIS, &length);
    if (!somewhere && !find_axis(q, x->rank, &axis))
        return NULL;
    for (int i = 0; i < x->rank; i++)
        dims[i] = somewhere ? DIM_UNKNOWN : x->dims[i];
    dims[x->rank - 1] = at->inverse && at->onesided ? 1 : 2;
    if (somewhere)
        return type_tensor(q->types, x->dtype, x->rank, dims);
    if (!infer_has(q, LENGTH))
        length = dft_length(at, x->dims[axis]);
    else if (!infer_number(q, LENGTH, &length))
        length = DIM_UNKNOWN;
    else if (length < 1 || length > q->ir->limits.dim)
        return infer_fail(q, "cannot transform %" PRId64 " elements", length);
    dims[axis] = bins_of(at, length);
    return type_tensor(q->types, x->dtype, x->rank, dims);
}

/* One call as [outer, extent, inner, parts]. */
typedef struct DftShape {
    int64_t outer, extent, inner, parts, length, bins;
    int64_t out_parts;
} DftShape;

static DftShape shape_of(Eval *e)
{
    const DftAttr *at = e->attr;
    const Type *x = e->in[SIGNAL]->type;
    const int64_t said = eval_has(e, AXIS) ? eval_int(e, AXIS, 0) : -2;
    const int axis = (int)(said < 0 ? said + x->rank : said);
    DftShape d = { .outer = 1, .extent = x->dims[axis], .inner = 1, .parts = x->dims[x->rank - 1] };
    for (int i = 0; i < axis; i++)
        d.outer *= x->dims[i];
    for (int i = axis + 1; i < x->rank - 1; i++)
        d.inner *= x->dims[i];
    d.length = eval_has(e, LENGTH) ? eval_int(e, LENGTH, 0) : dft_length(at, d.extent);
    d.bins = bins_of(at, d.length);
    d.out_parts = at->inverse && at->onesided ? 1 : 2;
    return d;
}

/* Gathers a row (zeros behind its end); of a one-sided spectrum also the conjugates of the other side. */
#define ROWS(T)                                                                                                        \
    static void gather_##T(const DftShape *d, bool mirrored, const T *from, T *row)                                    \
    {                                                                                                                  \
        const int64_t own = mirrored ? d->length / 2 + 1 : d->length;                                                  \
        for (int64_t i = 0; i < d->length; i++) {                                                                      \
            const int64_t k = i < own ? i : d->length - i;                                                             \
            const T *x = from + k * d->inner * d->parts;                                                               \
            row[2 * i] = k < d->extent ? x[0] : 0;                                                                     \
            row[2 * i + 1] = k < d->extent && d->parts == 2 ? (i < own ? x[1] : -x[1]) : 0;                            \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void rows_##T(Eval *e, const DftShape *d, const Spectrum *t)                                                \
    {                                                                                                                  \
        const T *x = eval_##T(e, SIGNAL);                                                                              \
        T *y = eval_out_##T(e, 0), *row = eval_scratch(e, (size_t)d->length, 2 * sizeof *row);                         \
        for (int64_t i = 0; i < d->outer * d->inner; i++) {                                                            \
            const int64_t o = i / d->inner, k = i % d->inner;                                                          \
            gather_##T(d, t->real, x + (o * d->extent * d->inner + k) * d->parts, row);                                \
            spectrum_row_##T(t, row, y + (o * d->bins * d->inner + k) * d->out_parts, d->inner * d->out_parts);        \
        }                                                                                                              \
    }
ROWS(f32)
ROWS(f64)
#undef ROWS

static Status eval_dft(Eval *e)
{
    const DftAttr *at = e->attr;
    const DftShape d = shape_of(e);
    const Spectrum t = spectrum_open(e, d.length, d.bins, at->inverse, at->inverse && at->onesided);
    (eval_is_f64(e) ? rows_f64 : rows_f32)(e, &d, &t);
    return OK;
}

static Node *sample_dft(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F64, F16, BF16 };
    int64_t dims[MAX_RANK];
    const int rank = 2 + variant / 4 % 4, axis = (int)rng_below(rng, rank - 1);
    const DftAttr at = { .inverse = variant & 1, .onesided = variant & 2 };
    sample_dims(rng, rank - 1, 5, dims);
    dims[axis] = rng_range(rng, at.inverse && at.onesided ? 2 : 1, 9);
    dims[rank - 1] = at.onesided ? (at.inverse ? 2 : 1) : rng_range(rng, 1, 2);
    Node *ins[3] = { sample_tensor(b, rng, types[rng_below(rng, 4)], rank, dims, -2, 2) };
    if (rng_below(rng, 2)) {
        const int64_t length = rng_range(rng, 1, 9);
        ins[1] = sample_tensor(b, rng, rng_below(rng, 2) ? I32 : I64, 0, NULL, (double)length, (double)length);
    }
    if (axis != rank - 2 || rng_below(rng, 2)) {
        const double said = rng_below(rng, 2) ? axis : axis - rank;
        ins[2] = sample_tensor(b, rng, I64, 0, NULL, said, said);
    }
    return build_node(b, OP_dft, &at, 3, ins);
}

const OpDef op_dft = {
    .name = "dft",
    .min_in = 1,
    .max_in = 3,
    .attrs = dft_attrs,
    .infer = infer_dft,
    .eval = eval_dft,
    .sample = sample_dft,
    .n_variants = 32,
    .adjoint = adjoint_dft,
    .differentiable = 1,
    .weight = 50,
    .access.kind = ACCESS_CONTRACT,
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .onnx = { "DFT", 20, NULL },
};
