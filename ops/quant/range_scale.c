/* range_scale: the scale and the code of 0 for numbers of a range. */
#include "ops/card/access.h"
#include "ops/card/own_kernel.h"
#include "ops/card/signature.h"
#include "ops/quant/quantize.h"

static const AttrSpec range_scale_attrs[] = {
    ATTR(RangeScaleAttr, least, INT, 0),
    ATTR(RangeScaleAttr, largest, INT, 0),
    ATTR(RangeScaleAttr, symmetric, BOOL, false),
    ATTR(RangeScaleAttr, pow2, BOOL, false),
    ATTR(RangeScaleAttr, most, FLOAT, 0),
    ATTR(RangeScaleAttr, to, DTYPE, 0),
    ATTR_LAST,
};

static DType codes_of(const RangeScaleAttr *at)
{
    DType code = U8;
    attr_dtype(at->to, &code);
    return code;
}

static const Type *infer_range_scale(Infer *q)
{
    const RangeScaleAttr *at = q->attr;
    const DType code = codes_of(at);
    Bound k = signature_open();
    if (!signature_match(q, &k))
        return NULL;
    if (!dtype_is_code(code) && code != I32)
        return infer_fail(q, "wants codes, not %s", dtype_name(code));
    if (dtype_is_float(code) && !at->symmetric)
        return infer_fail(q, "wants symmetric ranges of %s, in which 0 is 0", dtype_name(code));
    if (!infer_code_limits(q, code, at->least, at->largest))
        return NULL;
    if (at->least > 0 || (at->symmetric && (at->least || at->largest) && at->largest <= 0))
        return infer_fail(q, "codes %" PRId64 " to %" PRId64 " have none of 0", at->least, at->largest);
    if (!(at->most >= 0) || (at->most > 0 && at->pow2))
        return infer_fail(q, "most=%g: wants a number above 0, and scales that are no powers of 2", (double)at->most);
    return infer_results(q, 2, (const Type *const[]){ q->in[0], type_with_dtype(q->types, q->in[0], code) });
}

/* The ends of the codes, and the largest scale, which is 0 where there is none. */
typedef struct RangeEnds {
    f32 first, last, largest;
} RangeEnds;

static RangeEnds ends_of(const RangeScaleAttr *at)
{
    double lo, hi;
    code_limits(codes_of(at), at->least, at->largest, &lo, &hi);
    const f32 first = (f32)lo, last = (f32)hi;
    return (RangeEnds){ first, last, at->most / (at->symmetric ? last : last - first) };
}

static Status eval_range_scale(Eval *e)
{
    const RangeScaleAttr *at = e->attr;
    const RangeEnds ends = ends_of(at);
    const f32 *least = eval_f32(e, 0), *most = eval_f32(e, 1);
    const int64_t n = eval_elements(e, 0);
    f32 *scale = eval_out_f32(e, 0), *zero = eval_scratch(e, (size_t)n + 1, sizeof *zero);
    for (int64_t i = 0; i < n; i++)
        scale[i] =
            range_scale_f32(least[i], most[i], ends.first, ends.last, at->symmetric, at->pow2, ends.largest, &zero[i]);
    if (e->n_out > 1)
        store_f32(eval_out(e, 1), 0, zero, n);
    return OK;
}

static bool kernels_range_scale(const Node *n, OwnKernels *to)
{
    const RangeScaleAttr *at = n->attr;
    const RangeEnds ends = ends_of(at);
    const bool floats = dtype_is_float(codes_of(at));
    Text t;
    own_kernel_open(to, &t);
    text_printf(&t,
                "    f32 zero;\n    const f32 scale = range_scale_f32(IN0(o), IN1(o), %s, %s, %d, %d, %s, &zero);\n",
                own_f32(to, ends.first), own_f32(to, ends.last), at->symmetric, at->pow2, own_f32(to, ends.largest));
    text_printf(&t, "    OUT0(o, scale);\n");
    if (type_results(n->type) > 1)
        text_printf(&t, "    OUT1(o, %szero);\n", floats ? "" : "(i64)");
    own_kernel_close(to, "range", type_elements(in(n, 0)->type), 0, &t);
    return true;
}

static Node *sample_range_scale(Build *b, Rng *rng, int variant)
{
    static const DType integers[] = { U8, I8, U16, I16, U4, I4, U2, I2 }, reals[] = { F8E4M3, F8E5M2, F4E2M1, F6E2M3 };
    const bool floats = variant >= 32;
    const DType code = floats ? reals[variant % (int)COUNT(reals)] : integers[variant % (int)COUNT(integers)];
    int64_t dims[MAX_RANK];
    const int rank = variant % 3;
    double lo, hi;
    sample_dims(rng, rank, 5, dims);
    code_range(floats ? I8 : code, &lo, &hi);
    const bool narrow = !floats && rng_below(rng, 2) && lo < 0;
    RangeScaleAttr at = { .least = narrow ? (int64_t)lo + 1 : 0,
                          .largest = narrow ? (int64_t)hi : 0,
                          .symmetric = rng_below(rng, 2) || floats,
                          .pow2 = rng_below(rng, 2),
                          .most = variant & 8 ? 2 : 0,
                          .to = variant % 8 || floats ? (int)code + 1 : 0 };
    at.pow2 &= at.most == 0;
    Node *in[] = { sample_tensor(b, rng, F32, rank, dims, -3, 0.5), sample_tensor(b, rng, F32, rank, dims, -0.5, 4) };
    return build_node_n(b, OP_range_scale, &at, 2, in, 1 + (int)rng_below(rng, 2));
}

const OpDef op_range_scale = {
    .name = "range_scale",
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 2,
    .attrs = range_scale_attrs,
    .infer = infer_range_scale,
    .signature = &(const Signature){ .in = { "f32[*]", "f32[*]" } },
    .eval = eval_range_scale,
    .sample = sample_range_scale,
    .n_variants = 40,
    .access.kind = ACCESS_ROW,
    .access.iterate = iterate_row,
    .access.kernels = kernels_range_scale,
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT, QUANT_NEVER } },
    .brief =
        "The scale, and the code of 0, with which codes least to largest reach over a range of numbers and 0; a range "
        "below 2^-24, or one that is not finite, has a scale of 1.  Of codes that are floats it reaches to the largest of them.  With most no code stands for more than that.",
};
