/* qadd and qmul: sums and products of codes, broadcast, as ONNX Runtime rounds them. */
#include "base/parallel.h"
#include "ops/card/access.h"
#include "ops/machine/space.h"
#include "ops/quant/codes_kernels.h"
#include "ops/quant/words.h"

enum {
    A = QBINARY_A,
    A_SCALE = QBINARY_A_SCALE,
    A_ZERO = QBINARY_A_ZERO,
    B = QBINARY_B,
    B_SCALE = QBINARY_B_SCALE,
    B_ZERO = QBINARY_B_ZERO,
    Y_SCALE = QBINARY_Y_SCALE,
    Y_ZERO = QBINARY_Y_ZERO,
    OPERANDS,
};

static const AttrSpec qbinary_attrs[] = { CODES_ATTRS(QbinaryAttr), ATTR_LAST };

static bool are_bytes(const Infer *q)
{
    return dtype_bits(q->in[A]->dtype) == 8 && dtype_bits(q->in[B]->dtype) == 8 &&
           dtype_bits(q->in[Y_ZERO]->dtype) == 8;
}

static const Type *infer_qbinary(Infer *q)
{
    static const int tensors[] = { A, B };
    for (int i = 0; i < 2; i++) {
        const int x = tensors[i];
        if (!infer_codes(q, x, CODES_16) || !infer_single(q, x + 1, -1) || !infer_single(q, x + 2, x))
            return NULL;
    }
    if (!infer_single(q, Y_SCALE, A_SCALE) || !infer_codes(q, Y_ZERO, CODES_16) || !infer_single(q, Y_ZERO, Y_ZERO))
        return NULL;
    if (q->in[A_SCALE]->dtype != F32 || q->in[B_SCALE]->dtype != F32)
        return infer_fail(q, "wants scales of f32");
    if (((const QbinaryAttr *)q->attr)->codes.factor == FACTOR_Q31 && !are_bytes(q))
        return infer_fail(q, "adds and multiplies codes of 8 bits in fixed point, no others");
    const Type *a = q->in[A], *b = q->in[B];
    const DType code = q->in[Y_ZERO]->dtype;
    int rank = 0;
    int64_t dims[MAX_RANK];
    if (a->rank < 0 || b->rank < 0)
        return infer_codes_out(q, &((const QbinaryAttr *)q->attr)->codes, Y_ZERO, type_unranked(q->types, code));
    if (!broadcast_dims(&rank, dims, a) || !broadcast_dims(&rank, dims, b))
        return infer_fail(q, "%s and %s do not broadcast", type_text(q->scratch, a), type_text(q->scratch, b));
    return infer_codes_out(q, &((const QbinaryAttr *)q->attr)->codes, Y_ZERO, type_tensor(q->types, code, rank, dims));
}

/* One call.  A sum is fma(a, ra, fma(b, rb, base)), base = z - fma(ra, za, rb * zb), with ra and rb the scales by
 * that of the result: the zero points are taken away once.  A product is (a - za) (b - zb) times m, and then z is
 * added. */
typedef struct Binary {
    bool adds;
    Space space;
    CodesOut out;
    const Tensor *whole[2]; /* operands that have an element for each of the space; null: one that is spread */
    const f32 *spread[2];
    f32 za, zb, ra, rb, base, m;
    FixedSum by; /* of fixed point */
} Binary;

/* Elements of the space of operand i. */
static void load(const Binary *c, int i, int64_t first, int64_t n, f32 *to)
{
    if (c->whole[i])
        kernels_load_f32(c->out.kernels, to, c->whole[i], first, n);
    else
        space_gather(&c->space, i, c->spread[i], sizeof(f32), first, n, to);
}

/* The codes of sums where all are bytes; false: they are not, or these are products. */
static bool add_bytes(const Binary *c, int64_t first, int64_t n)
{
    u8 *to = c->adds ? codes_bytes(&c->out, first) : NULL;
    CodeBytes of[2];
    for (int i = 0; i < 2; i++) {
        const Tensor *t = c->whole[i];
        if (!to || !t || (t->type->dtype != U8 && t->type->dtype != I8))
            return false;
        of[i] = (CodeBytes){ (const u8 *)t->data + first, t->type->dtype == I8 ? 0x80 : 0, i ? c->rb : c->ra };
    }
    kernels_codes(c->out.kernels)->sum_codes((size_t)n, &of[0], &of[1], c->base, &c->out.range, to);
    return true;
}

