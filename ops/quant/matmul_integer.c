/* matmul_integer and qlinear_matmul: products of codes, accumulated in 32 bits. */
#include "base/parallel.h"
#include "ops/kernels/panel.h"
#include "ops/quant/integer.h"
#include "ops/card/access.h"

/* numpy's matmul: [batches] of m x k times k x n. */
typedef struct Product {
    int64_t m, k, n, batches;
    int rank;                                                   /* of the batch dimensions */
    int64_t dims[MAX_RANK], a_step[MAX_RANK], b_step[MAX_RANK]; /* in matrices; 0: broadcast */
} Product;

/* The batch part of an operand's shape. */
static const Type *batch_type(Infer *q, const Type *t)
{
    return type_tensor(q->types, t->dtype, t->rank > 2 ? t->rank - 2 : 0, t->dims);
}

static const Type *infer_product(Infer *q, const Type *a, const Type *b, DType dtype)
{
    if (a->rank < 0 || b->rank < 0)
        return type_unranked(q->types, dtype);
    if (a->rank == 0 || b->rank == 0)
        return infer_fail(q, "multiplies matrices, got a scalar");
    const int64_t ka = a->dims[a->rank - 1], kb = b->dims[b->rank > 1 ? b->rank - 2 : 0];
    if (ka >= 0 && kb >= 0 && ka != kb)
        return infer_fail(q, "inner dimensions differ: %" PRId64 " and %" PRId64, ka, kb);
    int rank = 0;
    int64_t dims[MAX_RANK + 2];
    if (!broadcast_dims(&rank, dims, batch_type(q, a)) || !broadcast_dims(&rank, dims, batch_type(q, b)))
        return infer_fail(q, "batches of %s and %s do not broadcast", type_text(q->scratch, a),
                          type_text(q->scratch, b));
    if (a->rank > 1)
        dims[rank++] = a->dims[a->rank - 2];
    if (b->rank > 1)
        dims[rank++] = b->dims[b->rank - 1];
    return type_tensor(q->types, dtype, rank, dims);
}

static void batch_steps(const Type *t, const Product *p, int64_t *step)
{
    int64_t stride = 1;
    for (int i = p->rank - 1, at = t->rank - 3; i >= 0; i--, at--) {
        const int64_t n = at >= 0 ? t->dims[at] : 1;
        step[i] = n == 1 ? 0 : stride;
        stride *= n;
    }
}

static Product product_of(const Type *a, const Type *b, const Type *y)
{
    const bool row = a->rank == 1, column = b->rank == 1;
    Product p = { .k = a->dims[a->rank - 1], .m = row ? 1 : a->dims[a->rank - 2], .batches = 1 };
    p.n = column ? 1 : b->dims[b->rank - 1];
    p.rank = y->rank - !row - !column;
    for (int i = 0; i < p.rank; i++)
        p.batches *= p.dims[i] = y->dims[i];
    batch_steps(a, &p, p.a_step);
    batch_steps(b, &p, p.b_step);
    return p;
}

/* The matrices of both operands that make batch `at` of the result. */
static void product_batch(const Product *p, int64_t at, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int i = p->rank - 1; i >= 0; i--) {
        const int64_t k = at % p->dims[i];
        at /= p->dims[i];
        *a += k * p->a_step[i];
        *b += k * p->b_step[i];
    }
}

/* Whether operand i fits as scale or zero point: one number, one for each row (or column), or one for each row (or
 * column) of every matrix. */
static bool infer_lanes(Infer *q, int i, const Type *of, bool rows)
{
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    if (t->rank < 0 || of->rank < 0 || type_elements(t) == 1)
        return true;
    const int64_t lanes = of->rank > 1 ? of->dims[of->rank - (rows ? 2 : 1)] : 1;
    bool fits = t->rank == 1 ? t->dims[0] < 0 || lanes < 0 || t->dims[0] == lanes : t->rank == of->rank;
    for (int d = 0; fits && t->rank > 1 && d < t->rank; d++) {
        const bool unit = d == t->rank - (rows ? 1 : 2);
        const int64_t want = unit ? 1 : of->dims[d];
        fits = t->dims[d] < 0 || want < 0 || t->dims[d] == want;
    }
    if (!fits)
        infer_fail(q, "operand %d, %s, is neither one number nor one a %s of %s", i, type_text(q->scratch, t),
                   rows ? "row" : "column", type_text(q->scratch, of));
    return fits;
}

/* The index of the scale or zero point of a row or column (`lane`) of a matrix. */
static int64_t lane_at(const Tensor *t, int64_t matrix, int64_t lane, int64_t lanes)
{
    return tensor_elements(t) == 1 ? 0 : t->type->rank == 1 ? lane : matrix * lanes + lane;
}

