#include "ops/card/reduction.h"
#include "ops/machine/machine.h"

#include <string.h>

Status eval_fail(Eval *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(e->scratch, format, args);
    va_end(args);
    return fail(e->ir->diag, e->node ? node_place(e->node) : NOWHERE, "%s: %s", e->def->name, text);
}

const Type *eval_type(const Eval *e, int i)
{
    return type_result(e->type, i);
}

Tensor *eval_out_as(Eval *e, int i, const Type *type)
{
    if (e->is_given && type_agrees(type, e->out[i]->type))
        return e->out[i];
    if (e->is_given) {
        e->misfits = true;
        return tensor_new(e->scratch, type);
    }
    if (e->out[i])
        tensor_drop(e->machine->heap, e->out[i]);
    return e->out[i] = tensor_alloc(e->machine->heap, type);
}

Tensor *eval_out(Eval *e, int i)
{
    return e->out[i] ? e->out[i] : eval_out_as(e, i, eval_type(e, i));
}

void eval_give(Eval *e, int i, const Tensor *t)
{
    if (e->is_given) {
        e->misfits = e->misfits || t->bytes != e->out[i]->bytes;
        if (t->bytes && !e->misfits)
            memmove(e->out[i]->data, t->data, t->bytes);
        return;
    }
    Tensor *held = tensor_hold(t);
    if (e->out[i])
        tensor_drop(e->machine->heap, e->out[i]);
    e->out[i] = held;
}

void *eval_room(Eval *e, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        memory_exhausted(e->ir->memory);
    return arena_aligned(e->scratch, bytes);
}

void *eval_scratch(Eval *e, size_t n, size_t size)
{
    return memset(eval_room(e, n, size), 0, n * size);
}

/* A budget of memory is for what a run needs. */
static bool may_keep(const Eval *e, size_t bytes)
{
    const Memory *memory = e->ir->memory;
    const bool fits = !memory->budget || (memory->used < memory->budget && bytes < (memory->budget - memory->used) / 2);
    return fits && bytes <= *e->kept->keeper->left;
}

void *eval_kept(Eval *e, int i, size_t n, size_t size, bool *made)
{
    EvalKept *k = e->kept;
    size_t bytes;
    *made = false;
    if (!k || !(k->constants >> i & 1) || __builtin_mul_overflow(n, size, &bytes))
        return NULL;
    if (!k->at && may_keep(e, bytes)) {
        k->at = heap_alloc(k->keeper->heap, bytes ? bytes : 1);
        k->operand = i;
        k->bytes = bytes;
        *k->keeper->left -= bytes;
    }
    if (!k->at || k->operand != i || k->bytes != bytes)
        return NULL;
    *made = k->made;
    return k->at;
}

void eval_keep(Eval *e)
{
    e->kept->filled = true;
}

bool eval_stopped(const Eval *e)
{
    const EvalOptions *o = e->machine->options;
    return (o->stop && *o->stop) || (o->stop_too && *o->stop_too) || memory_stopped(e->ir->memory);
}

typedef struct Region {
    const Eval *e;
    ParallelFn fn;
    void *arg;
    int64_t piece;
} Region;

/* One thread's part, in pieces. */
static void run_pieces(void *arg, int64_t begin, int64_t end, int worker)
{
    const Region *r = arg;
    for (int64_t at = begin; at < end && !eval_stopped(r->e); at += r->piece)
        r->fn(r->arg, at, end - at < r->piece ? end : at + r->piece, worker);
}

