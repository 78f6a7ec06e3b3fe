/* What kernels are made of: heads, registers, results. */
#include <inttypes.h>
#include <string.h>

#include "codegen/cuda/cuda_parts.h"

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

bool *cuda_no_registers(const CudaMaker *m)
{
    return NEWS(m->arena, bool, m->tape->n_registers + 1);
}

/* Prints the steps of registers that are needed and not known. */
void cuda_print_needed(const CudaMaker *m, const bool *needed, const CudaPlace *at)
{
    for (int i = 0; i < m->tape->n_steps; i++) {
        const TapeStep *s = &m->tape->steps[i];
        if (cuda_makes(s) && needed[s->out] && !m->known[s->out])
            cuda_step(m, s, at);
    }
}

/* ---- reductions ---- */

void cuda_open_phase(const CudaMaker *m, CudaPhase *p)
{
    *p = (CudaPhase){ .folds = NEWS(m->arena, const TapeStep *, m->tape->n_steps + 1), .needed = cuda_no_registers(m) };
}

void cuda_add_fold(CudaPhase *p, const TapeStep *s)
{
    p->folds[p->n++] = s;
    p->needed[s->in[0]] = true;
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
void cuda_open_kernel(CudaMaker *m, const char *part, int64_t blocks, int threads)
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
        add_parameter(m, arena_printf(m->arena, "const %s *in%d,", cuda_memory(t->in[i]->dtype), i), &begin, column);
    for (int i = 0; i < t->n_out; i++)
        add_parameter(m, arena_printf(m->arena, "%s *out%d,", cuda_memory(t->out[i]->dtype), i), &begin, column);
    if (m->launch->draws)
        add_parameter(m, "const u64 *draws,", &begin, column);
    if (m->launch->late)
        add_parameter(m, CUDA_APPLIED, &begin, column);
    add_parameter(m, "u8 *scratch)\n{\n", &begin, column);
    if (m->launch->late)
        text_add(m->out, CUDA_UNLESS_APPLIED);
    for (int i = 0; i < t->n_out; i++)
        if (m->apart_at[i] != CUDA_NOWHERE)
            text_printf(m->out, "    u8 *const apart%d = scratch + %" PRId64 ";\n", i, m->apart_at[i]);
}

void cuda_close_kernel(const CudaMaker *m)
{
    text_printf(m->out, "}\n");
}

/* Names of what the scratch holds. */
void cuda_name_parts(const CudaMaker *m)
{
    for (int i = 0; i < m->tape->n_steps; i++) {
        const TapeStep *s = &m->tape->steps[i];
        const char *type = dtype_name(s->arithmetic);
        if (s->word == TAPE_FOLD_COLUMN || s->word == TAPE_FOLD_ALL)
            text_printf(m->out, "    %s *const parts%d = (%s *)(scratch + %" PRId64 ");\n", type, s->out, type,
                        m->parts_at[s->out]);
    }
}

void cuda_name_kept(const CudaMaker *m)
{
    for (int r = 0; r < m->tape->n_registers; r++) {
        const char *type = dtype_name(m->tape->registers[r].arithmetic);
        if (m->kept_at[r] != CUDA_NOWHERE)
            text_printf(m->out, "    %s *const kept%d = (%s *)(scratch + %" PRId64 ");\n", type, r, type,
                        m->kept_at[r]);
    }
}

/* What a row has at an index: all threads compute that element alone. */
static void print_pick(const CudaMaker *m, const TapeStep *s, const CudaPlace *at)
{
    const int64_t n = m->tape->length;
    CudaPlace inside = *at;
    bool *needed = cuda_no_registers(m);
    needed[s->in[0]] = true;
    cuda_close(m, needed);
    cuda_indent(m, at->indent);
    text_printf(m->out, "%s r%d;\n", dtype_name(s->arithmetic), s->out);
    cuda_indent(m, at->indent);
    text_printf(m->out, "{\n");
    inside.indent++;
    cuda_indent(m, inside.indent);
    text_printf(m->out,
                "const %s i = (%s)(r%d < 0 ? 0 : r%d < %" PRId64 " ? r%d : %" PRId64 "), e = row * %" PRId64 " + i;\n",
                m->index, m->index, s->in[1], s->in[1], n, s->in[1], n - 1, n);
    cuda_print_needed(m, needed, &inside);
    cuda_indent(m, inside.indent);
    text_printf(m->out, "r%d = r%d;\n", s->out, s->in[0]);
    cuda_indent(m, at->indent);
    text_printf(m->out, "}\n");
}