/* Codes minus their zero points.  With `rows` a zero point belongs to a row of the operand, otherwise to a column; a
 * single one belongs to all. */
#define CENTRED(T, WIDEN)                                                                                              \
    static const T *centred_##T(Eval *e, int i, int zero, bool rows, const Product *p)                                 \
    {                                                                                                                  \
        const T *x = WIDEN(e, i);                                                                                      \
        if (!eval_has(e, zero))                                                                                        \
            return x;                                                                                                  \
        const int64_t height = rows ? p->m : p->k, width = rows ? p->k : p->n, n = eval_elements(e, i);                \
        T *v = eval_scratch(e, (size_t)n, sizeof *v);                                                                  \
        const T *zeros = WIDEN(e, zero);                                                                               \
        for (int64_t at = 0; at < n; at++) {                                                                           \
            const int64_t matrix = at / width / height, lane = rows ? at / width % height : at % width;                \
            v[at] = x[at] - zeros[lane_at(e->in[zero], matrix, lane, rows ? height : width)];                          \
        }                                                                                                              \
        return v;                                                                                                      \
    }
CENTRED(i32, eval_i32)
CENTRED(f32, eval_f32)
#undef CENTRED

typedef struct RowsJob {
    const Product *p;
    const i32 *a, *b;
    i32 *c;
} RowsJob;

static void product_rows(void *arg, int64_t begin, int64_t end, int worker)
{
    const RowsJob *job = arg;
    const Product *p = job->p;
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        int64_t ma, mb;
        product_batch(p, item / p->m, &ma, &mb);
        const i32 *a = job->a + (ma * p->m + item % p->m) * p->k, *b = job->b + mb * p->k * p->n;
        i32 *c = job->c + item * p->n;
        for (int64_t j = 0; j < p->n; j++)
            c[j] = 0;
        for (int64_t k = 0; k < p->k; k++)
            for (int64_t j = 0; j < p->n; j++)
                c[j] += a[k] * b[k * p->n + j];
    }
}

/* c is written whole; wraps at 32 bits, as the operator allows. */
static void product_i32(Eval *e, const Product *p, const i32 *a, const i32 *b, i32 *c)
{
    RowsJob job = { p, a, b, c };
    eval_parallel(e, p->batches * p->m, product_rows, &job);
}

static const Type *infer_matmul_integer(Infer *q)
{
    if (!infer_codes(q, 0, false) || !infer_codes(q, 1, false))
        return NULL;
    for (int i = 2; i < 4; i++) {
        if (!infer_has(q, i))
            continue;
        if (!infer_lanes(q, i, q->in[i - 2], i == 2))
            return NULL;
        if (q->in[i]->dtype != q->in[i - 2]->dtype)
            return infer_fail(q, "has codes of %s but zero points of %s", dtype_name(q->in[i - 2]->dtype),
                              dtype_name(q->in[i]->dtype));
    }
    return infer_product(q, q->in[0], q->in[1], I32);
}

static Status eval_matmul_integer(Eval *e)
{
    Tensor *y = eval_out(e, 0);
    const Product p = product_of(e->in[0]->type, e->in[1]->type, y->type);
    const i32 *a = centred_i32(e, 0, 2, true, &p), *b = centred_i32(e, 1, 3, false, &p);
    product_i32(e, &p, a, b, y->data);
    return OK;
}

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };

static const Type *infer_qlinear_matmul(Infer *q)
{
    if (!infer_codes(q, A, true) || !infer_codes(q, B, true) || !infer_codes(q, Y_ZERO, true))
        return NULL;
    if (!infer_lanes(q, A_SCALE, q->in[A], true) || !infer_lanes(q, A_ZERO, q->in[A], true) ||
        !infer_lanes(q, B_SCALE, q->in[B], false) || !infer_lanes(q, B_ZERO, q->in[B], false) ||
        !infer_single(q, Y_SCALE, A_SCALE) || !infer_single(q, Y_ZERO, Y_ZERO))
        return NULL;
    const DType scale = q->in[A_SCALE]->dtype;
    if (scale != F32 && scale != F16 && scale != BF16)
        return infer_fail(q, "cannot have scales of %s", dtype_name(scale));
    if (q->in[B_SCALE]->dtype != scale)
        return infer_fail(q, "has scales of %s and of %s", dtype_name(scale), dtype_name(q->in[B_SCALE]->dtype));
    if (q->in[A]->dtype != q->in[A_ZERO]->dtype || q->in[B]->dtype != q->in[B_ZERO]->dtype)
        return infer_fail(q, "wants zero points of the types of the codes");
    return infer_product(q, q->in[A], q->in[B], q->in[Y_ZERO]->dtype);
}

