/* The bodies of kernels. */
#include <inttypes.h>
#include <string.h>

#include "codegen/cuda_parts.h"

enum { WIDE_LINE = 100 };

/* ---- registers ---- */

bool cuda_makes(const TapeStep *s)
{
    return s->word != TAPE_STORE && s->word != TAPE_FOLD_COLUMN && s->word != TAPE_FOLD_ALL;
}

bool cuda_leaves(const Tape *t, const TapeStep *s, bool by_row)
{
    return s->word == TAPE_STORE && t->registers[s->in[0]].per_row == by_row;
}

void cuda_close(const CudaMaker *m, bool *needed)
{
    const Tape *t = m->tape;
    for (int i = t->n_steps - 1; i >= 0; i--) {
        const TapeStep *s = &t->steps[i];
        if (!cuda_makes(s) || !needed[s->out] || m->known[s->out] || s->word == TAPE_LOAD)
            continue;
        for (int k = 0; k < TAPE_OPERANDS; k++)
            if (s->in[k] != TAPE_NONE)
                needed[s->in[k]] = true;
    }
}

static bool *no_registers(const CudaMaker *m)
{
    return NEWS(m->arena, bool, m->tape->n_registers + 1);
}

/* Prints the steps of registers that are needed and not known. */
static void print_needed(const CudaMaker *m, const bool *needed, const CudaPlace *at)
{
    for (int i = 0; i < m->tape->n_steps; i++) {
        const TapeStep *s = &m->tape->steps[i];
        if (cuda_makes(s) && needed[s->out] && !m->known[s->out])
            cuda_step(m, s, at);
    }
}

/* ---- heads ---- */

/* One more parameter, on a line of its own where the last one is full. */
static void add_parameter(const CudaMaker *m, const char *what, size_t *begin, int column)
{
    if (m->out->n - *begin + strlen(what) > WIDE_LINE) {
        text_printf(m->out, "\n");
        *begin = m->out->n;
        text_printf(m->out, "%*s", column, "");
    } else if (m->out->n - *begin > (size_t)column) {
        text_printf(m->out, " ");
    }
    text_add(m->out, what);
}

/* Opens a kernel; the same arguments for all. */
static void open_kernel(CudaMaker *m, const char *part, int64_t blocks, int threads)
{
    const Tape *t = m->tape;
    CudaKernel *k = &m->launch->kernels[m->launch->n++];
    *k = (CudaKernel){ arena_printf(m->arena, "%s_%s", m->name, part), blocks, threads };
    memset(m->known, 0, (size_t)t->n_registers * sizeof *m->known);
    text_printf(m->out, "%sextern \"C\" __global__ void __launch_bounds__(%d)\n", m->launch->n > 1 ? "\n" : "",
                threads);
    size_t begin = m->out->n;
    text_printf(m->out, "%s(", k->name);
    const int column = (int)(m->out->n - begin);
    for (int i = 0; i < t->n_in; i++)
        add_parameter(m, arena_printf(m->arena, "const %s *in%d,", cuda_storage(t->in[i]->dtype), i), &begin, column);
    for (int i = 0; i < t->n_out; i++)
        add_parameter(m, arena_printf(m->arena, "%s *out%d,", cuda_storage(t->out[i]->dtype), i), &begin, column);
    add_parameter(m, "u8 *scratch)\n{\n", &begin, column);
}

static void close_kernel(const CudaMaker *m)
{
    text_printf(m->out, "}\n");
}

/* Names of what the scratch holds. */
static void name_parts(const CudaMaker *m)
{
    for (int i = 0; i < m->tape->n_steps; i++) {
        const TapeStep *s = &m->tape->steps[i];
        const char *type = dtype_name(s->arithmetic);
        if (s->word == TAPE_FOLD_COLUMN || s->word == TAPE_FOLD_ALL)
            text_printf(m->out, "    %s *const parts%d = (%s *)(scratch + %" PRId64 ");\n", type, s->out, type,
                        m->parts_at[s->out]);
    }
}

