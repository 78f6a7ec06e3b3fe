/* Operands and results in an arithmetic that the call chooses, and their reductions. */
#include "base/parallel.h"
#include "ops/card/eval.h"

const void *eval_wide(Eval *e, int i, Arithmetic a)
{
    switch (a) {
    case ARITH_F32:
        return eval_f32(e, i);
    case ARITH_F64:
        return eval_f64(e, i);
    case ARITH_I64:
        return eval_i64(e, i);
    case ARITH_U64:
        return eval_u64(e, i);
    }
    return NULL;
}

void *eval_out_wide(Eval *e, int i, Arithmetic a)
{
    switch (a) {
    case ARITH_F32:
        return eval_out_f32(e, i);
    case ARITH_F64:
        return eval_out_f64(e, i);
    case ARITH_I64:
        return eval_out_i64(e, i);
    case ARITH_U64:
        return eval_out_u64(e, i);
    }
    return NULL;
}

/* Neighbouring axes that are all kept or all reduced, as one; axes of one element are left out. */
typedef struct Groups {
    int n;
    size_t size[MAX_RANK];
    bool reduced[MAX_RANK];
} Groups;

static Groups groups_of(int rank, const int64_t *dims, uint32_t mask)
{
    Groups g = { 0 };
    for (int d = 0; d < rank; d++) {
        const bool reduced = mask >> d & 1;
        if (dims[d] == 1)
            continue;
        if (g.n == 0 || g.reduced[g.n - 1] != reduced) {
            g.size[g.n] = 1;
            g.reduced[g.n++] = reduced;
        }
        g.size[g.n - 1] *= (size_t)dims[d];
    }
    return g;
}

static size_t product(const Groups *g, int from, int to)
{
    size_t n = 1;
    for (int i = from; i < to; i++)
        n *= g->size[i];
    return n;
}

/* One group reduced: x[outer, size, inner] -> out[outer, inner]. */
typedef struct Group {
    const ReduceLoops *loops;
    size_t outer, size, inner, element, tiles;
    const char *x;
    char *out;
} Group;

enum { TILE = 256, ROWS = 16 };

static void group_rows(void *arg, int64_t begin, int64_t end, int worker)
{
    const Group *t = arg;
    const size_t first = (size_t)begin * ROWS, last = (size_t)end * ROWS < t->outer ? (size_t)end * ROWS : t->outer;
    (void)worker;
    t->loops->rows(last - first, t->size, t->x + first * t->size * t->element, t->out + first * t->element);
}

static void group_cols(void *arg, int64_t begin, int64_t end, int worker)
{
    const Group *t = arg;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const size_t o = (size_t)i / t->tiles, c = (size_t)i % t->tiles * TILE;
        const size_t width = t->inner - c < TILE ? t->inner - c : TILE;
        t->loops->cols(t->size, width, t->inner, t->x + (o * t->size * t->inner + c) * t->element,
                       t->out + (o * t->inner + c) * t->element);
    }
}

static void reduce_group(Eval *e, Group *t)
{
    if (t->inner == 1) {
        eval_parallel(e, (int64_t)((t->outer + ROWS - 1) / ROWS), group_rows, t);
    } else {
        t->tiles = (t->inner + TILE - 1) / TILE;
        eval_parallel(e, (int64_t)(t->outer * t->tiles), group_cols, t);
    }
}

/* Several groups reduced: each element of the result is a column over all of their indices, in order. */
typedef struct Scattered {
    const ReduceLoops *loops;
    ReduceRuns runs;
    size_t element, inner, tiles; /* inner: neighbouring columns */
    int n_kept;                   /* groups, but for these columns */
    size_t size[MAX_RANK], stride[MAX_RANK];
    const char *x;
    char *out;
} Scattered;

static size_t offset_of(size_t index, int n, const size_t *size, const size_t *stride)
{
    size_t offset = 0;
    for (int i = n - 1; i >= 0; i--) {
        offset += index % size[i] * stride[i];
        index /= size[i];
    }
    return offset;
}

static void scattered_columns(void *arg, int64_t begin, int64_t end, int worker)
{
    const Scattered *t = arg;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const size_t kept = (size_t)i / t->tiles, c = (size_t)i % t->tiles * TILE;
        const size_t from = offset_of(kept, t->n_kept, t->size, t->stride) + c;
        t->loops->runs(&t->runs, t->inner - c < TILE ? t->inner - c : TILE, t->x + from * t->element,
                       t->out + (kept * t->inner + c) * t->element);
    }
}

/* Takes the columns from the groups; returns how many elements of the result they leave. */
static size_t scattered_kept(Scattered *t, const Groups *g, const size_t *stride)
{
    size_t kept = 1;
    const bool columns = !g->reduced[g->n - 1];
    t->inner = columns ? g->size[g->n - 1] : 1;
    for (int i = 0; i < g->n - columns; i++)
        if (!g->reduced[i]) {
            t->size[t->n_kept] = g->size[i];
            t->stride[t->n_kept++] = stride[i];
            kept *= g->size[i];
        }
    return kept;
}

/* Takes the rows: runs of the innermost group, one for each index of the others. */
static void scattered_runs(Eval *e, Scattered *t, const Groups *g, const size_t *stride)
{
    size_t size[MAX_RANK], steps[MAX_RANK], runs = 1;
    int n = 0, last = g->n - 1;
    last -= !g->reduced[last];
    for (int i = 0; i < last; i++)
        if (g->reduced[i]) {
            size[n] = g->size[i];
            steps[n++] = stride[i];
            runs *= g->size[i];
        }
    ptrdiff_t *at = eval_room(e, runs, sizeof *at);
    for (size_t i = 0; i < runs; i++)
        at[i] = (ptrdiff_t)offset_of(i, n, size, steps);
    t->runs = (ReduceRuns){ .n = runs, .length = g->size[last], .step = (ptrdiff_t)stride[last], .at = at };
}

static void reduce_scattered(Eval *e, const Groups *g, Scattered *t)
{
    size_t stride[MAX_RANK];
    for (int i = 0; i < g->n; i++)
        stride[i] = product(g, i + 1, g->n);
    const size_t kept = scattered_kept(t, g, stride);
    scattered_runs(e, t, g, stride);
    t->tiles = (t->inner + TILE - 1) / TILE;
    eval_parallel(e, (int64_t)(kept * t->tiles), scattered_columns, t);
}

void eval_reduce(Eval *e, ReduceKind kind, Arithmetic a, int rank, const int64_t *dims, uint32_t mask, const void *x,
                 void *out)
{
    const Groups g = groups_of(rank, dims, mask);
    const ReduceLoops *loops = kernels_reduce(e->kernels, kind, a);
    const size_t element = a == ARITH_F32 ? sizeof(f32) : sizeof(f64);
    int reduced = 0, at = -1;
    for (int i = 0; i < g.n; i++)
        if (g.reduced[i])
            reduced++, at = i;
    if (reduced > 1) {
        reduce_scattered(e, &g, &(Scattered){ .loops = loops, .element = element, .x = x, .out = out });
        return;
    }
    /* where nothing is reduced every row has one element, which still counts as the kind says */
    Group t = { .loops = loops, .outer = product(&g, 0, g.n), .size = 1, .inner = 1, .element = element };
    if (at >= 0)
        t.outer = product(&g, 0, at), t.size = g.size[at], t.inner = product(&g, at + 1, g.n);
    t.x = x, t.out = out;
    reduce_group(e, &t);
}
