/* range_scale: the scale and the code of 0 for numbers of a range. */
#include "ops/card/access.h"
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

static Status eval_range_scale(Eval *e)
{
    const RangeScaleAttr *at = e->attr;
    const f32 *least = eval_f32(e, 0), *most = eval_f32(e, 1);
    const int64_t n = eval_elements(e, 0);
    f32 *scale = eval_out_f32(e, 0), *zero = e->n_out > 1 ? eval_scratch(e, (size_t)n + 1, sizeof *zero) : NULL;
    double lo, hi;
    code_limits(codes_of(at), at->least, at->largest, &lo, &hi);
    const f32 first = (f32)lo, last = (f32)hi, largest = at->most / (at->symmetric ? last : last - first);
    for (int64_t i = 0; i < n; i++) {
        const f32 from = least[i] < 0 || least[i] != least[i] ? least[i] : 0,
                  to = most[i] > 0 || most[i] != most[i] ? most[i] : 0;
        scale[i] = at->symmetric ? symmetric_scale_f32(max_f32(-from, to), last, at->pow2)
                                 : affine_scale_f32(from, to, first, last, at->pow2);
        if (at->most > 0 && scale[i] > largest)
            scale[i] = largest;
        if (zero)
            zero[i] = at->symmetric ? 0 : affine_zero_f32(from, scale[i], first, last);
    }
    if (zero)
        store_f32(eval_out(e, 1), 0, zero, n);
    return OK;
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
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT, QUANT_NEVER } },
    .brief =
        "The scale, and the code of 0, with which codes least to largest reach over a range of numbers and 0; a range "
        "below 2^-24, or one that is not finite, has a scale of 1.  Of codes that are floats it reaches to the largest of them.  With most no code stands for more than that.",
};