static void name_kept(const CudaMaker *m)
{
    for (int r = 0; r < m->tape->n_registers; r++) {
        const char *type = dtype_name(m->tape->registers[r].arithmetic);
        if (m->kept_at[r] != CUDA_NOWHERE)
            text_printf(m->out, "    %s *const kept%d = (%s *)(scratch + %" PRId64 ");\n", type, r, type,
                        m->kept_at[r]);
    }
}

/* Makes registers that are the same in all threads of a block. */
static void print_uniform(CudaMaker *m, const bool *needed, int level, bool by_row, const CudaPlace *at)
{
    const Tape *t = m->tape;
    for (int i = 0; i < t->n_steps; i++) {
        const TapeStep *s = &t->steps[i];
        if (!cuda_makes(s) || s->word == TAPE_FOLD_ROW || !needed[s->out] || m->known[s->out])
            continue;
        const TapeRegister *r = &t->registers[s->out];
        if (m->level[s->out] > level || !(r->per_row ? by_row : r->lasts))
            continue;
        cuda_step(m, s, at);
        m->known[s->out] = true;
    }
}

/* ---- results ---- */

static void print_store(const CudaMaker *m, const TapeStep *s, const char *index, int indent)
{
    const char *value = arena_printf(m->arena, "r%d", s->in[0]);
    cuda_indent(m, indent);
    text_printf(m->out, "out%d[%s] = %s;\n", s->out, index,
                cuda_store(m, s->arithmetic, m->tape->out[s->out]->dtype, value));
}

static bool any_store(const CudaMaker *m, bool by_row)
{
    for (int i = 0; i < m->tape->n_steps; i++)
        if (cuda_leaves(m->tape, &m->tape->steps[i], by_row))
            return true;
    return false;
}

static void need_stores(const CudaMaker *m, bool by_row, bool *needed)
{
    for (int i = 0; i < m->tape->n_steps; i++)
        if (cuda_leaves(m->tape, &m->tape->steps[i], by_row))
            needed[m->tape->steps[i].in[0]] = true;
}

static void print_stores(const CudaMaker *m, bool by_row, const char *index, int indent)
{
    for (int i = 0; i < m->tape->n_steps; i++)
        if (cuda_leaves(m->tape, &m->tape->steps[i], by_row))
            print_store(m, &m->tape->steps[i], index, indent);
}

/* ---- map ---- */

void cuda_map(CudaMaker *m)
{
    const int64_t n = m->tape->rows * m->tape->length;
    const CudaPlace at = { .row = "e", .column = "e", .element = "e", .indent = 1 };
    bool *needed = no_registers(m);
    open_kernel(m, "map", (n + CUDA_THREADS - 1) / CUDA_THREADS, CUDA_THREADS);
    text_printf(m->out, "    const %s e = %s * %d + threadIdx.x;\n", m->index, m->block, CUDA_THREADS);
    text_printf(m->out, "    if (e >= %" PRId64 ")\n        return;\n", n);
    need_stores(m, false, needed);
    need_stores(m, true, needed);
    cuda_close(m, needed);
    print_needed(m, needed, &at);
    print_stores(m, false, "e", 1);
    print_stores(m, true, "e", 1);
    close_kernel(m);
}

/* ---- reductions of segments ---- */

/* Reductions that run over the same elements at once, and what is stored beside them. */
typedef struct Phase {
    const TapeStep **folds;
    int n;
    bool stores;
    bool *needed; /* registers of an element */
} Phase;

static void open_phase(const CudaMaker *m, Phase *p)
{
    *p = (Phase){ .folds = NEWS(m->arena, const TapeStep *, m->tape->n_steps + 1), .needed = no_registers(m) };
}

static void add_fold(Phase *p, const TapeStep *s)
{
    p->folds[p->n++] = s;
    p->needed[s->in[0]] = true;
}