/* Small calls are done in one piece: some kernels prepare what all of a piece reads. */
void eval_parallel(Eval *e, int64_t n, ParallelFn fn, void *arg)
{
    enum { SMALL = 1 << 18, PIECES = 64 };
    Region r = { e, fn, arg, n > 0 ? n : 1 };
    int64_t elements = 0;
    for (int i = 0; i < e->n_in; i++)
        elements += e->in[i] && e->in[i]->type->kind == TYPE_TENSOR ? tensor_elements(e->in[i]) : 0;
    for (int i = 0; i < e->n_out; i++)
        elements += e->out[i] && e->out[i]->type->kind == TYPE_TENSOR ? tensor_elements(e->out[i]) : 0;
    if (elements > SMALL)
        r.piece = n / ((int64_t)parallel_threads(e->pool) * PIECES) + 1;
    parallel(e->pool, n, run_pieces, &r);
}

int64_t eval_elements(const Eval *e, int i)
{
    return tensor_elements(e->in[i]);
}

int64_t eval_int(const Eval *e, int i, int64_t at)
{
    return tensor_get_i64(e->in[i], at);
}

double eval_float(const Eval *e, int i, int64_t at)
{
    return tensor_get_f64(e->in[i], at);
}

Heap *eval_heap(Eval *e)
{
    return e->machine->heap;
}

const EvalOptions *eval_options(const Eval *e)
{
    return e->machine->options;
}

#define WIDENED(T, DTYPE)                                                                                              \
    const T *eval_##T(Eval *e, int i)                                                                                  \
    {                                                                                                                  \
        const Tensor *t = e->in[i];                                                                                    \
        if (t->type->dtype == DTYPE && (uintptr_t)t->data % sizeof(T) == 0)                                            \
            return t->data;                                                                                            \
        const int64_t n = tensor_elements(t);                                                                          \
        T *wide = eval_room(e, (size_t)n, sizeof(T));                                                                  \
        kernels_load_##T(e->kernels, wide, t, 0, n);                                                                   \
        return wide;                                                                                                   \
    }
WIDENED(f32, F32)
WIDENED(f64, F64)
WIDENED(i64, I64)
WIDENED(u64, U64)
#undef WIDENED

static EvalStore *add_store(Eval *e, int i, Arithmetic arithmetic)
{
    EvalStore *s = NEW(e->scratch, EvalStore);
    *s = (EvalStore){ .next = e->stores, .result = i, .arithmetic = arithmetic };
    e->stores = s;
    return s;
}

static void *out_buffer(Eval *e, int i, Arithmetic arithmetic, DType own, size_t size)
{
    Tensor *t = eval_out(e, i);
    if (t->type->dtype == own)
        return t->data;
    EvalStore *s = add_store(e, i, arithmetic);
    s->buffer = eval_scratch(e, (size_t)tensor_elements(t), size);
    return s->buffer;
}

f32 *eval_out_f32(Eval *e, int i)
{
    return out_buffer(e, i, ARITH_F32, F32, sizeof(f32));
}

f64 *eval_out_f64(Eval *e, int i)
{
    return out_buffer(e, i, ARITH_F64, F64, sizeof(f64));
}

i64 *eval_out_i64(Eval *e, int i)
{
    return out_buffer(e, i, ARITH_I64, I64, sizeof(i64));
}

u64 *eval_out_u64(Eval *e, int i)
{
    return out_buffer(e, i, ARITH_U64, U64, sizeof(u64));
}

void *eval_out_by_blocks(Eval *e, Arithmetic arithmetic, bool apart)
{
    enum { WHOLE_BYTES = 8 };
    Tensor *t = eval_out(e, 0);
    if (dtype_is_native(t->type->dtype, arithmetic) && apart && e->watch && e->watch->takes)
        return NULL;
    if (dtype_is_native(t->type->dtype, arithmetic) || dtype_bits(t->type->dtype) < WHOLE_BYTES)
        return eval_out_wide(e, 0, arithmetic);
    EvalStore *s = add_store(e, 0, arithmetic);
    s->by_blocks = true;
    if (!apart)
        s->buffer = eval_room(e, (size_t)tensor_elements(t), arithmetic == ARITH_F32 ? sizeof(f32) : sizeof(f64));
    return s->buffer;
}

bool eval_is_told(const Eval *e)
{
    return e->watch || (e->stores && e->stores->by_blocks);
}