/* What the last step reads: one multiplier for every row and column. */
typedef struct Rescale {
    const Product *p;
    const Tensor *ta, *tb;
    const f32 *sa, *sb;
    f32 sy;
} Rescale;

static f32 multiplier(const Rescale *r, int64_t ma, int64_t mb, int64_t row, int64_t column)
{
    return requantize_scale(r->sa[lane_at(r->ta, ma, row, r->p->m)], r->sb[lane_at(r->tb, mb, column, r->p->n)], r->sy);
}

static Panel row_panel(const Product *p)
{
    const size_t n = (size_t)p->n, k = (size_t)p->k;
    return (Panel){ .m = 1, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n };
}

/* f8 codes are numbers: a row of their products, as any product of f32. */
static void row_f32(const Kernels *kernels, const Product *p, int64_t item, const f32 *a, const f32 *b, f32 *out,
                    f32 *room)
{
    int64_t ma, mb;
    const Panel row = row_panel(p);
    product_batch(p, item / p->m, &ma, &mb);
    panel_f32(kernels, &row, a + (ma * p->m + item % p->m) * p->k, b + mb * p->k * p->n, out, room);
}

/* out holds the products where there are no sums. */
static void qlinear_row(const Rescale *r, Tensor *y, int64_t item, const i32 *acc, f32 *out, f32 zero)
{
    const Product *p = r->p;
    const DType code = y->type->dtype;
    const bool integer = !dtype_is_float(code);
    const Requantizer rq = requantizer_of(integer ? code : U8, zero);
    int64_t ma, mb;
    product_batch(p, item / p->m, &ma, &mb);
    for (int64_t j = 0; j < p->n; j++) {
        const f32 m = multiplier(r, ma, mb, item % p->m, j);
        if (acc && integer) {
            out[j] = requantize(&rq, acc[item * p->n + j], m);
            continue;
        }
        const f32 v = (acc ? (f32)acc[item * p->n + j] : out[j]) * m;
        out[j] = integer ? stored_code_f32(v, zero, rq.lo, rq.hi) : zero == 0 ? v : v + zero;
    }
    store_codes(y, item * p->n, out, p->n, true);
}

static Status eval_qlinear_matmul(Eval *e)
{
    Tensor *y = eval_out(e, 0);
    const Product p = product_of(e->in[A]->type, e->in[B]->type, y->type);
    const Rescale r = { .p = &p,
                        .ta = e->in[A_SCALE],
                        .tb = e->in[B_SCALE],
                        .sa = eval_f32(e, A_SCALE),
                        .sb = eval_f32(e, B_SCALE),
                        .sy = (f32)eval_float(e, Y_SCALE, 0) };
    const bool integer = !dtype_is_float(e->in[A]->type->dtype) && !dtype_is_float(e->in[B]->type->dtype);
    i32 *acc = NULL;
    const f32 *a = NULL, *b = NULL;
    if (integer) {
        acc = eval_scratch(e, (size_t)(p.batches * p.m * p.n), sizeof *acc);
        product_i32(e, &p, centred_i32(e, A, A_ZERO, true, &p), centred_i32(e, B, B_ZERO, false, &p), acc);
    } else {
        a = centred_f32(e, A, A_ZERO, true, &p);
        b = centred_f32(e, B, B_ZERO, false, &p);
    }
    const Panel row = row_panel(&p);
    f32 *out = eval_scratch(e, (size_t)p.n, sizeof *out), *room = eval_room(e, panel_room(&row), sizeof *room);
    for (int64_t item = 0; item < p.batches * p.m; item++) {
        if (!acc)
            row_f32(e->kernels, &p, item, a, b, out, room);
        qlinear_row(&r, y, item, acc, out, (f32)eval_float(e, Y_ZERO, 0));
    }
    return OK;
}

/* Shapes of a product: ranks 1 .. 4, broadcast batches. */
typedef struct DrawnProduct {
    int ra, rb;
    int64_t a[MAX_RANK], b[MAX_RANK];
} DrawnProduct;

static DrawnProduct draw_product(Rng *rng)
{
    DrawnProduct d = { .ra = 1 + (int)rng_below(rng, 4), .rb = 1 + (int)rng_below(rng, 4) };
    int64_t inner[3];
    sample_dims(rng, d.ra, 4, d.a);
    sample_dims(rng, d.rb, 4, d.b);
    sample_dims(rng, 3, 6, inner);
    for (int i = 3; i <= (d.ra < d.rb ? d.ra : d.rb); i++)
        if (rng_below(rng, 2))
            d.b[d.rb - i] = 1;
        else
            d.a[d.ra - i] = d.b[d.rb - i];
    d.a[d.ra - 1] = inner[0];
    d.b[d.rb > 1 ? d.rb - 2 : 0] = inner[0];
    return d;
}