/* Makes registers that are the same in all threads of a block. */
void cuda_print_uniform(CudaMaker *m, const bool *needed, int level, bool by_row, const CudaPlace *at)
{
    const Tape *t = m->tape;
    for (int i = 0; i < t->n_steps; i++) {
        const TapeStep *s = &t->steps[i];
        if (!cuda_makes(s) || s->word == TAPE_FOLD_ROW || !needed[s->out] || m->known[s->out])
            continue;
        const TapeRegister *r = &t->registers[s->out];
        if (m->level[s->out] > level || !(r->per_row ? by_row : r->lasts))
            continue;
        if (s->word == TAPE_PICK)
            print_pick(m, s, at);
        else
            cuda_step(m, s, at);
        m->known[s->out] = true;
    }
}

void cuda_print_element(const CudaMaker *m, int indent)
{
    const Tape *t = m->tape;
    const int64_t run = tape_run_elements(t);
    cuda_indent(m, indent);
    if (tape_has_channels(t))
        text_printf(m->out, "const %s e = (i / %" PRId64 " * %" PRId64 " + row) * %" PRId64 " + i %% %" PRId64 ";\n",
                    m->index, run, t->rows, run, run);
    else
        text_printf(m->out, "const %s e = row * %" PRId64 " + i;\n", m->index, t->length);
}

/* ---- results ---- */

static void print_store(const CudaMaker *m, const TapeStep *s, const char *index, int indent)
{
    const char *value = arena_printf(m->arena, "r%d", s->in[0]);
    cuda_indent(m, indent);
    text_printf(m->out, "%s%d[%s] = %s;\n", m->apart_at[s->out] == CUDA_NOWHERE ? "out" : "apart", s->out, index,
                cuda_store(m, s->arithmetic, m->tape->out[s->out]->dtype, value));
}

bool cuda_any_store(const CudaMaker *m, bool by_row)
{
    for (int i = 0; i < m->tape->n_steps; i++)
        if (cuda_leaves(m->tape, &m->tape->steps[i], by_row))
            return true;
    return false;
}

void cuda_need_stores(const CudaMaker *m, bool by_row, bool *needed)
{
    for (int i = 0; i < m->tape->n_steps; i++)
        if (cuda_leaves(m->tape, &m->tape->steps[i], by_row))
            needed[m->tape->steps[i].in[0]] = true;
}

void cuda_print_stores(const CudaMaker *m, bool by_row, const char *index, int indent)
{
    for (int i = 0; i < m->tape->n_steps; i++)
        if (cuda_leaves(m->tape, &m->tape->steps[i], by_row))
            print_store(m, &m->tape->steps[i], index, indent);
}

/* ---- results whose elements share bytes ---- */

static void pack(CudaMaker *m, int result)
{
    const Type *type = m->tape->out[result];
    size_t bytes;
    if (!type_bytes(type, &bytes) || !bytes)
        return;
    const int64_t n = (int64_t)bytes;
    cuda_open_kernel(m, arena_printf(m->arena, "pack%d", result), (n + CUDA_THREADS - 1) / CUDA_THREADS, CUDA_THREADS);
    text_printf(m->out, "    const %s b = %s * %d + threadIdx.x;\n    if (b >= %" PRId64 ")\n        return;\n",
                m->index, m->block, CUDA_THREADS, n);
    text_printf(m->out, "    out%d[b] = %s;\n", result,
                cuda_byte(m->arena, type->dtype, arena_printf(m->arena, "apart%d", result), "b", type_elements(type)));
    cuda_close_kernel(m);
}

void cuda_pack(CudaMaker *m)
{
    for (int i = 0; i < m->tape->n_out; i++)
        if (m->apart_at[i] != CUDA_NOWHERE)
            pack(m, i);
}