enum { ROUND_BLOCK = 4096 };

static size_t size_of(Arithmetic a)
{
    return a == ARITH_F32 ? sizeof(f32) : sizeof(f64);
}

typedef struct RoundRun {
    const Kernels *kernels;
    const EvalStore *store;
    Tensor *to;
    RoundingCounts *counts;
} RoundRun;

/* n elements from element `at` on, which lie there. */
static void round_block(const RoundRun *r, const void *values, int64_t at, int64_t n)
{
    switch (r->store->arithmetic) {
    case ARITH_F32: {
        const f32 *from = values;
        kernels_store_f32(r->kernels, r->to, at, from, n);
        rounding_count_f32(r->counts, r->to, at, from, n);
        break;
    }
    case ARITH_F64: {
        const f64 *from = values;
        kernels_store_f64(r->kernels, r->to, at, from, n);
        rounding_count_f64(r->counts, r->to, at, from, n);
        break;
    }
    case ARITH_I64:
        kernels_store_i64(r->kernels, r->to, at, values, n);
        break;
    case ARITH_U64:
        kernels_store_u64(r->kernels, r->to, at, values, n);
        break;
    }
}

void eval_store_f32(const Eval *e, int i, int64_t first, const f32 *from, int64_t n)
{
    kernels_store_f32(e->kernels, e->out[i], first, from, n);
    rounding_count_f32(e->machine->options->rounding, e->out[i], first, from, n);
}

static void round_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    const RoundRun *r = arg;
    (void)worker;
    for (int64_t b = begin; b < end; b++) {
        const int64_t at = b * ROUND_BLOCK, left = tensor_elements(r->to) - at;
        round_block(r, (const char *)r->store->buffer + (size_t)at * size_of(r->store->arithmetic), at,
                    left < ROUND_BLOCK ? left : ROUND_BLOCK);
    }
}

void eval_done(const Eval *e, const EvalBlock *b, int worker)
{
    EvalBlock told = *b;
    for (const EvalStore *s = e->stores; s; s = s->next) {
        const RoundRun r = { e->kernels, s, e->out[s->result], e->machine->options->rounding };
        const size_t size = size_of(s->arithmetic);
        for (int64_t i = 0; i < b->rows; i++) {
            const int64_t at = b->at + i * b->pitch;
            const char *values = b->values ? (const char *)b->values + (size_t)(i * b->apart) * size
                                           : (const char *)s->buffer + (size_t)at * size;
            round_block(&r, values, at, b->cols);
        }
        told.values = NULL; /* they lie in the result now */
    }
    if (e->watch)
        e->watch->done(e->watch->user, &told, worker);
}

void eval_round_results(Eval *e)
{
    for (const EvalStore *s = e->watch ? NULL : e->stores; s; s = s->next) {
        if (s->by_blocks)
            continue;
        RoundRun r = { e->kernels, s, e->out[s->result], e->machine->options->rounding };
        eval_parallel(e, (tensor_elements(r.to) + ROUND_BLOCK - 1) / ROUND_BLOCK, round_blocks, &r);
    }
}

uint32_t eval_iteration(const Eval *e)
{
    return e->machine->iteration;
}

bool eval_is_f64(const Eval *e)
{
    for (int i = 0; i < e->n_in; i++)
        if (e->in[i] && e->in[i]->type->kind == TYPE_TENSOR && dtype_is_float(e->in[i]->type->dtype))
            return e->in[i]->type->dtype == F64;
    const Type *t = eval_type(e, 0);
    return t->kind == TYPE_TENSOR && t->dtype == F64;
}

const int64_t *eval_ints(Eval *e, int i, int64_t *n)
{
    *n = eval_elements(e, i);
    int64_t *v = eval_scratch(e, (size_t)*n + 1, sizeof *v);
    for (int64_t k = 0; k < *n; k++)
        v[k] = eval_int(e, i, k);
    return v;
}