/* A random scale or zero point: one for all rows (or columns), one for each, or one for each of every matrix. */
static Node *sample_lanes(Build *b, Rng *rng, DType dtype, int rank, const int64_t *of, bool rows, bool zero)
{
    int64_t dims[MAX_RANK];
    const int kind = (int)rng_below(rng, rank > 1 ? 4 : 2);
    const bool sign = dtype_class(dtype) == CLASS_INT, floats = dtype_is_float(dtype);
    const double lo = zero ? (sign ? -3 : 0) : 0.125, hi = zero ? (floats ? 0 : 3) : 0.5;
    for (int i = 0; i < rank; i++)
        dims[i] = i == rank - (rows ? 1 : 2) ? 1 : of[i];
    if (kind == 3)
        return sample_tensor(b, rng, dtype, rank, dims, lo, hi);
    dims[0] = kind == 2 ? of[rank - (rows ? 2 : 1)] : 1;
    return sample_tensor(b, rng, dtype, kind ? 1 : 0, dims, lo, hi);
}

static Node *sample_matmul_integer(Build *b, Rng *rng, int variant)
{
    const DrawnProduct d = draw_product(rng);
    const DType ta = variant & 1 ? I8 : U8, tb = variant & 2 ? I8 : U8;
    Node *ins[4] = { sample_tensor(b, rng, ta, d.ra, d.a, ta == I8 ? -9 : 0, 9),
                     sample_tensor(b, rng, tb, d.rb, d.b, tb == I8 ? -9 : 0, 9) };
    if (variant & 4)
        ins[2] = sample_lanes(b, rng, ta, d.ra, d.a, true, true);
    if (variant & 8)
        ins[3] = sample_lanes(b, rng, tb, d.rb, d.b, false, true);
    return build_node(b, OP_matmul_integer, NULL, variant & 8 ? 4 : variant & 4 ? 3 : 2, ins);
}

static Node *sample_qlinear_matmul(Build *b, Rng *rng, int variant)
{
    static const DType codes[] = { U8, I8, F8E4M3, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ };
    static const DType scales[] = { F32, F16, BF16 };
    const DrawnProduct d = draw_product(rng);
    const DType ta = codes[variant % 6], tb = variant % 5 ? ta : codes[rng_below(rng, 6)];
    const DType ty = variant % 3 ? ta : codes[rng_below(rng, 6)], ts = scales[variant % 3];
    Node *ins[8] = {
        sample_tensor(b, rng, ta, d.ra, d.a, ta == U8 ? 0 : -9, 9),
        sample_lanes(b, rng, ts, d.ra, d.a, true, false),
        sample_lanes(b, rng, ta, d.ra, d.a, true, true),
        sample_tensor(b, rng, tb, d.rb, d.b, tb == U8 ? 0 : -9, 9),
        sample_lanes(b, rng, ts, d.rb, d.b, false, false),
        sample_lanes(b, rng, tb, d.rb, d.b, false, true),
        sample_tensor(b, rng, ts, 0, NULL, 0.5, 2),
        sample_tensor(b, rng, ty, 0, NULL, 0, dtype_is_float(ty) ? 0 : 3),
    };
    return build_node(b, OP_qlinear_matmul, NULL, 8, ins);
}

static bool iterate_matmul_integer(const Node *n, Arena *arena, Iteration *to)
{
    return iterate_product(n, arena, to, &(MatrixProduct){ .b = 1 });
}

static bool iterate_qlinear_matmul(const Node *n, Arena *arena, Iteration *to)
{
    return iterate_product(n, arena, to, &(MatrixProduct){ .b = 3 });
}

const OpDef op_matmul_integer = {
    .name = "matmul_integer",
    .min_in = 2,
    .max_in = 4,
    .infer = infer_matmul_integer,
    .eval = eval_matmul_integer,
    .sample = sample_matmul_integer,
    .n_variants = 32,
    .weight = 50,
    .access.kind = ACCESS_CONTRACT,
    .access.iterate = iterate_matmul_integer,
    .amp = { AMP_N, AMP_N, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "MatMulInteger", 10, NULL },
};

const OpDef op_qlinear_matmul = {
    .name = "qlinear_matmul",
    .min_in = 8,
    .max_in = 8,
    .infer = infer_qlinear_matmul,
    .eval = eval_qlinear_matmul,
    .sample = sample_qlinear_matmul,
    .n_variants = 30,
    .weight = 50,
    .access.kind = ACCESS_CONTRACT,
    .access.iterate = iterate_qlinear_matmul,
    .amp = { AMP_N, AMP_N, 1u << A_SCALE | 1u << B_SCALE | 1u << Y_SCALE, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "QLinearMatMul", 21, NULL },
};
