/* latch: the scale of a loss as it was when gradients began; check_finite: what a step found; update_scale: what the
 * scale becomes by it (ops/update/scaler.h). */
#include "ops/card/own_kernel.h"
#include "ops/card/reduction.h"
#include "ops/card/signature.h"
#include "ops/update/scaler.h"
#include "ops/card/access.h"

/* ---- latch ---- */

static const Type *infer_latch(Infer *q)
{
    return infer_tensor(q, 0);
}

static Status eval_latch(Eval *e)
{
    eval_give(e, 0, e->in[0]);
    return OK;
}

static Node *sample_latch(Build *b, Rng *rng, int variant)
{
    const int64_t n = variant % 3;
    return CALL(b, latch, sample_tensor(b, rng, variant % 2 ? F32 : F64, variant % 3 != 0, &n, -2, 2));
}

const OpDef op_latch = {
    .name = "latch",
    .min_in = 1,
    .max_in = 1,
    .infer = infer_latch,
    .eval = eval_latch,
    .sample = sample_latch,
    .n_variants = 6,
    .access.kind = ACCESS_MOVE,
    .latches = true,
    .access.iterate = iterate_flat,
    .amp = { AMP_F, AMP_F, 0, REASON_RANGE, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "Its operand, as it is at this place of a run, whatever becomes of the state behind it.",
};

/* ---- check_finite ---- */

enum { CHECK_VALUES, CHECK_LOSS };

static Status eval_check_finite(Eval *e)
{
    const f64 *v = eval_f64(e, CHECK_VALUES);
    const int64_t n = eval_elements(e, CHECK_VALUES);
    i64 *y = eval_out_i64(e, 0), first = -1, flags = 0;
    for (int64_t i = n; i-- > 0;)
        if (!isfinite(v[i])) {
            first = i;
            flags |= isnan(v[i]) ? SCALER_GRADIENT | SCALER_NAN : SCALER_GRADIENT;
        }
    if (eval_has(e, CHECK_LOSS) && !isfinite(eval_float(e, CHECK_LOSS, 0)))
        flags |= SCALER_FORWARD;
    y[0] = first;
    y[1] = flags;
    return OK;
}

/* A block of threads: each looks at some values, then one at what they found. */
static bool kernels_check_finite(const Node *n, OwnKernels *to)
{
    enum { THREADS = 256 };
    const Type *values = in(n, CHECK_VALUES)->type;
    const bool loss = n->n_in > CHECK_LOSS && in(n, CHECK_LOSS);
    Text t;
    own_kernel_open(to, &t);
    text_printf(&t, "    __shared__ i64 first[%d], flags[%d];\n    i64 least = -1, found = 0;\n", THREADS, THREADS);
    text_printf(&t, "    for (i64 i = thread; i < %" PRId64 "; i += %d) {\n", type_elements(values), THREADS);
    text_printf(&t,
                "        const %s v = IN%d(i);\n        if (v - v == 0)\n            continue;\n"
                "        least = least < 0 ? i : least;\n        found |= v != v ? %d : %d;\n    }\n",
                dtype_name(dtype_wide(values->dtype)), CHECK_VALUES, SCALER_GRADIENT | SCALER_NAN, SCALER_GRADIENT);
    text_add(&t, "    first[thread] = least;\n    flags[thread] = found;\n    __syncthreads();\n    if (thread)\n"
                 "        return;\n");
    text_printf(&t, "    for (u32 k = 1; k < %d; k++) {\n", THREADS);
    text_add(&t, "        if (first[k] >= 0 && (least < 0 || first[k] < least))\n            least = first[k];\n"
                 "        found |= flags[k];\n    }\n");
    if (loss)
        text_printf(&t, "    if (!(IN%d(0) - IN%d(0) == 0))\n        found |= %d;\n", CHECK_LOSS, CHECK_LOSS,
                    SCALER_FORWARD);
    text_add(&t, "    OUT0(0, least);\n    OUT0(1, found);\n");
    own_kernel_close(to, "check", 1, THREADS, &t);
    return true;
}

/* A vector with values that are not finite at some places. */
static Node *sample_sums(Build *b, Rng *rng, DType dtype, int64_t n)
{
    Tensor *t = tensor_new(b->graph->arena, type_vector(&b->graph->ir->types, dtype, n));
    const double odd[] = { INFINITY, -INFINITY, NAN, 1, 0 };
    for (int64_t i = 0; i < n; i++)
        tensor_set_f64(t, i, rng_below(rng, 3) ? (double)rng_below(rng, 99) : odd[rng_below(rng, 5)]);
    return build_const(b, t);
}

static Node *sample_check_finite(Build *b, Rng *rng, int variant)
{
    static const DType dtypes[] = { F64, F32, F16, BF16 };
    const DType dtype = dtypes[variant % 4];
    Node *in[2] = { sample_sums(b, rng, dtype, rng_below(rng, 6)) };
    if (variant / 4 % 2)
        in[1] = sample_tensor(b, rng, F32, 0, NULL, -1, 1);
    return build_node(b, OP_check_finite, NULL, variant / 4 % 2 ? 2 : 1, in);
}

const OpDef op_check_finite = {
    .name = "check_finite",
    .min_in = 1,
    .max_in = 2,
    .infer = infer_by_signature,
    .signature = &(const Signature){ .in = { "F[k]", "G[]?" }, .out = { "i64[2]" } },
    .eval = eval_check_finite,
    .sample = sample_check_finite,
    .n_variants = 16,
    .access.kind = ACCESS_FOLD,
    .access.kernels = kernels_check_finite,
    .amp = { AMP_FI, AMP_FI, 0, REASON_RANGE, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_NEVER } },
    .brief =
        "Where the first of some values stands that is not finite (-1: nowhere), and as bits: 1 there is one, 2 one "
        "is NaN, 4 the loss is not finite.",
};

