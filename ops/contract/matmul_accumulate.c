/* matmul_accumulate: a product that goes on with a sum.
 *
 * A sum of products over k in pieces, one call after the other, has the bits of one product over all of k: it is one chain of fused
 * multiply-adds, which may stop anywhere within a segment (ops/kernels/panel.h) and goes on with what it came to, kept in the width
 * that it has. */
#include <string.h>

#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/contract/contract_access.h"
#include "ops/contract/operands.h"
#include "ops/contract/work.h"

enum { LEFT, RIGHT, SUM };

static const AttrSpec accumulate_attrs[] = {
    ATTR_OURS(AccumulateAttr, ta, BOOL, false),
    ATTR_OURS(AccumulateAttr, tb, BOOL, false),
    ATTR_LAST,
};

static const Type *infer_accumulate(Infer *q)
{
    const AccumulateAttr *at = q->attr;
    const Type *a, *b, *sum = infer_tensor(q, SUM);
    DType dtype;
    if (!sum || !infer_factors(q, 0, &a, &b, &dtype))
        return NULL;
    if (!dtype_is_float(dtype) || sum->dtype != (dtype == F64 ? F64 : F32))
        return infer_fail(q, "adds products of %s to %s", dtype_name(dtype), dtype_name(sum->dtype));
    if ((a->rank >= 0 && a->rank != 2) || (b->rank >= 0 && b->rank != 2))
        return infer_fail(q, "needs two matrices, got ranks %d and %d", a->rank, b->rank);
    const int64_t ka = a->rank < 0 ? DIM_UNKNOWN : a->dims[!at->ta], kb = b->rank < 0 ? DIM_UNKNOWN : b->dims[at->tb];
    const int64_t dims[] = { a->rank < 0 ? DIM_UNKNOWN : a->dims[at->ta],
                             b->rank < 0 ? DIM_UNKNOWN : b->dims[!at->tb] };
    if (!infer_inner(q, ka, kb))
        return NULL;
    if (ka > PANEL_SEGMENT || kb > PANEL_SEGMENT)
        return infer_fail(q, "goes on within a segment of %d, not over %" PRId64, PANEL_SEGMENT, ka > kb ? ka : kb);
    const Type *y = type_tensor(q->types, sum->dtype, 2, dims);
    if (!type_agrees(sum, y))
        return infer_fail(q, "adds a product %s to %s", type_text(q->scratch, y), type_text(q->scratch, sum));
    return sum->rank == 2 && type_known(sum) ? sum : y;
}

typedef struct Accumulating {
    const Eval *e;
    const AccumulateAttr *at;
    size_t m, n, k, rows, cols; /* of a tile */
    int64_t across;             /* tiles */
    Arithmetic arithmetic;
    bool is_bf16; /* operands are multiplied as they lie */
    const void *a, *b;
    void *c;
    char *rooms;
    size_t room; /* bytes, of each worker */
} Accumulating;

static bool may_narrow(const AccumulateAttr *at, const Type *a, const Type *b)
{
    return operands_narrow(a, b, a->dims[at->ta]);
}

static bool narrows_accumulate(const Node *n)
{
    return type_known(in(n, LEFT)->type) && may_narrow(n->attr, in(n, LEFT)->type, in(n, RIGHT)->type);
}

static Panel panel_of(const Accumulating *r, size_t m, size_t n)
{
    const AccumulateAttr *at = r->at;
    return (Panel){ .m = m,
                    .n = n,
                    .k = r->k,
                    .lda = at->ta ? 1 : r->k,
                    .a_step = at->ta ? r->m : 1,
                    .ldb = at->tb ? 1 : r->n,
                    .b_step = at->tb ? r->k : 1,
                    .ldc = r->n,
                    .is_bf16 = r->is_bf16,
                    .onto = true };
}

static void tiles(void *arg, int64_t begin, int64_t end, int worker)
{
    const Accumulating *r = arg;
    const Kernels *level = r->e->kernels;
    void *room = r->rooms + (size_t)worker * r->room;
    for (int64_t t = begin; t < end; t++) {
        const size_t i = (size_t)(t / r->across) * r->rows, j = (size_t)(t % r->across) * r->cols;
        const Panel p = panel_of(r, r->m - i < r->rows ? r->m - i : r->rows, r->n - j < r->cols ? r->n - j : r->cols);
        const size_t a = i * p.lda, b = j * p.b_step, c = i * r->n + j;
        if (r->is_bf16)
            panel_bf16(level, &p, (const u16 *)r->a + a, (const u16 *)r->b + b, (f32 *)r->c + c, room);
        else if (r->arithmetic == ARITH_F32)
            panel_f32(level, &p, (const f32 *)r->a + a, (const f32 *)r->b + b, (f32 *)r->c + c, room);
        else
            panel_f64(level, &p, (const f64 *)r->a + a, (const f64 *)r->b + b, (f64 *)r->c + c, room);
    }
}

