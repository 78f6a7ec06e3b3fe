#include "codegen/cuda/cuda_text.h"

#include <string.h>

#include "codegen/cuda/cuda_parts.h"
#include "ops/text.h"

/* What the driver takes, whatever the device. */
enum {
    MOST_ARGUMENTS = 500,     /* pointers in 4 KiB */
    MOST_SHARED = 48 << 10,   /* bytes of a block */
    MOST_BLOCKS = 0x7fffffff, /* of a launch */
    MOST_NARROW = 0x7fffffff, /* elements that 32 bits count, and go on counting behind the last */
    SCRATCH_ALIGNMENT = 16,
};

void cuda_prelude(Text *out)
{
    text_add(out, ops_scalar_text);
    text_add(out, ops_reduce_text);
    text_add(out, ops_warp_text);
    text_add(out, ops_scaler_text);
    text_add(out, ops_grid_text);
}

static int count(const Tape *t, TapeWord word)
{
    int n = 0;
    for (int i = 0; i < t->n_steps; i++)
        n += t->steps[i].word == word;
    return n;
}

/* ---- what it cannot be ---- */

static const char *check_types(const Tape *t)
{
    for (int i = 0; i < t->n_in; i++)
        if (!cuda_storage(t->in[i]->dtype))
            return "an argument of a type that kernels do not know";
    for (int i = 0; i < t->n_out; i++)
        if (!cuda_storage(t->out[i]->dtype))
            return "a result of a type that kernels do not know";
    for (int i = 0; i < t->n_steps; i++)
        if (t->steps[i].word == TAPE_ROUND && !cuda_storage(t->steps[i].through))
            return "a rounding to a type that kernels do not know";
    for (int i = 0; i < t->n_steps; i++)
        if ((t->steps[i].word == TAPE_FOLD_COLUMN || t->steps[i].word == TAPE_FOLD_ALL) &&
            cuda_packed(t->out[t->steps[i].out]->dtype))
            return "a reduction whose results share bytes";
    return NULL;
}

static const char *check(const Tape *t)
{
    const int columns = count(t, TAPE_FOLD_COLUMN), all = count(t, TAPE_FOLD_ALL),
              rows = count(t, TAPE_FOLD_ROW) + count(t, TAPE_PICK);
    const int64_t segments = (t->length + CUDA_SEGMENT - 1) / CUDA_SEGMENT;
    if (t->product != TAPE_NONE)
        return "a product, whose blocks another kernel makes";
    if (t->n_in + t->n_out >= MOST_ARGUMENTS)
        return "more arguments than a launch takes";
    if (t->rows <= 0 || t->length <= 0)
        return "a space without elements";
    if ((t->cut < 0 && (columns || rows)) || (t->cut >= 0 && all) || (columns && t->length == 1))
        return "a reduction that does not fit its space";
    if ((t->rows + CUDA_COLUMN_ROWS - 1) / CUDA_COLUMN_ROWS > MOST_BLOCKS / ((t->length + CUDA_WARP - 1) / CUDA_WARP) ||
        t->rows > MOST_BLOCKS || t->length / CUDA_THREADS > MOST_BLOCKS / t->rows)
        return "more blocks than a launch takes";
    if (rows && t->length > 1 && segments > 1 && segments * rows > MOST_SHARED / (int64_t)sizeof(f64))
        return "a row that is too long for the memory of a block";
    return check_types(t);
}

/* ---- what is made where ---- */

/* The phases of reductions that come before a register. */
static void find_levels(CudaMaker *m)
{
    const Tape *t = m->tape;
    m->level = NEWS(m->arena, int, t->n_registers + 1);
    for (int i = 0; i < t->n_steps; i++) {
        const TapeStep *s = &t->steps[i];
        if (!cuda_makes(s))
            continue;
        int level = 0;
        for (int k = 0; k < TAPE_OPERANDS; k++)
            if (s->word != TAPE_LOAD && s->in[k] != TAPE_NONE && m->level[s->in[k]] > level)
                level = m->level[s->in[k]];
        m->level[s->out] = level + (s->word == TAPE_FOLD_ROW);
    }
}