/* The lanes of a warp walk one segment from element `from` on: eight neighbours each, four times. */
static void print_walk(const CudaMaker *m, const Phase *p, const char *from, const char *end, const CudaPlace *at)
{
    const int in = at->indent;
    const int64_t n = m->tape->length;
    const char *i = at->column;
    for (int f = 0; f < p->n; f++) {
        const char *type = dtype_name(p->folds[f]->arithmetic);
        cuda_indent(m, in);
        text_printf(m->out, "%s a%d[8];\n", type, p->folds[f]->out);
        cuda_indent(m, in);
        text_printf(m->out, "%s_clear_%s(a%d);\n", cuda_kind(p->folds[f]), type, p->folds[f]->out);
    }
    cuda_indent(m, in);
    text_printf(m->out, "for (%s at = %s8 * lane; at < %s; at += 256) {\n#pragma unroll\n", m->index, from, end);
    cuda_indent(m, in + 1);
    text_printf(m->out, "for (u32 k = 0; k < 8; k++) {\n");
    cuda_indent(m, in + 2);
    text_printf(m->out, "const %s %s = at + k;\n", m->index, i);
    cuda_indent(m, in + 2);
    text_printf(m->out, "if (%s < %" PRId64 ") {\n", i, n);
    CudaPlace inside = *at;
    inside.indent = in + 3;
    if (at->row) {
        cuda_indent(m, in + 3);
        text_printf(m->out, "const %s e = row * %" PRId64 " + i;\n", m->index, n);
    }
    print_needed(m, p->needed, &inside);
    for (int f = 0; f < p->n; f++) {
        const TapeStep *s = p->folds[f];
        cuda_indent(m, in + 3);
        text_printf(m->out, "a%d[k] = %s_add_%s(a%d[k], r%d);\n", s->out, cuda_kind(s), dtype_name(s->arithmetic),
                    s->out, s->in[0]);
    }
    if (p->stores)
        print_stores(m, false, at->element, in + 3);
    for (int close = 2; close >= 0; close--) {
        cuda_indent(m, in + close);
        text_printf(m->out, "}\n");
    }
}

void cuda_segments(CudaMaker *m)
{
    const Tape *t = m->tape;
    const CudaPlace at = { .column = "e", .element = "e", .indent = 1 };
    Phase p;
    open_kernel(m, "segments", (m->segments + CUDA_ALL_WARPS - 1) / CUDA_ALL_WARPS, CUDA_ALL_WARPS * CUDA_WARP);
    text_printf(m->out, "    const u32 lane = threadIdx.x %% 32;\n");
    text_printf(m->out, "    const %s s = %s * %d + threadIdx.x / 32;\n", m->index, m->block, CUDA_ALL_WARPS);
    name_parts(m);
    text_printf(m->out, "    if (s >= %" PRId64 ")\n        return;\n", m->segments);
    open_phase(m, &p);
    p.stores = true;
    need_stores(m, false, p.needed);
    for (int i = 0; i < t->n_steps; i++)
        if (t->steps[i].word == TAPE_FOLD_ALL)
            add_fold(&p, &t->steps[i]);
    cuda_close(m, p.needed);
    print_uniform(m, p.needed, 0, false, &at);
    print_walk(m, &p, "1024 * s + ", "1024 * s + 1024", &at);
    for (int f = 0; f < p.n; f++) {
        const TapeStep *s = p.folds[f];
        const char *type = dtype_name(s->arithmetic);
        text_printf(m->out, "    const %s v%d = %s_warp_%s(a%d);\n    if (lane == 0)\n        parts%d[s] = v%d;\n",
                    type, s->out, cuda_kind(s), type, s->out, s->out, s->out);
    }
    close_kernel(m);
}

/* ---- rows ---- */