/* ---- update_scale ---- */

enum { SCALE, COUNTERS, FOUND };

static const AttrSpec update_scale_attrs[] = {
    ATTR(ScalerRules, growth, FLOAT, 2),     ATTR(ScalerRules, backoff, FLOAT, 0.5),
    ATTR(ScalerRules, least, FLOAT, 1),      ATTR(ScalerRules, most, FLOAT, 16777216),
    ATTR(ScalerRules, interval, INT, 2000),  ATTR(ScalerRules, hysteresis, INT, 1),
    ATTR(ScalerRules, refills, BOOL, false), ATTR(ScalerRules, fast_start, BOOL, true),
    ATTR(ScalerRules, dynamic, BOOL, true),  ATTR_LAST,
};

static bool check_rules(Infer *q, const ScalerRules *r)
{
    const struct {
        const char *name;
        float v, from, to;
    } powers[] = {
        { "growth", r->growth, 1, 0x1p64f },
        { "backoff", r->backoff, 0x1p-64f, 1 },
        { "least", r->least, 0x1p-64f, 0x1p64f },
        { "most", r->most, r->least, 0x1p64f },
    };
    for (size_t i = 0; i < COUNT(powers); i++)
        if (!scaler_is_scale(powers[i].v) || powers[i].v < powers[i].from || powers[i].v > powers[i].to)
            return infer_fail(q, "%s is %g, wanted is a power of two from %g to %g", powers[i].name,
                              (double)powers[i].v, (double)powers[i].from, (double)powers[i].to),
                   false;
    if (r->interval < 1 || r->hysteresis < 1)
        return infer_fail(q, "interval %" PRId64 " and hysteresis %" PRId64 " must be 1 or more", r->interval,
                          r->hysteresis),
               false;
    return true;
}

static const Type *infer_update_scale(Infer *q)
{
    return check_rules(q, q->attr) ? infer_by_signature(q) : NULL;
}

