/* cast and identity: the conversions between storage types. */
#include "base/half.h"
#include "ops/card/access.h"
#include "ops/card/cards.h"
#include "ops/card/own_kernel.h"
#include "ops/card/reduction.h"

static const char *const round_modes[] = { "up", "down", "nearest", NULL };

static const AttrSpec cast_attrs[] = {
    ATTR_REQUIRED(CastAttr, to, DTYPE),
    ATTR(CastAttr, saturate, BOOL, true),
    ATTR_CHOICE(CastAttr, round_mode, round_modes, 0),
    ATTR_LAST,
};

static const Type *infer_cast(Infer *q)
{
    DType to;
    const Type *x = infer_tensor(q, 0);
    if (!x)
        return NULL;
    if (!attr_dtype(((const CastAttr *)q->attr)->to, &to))
        return infer_fail(q, "does not say to which type");
    return type_with_dtype(q->types, x, to);
}

typedef uint8_t NarrowF8(double x, bool saturate);

static NarrowF8 *f8_of(DType to)
{
    switch (to) {
    case F8E4M3:
        return f8e4m3fn_from_f64;
    case F8E4M3FNUZ:
        return f8e4m3fnuz_from_f64;
    case F8E5M2:
        return f8e5m2_from_f64;
    case F8E5M2FNUZ:
        return f8e5m2fnuz_from_f64;
    default:
        return NULL;
    }
}

static void cast_floats(const CastAttr *at, Tensor *y, const Tensor *x)
{
    const int64_t n = tensor_elements(x);
    NarrowF8 *f8 = f8_of(y->type->dtype);
    uint8_t *to = y->data;
    for (int64_t i = 0; i < n; i++) {
        const double v = tensor_get_f64(x, i);
        to[i] = f8 ? f8(v, at->saturate) : e8m0_from_f64(v, (E8m0Round)at->round_mode, at->saturate);
    }
}

enum { BLOCK = 1024 };

typedef struct CastRun {
    const Kernels *kernels;
    const Tensor *x;
    Tensor *y;
    RoundingCounts *rounding;
} CastRun;

typedef union CastBlock {
    f32 f[BLOCK];
    f64 d[BLOCK];
    i64 i[BLOCK];
    u64 u[BLOCK];
} CastBlock;

/* Through the arithmetic that holds every value of the operand. */
static void cast_block(const CastRun *r, CastBlock *block, int64_t at, int64_t n)
{
    const DType from = r->x->type->dtype;
    if (from == F64) {
        kernels_load_f64(r->kernels, block->d, r->x, at, n);
        kernels_store_f64(r->kernels, r->y, at, block->d, n);
        rounding_count_f64(r->rounding, r->y, at, block->d, n);
    } else if (dtype_is_float(from)) {
        kernels_load_f32(r->kernels, block->f, r->x, at, n);
        kernels_store_f32(r->kernels, r->y, at, block->f, n);
        rounding_count_f32(r->rounding, r->y, at, block->f, n);
    } else if (from == U64) {
        kernels_load_u64(r->kernels, block->u, r->x, at, n);
        kernels_store_u64(r->kernels, r->y, at, block->u, n);
    } else {
        kernels_load_i64(r->kernels, block->i, r->x, at, n);
        kernels_store_i64(r->kernels, r->y, at, block->i, n);
    }
}

static void cast_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    const CastRun *r = arg;
    CastBlock block;
    (void)worker;
    for (int64_t b = begin; b < end; b++) {
        const int64_t at = b * BLOCK, left = tensor_elements(r->x) - at;
        cast_block(r, &block, at, left < BLOCK ? left : BLOCK);
    }
}

static Status eval_cast(Eval *e)
{
    const CastAttr *at = e->attr;
    const Tensor *x = e->in[0];
    const DType to = eval_type(e, 0)->dtype;
    if (x->type->dtype == to) {
        eval_give(e, 0, x);
        return OK;
    }
    if (x->type->dtype == STRING || to == STRING)
        return eval_fail(e, "strings are not converted");
    if (f8_of(to) || to == F8E8M0) {
        cast_floats(at, eval_out(e, 0), x);
        return OK;
    }
    CastRun r = { e->kernels, x, eval_out(e, 0), eval_options(e)->rounding };
    eval_parallel(e, (tensor_elements(x) + BLOCK - 1) / BLOCK, cast_blocks, &r);
    return OK;
}

