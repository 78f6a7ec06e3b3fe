/* matmul: numpy's product of stacks of matrices. */
#include <string.h>

#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/contract/work.h"

static const AttrSpec matmul_attrs[] = {
    ATTR_OURS(MatmulAttr, ta, BOOL, false),
    ATTR_OURS(MatmulAttr, tb, BOOL, false),
    ATTR_OURS(MatmulAttr, out, DTYPE, 0),
    ATTR_LAST,
};

bool infer_contracted(Infer *q, int out, int i, DType *dtype)
{
    *dtype = q->in[i]->dtype;
    if (*dtype == BOOL || *dtype == STRING) {
        infer_fail(q, "needs numbers, got %s", type_text(q->scratch, q->in[i]));
        return false;
    }
    if (!out)
        return true;
    const DType to = (DType)(out - 1);
    if (dtype_is_float(to) != dtype_is_float(*dtype)) {
        infer_fail(q, "cannot give %s from %s", dtype_name(to), dtype_name(*dtype));
        return false;
    }
    *dtype = to;
    return true;
}

/* Extent m or n and k of one operand; a vector has no outer extent (1). */
static void matrix_of(const Type *t, bool transposed, bool left, int64_t *outer, int64_t *inner)
{
    if (t->rank == 1) {
        *outer = 1;
        *inner = t->dims[0];
        return;
    }
    const int64_t rows = t->dims[t->rank - 2], cols = t->dims[t->rank - 1];
    *outer = left != transposed ? rows : cols;
    *inner = left != transposed ? cols : rows;
}

/* The stack's shape: what stands before the two matrix dimensions, broadcast. */
static bool stack_of(const Type *a, const Type *b, int *rank, int64_t *dims)
{
    const Type *both[] = { a, b };
    *rank = 0;
    for (int i = 0; i < 2; i++) {
        const int less = both[i]->rank > 2 ? both[i]->rank - 2 : 0;
        const Type head = { .kind = TYPE_TENSOR, .rank = less, .dims = both[i]->dims };
        if (!broadcast_dims(rank, dims, &head))
            return false;
    }
    return true;
}

static const Type *infer_matmul(Infer *q)
{
    const MatmulAttr *at = q->attr;
    const Type *a = infer_tensor(q, 0), *b = a ? infer_tensor(q, 1) : NULL;
    DType dtype;
    if (!b || !infer_contracted(q, at->out, 0, &dtype))
        return NULL;
    if (a->dtype != b->dtype)
        return infer_fail(q, "needs operands of one type, got %s and %s", dtype_name(a->dtype), dtype_name(b->dtype));
    if (a->rank == 0 || b->rank == 0)
        return infer_fail(q, "needs a dimension to sum over, got ranks %d and %d", a->rank, b->rank);
    if (a->rank < 0 || b->rank < 0)
        return type_unranked(q->types, dtype);
    if ((at->ta && a->rank < 2) || (at->tb && b->rank < 2))
        return infer_fail(q, "a vector cannot be transposed");

    int rank;
    int64_t dims[MAX_RANK], m, n, ka, kb;
    matrix_of(a, at->ta, true, &m, &ka);
    matrix_of(b, at->tb, false, &n, &kb);
    if (ka != kb && ka >= 0 && kb >= 0)
        return infer_fail(q, "inner dimensions differ: %" PRId64 " and %" PRId64, ka, kb);
    if (!stack_of(a, b, &rank, dims))
        return infer_fail(q, "the stacks of %s and %s do not broadcast", type_text(q->scratch, a),
                          type_text(q->scratch, b));
    if (a->rank > 1)
        dims[rank++] = m;
    if (b->rank > 1)
        dims[rank++] = n;
    return infer_dims(q, dtype, rank, dims);
}

/* One product of a stack, and which rows of it: the unit that is spread over threads. */
typedef struct MatmulRun {
    Eval *e;
    Panel panel;
    int rank;
    int64_t dims[MAX_RANK], a_stride[MAX_RANK], b_stride[MAX_RANK]; /* of the stack, in matrices */
    int64_t tiles;
    const void *a, *b;
    void *c;
    f32 *packed; /* a buffer per worker, for operands that are not dense rows */
    size_t packed_a, packed_b;
    DType arithmetic;
} MatmulRun;

enum { TILE_ROWS = 48 };

static void pack(f32 *to, const f32 *from, size_t rows, size_t cols, size_t row, size_t col)
{
    enum { SIDE = 16 }; /* squares, so that both sides stay in cache */
    for (size_t i0 = 0; i0 < rows; i0 += SIDE)
        for (size_t j0 = 0; j0 < cols; j0 += SIDE)
            for (size_t i = i0; i < rows && i < i0 + SIDE; i++)
                for (size_t j = j0; j < cols && j < j0 + SIDE; j++)
                    to[i * cols + j] = from[i * row + j * col];
}

