/* master_split and master_join: weights in f32 as a bf16, which is what narrow readers want, and an i16 that holds the
 * rest: 4 bytes a weight in all, and no copy. */
#include "base/half.h"
#include "ops/card/own_kernel.h"
#include "ops/card/signature.h"

static Status eval_master_split(Eval *e)
{
    const f32 *x = eval_f32(e, 0);
    const int64_t n = eval_elements(e, 0);
    uint16_t *hi = eval_out(e, 0)->data;
    int16_t *lo = eval_out(e, 1)->data;
    for (int64_t i = 0; i < n; i++) {
        const SplitMaster m = master_split_f32(x[i]);
        hi[i] = m.hi;
        lo[i] = m.lo;
    }
    return OK;
}

static bool kernels_master_split(const Node *n, OwnKernels *to)
{
    Text t;
    own_kernel_open(to, &t);
    text_add(&t,
             "    const SplitMaster m = master_split_f32(RAW0[o]);\n    OUTRAW0[o] = m.hi;\n    OUTRAW1[o] = m.lo;\n");
    own_kernel_close(to, "split", type_elements(in(n, 0)->type), 0, &t);
    return true;
}

static Node *sample_master_split(Build *b, Rng *rng, int variant)
{
    return sample_by_signature(b, rng, variant, OP_master_split, NULL);
}

const OpDef op_master_split = {
    .name = "master_split",
    .min_in = 1,
    .max_in = 1,
    .min_out = 2,
    .max_out = 2,
    .infer = infer_by_signature,
    .signature = &(const Signature){ .in = { "f32[*]" }, .out = { "bf16[*]", "i16[*]" } },
    .eval = eval_master_split,
    .sample = sample_master_split,
    .n_variants = 12,
    .access.kind = ACCESS_ROW,
    .access.kernels = kernels_master_split,
    .amp = { AMP_X, AMP_X, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "An f32 as a bf16, half a unit rounded away from zero, and an i16 with the rest of its bits.",
};

enum { HI, LO };

static Status eval_master_join(Eval *e)
{
    const uint16_t *hi = e->in[HI]->data;
    const int16_t *lo = e->in[LO]->data;
    f32 *x = eval_out(e, 0)->data;
    const int64_t n = eval_elements(e, HI);
    for (int64_t i = 0; i < n; i++)
        x[i] = master_join_f32(hi[i], lo[i]);
    return OK;
}

static bool kernels_master_join(const Node *n, OwnKernels *to)
{
    Text t;
    own_kernel_open(to, &t);
    text_printf(&t, "    OUTRAW0[o] = master_join_f32(RAW%d[o], RAW%d[o]);\n", HI, LO);
    own_kernel_close(to, "join", type_elements(in(n, HI)->type), 0, &t);
    return true;
}

static Node *sample_master_join(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    sample_dims(rng, variant % 6, 4, dims);
    Node *hi = sample_tensor(b, rng, BF16, variant % 6, dims, -6, 6);
    return CALL(b, master_join, hi, sample_tensor(b, rng, I16, variant % 6, dims, -32768, 32767));
}

const OpDef op_master_join = {
    .name = "master_join",
    .min_in = 2,
    .max_in = 2,
    .infer = infer_by_signature,
    .signature = &(const Signature){ .in = { "bf16[*]", "i16[*]" }, .out = { "f32[*]" } },
    .eval = eval_master_join,
    .sample = sample_master_join,
    .n_variants = 12,
    .access.kind = ACCESS_ROW,
    .access.kernels = kernels_master_join,
    .amp = { AMP_X, AMP_X, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "The f32 that master_split took apart.",
};
