/* Kernels over elements and rows: `map`, `segments`, `rows`. */
#include <inttypes.h>

#include "codegen/cuda/cuda_parts.h"

/* ---- map ---- */

void cuda_map(CudaMaker *m)
{
    const int64_t n = m->tape->rows * m->tape->length;
    const CudaPlace at = { .row = "e", .column = "e", .element = "e", .indent = 1 };
    bool *needed = cuda_no_registers(m);
    cuda_open_kernel(m, "map", (n + CUDA_THREADS - 1) / CUDA_THREADS, CUDA_THREADS);
    text_printf(m->out, "    const %s e = %s * %d + threadIdx.x;\n", m->index, m->block, CUDA_THREADS);
    text_printf(m->out, "    if (e >= %" PRId64 ")\n        return;\n", n);
    cuda_need_stores(m, false, needed);
    cuda_need_stores(m, true, needed);
    cuda_close(m, needed);
    cuda_print_needed(m, needed, &at);
    cuda_print_stores(m, false, "e", 1);
    cuda_print_stores(m, true, "e", 1);
    cuda_close_kernel(m);
}

/* ---- reductions of segments ---- */

/* The lanes of a warp walk one segment from element `from` on: eight neighbours each, four times. */
static void print_walk(const CudaMaker *m, const CudaPhase *p, const char *from, const char *end, const CudaPlace *at)
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
    if (at->row)
        cuda_print_element(m, in + 3);
    cuda_print_needed(m, p->needed, &inside);
    for (int f = 0; f < p->n; f++) {
        const TapeStep *s = p->folds[f];
        cuda_indent(m, in + 3);
        text_printf(m->out, "a%d[k] = %s_add_%s(a%d[k], r%d);\n", s->out, cuda_kind(s), dtype_name(s->arithmetic),
                    s->out, s->in[0]);
    }
    if (p->stores)
        cuda_print_stores(m, false, at->element, in + 3);
    for (int close = 2; close >= 0; close--) {
        cuda_indent(m, in + close);
        text_printf(m->out, "}\n");
    }
}

/* Eight lanes of a warp walk a block of a column each, four blocks at a time, from element `from` of a channel on. */
static void print_block_walk(const CudaMaker *m, const CudaPhase *p, const char *from, const char *end,
                             const CudaPlace *at)
{
    const int in = at->indent;
    const int64_t n = m->tape->length;
    CudaPlace inside = *at;
    inside.indent = in + 3;
    for (int f = 0; f < p->n; f++) {
        const TapeStep *s = p->folds[f];
        cuda_indent(m, in);
        text_printf(m->out, "%s_counter_%s c%d;\n", cuda_kind(s), dtype_name(s->arithmetic), s->out);
        cuda_indent(m, in);
        text_printf(m->out, "c%d.count = 0;\n", s->out);
    }
    cuda_indent(m, in);
    text_printf(m->out, "for (%s at = %s; at < %s && at < %" PRId64 "; at += 256) {\n", m->index, from, end, n);
    for (int f = 0; f < p->n; f++) {
        const char *type = dtype_name(p->folds[f]->arithmetic);
        cuda_indent(m, in + 1);
        text_printf(m->out, "%s a%d = %s_none_%s();\n", type, p->folds[f]->out, cuda_kind(p->folds[f]), type);
    }
    cuda_indent(m, in + 1);
    text_printf(m->out, "for (u32 k = 0; k < 64; k += 8) {\n");
    cuda_indent(m, in + 2);
    text_printf(m->out, "const %s i = at + lane / 8 * 64 + k + lane %% 8;\n", m->index);
    cuda_indent(m, in + 2);
    text_printf(m->out, "if (i < %" PRId64 ") {\n", n);
    cuda_print_element(m, in + 3);
    cuda_print_needed(m, p->needed, &inside);
    for (int f = 0; f < p->n; f++) {
        const TapeStep *s = p->folds[f];
        cuda_indent(m, in + 3);
        text_printf(m->out, "a%d = %s_add_%s(a%d, r%d);\n", s->out, cuda_kind(s), dtype_name(s->arithmetic), s->out,
                    s->in[0]);
    }
    for (int close = 2; close > 0; close--) {
        cuda_indent(m, in + close);
        text_printf(m->out, "}\n");
    }
    for (int f = 0; f < p->n; f++) {
        const TapeStep *s = p->folds[f];
        cuda_indent(m, in + 1);
        text_printf(m->out, "%s_four_%s(&c%d, a%d, (%" PRId64 " - at + 63) / 64);\n", cuda_kind(s),
                    dtype_name(s->arithmetic), s->out, s->out, n);
    }
    cuda_indent(m, in);
    text_printf(m->out, "}\n");
}