static size_t share_of(size_t n, size_t shares, size_t whole)
{
    const size_t each = (n + shares - 1) / shares;
    return (each + whole - 1) / whole * whole;
}

/* The longer side is split, so that every thread has its share. */
static int64_t split(Accumulating *r)
{
    enum { LEAST = 64, COLS = 32 };
    const size_t longer = r->m > r->n ? r->m : r->n, threads = (size_t)parallel_threads(r->e->pool);
    const size_t most = (longer + LEAST - 1) / LEAST, shares = threads < most ? threads : most;
    r->rows = r->m > r->n ? share_of(r->m, shares, MOST_TILE_ROWS) : r->m;
    r->cols = r->m > r->n ? r->n : share_of(r->n, shares, COLS);
    r->across = (int64_t)((r->n + r->cols - 1) / r->cols);
    return (int64_t)((r->m + r->rows - 1) / r->rows) * r->across;
}

/* The sum may lie where the result does: then half of it could not be done again, so nothing stops it. */
static Status eval_accumulate(Eval *e)
{
    const Type *y = e->in[SUM]->type, *a = e->in[LEFT]->type;
    const AccumulateAttr *at = e->attr;
    Accumulating r = { .e = e,
                       .at = at,
                       .m = (size_t)y->dims[0],
                       .n = (size_t)y->dims[1],
                       .k = (size_t)a->dims[!at->ta],
                       .arithmetic = y->dtype == F64 ? ARITH_F64 : ARITH_F32 };
    r.is_bf16 = may_narrow(at, a, e->in[RIGHT]->type) && eval_options(e)->narrow && kernels_packed_bf16(e->kernels);
    r.a = r.is_bf16 ? e->in[LEFT]->data : operand_wide(e, LEFT, r.arithmetic);
    r.b = r.is_bf16 ? e->in[RIGHT]->data : operand_wide(e, RIGHT, r.arithmetic);
    r.c = eval_out_wide(e, 0, r.arithmetic);
    if (r.k > PANEL_SEGMENT)
        return eval_fail(e, "goes on within a segment of %d, not over %zu", PANEL_SEGMENT, r.k);
    if (r.c != e->in[SUM]->data && e->in[SUM]->bytes)
        memcpy(r.c, e->in[SUM]->data, e->in[SUM]->bytes);
    if (!r.m || !r.n || !r.k)
        return OK;
    const int64_t n = split(&r);
    const Panel p = panel_of(&r, r.rows, r.cols);
    r.room = (panel_room(&p) * (r.arithmetic == ARITH_F32 ? sizeof(f32) : sizeof(f64)) + 63) / 64 * 64;
    r.rooms = eval_room(e, (size_t)parallel_threads(e->pool), r.room);
    parallel(e->pool, n, tiles, &r);
    return OK;
}

static Node *sample_accumulate(Build *b, Rng *rng, int variant)
{
    int64_t m, n, k;
    const DType dtype = sample_float(rng);
    const AccumulateAttr at = { .ta = variant & 1, .tb = variant >> 1 & 1 };
    sample_dims(rng, 1, 5, &m);
    sample_dims(rng, 1, 5, &n);
    sample_dims(rng, 1, 9, &k);
    const int64_t x[] = { at.ta ? k : m, at.ta ? m : k }, y[] = { at.tb ? n : k, at.tb ? k : n }, sum[] = { m, n };
    Node *in[] = { sample_tensor(b, rng, dtype, 2, x, -2, 2), sample_tensor(b, rng, dtype, 2, y, -2, 2),
                   sample_tensor(b, rng, dtype == F64 ? F64 : F32, 2, sum, -2, 2) };
    return build_node(b, OP_matmul_accumulate, &at, 3, in);
}

const OpDef op_matmul_accumulate = {
    .name = "matmul_accumulate",
    .min_in = 3,
    .max_in = 3,
    .attrs = accumulate_attrs,
    .infer = infer_accumulate,
    .eval = eval_accumulate,
    .sample = sample_accumulate,
    .n_variants = 32,
    .weight = 20,
    .work = work_accumulate,
    .narrows = narrows_accumulate,
    .access.kind = ACCESS_CONTRACT,
    .access.iterate = iterate_accumulate,
    .access.goes_on = SUM + 1,
    .amp = { AMP_N, AMP_N, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .brief =
        "The product x y, each sum of which goes on with an element of the third operand: within a segment of 2048, one "
        "chain of fused multiply-adds (docs/arithmetic.md).",
};