/* The reductions along rows that need so many others first. */
static void print_phase(CudaMaker *m, const bool *needed, int level, int warps)
{
    const Tape *t = m->tape;
    const bool many = m->segments > 1;
    const CudaPlace at = { .row = "row", .column = "i", .element = "e", .indent = many ? 2 : 1 };
    Phase p;
    open_phase(m, &p);
    for (int i = 0; i < t->n_steps; i++) {
        const TapeStep *s = &t->steps[i];
        if (s->word == TAPE_FOLD_ROW && needed[s->out] && m->level[s->out] == level + 1)
            add_fold(&p, s);
    }
    cuda_close(m, p.needed);
    for (int f = 0; many && f < p.n; f++)
        text_printf(m->out, "    __shared__ %s s%d[%" PRId64 "];\n", dtype_name(p.folds[f]->arithmetic),
                    p.folds[f]->out, m->segments);
    if (many)
        text_printf(m->out, "    for (u32 s = warp; s < %" PRId64 "; s += %d) {\n", m->segments, warps);
    const char *whole = arena_printf(m->arena, "%" PRId64, t->length);
    print_walk(m, &p, many ? "1024 * s + " : "", many ? "1024 * s + 1024" : whole, &at);
    for (int f = 0; f < p.n; f++) {
        const TapeStep *s = p.folds[f];
        cuda_indent(m, at.indent);
        text_printf(m->out, "const %s %c%d = %s_warp_%s(a%d);\n", dtype_name(s->arithmetic), many ? 'v' : 'r', s->out,
                    cuda_kind(s), dtype_name(s->arithmetic), s->out);
        m->known[s->out] = true;
    }
    if (!many)
        return;
    text_printf(m->out, "        if (lane == 0) {\n");
    for (int f = 0; f < p.n; f++)
        text_printf(m->out, "            s%d[s] = v%d;\n", p.folds[f]->out, p.folds[f]->out);
    text_printf(m->out, "        }\n    }\n    __syncthreads();\n");
    for (int f = 0; f < p.n; f++) {
        const TapeStep *s = p.folds[f];
        text_printf(m->out, "    const %s r%d = %s_parts_%s(s%d, %" PRId64 ", 1);\n", dtype_name(s->arithmetic), s->out,
                    cuda_kind(s), dtype_name(s->arithmetic), s->out, m->segments);
    }
}

/* What leaves for each element of a row. */
static void print_elements(const CudaMaker *m, int threads)
{
    const int64_t n = m->tape->length;
    const CudaPlace at = { .row = "row", .column = "i", .element = "e", .indent = 2 };
    bool *needed = no_registers(m);
    need_stores(m, false, needed);
    cuda_close(m, needed);
    text_printf(m->out, "    for (%s i = threadIdx.x; i < %" PRId64 "; i += %d) {\n", m->index, n, threads);
    text_printf(m->out, "        const %s e = row * %" PRId64 " + i;\n", m->index, n);
    print_needed(m, needed, &at);
    print_stores(m, false, "e", 2);
    text_printf(m->out, "    }\n");
}

/* What leaves for the row, and what the columns want of it. */
static void print_row_values(const CudaMaker *m)
{
    text_printf(m->out, "    if (threadIdx.x == 0) {\n");
    print_stores(m, true, "row", 2);
    for (int r = 0; r < m->tape->n_registers; r++)
        if (m->kept_at[r] != CUDA_NOWHERE)
            text_printf(m->out, "        kept%d[row] = r%d;\n", r, r);
    text_printf(m->out, "    }\n");
}

/* The registers that this kernel makes, of rows and of elements. */
static int need_of_rows(const CudaMaker *m, bool *needed)
{
    int levels = 0;
    need_stores(m, true, needed);
    if (!m->has_columns)
        need_stores(m, false, needed);
    for (int r = 0; r < m->tape->n_registers; r++)
        needed[r] = needed[r] || m->kept_at[r] != CUDA_NOWHERE;
    cuda_close(m, needed);
    for (int r = 0; r < m->tape->n_registers; r++)
        if (needed[r] && m->level[r] > levels)
            levels = m->level[r];
    return levels;
}

void cuda_rows(CudaMaker *m)
{
    const CudaPlace at = { .row = "row", .column = "i", .element = "e", .indent = 1 };
    const int most = CUDA_THREADS / CUDA_WARP, warps = m->segments < most ? (int)m->segments : most;
    bool *needed = no_registers(m);
    open_kernel(m, "rows", m->tape->rows, warps * CUDA_WARP);
    const int levels = need_of_rows(m, needed);
    text_printf(m->out, "    const %s row = %s;\n", m->index, m->block);
    if (levels)
        text_printf(m->out, "    const u32 lane = threadIdx.x %% 32%s;\n",
                    m->segments > 1 ? ", warp = threadIdx.x / 32" : "");
    name_kept(m);
    for (int level = 0; level <= levels; level++) {
        print_uniform(m, needed, level, true, &at);
        if (level < levels)
            print_phase(m, needed, level, warps);
    }
    text_printf(m->out, "    __syncthreads();\n");
    if (!m->has_columns && any_store(m, false))
        print_elements(m, warps * CUDA_WARP);
    if (any_store(m, true) || m->has_columns)
        print_row_values(m);
    close_kernel(m);
}