#define PANEL(T, FMA)                                                                                                  \
    void panel_##T(const Panel *p, const T *a, const T *b, T *c)                                                       \
    {                                                                                                                  \
        memset(c, 0, p->m * p->n * sizeof *c);                                                                         \
        for (size_t i = 0; i < p->m; i++)                                                                              \
            for (size_t k = 0; k < p->k; k++) {                                                                        \
                const T x = a[i * p->ai + k * p->ap], *y = b + k * p->bp;                                              \
                T *z = c + i * p->n;                                                                                   \
                for (size_t j = 0; j < p->n; j++)                                                                      \
                    z[j] = FMA(x, y[j * p->bj], z[j]);                                                                 \
            }                                                                                                          \
    }
#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))
PANEL(f64, fma_f64)
PANEL(i64, MULTIPLY_ADD)
#undef MULTIPLY_ADD
#undef PANEL

void panel_f32(const Kernels *kernels, const Panel *p, const f32 *a, const f32 *b, f32 *c)
{
    memset(c, 0, p->m * p->n * sizeof *c);
    kernels_gemm_f32(kernels, p->m, p->n, p->k, a, p->ai, b, p->bp, c, p->n);
}

/* Where the matrices of stack position `s` begin, in matrices. */
static void stack_offsets(const MatmulRun *r, int64_t s, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int i = r->rank - 1; i >= 0; i--) {
        const int64_t at = s % r->dims[i];
        s /= r->dims[i];
        *a += at * r->a_stride[i];
        *b += at * r->b_stride[i];
    }
}

static void matmul_tiles(void *arg, int64_t begin, int64_t end, int worker)
{
    const MatmulRun *r = arg;
    f32 *wide = r->packed + (size_t)worker * (r->packed_a + r->packed_b);
    int64_t packed_for = -1;
    for (int64_t t = begin; t < end; t++) {
        int64_t a, b;
        Panel p = r->panel;
        const int64_t s = t / r->tiles;
        const size_t row = (size_t)(t % r->tiles) * TILE_ROWS;
        stack_offsets(r, s, &a, &b);
        p.m = p.m - row < TILE_ROWS ? p.m - row : TILE_ROWS;
        const size_t at_a = (size_t)a * r->panel.m * p.k + row * p.ai, at_b = (size_t)b * p.n * p.k;
        const size_t at_c = ((size_t)s * r->panel.m + row) * p.n;
        if (r->arithmetic == F64) {
            panel_f64(&p, (const f64 *)r->a + at_a, (const f64 *)r->b + at_b, (f64 *)r->c + at_c);
            continue;
        }
        if (r->arithmetic == I64) {
            panel_i64(&p, (const i64 *)r->a + at_a, (const i64 *)r->b + at_b, (i64 *)r->c + at_c);
            continue;
        }
        const f32 *x = (const f32 *)r->a + at_a, *y = (const f32 *)r->b + at_b;
        if (r->packed_a) {
            pack(wide, x, p.m, p.k, p.ai, p.ap);
            x = wide;
            p.ai = p.k;
        }
        if (r->packed_b) {
            if (packed_for != b)
                pack(wide + r->packed_a, y, p.k, p.n, p.bp, p.bj);
            packed_for = b;
            y = wide + r->packed_a;
            p.bp = p.n;
        }
        panel_f32(r->e->kernels, &p, x, y, (f32 *)r->c + at_c);
    }
}

/* Strides of an operand's stack within the broadcast one, in matrices; 0 where it repeats. */
static void stack_strides(const MatmulRun *r, const Type *t, int64_t *strides)
{
    int64_t stride = 1;
    const int less = t->rank > 2 ? t->rank - 2 : 0;
    for (int i = r->rank - 1, j = less - 1; i >= 0; i--, j--) {
        strides[i] = j >= 0 && t->dims[j] != 1 ? stride : 0;
        stride *= j >= 0 ? t->dims[j] : 1;
    }
}

/* Integers of both signs share wrapping arithmetic: products and sums agree modulo 2^64. */
static void matmul_operands(Eval *e, MatmulRun *r)
{
    const DType d = e->in[0]->type->dtype;
    if (d == F64) {
        r->arithmetic = F64;
        r->a = eval_f64(e, 0), r->b = eval_f64(e, 1), r->c = eval_out_f64(e, 0);
    } else if (dtype_is_float(d)) {
        r->arithmetic = F32;
        r->a = eval_f32(e, 0), r->b = eval_f32(e, 1), r->c = eval_out_f32(e, 0);
    } else if (d == U64) {
        r->arithmetic = I64;
        r->a = eval_u64(e, 0), r->b = eval_u64(e, 1), r->c = eval_out_u64(e, 0);
    } else {
        r->arithmetic = I64;
        r->a = eval_i64(e, 0), r->b = eval_i64(e, 1), r->c = eval_out_i64(e, 0);
    }
}

