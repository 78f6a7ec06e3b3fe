/* Rows over tensors: blocks of operands are brought into the call's arithmetic, the loop runs, the block is stored. */
#include <string.h>

#include "base/parallel.h"
#include "ops/card/cards.h"
#include "ops/card/row.h"
#include "ops/machine/space.h"

enum { BLOCK = 512, WIDEST = 8 }; /* of a block: four lie on the stack, which a host may have 64 KiB of */

/* How an operand reaches the loop. */
typedef enum Feed {
    FEED_DIRECT, /* it is an array of the arithmetic, in order */
    FEED_LOAD,   /* in order, widened block by block */
    FEED_FIXED,  /* one element */
    FEED_GATHER, /* an array of the arithmetic, broadcast */
} Feed;

typedef struct Operand {
    Feed feed;
    const Tensor *tensor;
    const char *data; /* of the arithmetic */
    union {
        f32 f;
        f64 d;
        i64 i;
        u64 u;
    } value; /* of FEED_FIXED */
} Operand;

typedef struct RowRun {
    const Kernels *kernels;
    RowLoop *loop;
    const Row *row;
    Arithmetic arithmetic;
    size_t size; /* of its elements */
    int n;
    Operand *operands;
    Space space;
    Tensor *out;
    char *direct; /* the result's data when it is of the arithmetic */
    RoundingCounts *rounding;
    double k[ROW_SCALARS];
} RowRun;

typedef union Buffer {
    f32 f[BLOCK];
    f64 d[BLOCK];
    i64 i[BLOCK];
    u64 u[BLOCK];
} Buffer;

static void load_block(const RowRun *r, void *to, const Tensor *from, int64_t at, int64_t n)
{
    switch (r->arithmetic) {
    case ARITH_F32:
        kernels_load_f32(r->kernels, to, from, at, n);
        break;
    case ARITH_F64:
        kernels_load_f64(r->kernels, to, from, at, n);
        break;
    case ARITH_I64:
        kernels_load_i64(r->kernels, to, from, at, n);
        break;
    default:
        kernels_load_u64(r->kernels, to, from, at, n);
        break;
    }
}

static void store_block(const RowRun *r, int64_t at, const void *from, int64_t n)
{
    switch (r->arithmetic) {
    case ARITH_F32:
        kernels_store_f32(r->kernels, r->out, at, from, n);
        rounding_count_f32(r->rounding, r->out, at, from, n);
        break;
    case ARITH_F64:
        kernels_store_f64(r->kernels, r->out, at, from, n);
        rounding_count_f64(r->rounding, r->out, at, from, n);
        break;
    case ARITH_I64:
        kernels_store_i64(r->kernels, r->out, at, from, n);
        break;
    default:
        kernels_store_u64(r->kernels, r->out, at, from, n);
        break;
    }
}

static void fill_block(const RowRun *r, const Operand *o, Buffer *to)
{
    if (r->size == sizeof(f32))
        for (int i = 0; i < BLOCK; i++)
            to->f[i] = o->value.f;
    else
        for (int i = 0; i < BLOCK; i++)
            to->u[i] = o->value.u;
}

/* Operand i as an array of the arithmetic for elements at .. at + n - 1; one that is broadcast was filled into
 * `room` before. */
static const void *feed(const RowRun *r, int i, Buffer *room, int64_t at, int64_t n)
{
    const Operand *o = &r->operands[i];
    switch (o->feed) {
    case FEED_DIRECT:
        return o->data + at * (int64_t)r->size;
    case FEED_LOAD:
        load_block(r, room, o->tensor, at, n);
        break;
    case FEED_GATHER:
        space_gather(&r->space, i, o->data, r->size, at, n, room);
        break;
    case FEED_FIXED:
        break;
    }
    return room;
}

/* One block of a row of up to three operands. */
static void map_block(const RowRun *r, Buffer *rooms, Buffer *result, int64_t at, int64_t n)
{
    const void *p[ROW_OPERANDS] = { NULL };
    for (int i = 0; i < r->n; i++)
        p[i] = feed(r, i, &rooms[i], at, n);
    void *out = r->direct ? (void *)(r->direct + at * (int64_t)r->size) : (void *)result;
    r->loop((size_t)n, out, p[0], p[1], p[2], r->k);
    if (!r->direct)
        store_block(r, at, out, n);
}