static int64_t take(CudaMaker *m, int64_t n, DType arithmetic)
{
    const int64_t at = (int64_t)m->launch->scratch;
    const size_t bytes = (size_t)n * (arithmetic == F32 ? sizeof(f32) : sizeof(f64));
    m->launch->scratch += (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    return at;
}

/* The values of rows that elements read, or columns: one kernel makes them, another reads them. */
static void keep_rows(CudaMaker *m)
{
    const Tape *t = m->tape;
    for (int i = 0; i < t->n_steps; i++) {
        const TapeStep *s = &t->steps[i];
        const bool of_element = !cuda_makes(s) || !t->registers[s->out].per_row;
        for (int k = 0; k < TAPE_OPERANDS; k++) {
            if (s->word == TAPE_LOAD || cuda_leaves(t, s, true) || s->in[k] == TAPE_NONE)
                continue;
            if (of_element && t->registers[s->in[k]].per_row && m->kept_at[s->in[k]] == CUDA_NOWHERE)
                m->kept_at[s->in[k]] = take(m, t->rows, t->registers[s->in[k]].arithmetic);
        }
    }
}

static void place_parts(CudaMaker *m)
{
    const Tape *t = m->tape;
    for (int i = 0; i < t->n_steps; i++) {
        const TapeStep *s = &t->steps[i];
        if (s->word == TAPE_FOLD_ALL)
            m->parts_at[s->out] = take(m, m->segments, s->arithmetic);
        if (s->word == TAPE_FOLD_COLUMN)
            m->parts_at[s->out] =
                take(m, (t->rows + CUDA_COLUMN_ROWS - 1) / CUDA_COLUMN_ROWS * t->length, s->arithmetic);
    }
}

/* Threads that share a byte would write over each other. */
static void place_packed(CudaMaker *m)
{
    const Tape *t = m->tape;
    m->apart_at = NEWS(m->arena, int64_t, t->n_out + 1);
    for (int i = 0; i < t->n_out; i++)
        m->apart_at[i] = CUDA_NOWHERE;
    for (int i = 0; i < t->n_out; i++)
        if (cuda_packed(t->out[i]->dtype)) {
            m->apart_at[i] = (int64_t)m->launch->scratch;
            m->launch->scratch +=
                ((size_t)type_elements(t->out[i]) + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
        }
}

static bool stores_rows(const Tape *t)
{
    for (int i = 0; i < t->n_steps; i++)
        if (cuda_leaves(t, &t->steps[i], true))
            return true;
    return false;
}

static void place(CudaMaker *m)
{
    const Tape *t = m->tape;
    const bool narrow = t->rows <= MOST_NARROW / t->length;
    m->index = narrow ? "u32" : "i64";
    m->block = narrow ? "blockIdx.x" : "(i64)blockIdx.x";
    m->segments = (t->length + CUDA_SEGMENT - 1) / CUDA_SEGMENT;
    m->known = NEWS(m->arena, bool, t->n_registers + 1);
    m->kept_at = NEWS(m->arena, int64_t, t->n_registers + 1);
    m->parts_at = NEWS(m->arena, int64_t, t->n_out + 1);
    for (int r = 0; r < t->n_registers; r++)
        m->kept_at[r] = CUDA_NOWHERE;
    find_levels(m);
    m->has_columns = count(t, TAPE_FOLD_COLUMN) > 0;
    m->has_rows = t->cut >= 0 && t->length > 1 &&
                  (!m->has_columns || count(t, TAPE_FOLD_ROW) > 0 || count(t, TAPE_PICK) > 0 || stores_rows(t));
    if (m->has_rows && m->has_columns)
        keep_rows(m);
    place_parts(m);
    place_packed(m);
    m->launch->draws = count(t, TAPE_DRAW) > 0;
}

/* ---- the text ---- */

/* Each row once in each arithmetic. */
static void print_functions(const CudaMaker *m)
{
    const Tape *t = m->tape;
    for (int i = 0; i < t->n_steps; i++) {
        const TapeStep *s = &t->steps[i];
        bool again = s->word != TAPE_ROW;
        for (int k = 0; k < i && !again; k++)
            again = t->steps[k].word == TAPE_ROW && t->steps[k].op == s->op && t->steps[k].arithmetic == s->arithmetic;
        if (!again)
            cuda_row_function(m, s);
    }
}

const char *cuda_print(Text *out, const Tape *t, const OpTable *ops, const char *name, bool late, CudaLaunch *launch)
{
    CudaMaker m = { .out = out, .arena = out->arena, .tape = t, .ops = ops, .name = name, .launch = launch };
    const char *wrong = check(t);
    *launch = (CudaLaunch){ .late = late };
    if (wrong)
        return wrong;
    place(&m);
    print_functions(&m);
    if (m.has_rows)
        cuda_rows(&m);
    if (m.has_columns)
        cuda_columns(&m);
    else if (count(t, TAPE_FOLD_ALL))
        cuda_segments(&m);
    else if (!m.has_rows)
        cuda_map(&m);
    if (m.has_columns || count(t, TAPE_FOLD_ALL))
        cuda_join(&m);
    cuda_pack(&m);
    return NULL;
}