static Status eval_matmul(Eval *e)
{
    const MatmulAttr *at = e->attr;
    const Type *a = e->in[0]->type, *b = e->in[1]->type;
    int64_t m, n, k;
    MatmulRun r = { .e = e };
    matrix_of(a, at->ta, true, &m, &k);
    matrix_of(b, at->tb, false, &n, &k);
    BUG_IF(e->ir->memory, !stack_of(a, b, &r.rank, r.dims));
    stack_strides(&r, a, r.a_stride);
    stack_strides(&r, b, r.b_stride);
    r.panel = (Panel){ .m = (size_t)m, .n = (size_t)n, .k = (size_t)k };
    r.panel.ai = at->ta ? 1 : (size_t)k, r.panel.ap = at->ta ? (size_t)m : 1;
    r.panel.bp = at->tb ? 1 : (size_t)n, r.panel.bj = at->tb ? (size_t)k : 1;
    matmul_operands(e, &r);
    if (tensor_elements(e->out[0]) == 0)
        return OK;
    int64_t stack = 1;
    for (int i = 0; i < r.rank; i++)
        stack *= r.dims[i];
    if (r.arithmetic == F32) {
        r.packed_a = at->ta ? TILE_ROWS * r.panel.k : 0;
        r.packed_b = at->tb ? r.panel.n * r.panel.k : 0;
        r.packed = eval_room(e, (size_t)parallel_threads(e->pool) * (r.packed_a + r.packed_b), sizeof(f32));
    }
    r.tiles = (m + TILE_ROWS - 1) / TILE_ROWS;
    eval_parallel(e, stack * r.tiles, matmul_tiles, &r);
    return OK;
}

static Node *sample_matmul(Build *b, Rng *rng, int variant)
{
    static const DType integers[] = { I32, U32, I64, U64 };
    int64_t x[MAX_RANK], y[MAX_RANK], stack[3], m, n, k;
    const int rank_x = variant % 6 ? variant % 6 : 2, rank_y = rank_x == 1 ? 1 + variant / 6 % 3 : 1 + variant / 6 % 5;
    const DType dtype = variant % 5 == 4 ? integers[rng_below(rng, 4)] : sample_float(rng);
    const MatmulAttr at = { .ta = rank_x > 1 && rng_below(rng, 2),
                            .tb = rank_y > 1 && rng_below(rng, 2),
                            .out = dtype == BF16 && rng_below(rng, 2) ? F32 + 1 : 0 };
    sample_dims(rng, 3, 4, stack);
    sample_dims(rng, 1, 5, &m);
    sample_dims(rng, 1, 5, &n);
    sample_dims(rng, 1, 9, &k);
    for (int i = 0; i + 2 < rank_x; i++)
        x[rank_x - 3 - i] = rng_below(rng, 3) ? stack[i] : 1;
    for (int i = 0; i + 2 < rank_y; i++)
        y[rank_y - 3 - i] = rng_below(rng, 3) ? stack[i] : 1;
    if (rank_x == 1)
        x[0] = k;
    else
        x[rank_x - 2] = at.ta ? k : m, x[rank_x - 1] = at.ta ? m : k;
    if (rank_y == 1)
        y[0] = k;
    else
        y[rank_y - 2] = at.tb ? n : k, y[rank_y - 1] = at.tb ? k : n;
    return CALL_ATTR(b, matmul, at, sample_tensor(b, rng, dtype, rank_x, x, dtype == U32 || dtype == U64 ? 0 : -2, 2),
                     sample_tensor(b, rng, dtype, rank_y, y, dtype == U32 || dtype == U64 ? 0 : -2, 2));
}

/* A product of two vectors is a sum. */
static AmpClass matmul_class(const Node *n, DType target)
{
    (void)target;
    return in(n, 0)->type->rank == 1 && in(n, 1)->type->rank == 1 ? AMP_FO : AMP_T;
}

/* Rows of the left operand and columns of the right one are rows and columns of the product; a vector has neither. */
static int channels_of_matmul(const Node *n, int operand)
{
    const MatmulAttr *at = n->attr;
    const int rank = n->in[operand].def->type->rank;
    if (rank < 2)
        return QUANT_WHOLE;
    const bool last = operand == 0 ? at->ta : !at->tb;
    return last ? rank - 1 : rank - 2;
}

const OpDef op_matmul = {
    .name = "matmul",
    .min_in = 2,
    .max_in = 2,
    .attrs = matmul_attrs,
    .infer = infer_matmul,
    .eval = eval_matmul,
    .sample = sample_matmul,
    .n_variants = 60,
    .adjoint = adjoint_matmul,
    .differentiable = 3,
    .trainable = 3,
    .weight = 20,
    .work = work_matmul,
    .fuse = FUSE_CONTRACT,
    .amp = { AMP_C, AMP_C, 0, REASON_RANGE, matmul_class },
    .quant = { .in = { QUANT_INPUT, QUANT_WEIGHT },
               .out = { QUANT_INPUT },
               .weight_axis = channels_of_matmul,
               .integer = OP_qlinear_matmul },
    .onnx = { "MatMul", 13, NULL },
};