static void sums_of(const Binary *c, int64_t n, const f32 *a, const f32 *b, f32 *u)
{
    kernels_codes(c->out.kernels)->sum((size_t)n, a, b, c->ra, c->rb, c->base, u);
}

static void products_of(const Binary *c, int64_t n, const f32 *a, const f32 *b, f32 *u)
{
    kernels_codes(c->out.kernels)->product((size_t)n, a, b, c->za, c->zb, c->m, c->out.range.z, u);
}

/* In fixed point operands have FIXED_SUM_BITS more bits and half the larger scale before they are added. */
static void fixed_sums_of(const Binary *c, int64_t n, const f32 *a, const f32 *b, i64 *v)
{
    for (int64_t i = 0; i < n; i++) {
        const i64 x = (i64)(a[i] - c->za) * ((i64)1 << FIXED_SUM_BITS),
                  y = (i64)(b[i] - c->zb) * ((i64)1 << FIXED_SUM_BITS);
        v[i] = fixed_times(fixed_times(x, c->by.a) + fixed_times(y, c->by.b), c->by.y);
    }
}

static void fixed_products_of(const Binary *c, int64_t n, const f32 *a, const f32 *b, i64 *v)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = fixed_times((i64)((a[i] - c->za) * (b[i] - c->zb)), c->by.y);
}

/* Quotients as floats have them, without the zero point. */
static void put_fixed(const Binary *c, int64_t first, int64_t n, const i64 *v, f32 *u)
{
    for (int64_t i = 0; i < n; i++)
        u[i] -= c->out.range.z;
    codes_put_fixed(&c->out, first, n, v, u);
}

#define BINARY_BLOCKS(NAME)                                                                                            \
    static void NAME##_blocks(void *arg, int64_t begin, int64_t end, int worker)                                       \
    {                                                                                                                  \
        const Binary *c = arg;                                                                                         \
        f32 a[SUMS_BLOCK], b[SUMS_BLOCK], u[SUMS_BLOCK];                                                               \
        (void)worker;                                                                                                  \
        for (int64_t block = begin; block < end; block++) {                                                            \
            const int64_t first = block * SUMS_BLOCK, left = c->space.total - first;                                   \
            const int64_t n = left < SUMS_BLOCK ? left : SUMS_BLOCK;                                                   \
            if (add_bytes(c, first, n))                                                                                \
                continue;                                                                                              \
            load(c, 0, first, n, a);                                                                                   \
            load(c, 1, first, n, b);                                                                                   \
            NAME(c, n, a, b, u);                                                                                       \
            if (c->out.fixed) {                                                                                        \
                i64 v[SUMS_BLOCK];                                                                                     \
                fixed_##NAME(c, n, a, b, v);                                                                           \
                put_fixed(c, first, n, v, u);                                                                          \
                continue;                                                                                              \
            }                                                                                                          \
            codes_put_shifted(&c->out, first, n, u);                                                                   \
        }                                                                                                              \
    }
BINARY_BLOCKS(sums_of)
BINARY_BLOCKS(products_of)
#undef BINARY_BLOCKS

static f32 number(const Eval *e, int i)
{
    return (f32)eval_float(e, i, 0);
}

FixedSum fixed_sum_factors(f32 sa, f32 sb, f32 sy)
{
    const f32 unit = 2 * (sa > sb ? sa : sb), below = (f32)((i32)1 << FIXED_SUM_BITS) * sy;
    return (FixedSum){ fixed_factor(sa / unit), fixed_factor(sb / unit), fixed_factor(unit / below) };
}

static Status eval_qbinary(Eval *e, ParallelFn blocks)
{
    int64_t strides[2][MAX_RANK];
    Binary c = { .adds = blocks == sums_of_blocks,
                 .out = codes_out(e, &((const QbinaryAttr *)e->attr)->codes, Y_ZERO) };
    space_open(&c.space, eval_type(e, 0), 2, (const Type *const[]){ e->in[A]->type, e->in[B]->type }, strides);
    for (int i = 0; i < 2; i++) {
        const int x = i ? B : A;
        c.whole[i] = tensor_elements(e->in[x]) == c.space.total ? e->in[x] : NULL;
        c.spread[i] = c.whole[i] ? NULL : eval_f32(e, x);
    }
    c.za = number(e, A_ZERO), c.zb = number(e, B_ZERO);
    const f32 sa = number(e, A_SCALE), sb = number(e, B_SCALE), sy = number(e, Y_SCALE);
    c.ra = sa / sy, c.rb = sb / sy;
    c.base = c.out.range.z - fma_f32(c.ra, c.za, c.rb * c.zb);
    c.m = requantize_scale(sa, sb, sy);
    c.by = fixed_sum_factors(sa, sb, sy);
    if (blocks == products_of_blocks)
        c.by.y = fixed_factor(c.m);
    eval_parallel(e, (c.space.total + SUMS_BLOCK - 1) / SUMS_BLOCK, blocks, &c);
    return OK;
}