/* The types that say how they are rounded to. */
static bool kernels_cast(const Node *n, OwnKernels *to)
{
    const CastAttr *at = n->attr;
    const DType code = n->type->dtype, from = in(n, 0)->type->dtype, wide = dtype_wide(from) == F32 ? F32 : F64;
    Text t;
    if (from == code || (!f8_of(code) && code != F8E8M0))
        return false;
    own_kernel_open(to, &t);
    text_printf(&t, "    OUTRAW0[o] = %s_from_%s((%s)IN0(o), ",
                code == F8E8M0   ? "e8m0"
                : code == F8E4M3 ? "f8e4m3fn"
                                 : dtype_name(code),
                dtype_name(wide), dtype_name(wide));
    if (code == F8E8M0)
        text_printf(&t, "(E8m0Round)%d, ", at->round_mode);
    text_printf(&t, "%s);\n", at->saturate ? "true" : "false");
    own_kernel_close(to, "cast", type_elements(n->type), 0, &t);
    return true;
}

/* Roundings pass everything: the caller brings it to the operand's type. */
static void adjoint_cast(Build *b, const Site *s, Node **dx)
{
    (void)b;
    dx[0] = s->dout[0];
}

static Node *sample_cast(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F64, F16, BF16, I32, U8, BOOL, I64, F8E4M3, F8E5M2, I4, U4 };
    int64_t dims[MAX_RANK];
    const int rank = variant % 6;
    sample_dims(rng, rank, 4, dims);
    /* every type is cast to four others, and each of them is reached from four */
    const int n = COUNT(types), from = variant % n, to = (5 * from + variant / n) % n;
    const CastAttr at = { .to = (int)types[to] + 1, .saturate = rng_below(rng, 2) };
    Node *x = sample_tensor(b, rng, types[from], rank, dims, 0, 6);
    return CALL_ATTR(b, cast, at, x);
}

const OpDef op_cast = {
    .name = "cast",
    .min_in = 1,
    .max_in = 1,
    .attrs = cast_attrs,
    .infer = infer_cast,
    .eval = eval_cast,
    .adjoint = adjoint_cast,
    .open_adjoint = true,
    .sample = sample_cast,
    .n_variants = 48,
    .differentiable = 1,
    .access.kind = ACCESS_ROW,
    .access.kernels = kernels_cast,
    .amp = { AMP_X, AMP_X, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "Cast", 28, NULL },
};

/* ---- amp_cast: one that mixed precision placed ---- */

static const AttrSpec amp_cast_attrs[] = {
    ATTR_REQUIRED(CastAttr, to, DTYPE),
    ATTR_LAST,
};

static const Type *infer_amp_cast(Infer *q)
{
    const Type *y = infer_cast(q);
    if (y && (!dtype_is_amp(y->dtype) || !dtype_is_amp(q->in[0]->dtype)))
        return infer_fail(q, "converts between f32, f16 and bf16, got %s to %s", dtype_name(q->in[0]->dtype),
                          dtype_name(y->dtype));
    return y;
}

static Node *sample_amp_cast(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F16, BF16 };
    int64_t dims[MAX_RANK];
    const int rank = variant % 6;
    sample_dims(rng, rank, 4, dims);
    const CastAttr at = { .to = (int)types[variant / 3 % 3] + 1, .saturate = true };
    Node *x = sample_tensor(b, rng, types[variant % 3], rank, dims, -6, 6);
    return CALL_ATTR(b, amp_cast, at, x);
}

const OpDef op_amp_cast = {
    .name = "amp_cast",
    .min_in = 1,
    .max_in = 1,
    .attrs = amp_cast_attrs,
    .infer = infer_amp_cast,
    .eval = eval_cast,
    .adjoint = adjoint_cast,
    .open_adjoint = true,
    .sample = sample_amp_cast,
    .n_variants = 18,
    .differentiable = 1,
    .access.kind = ACCESS_ROW,
    .amp = { AMP_X, AMP_X, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "A change of width that mixed precision placed: it may be taken out again, and export does.",
};

static const Type *infer_identity(Infer *q)
{
    return infer_has(q, 0) ? q->in[0] : infer_fail(q, "operand 0 is missing");
}

static Status eval_identity(Eval *e)
{
    eval_give(e, 0, e->in[0]);
    return OK;
}

static Node *sample_identity(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    sample_dims(rng, variant % 6, 4, dims);
    return CALL(b, identity, sample_tensor(b, rng, variant % 2 ? F32 : I64, variant % 6, dims, -2, 2));
}

const OpDef op_identity = {
    .name = "identity",
    .min_in = 1,
    .max_in = 1,
    .infer = infer_identity,
    .eval = eval_identity,
    .adjoint = adjoint_cast,
    .open_adjoint = true,
    .sample = sample_identity,
    .n_variants = 12,
    .differentiable = 1,
    .access.kind = ACCESS_MOVE,
    .access.iterate = iterate_flat,
    .access.alias = { { 0, 0, ALIAS_VIEW } },
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_AGNOSTIC }, .out = { QUANT_AGNOSTIC }, .same_scale = true },
    .onnx = { "Identity", 25, NULL },
};
