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

static int innermost_reduced(const Groups *g)
{
    int i = g->n - 1;
    while (i >= 0 && !g->reduced[i])
        i--;
    return i;
}

/* Takes group i out; its neighbours, both kept or one missing, become one. */
static void groups_drop(Groups *g, int i)
{
    const bool joins = i > 0 && i + 1 < g->n;
    if (joins)
        g->size[i - 1] *= g->size[i + 1];
    const int less = joins ? 2 : 1;
    for (int k = i; k + less < g->n; k++) {
        g->size[k] = g->size[k + less];
        g->reduced[k] = g->reduced[k + less];
    }
    g->n -= less;
}

void eval_reduce(Eval *e, ReduceKind kind, Arithmetic a, int rank, const int64_t *dims, uint32_t mask, const void *x,
                 void *out)
{
    Groups g = groups_of(rank, dims, mask);
    Group t = { .loops = kernels_reduce(e->kernels, kind, a), .element = a == ARITH_F32 ? sizeof(f32) : sizeof(f64) };
    int at = innermost_reduced(&g);
    if (at < 0) { /* every row has one element, which still counts as the kind says */
        t = (Group){ t.loops, product(&g, 0, g.n), 1, 1, t.element, 0, x, out };
        reduce_group(e, &t);
    }
    for (int next; at >= 0; at = next) {
        t.outer = product(&g, 0, at);
        t.size = g.size[at];
        t.inner = product(&g, at + 1, g.n);
        t.x = x;
        groups_drop(&g, at);
        next = innermost_reduced(&g);
        t.out = next < 0 ? out : eval_scratch(e, t.outer * t.inner, t.element);
        reduce_group(e, &t);
        x = t.out;
        kind = kind == REDUCE_SQUARES ? REDUCE_SUM : kind; /* squares of elements, not of sums */
        t.loops = kernels_reduce(e->kernels, kind, a);
    }
}