/* One block of a fold: the value so far stays in `result`. */
static void fold_block(const RowRun *r, Buffer *rooms, Buffer *result, int64_t at, int64_t n)
{
    for (int i = 0; i < r->n; i++) {
        if (r->operands[i].feed == FEED_FIXED)
            fill_block(r, &r->operands[i], &rooms[0]);
        const void *next = feed(r, i, &rooms[0], at, n);
        if (i == 0)
            memcpy(result, next, (size_t)n * r->size);
        else
            r->loop((size_t)n, result, result, next, NULL, r->k);
    }
    store_block(r, at, result, n);
}

static void run_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    const RowRun *r = arg;
    Buffer rooms[ROW_OPERANDS], result;
    (void)worker;
    for (int i = 0; i < r->n && !r->row->fold; i++)
        if (r->operands[i].feed == FEED_FIXED)
            fill_block(r, &r->operands[i], &rooms[i]);
    for (int64_t block = begin; block < end; block++) {
        const int64_t at = block * BLOCK, left = r->space.total - at, n = left < BLOCK ? left : BLOCK;
        (r->row->fold ? fold_block : map_block)(r, rooms, &result, at, n);
    }
}

static void value_of_absent(const RowRun *r, int i, Operand *o)
{
    const double v = row_absent(i);
    switch (r->arithmetic) {
    case ARITH_F32:
        o->value.f = (f32)v;
        break;
    case ARITH_F64:
        o->value.d = v;
        break;
    case ARITH_I64:
        o->value.i = q_i64(v);
        break;
    default:
        o->value.u = q_u64(v);
        break;
    }
}

static const void *widened(Eval *e, const RowRun *r, int i)
{
    switch (r->arithmetic) {
    case ARITH_F32:
        return eval_f32(e, i);
    case ARITH_F64:
        return eval_f64(e, i);
    case ARITH_I64:
        return eval_i64(e, i);
    default:
        return eval_u64(e, i);
    }
}

static DType dtype_of(Arithmetic a)
{
    static const DType types[] = { [ARITH_F32] = F32, [ARITH_F64] = F64, [ARITH_I64] = I64, [ARITH_U64] = U64 };
    return types[a];
}

static void open_operand(Eval *e, RowRun *r, int i)
{
    Operand *o = &r->operands[i];
    const Tensor *t = eval_has(e, i) ? e->in[i] : NULL;
    *o = (Operand){ .tensor = t, .feed = FEED_FIXED };
    if (!t) {
        value_of_absent(r, i, o);
    } else if (space_is_dense(&r->space, i)) {
        const bool own = t->type->dtype == dtype_of(r->arithmetic) && (uintptr_t)t->data % r->size == 0;
        o->feed = own ? FEED_DIRECT : FEED_LOAD;
        o->data = t->data;
    } else if (space_is_fixed(&r->space, i)) {
        load_block(r, &o->value, t, 0, 1);
    } else {
        o->feed = FEED_GATHER;
        o->data = widened(e, r, i);
    }
}

Status eval_row(Eval *e)
{
    const Row *row = e->def->row;
    RowRun r = { .kernels = e->kernels, .row = row, .n = row->fold ? e->n_in : row->n, .out = eval_out(e, 0) };
    const Type **types = eval_scratch(e, (size_t)r.n, sizeof *types);
    for (int i = 0; i < r.n; i++)
        types[i] = eval_has(e, i) ? e->in[i]->type : NULL;
    r.rounding = eval_options(e)->rounding;
    r.arithmetic = row_arithmetic(row, r.n, types);
    r.size = r.arithmetic == ARITH_F32 ? sizeof(f32) : WIDEST;
    r.loop = kernels_row(e->kernels, row->number, r.arithmetic);
    BUG_IF(e->ir->memory, !r.loop);
    row_scalars(e->def->attrs, e->attr, r.k);
    space_open(&r.space, eval_type(e, 0), r.n, types, eval_scratch(e, (size_t)r.n, sizeof *r.space.strides));
    r.operands = eval_scratch(e, (size_t)r.n, sizeof *r.operands);
    for (int i = 0; i < r.n; i++)
        open_operand(e, &r, i);
    r.direct = r.out->type->dtype == dtype_of(r.arithmetic) ? r.out->data : NULL;
    eval_parallel(e, (r.space.total + BLOCK - 1) / BLOCK, run_blocks, &r);
    return OK;
}
