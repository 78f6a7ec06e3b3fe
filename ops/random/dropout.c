/* dropout: scales what it keeps in training, passes everything in inference. */
#include "ops/random/random_draws.h"
#include "ops/card/access.h"
#include "ops/card/own_kernel.h"
#include "ops/card/reduction.h"

#include <inttypes.h>
#include <string.h>

static const AttrSpec dropout_attrs[] = {
    ATTR(DropoutAttr, seed, INT, NO_SEED),
    ATTR_OURS(DropoutAttr, stream, INT, 0),
    ATTR_LAST,
};

enum { DATA, RATIO, TRAINING };

/* One number; false after a complaint. */
static bool check_scalar(Infer *q, int i, const char *what, bool fits)
{
    const Type *t = q->in[i];
    const int64_t n = type_elements(t);
    if (n >= 0 && n != 1)
        infer_fail(q, "%s must be one number, got %s", what, type_text(q->scratch, t));
    else if (!fits)
        infer_fail(q, "%s cannot be %s", what, dtype_name(t->dtype));
    else
        return true;
    return false;
}

static bool ratio_is_legal(double ratio)
{
    return ratio >= 0 && ratio < 1;
}

static const Type *infer_dropout(Infer *q)
{
    const Type *x = infer_tensor(q, DATA);
    if (!x)
        return NULL;
    if (!dtype_is_float(x->dtype))
        return infer_fail(q, "drops out of floats, got %s", dtype_name(x->dtype));
    if (infer_has(q, RATIO)) {
        const Type *r = infer_tensor(q, RATIO);
        if (!r || !check_scalar(q, RATIO, "ratio", dtype_is_float(r->dtype)))
            return NULL;
        if (infer_known(q, RATIO) && type_elements(r) == 1 && !ratio_is_legal(tensor_get_f64(infer_known(q, RATIO), 0)))
            return infer_fail(q, "ratio must be in [0, 1), got %g", tensor_get_f64(infer_known(q, RATIO), 0));
    }
    if (infer_has(q, TRAINING)) {
        const Type *t = infer_tensor(q, TRAINING);
        if (!t || !check_scalar(q, TRAINING, "training_mode", t->dtype == BOOL))
            return NULL;
    }
    const Type *results[] = { x, type_with_dtype(q->types, x, BOOL) };
    return infer_results(q, 2, results);
}

static Status keep_all(Eval *e)
{
    eval_give(e, 0, e->in[DATA]);
    if (e->n_out > 1)
        memset(eval_out(e, 1)->data, 1, (size_t)eval_elements(e, DATA));
    return OK;
}

/* y = keep ? x * (1 / (1 - ratio)) : 0 */
#define SCALE_KEPT(T)                                                                                                  \
    static void scale_kept_##T(Eval *e, T ratio, const uint8_t *keep)                                                  \
    {                                                                                                                  \
        const int64_t n = eval_elements(e, DATA);                                                                      \
        const T *x = eval_##T(e, DATA), scale = 1 / (1 - ratio);                                                       \
        T *y = eval_out_##T(e, 0);                                                                                     \
        for (int64_t i = 0; i < n; i++)                                                                                \
            y[i] = keep[i] ? x[i] * scale : 0;                                                                         \
    }
SCALE_KEPT(f32)
SCALE_KEPT(f64)
#undef SCALE_KEPT

static Status eval_dropout(Eval *e)
{
    const DropoutAttr *at = e->attr;
    const double ratio = eval_has(e, RATIO) ? eval_float(e, RATIO, 0) : 0.5;
    const bool training = eval_has(e, TRAINING) && eval_int(e, TRAINING, 0);
    if (!training || ratio == 0)
        return keep_all(e);
    if (!ratio_is_legal(ratio))
        return eval_fail(e, "ratio must be in [0, 1), got %g", ratio);
    const int64_t n = eval_elements(e, DATA);
    uint8_t *keep = e->n_out > 1 ? eval_out(e, 1)->data : eval_scratch(e, (size_t)n, 1);
    Draws *d = eval_scratch(e, 1, sizeof *d);
    const bool own = at->seed != NO_SEED;
    draws_open(d, e, at->stream, own, (uint32_t)at->seed, (uint32_t)at->seed);
    draw_not_below(d, n, ratio, keep);
    if (e->in[DATA]->type->dtype == F64)
        scale_kept_f64(e, ratio, keep);
    else
        scale_kept_f32(e, (f32)ratio, keep);
    return OK;
}

