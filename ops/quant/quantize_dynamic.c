/* dynamic_quantize_linear: u8 codes with the scale and zero point that the data ask for. */
#include "ops/card/signature.h"
#include "ops/quant/integer.h"

/* The range of the data and 0, in 255 steps; data that are all 0 have a scale of 1. */
static Status eval_dynamic_quantize_linear(Eval *e)
{
    const int64_t n = eval_elements(e, 0);
    const f32 *x = eval_f32(e, 0);
    f32 lo = 0, hi = 0;
    for (int64_t i = 0; i < n; i++) {
        lo = min_f32(lo, x[i]);
        hi = max_f32(hi, x[i]);
    }
    const f32 scale = hi == lo ? 1 : (hi - lo) / 255;
    const f32 wanted = rint_f32(clamp_f32(0 - lo / scale, 0, 255)), zero = wanted == wanted ? wanted : 0;
    const CodeRange u8_codes = code_range_of(&(const CodesAttr){ 0 }, U8, zero);
    f32 *codes = eval_scratch(e, (size_t)n, sizeof *codes);
    for (int64_t i = 0; i < n; i++)
        codes[i] = stored_code_f32(x[i] / scale, zero, u8_codes.lo, u8_codes.hi);
    store_f32(eval_out(e, 0), 0, codes, n);
    if (e->n_out > 1)
        store_f32(eval_out(e, 1), 0, &scale, 1);
    if (e->n_out > 2)
        store_f32(eval_out(e, 2), 0, &zero, 1);
    return OK;
}

static Node *sample_dynamic_quantize_linear(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F16, BF16 };
    int64_t dims[MAX_RANK];
    const int rank = variant % 6;
    const double lo = rng_unit(rng) * 8 - 6;
    sample_dims(rng, rank, 5, dims);
    Node *x = sample_tensor(b, rng, types[variant % 3], rank, dims, lo, lo + (variant % 7 ? 5 : 0));
    return build_node_n(b, OP_dynamic_quantize_linear, NULL, 1, &x, 3);
}

const OpDef op_dynamic_quantize_linear = {
    .name = "dynamic_quantize_linear",
    .min_in = 1,
    .max_in = 1,
    .min_out = 3,
    .max_out = 3,
    .infer = infer_by_signature,
    .signature = &(const Signature){ .in = { "A[*]" }, .out = { "u8[*]", "f32[]", "u8[]" } },
    .eval = eval_dynamic_quantize_linear,
    .sample = sample_dynamic_quantize_linear,
    .n_variants = 18,
    .weight = 2,
    .access.kind = ACCESS_FOLD,
    .amp = { AMP_FO, AMP_FO, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "DynamicQuantizeLinear", 11, NULL },
};