static Status eval_update_scale(Eval *e)
{
    const i64 *found = eval_i64(e, FOUND);
    const ScalerState s = scaler_unpack(*eval_f32(e, SCALE), eval_i64(e, COUNTERS)),
                      next = scaler_next(e->attr, s, found[0], found[1]);
    *eval_out_f32(e, 0) = next.scale;
    scaler_pack(&next, eval_out_i64(e, 1));
    *eval_out_i64(e, 2) = scaler_applies(found[1]);
    return OK;
}

/* One thread takes the automaton one step on: its text is that of scaler.h. */
static bool kernels_update_scale(const Node *n, OwnKernels *to)
{
    const ScalerRules *r = n->attr;
    Text t;
    own_kernel_open(to, &t);
    text_printf(&t, "    const ScalerRules rules = { %s, %s, %s, %s, %" PRId64 ", %" PRId64 ", %s, %s, %s };\n",
                own_f32(to, (double)r->growth), own_f32(to, (double)r->backoff), own_f32(to, (double)r->least),
                own_f32(to, (double)r->most), r->interval, r->hysteresis, r->refills ? "true" : "false",
                r->fast_start ? "true" : "false", r->dynamic ? "true" : "false");
    text_printf(&t, "    const ScalerState now = scaler_unpack(IN%d(0), RAW%d);\n", SCALE, COUNTERS);
    text_printf(&t, "    const i64 first = RAW%d[0], flags = RAW%d[1];\n", FOUND, FOUND);
    text_add(&t, "    const ScalerState next = scaler_next(&rules, now, first, flags);\n    OUT0(0, next.scale);\n"
                 "    scaler_pack(&next, OUTRAW1);\n    OUTRAW2[0] = (u8)scaler_applies(flags);\n");
    own_kernel_close(to, "step", 1, 0, &t);
    return true;
}

static Node *sample_update_scale(Build *b, Rng *rng, int variant)
{
    const ScalerRules at = { .growth = (float)(2 << variant % 2),
                             .backoff = variant / 2 % 2 ? 0.5f : 0.25f,
                             .least = variant % 3 ? 1 : 1.0f / 16,
                             .most = 0x1p24f,
                             .interval = 1 + (int64_t)rng_below(rng, 3),
                             .hysteresis = 1 + (int64_t)rng_below(rng, 2),
                             .refills = variant / 4 % 2,
                             .fast_start = variant / 8 % 2,
                             .dynamic = variant % 5 != 4 };
    const int64_t many = SCALER_COUNTERS;
    Tensor *found = tensor_new(b->graph->arena, type_vector(&b->graph->ir->types, I64, 2));
    const int64_t flags = rng_below(rng, 2) ? (int64_t)rng_below(rng, 8) : 0;
    tensor_set_i64(found, 0, flags & SCALER_GRADIENT ? (int64_t)rng_below(rng, 9) : -1);
    tensor_set_i64(found, 1, flags);
    Tensor *scale = tensor_scalar(b->graph->arena, &b->graph->ir->types, F32, ldexp(1, (int)rng_below(rng, 26) - 1));
    Node *in[] = { build_const(b, scale), sample_tensor(b, rng, I64, 1, &many, 0, 3), build_const(b, found) };
    return build_node_n(b, OP_update_scale, &at, 3, in, 3);
}

const OpDef op_update_scale = {
    .name = "update_scale",
    .min_in = 3,
    .max_in = 3,
    .min_out = 3,
    .max_out = 3,
    .attrs = update_scale_attrs,
    .infer = infer_update_scale,
    .signature = &(const Signature){ .in = { "f32[]", "i64[8]", "i64[2]" }, .out = { "f32[]", "i64[8]", "bool[]" } },
    .eval = eval_update_scale,
    .sample = sample_update_scale,
    .n_variants = 40,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "an automaton over three scalars",
    .access.kernels = kernels_update_scale,
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .brief = "The next scale of the loss and its counters, and whether the step is applied.",
};