static bool kernels_dropout(const Node *n, OwnKernels *to)
{
    const DropoutAttr *at = n->attr;
    const bool has_ratio = n->n_in > RATIO && in(n, RATIO), has_mode = n->n_in > TRAINING && in(n, TRAINING);
    Text t;
    const uint64_t own = at->seed == NO_SEED ? 0 : (uint64_t)(uint32_t)at->seed << 32;
    to->draws = true;
    own_kernel_open(to, &t);
    text_printf(&t, "    typedef %s T;\n", dtype_name(dtype_wide(in(n, DATA)->type->dtype)));
    text_printf(&t, "    const f64 ratio = (f64)%s;\n", has_ratio ? "IN1(0)" : "0.5");
    text_printf(&t, "    const bool training = %s;\n", has_mode ? "IN2(0) != 0" : "false");
    text_printf(&t, "    const T x = IN0(o);\n    bool keep = true;\n    T y = x;\n");
    text_printf(&t, "    if (training && !(ratio >= 0 && ratio < 1)) {\n        REFUSE;\n        return;\n    }\n");
    text_printf(&t, "    if (training && ratio != 0) {\n        const T part = (T)ratio, scale = 1 / (1 - part);\n");
    text_printf(&t,
                "        keep = (f64)philox_uniform(philox_at(draws[0] ^ 0x%" PRIx64 "ul, %" PRIu32
                "u, (u64)o, (u32)draws[1], (u32)draws[2], PHILOX_VALUE)) >= ratio;\n",
                own, (uint32_t)at->stream);
    text_printf(&t, "        y = keep ? x * scale : 0;\n    }\n    OUT0(o, y);\n");
    if (type_results(n->type) > 1)
        text_printf(&t, "    OUT1(o, (i64)keep);\n");
    own_kernel_close(to, "drop", type_elements(in(n, DATA)->type), 0, &t);
    return true;
}

/* The same elements of what arrives, scaled alike: a call with the same stream draws the same numbers. */
static void adjoint_dropout(Build *b, const Site *s, Node **dx)
{
    Node *ins[] = { s->dout[0], site_in(s, RATIO), site_in(s, TRAINING) };
    if (s->dout[0])
        dx[0] = build_node(b, OP_dropout, s->attr, 3, ins);
}

static Node *sample_dropout(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F16, BF16, F64, F8E4M3, F8E5M2 };
    static const DType ratios[] = { F32, F16, F64, BF16 };
    int64_t dims[MAX_RANK];
    const int rank = variant % 6;
    const int n_in = 1 + variant % 3, n_out = 1 + variant / 3 % 2;
    sample_dims(rng, rank, 5, dims);
    const DropoutAttr at = { .seed = variant % 4 ? rng_below(rng, 100) : NO_SEED, .stream = rng_below(rng, 9) };
    Node *ins[3] = { sample_tensor(b, rng, types[rng_below(rng, COUNT(types))], rank, dims, -3, 3) };
    if (n_in > 1 && variant % 5)
        ins[1] = sample_tensor(b, rng, ratios[rng_below(rng, COUNT(ratios))], 0, NULL, variant % 7 ? 0.1 : 0, 0);
    if (n_in > 2)
        ins[2] = sample_tensor(b, rng, BOOL, 0, NULL, 0, 1);
    return build_node_n(b, OP_dropout, &at, n_in, ins, n_out);
}

const OpDef op_dropout = {
    .name = "dropout",
    .min_in = 1,
    .max_in = 3,
    .min_out = 1,
    .max_out = 2,
    .attrs = dropout_attrs,
    .infer = infer_dropout,
    .eval = eval_dropout,
    .adjoint = adjoint_dropout,
    .open_adjoint = true,
    .sample = sample_dropout,
    .n_variants = 36,
    .mode = MODE_TRAINING,
    .differentiable = 1,
    .access.kind = ACCESS_DRAW,
    .access.iterate = iterate_row,
    .access.kernels = kernels_dropout,
    .access.refuses = true,
    .amp = { AMP_P, AMP_P, 1u << RATIO, REASON_NONE, NULL },
    .quant = { .in = { QUANT_AGNOSTIC, QUANT_FLOAT, QUANT_NEVER },
               .out = { QUANT_AGNOSTIC, QUANT_NEVER },
               .same_scale = true },
    .access.steer = 4,
    .onnx = { "Dropout", 22, NULL },
};
