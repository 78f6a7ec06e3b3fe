/* Kernels over columns, and those that join what blocks left: `columns`, `join`. */
#include <inttypes.h>

#include "codegen/cuda/cuda_parts.h"

/* ---- columns ---- */

/* One row after the other of those that have the same number modulo eight. */
static void print_column_walk(const CudaMaker *m, const CudaPhase *p)
{
    const CudaPlace inside = { .row = "row", .column = "i", .element = "e", .indent = 3, .reads_kept = m->has_rows };
    text_printf(m->out, "    if (i < %" PRId64 ") {\n", m->tape->length);
    text_printf(m->out, "        for (%s row = 64 * block + sum; row < end; row += 8) {\n", m->index);
    text_printf(m->out, "            const %s e = row * %" PRId64 " + i;\n", m->index, m->tape->length);
    cuda_print_needed(m, p->needed, &inside);
    for (int f = 0; f < p->n; f++) {
        const TapeStep *s = p->folds[f];
        text_printf(m->out, "            a%d = %s_add_%s(a%d, r%d);\n", s->out, cuda_kind(s), dtype_name(s->arithmetic),
                    s->out, s->in[0]);
    }
    cuda_print_stores(m, false, "e", 3);
    text_printf(m->out, "        }\n    }\n");
}

static void print_eights(const CudaMaker *m, const CudaPhase *p)
{
    for (int f = 0; f < p->n; f++)
        text_printf(m->out, "    s%d[lane][sum] = a%d;\n", p->folds[f]->out, p->folds[f]->out);
    text_printf(m->out, "    __syncthreads();\n    if (sum == 0 && i < %" PRId64 ") {\n", m->tape->length);
    for (int f = 0; f < p->n; f++) {
        const TapeStep *s = p->folds[f];
        text_printf(m->out, "        parts%d[block * %" PRId64 " + i] = %s_eight_%s(s%d[lane]);\n", s->out,
                    m->tape->length, cuda_kind(s), dtype_name(s->arithmetic), s->out);
    }
    text_printf(m->out, "    }\n");
}

/* What is kept of rows needs nothing more here. */
static void close_columns(CudaMaker *m, bool *needed)
{
    for (int r = 0; r < m->tape->n_registers; r++)
        m->known[r] = m->kept_at[r] != CUDA_NOWHERE;
    cuda_close(m, needed);
    for (int r = 0; r < m->tape->n_registers; r++)
        m->known[r] = false;
}

void cuda_columns(CudaMaker *m)
{
    const Tape *t = m->tape;
    const CudaPlace at = { .row = "row", .column = "i", .element = "e", .indent = 1 };
    const int64_t tiles = (t->length + CUDA_WARP - 1) / CUDA_WARP;
    const int64_t blocks = (t->rows + CUDA_COLUMN_ROWS - 1) / CUDA_COLUMN_ROWS;
    CudaPhase p;
    cuda_open_kernel(m, "columns", tiles * blocks, CUDA_WARP * CUDA_COLUMN_SUMS);
    cuda_open_phase(m, &p);
    cuda_need_stores(m, false, p.needed);
    for (int i = 0; i < t->n_steps; i++)
        if (t->steps[i].word == TAPE_FOLD_COLUMN)
            cuda_add_fold(&p, &t->steps[i]);
    close_columns(m, p.needed);
    text_printf(m->out, "    const u32 lane = threadIdx.x %% 32, sum = threadIdx.x / 32;\n");
    text_printf(m->out, "    const %s block = %s / %" PRId64 ", i = %s %% %" PRId64 " * 32 + lane;\n", m->index,
                m->block, tiles, m->block, tiles);
    text_printf(m->out, "    const %s end = 64 * block + 64 < %" PRId64 " ? 64 * block + 64 : %" PRId64 ";\n", m->index,
                t->rows, t->rows);
    cuda_name_kept(m);
    cuda_name_parts(m);
    for (int f = 0; f < p.n; f++) {
        const TapeStep *s = p.folds[f];
        const char *type = dtype_name(s->arithmetic);
        text_printf(m->out, "    __shared__ %s s%d[32][8];\n    %s a%d = %s_none_%s();\n", type, s->out, type, s->out,
                    cuda_kind(s), type);
    }
    cuda_print_uniform(m, p.needed, 0, false, &at);
    print_column_walk(m, &p);
    print_eights(m, &p);
    cuda_close_kernel(m);
}

/* ---- join ---- */

typedef struct Join {
    int64_t columns, parts;
    int64_t share; /* parts that one thread joins, a power of two, so that shares join as their parts would */
    int lanes, ways;
} Join;