/* ---- columns ---- */

/* One row after the other of those that have the same number modulo eight. */
static void print_column_walk(const CudaMaker *m, const Phase *p)
{
    const CudaPlace inside = { .row = "row", .column = "i", .element = "e", .indent = 3, .reads_kept = m->has_rows };
    text_printf(m->out, "    if (i < %" PRId64 ") {\n", m->tape->length);
    text_printf(m->out, "        for (%s row = 64 * block + sum; row < end; row += 8) {\n", m->index);
    text_printf(m->out, "            const %s e = row * %" PRId64 " + i;\n", m->index, m->tape->length);
    print_needed(m, p->needed, &inside);
    for (int f = 0; f < p->n; f++) {
        const TapeStep *s = p->folds[f];
        text_printf(m->out, "            a%d = %s_add_%s(a%d, r%d);\n", s->out, cuda_kind(s), dtype_name(s->arithmetic),
                    s->out, s->in[0]);
    }
    print_stores(m, false, "e", 3);
    text_printf(m->out, "        }\n    }\n");
}

static void print_eights(const CudaMaker *m, const Phase *p)
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
    Phase p;
    open_kernel(m, "columns", tiles * blocks, CUDA_WARP * CUDA_COLUMN_SUMS);
    open_phase(m, &p);
    need_stores(m, false, p.needed);
    for (int i = 0; i < t->n_steps; i++)
        if (t->steps[i].word == TAPE_FOLD_COLUMN)
            add_fold(&p, &t->steps[i]);
    close_columns(m, p.needed);
    text_printf(m->out, "    const u32 lane = threadIdx.x %% 32, sum = threadIdx.x / 32;\n");
    text_printf(m->out, "    const %s block = %s / %" PRId64 ", i = %s %% %" PRId64 " * 32 + lane;\n", m->index,
                m->block, tiles, m->block, tiles);
    text_printf(m->out, "    const %s end = 64 * block + 64 < %" PRId64 " ? 64 * block + 64 : %" PRId64 ";\n", m->index,
                t->rows, t->rows);
    name_kept(m);
    name_parts(m);
    for (int f = 0; f < p.n; f++) {
        const TapeStep *s = p.folds[f];
        const char *type = dtype_name(s->arithmetic);
        text_printf(m->out, "    __shared__ %s s%d[32][8];\n    %s a%d = %s_none_%s();\n", type, s->out, type, s->out,
                    cuda_kind(s), type);
    }
    print_uniform(m, p.needed, 0, false, &at);
    print_column_walk(m, &p);
    print_eights(m, &p);
    close_kernel(m);
}

/* ---- join ---- */

void cuda_join(CudaMaker *m)
{
    const Tape *t = m->tape;
    const bool all = !m->has_columns;
    const int64_t columns = all ? 1 : t->length;
    const int64_t parts = all ? m->segments : (t->rows + CUDA_COLUMN_ROWS - 1) / CUDA_COLUMN_ROWS;
    const int threads = all ? CUDA_WARP : CUDA_THREADS;
    open_kernel(m, "join", (columns + threads - 1) / threads, threads);
    text_printf(m->out, "    const %s i = %s * %d + threadIdx.x;\n", m->index, m->block, threads);
    name_parts(m);
    text_printf(m->out, "    if (i >= %" PRId64 ")\n        return;\n", columns);
    for (int k = 0; k < t->n_steps; k++) {
        const TapeStep *s = &t->steps[k];
        const char *type = dtype_name(s->arithmetic);
        if (s->word != TAPE_FOLD_COLUMN && s->word != TAPE_FOLD_ALL)
            continue;
        text_printf(m->out, "    const %s v%d = %s_parts_%s(parts%d + i, %" PRId64 ", %" PRId64 ");\n", type, s->out,
                    cuda_kind(s), type, s->out, parts, columns);
        text_printf(m->out, "    out%d[i] = %s;\n", s->out,
                    cuda_store(m, s->arithmetic, t->out[s->out]->dtype, arena_printf(m->arena, "v%d", s->out)));
    }
    close_kernel(m);
}