void cuda_segments(CudaMaker *m)
{
    const Tape *t = m->tape;
    const CudaPlace at = { .column = "e", .element = "e", .indent = 1 };
    CudaPhase p;
    cuda_open_kernel(m, "segments", (m->segments + CUDA_ALL_WARPS - 1) / CUDA_ALL_WARPS, CUDA_ALL_WARPS * CUDA_WARP);
    text_printf(m->out, "    const u32 lane = threadIdx.x %% 32;\n");
    text_printf(m->out, "    const %s s = %s * %d + threadIdx.x / 32;\n", m->index, m->block, CUDA_ALL_WARPS);
    cuda_name_parts(m);
    text_printf(m->out, "    if (s >= %" PRId64 ")\n        return;\n", m->segments);
    cuda_open_phase(m, &p);
    p.stores = true;
    cuda_need_stores(m, false, p.needed);
    for (int i = 0; i < t->n_steps; i++)
        if (t->steps[i].word == TAPE_FOLD_ALL)
            cuda_add_fold(&p, &t->steps[i]);
    cuda_close(m, p.needed);
    cuda_print_uniform(m, p.needed, 0, false, &at);
    print_walk(m, &p, "1024 * s + ", "1024 * s + 1024", &at);
    for (int f = 0; f < p.n; f++) {
        const TapeStep *s = p.folds[f];
        const char *type = dtype_name(s->arithmetic);
        text_printf(m->out, "    const %s v%d = %s_warp_%s(a%d);\n    if (lane == 0)\n        parts%d[s] = v%d;\n",
                    type, s->out, cuda_kind(s), type, s->out, s->out, s->out);
    }
    cuda_close_kernel(m);
}

/* ---- rows ---- */

/* The reductions along rows that need so many others first. */
static void print_phase(CudaMaker *m, const bool *needed, int level, int warps)
{
    const Tape *t = m->tape;
    const bool many = m->segments > 1, channels = tape_has_channels(t);
    const CudaPlace at = { .row = "row", .column = "i", .element = "e", .indent = many ? 2 : 1 };
    CudaPhase p;
    cuda_open_phase(m, &p);
    for (int i = 0; i < t->n_steps; i++) {
        const TapeStep *s = &t->steps[i];
        if (s->word == TAPE_FOLD_ROW && needed[s->out] && m->level[s->out] == level + 1)
            cuda_add_fold(&p, s);
    }
    cuda_close(m, p.needed);
    for (int f = 0; many && f < p.n; f++)
        text_printf(m->out, "    __shared__ %s s%d[%" PRId64 "];\n", dtype_name(p.folds[f]->arithmetic),
                    p.folds[f]->out, m->segments);
    if (many)
        text_printf(m->out, "    for (u32 s = warp; s < %" PRId64 "; s += %d) {\n", m->segments, warps);
    const char *whole = arena_printf(m->arena, "%" PRId64, t->length);
    if (channels)
        print_block_walk(m, &p, many ? "1024 * s" : "0", many ? "1024 * s + 1024" : "1024", &at);
    else
        print_walk(m, &p, many ? "1024 * s + " : "", many ? "1024 * s + 1024" : whole, &at);
    for (int f = 0; f < p.n; f++) {
        const TapeStep *s = p.folds[f];
        cuda_indent(m, at.indent);
        text_printf(m->out, "const %s %c%d = %s_%s_%s(%s%d);\n", dtype_name(s->arithmetic), many ? 'v' : 'r', s->out,
                    cuda_kind(s), channels ? "total" : "warp", dtype_name(s->arithmetic), channels ? "&c" : "a",
                    s->out);
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
    bool *needed = cuda_no_registers(m);
    cuda_need_stores(m, false, needed);
    cuda_close(m, needed);
    text_printf(m->out, "    for (%s i = threadIdx.x; i < %" PRId64 "; i += %d) {\n", m->index, n, threads);
    cuda_print_element(m, 2);
    cuda_print_needed(m, needed, &at);
    cuda_print_stores(m, false, "e", 2);
    text_printf(m->out, "    }\n");
}

/* What leaves for the row, and what the columns want of it. */
static void print_row_values(const CudaMaker *m)
{
    text_printf(m->out, "    if (threadIdx.x == 0) {\n");
    cuda_print_stores(m, true, "row", 2);
    for (int r = 0; r < m->tape->n_registers; r++)
        if (m->kept_at[r] != CUDA_NOWHERE)
            text_printf(m->out, "        kept%d[row] = r%d;\n", r, r);
    text_printf(m->out, "    }\n");
}

/* The registers that this kernel makes, of rows and of elements. */
static int need_of_rows(const CudaMaker *m, bool *needed)
{
    int levels = 0;
    cuda_need_stores(m, true, needed);
    if (!m->has_columns)
        cuda_need_stores(m, false, needed);
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
    bool *needed = cuda_no_registers(m);
    cuda_open_kernel(m, "rows", m->tape->rows, warps * CUDA_WARP);
    const int levels = need_of_rows(m, needed);
    text_printf(m->out, "    const %s row = %s;\n", m->index, m->block);
    if (levels)
        text_printf(m->out, "    const u32 lane = threadIdx.x %% 32%s;\n",
                    m->segments > 1 ? ", warp = threadIdx.x / 32" : "");
    cuda_name_kept(m);
    for (int level = 0; level <= levels; level++) {
        cuda_print_uniform(m, needed, level, true, &at);
        if (level < levels)
            print_phase(m, needed, level, warps);
    }
    text_printf(m->out, "    __syncthreads();\n");
    if (!m->has_columns && cuda_any_store(m, false))
        print_elements(m, warps * CUDA_WARP);
    if (cuda_any_store(m, true) || m->has_columns)
        print_row_values(m);
    cuda_close_kernel(m);
}