static Join join_of(const CudaMaker *m)
{
    const Tape *t = m->tape;
    const bool all = !m->has_columns;
    Join j = { .columns = all ? 1 : t->length,
               .parts = all ? m->segments : (t->rows + CUDA_COLUMN_ROWS - 1) / CUDA_COLUMN_ROWS,
               .share = 1,
               .lanes = all ? 1 : CUDA_WARP };
    j.ways = CUDA_THREADS / j.lanes;
    while (j.share * j.ways < j.parts)
        j.share *= 2;
    return j;
}

/* One thread for each column. */
static void print_short_join(const CudaMaker *m, const Join *j, const TapeStep *s)
{
    const char *type = dtype_name(s->arithmetic);
    text_printf(m->out, "    const %s v%d = %s_parts_%s(parts%d + i, %" PRId64 ", %" PRId64 ");\n", type, s->out,
                cuda_kind(s), type, s->out, j->parts, j->columns);
    text_printf(m->out, "    out%d[i] = %s;\n", s->out,
                cuda_store(m, s->arithmetic, m->tape->out[s->out]->dtype, arena_printf(m->arena, "v%d", s->out)));
}

static void short_join(CudaMaker *m, const Join *j)
{
    const int threads = m->has_columns ? CUDA_THREADS : CUDA_WARP;
    cuda_open_kernel(m, "join", (j->columns + threads - 1) / threads, threads);
    text_printf(m->out, "    const %s i = %s * %d + threadIdx.x;\n", m->index, m->block, threads);
    cuda_name_parts(m);
    text_printf(m->out, "    if (i >= %" PRId64 ")\n        return;\n", j->columns);
    for (int k = 0; k < m->tape->n_steps; k++)
        if (m->tape->steps[k].word == TAPE_FOLD_COLUMN || m->tape->steps[k].word == TAPE_FOLD_ALL)
            print_short_join(m, j, &m->tape->steps[k]);
    cuda_close_kernel(m);
}

/* Several threads for each column, a share of its parts each; then the shares. */
static void print_long_join(const CudaMaker *m, const Join *j, const TapeStep *s)
{
    const char *type = dtype_name(s->arithmetic), *kind = cuda_kind(s);
    const int64_t shares = (j->parts + j->share - 1) / j->share;
    text_printf(m->out, "    __shared__ %s s%d[%d][%d];\n", type, s->out, j->lanes, j->ways);
    text_printf(m->out, "    if (i < %" PRId64 " && n)\n", j->columns);
    text_printf(m->out, "        s%d[lane][way] = %s_parts_%s(parts%d + from * %" PRId64 " + i, n, %" PRId64 ");\n",
                s->out, kind, type, s->out, j->columns, j->columns);
    text_printf(m->out, "    __syncthreads();\n    if (i < %" PRId64 " && way == 0) {\n", j->columns);
    text_printf(m->out, "        const %s v = %s_parts_%s(s%d[lane], %" PRId64 ", 1);\n", type, kind, type, s->out,
                shares);
    text_printf(m->out, "        out%d[i] = %s;\n    }\n", s->out,
                cuda_store(m, s->arithmetic, m->tape->out[s->out]->dtype, "v"));
}

static void long_join(CudaMaker *m, const Join *j)
{
    cuda_open_kernel(m, "join", (j->columns + j->lanes - 1) / j->lanes, CUDA_THREADS);
    text_printf(m->out, "    const u32 lane = threadIdx.x %% %d, way = threadIdx.x / %d;\n", j->lanes, j->lanes);
    text_printf(m->out, "    const %s i = %s * %d + lane, from = way * %" PRId64 ", left = %" PRId64 " - from;\n",
                m->index, m->block, j->lanes, j->share, j->parts);
    text_printf(m->out, "    const %s n = from >= %" PRId64 " ? 0 : left < %" PRId64 " ? left : %" PRId64 ";\n",
                m->index, j->parts, j->share, j->share);
    cuda_name_parts(m);
    for (int k = 0; k < m->tape->n_steps; k++)
        if (m->tape->steps[k].word == TAPE_FOLD_COLUMN || m->tape->steps[k].word == TAPE_FOLD_ALL)
            print_long_join(m, j, &m->tape->steps[k]);
    cuda_close_kernel(m);
}

void cuda_join(CudaMaker *m)
{
    enum { SHORT = 32 };
    const Join j = join_of(m);
    if (j.parts <= SHORT)
        short_join(m, &j);
    else
        long_join(m, &j);
}