static Status eval_qadd(Eval *e)
{
    return eval_qbinary(e, sums_of_blocks);
}

static Status eval_qmul(Eval *e)
{
    return eval_qbinary(e, products_of_blocks);
}

static Node *sample_qbinary(Build *b, Rng *rng, int variant, Op op)
{
    static const DType codes[] = { U8, I8, U8, I8, U16, I16 };
    int64_t dims[2][MAX_RANK];
    const int rank = variant % 5, less = (int)rng_below(rng, rank + 1);
    const DType ty = codes[rng_below(rng, COUNT(codes))];
    QbinaryAttr at = { sample_codes_attr(rng, ty) };
    Node *ins[OPERANDS];
    sample_dims(rng, rank, 5, dims[0]);
    for (int i = 0; i < rank - less; i++)
        dims[1][i] = rng_below(rng, 3) ? dims[0][less + i] : 1;
    const bool swap = rng_below(rng, 2);
    for (int i = 0; i < 2; i++) {
        const DType t = codes[rng_below(rng, COUNT(codes))];
        const int x = (i == 0) != swap ? A : B;
        ins[x] = sample_codes(b, rng, t, i ? rank - less : rank, dims[i]);
        ins[x + 1] = sample_scale(b, rng);
        ins[x + 2] = sample_zero_point(b, rng, t);
        at.codes.factor = dtype_bits(t) == 8 ? at.codes.factor : FACTOR_F32;
    }
    ins[Y_SCALE] = sample_scale(b, rng);
    ins[Y_ZERO] = sample_zero_point(b, rng, ty);
    return build_node_n(b, op, &at, OPERANDS, ins, 1 + variant % 2);
}

static bool kernels_qadd(const Node *n, OwnKernels *to)
{
    return kernels_codes_binary(n, to, &((const QbinaryAttr *)n->attr)->codes, true);
}

static bool kernels_qmul(const Node *n, OwnKernels *to)
{
    return kernels_codes_binary(n, to, &((const QbinaryAttr *)n->attr)->codes, false);
}

#define BINARY_CARD(word, text)                                                                                        \
    static Node *sample_##word(Build *b, Rng *rng, int variant)                                                        \
    {                                                                                                                  \
        return sample_qbinary(b, rng, variant, OP_##word);                                                             \
    }                                                                                                                  \
    const OpDef op_##word = {                                                                                          \
        .name = #word,                                                                                                 \
        .min_in = OPERANDS,                                                                                            \
        .max_in = OPERANDS,                                                                                            \
        .min_out = 1,                                                                                                  \
        .max_out = 2,                                                                                                  \
        .saved = codes_saved,                                                                                          \
        .attrs = qbinary_attrs,                                                                                        \
        .infer = infer_qbinary,                                                                                        \
        .eval = eval_##word,                                                                                           \
        .sample = sample_##word,                                                                                       \
        .n_variants = 40,                                                                                              \
        .adjoint = adjoint_##word,                                                                                     \
        .differentiable = 1u << A | 1u << B | 1u << Y_SCALE | 1u << Y_ZERO,                                            \
        .gives_codes = 1,                                                                                              \
        .weight = 3,                                                                                                   \
        .access.kind = ACCESS_ROW,                                                                                     \
        .access.iterate = iterate_row,                                                                                 \
        .access.kernels = kernels_##word,                                                                              \
        .amp = { AMP_N, AMP_N, 1u << A_SCALE | 1u << B_SCALE | 1u << Y_SCALE, REASON_MEANING, NULL },                  \
        .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },                                                    \
        .brief = text,                                                                                                 \
    };
BINARY_CARD(qadd, "A sum of codes, which gives codes.")
BINARY_CARD(qmul, "A product of codes, element by element, which gives codes.")
#undef BINARY_CARD
