/* Windows as matrices: rows are taps, columns are positions. */
#include <string.h>

#include "ops/window/window.h"

/* Where the positions of a line stand in a line of the data: position i of the run at p0 + i * stride, data from `from`
 * to before `to`. */
typedef struct Line {
    int64_t p0, from, to;
} Line;

static Line line_at(const Window *w, const int64_t *tap, int64_t at, int64_t run)
{
    const int last = w->rank - 1;
    const int64_t step = w->stride[last], extent = w->in[last];
    Line l = { .p0 = at * step - w->begin[last] + tap[last] * w->dilation[last] };
    if (l.p0 >= extent)
        return l;
    l.to = (extent - l.p0 - 1) / step + 1;
    l.to = l.to < run ? l.to : run;
    l.from = l.p0 < 0 ? (-l.p0 + step - 1) / step : 0;
    l.from = l.from < l.to ? l.from : l.to;
    return l;
}

/* Which line of the data the tap sees at position `at` of the other dimensions; -1: padding. */
static int64_t row_at(const Window *w, const int64_t *tap, const int64_t *at)
{
    int64_t row = 0;
    bool inside = true;
    for (int i = 0; i < w->rank - 1; i++) {
        const int64_t p = at[i] * w->stride[i] - w->begin[i] + tap[i] * w->dilation[i];
        inside = inside && p >= 0 && p < w->in[i];
        row = row * w->in[i] + p;
    }
    return inside ? row : -1;
}

/* Whether the lines of a plane follow each other in the data as they do in the result. */
static bool lines_follow(const Window *w)
{
    const int last = w->rank - 1;
    return last > 0 && w->stride[last] == 1 && w->stride[last - 1] == 1 && w->in[last] == w->out[last];
}

/* How many of the `lines` whole lines from `at` on see data, the first of which sees line *row; those before it go to
 * *before. */
static int64_t lines_seen(const Window *w, const int64_t *tap, const int64_t *at, int64_t lines, int64_t *before,
                          int64_t *row)
{
    const int up = w->rank - 2;
    const int64_t p = at[up] - w->begin[up] + tap[up] * w->dilation[up];
    int64_t first[MAX_SPATIAL];
    memcpy(first, at, sizeof first);
    *before = p < 0 ? -p : 0;
    first[up] += *before;
    const int64_t end = w->in[up] - p < lines ? w->in[up] - p : lines;
    *row = *before < end ? row_at(w, tap, first) : -1;
    return *row < 0 ? 0 : end - *before;
}

/* Padding: of floats it is 0. */
#define FILL_f32(to, n, fill) ((void)(fill), memset(to, 0, (size_t)(n) * sizeof(f32)))
#define FILL_f64(to, n, fill) ((void)(fill), memset(to, 0, (size_t)(n) * sizeof(f64)))
#define FILL_u32(to, n, fill) fill_u32(to, n, fill)
#define FILL_u8(to, n, fill)  memset(to, fill, (size_t)(n))
#define FILL_u16(to, n, fill) fill_u16(to, n, fill)
static void fill_u32(u32 *to, int64_t n, u32 fill)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = fill;
}
static void fill_u16(u16 *to, int64_t n, u16 fill)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = fill;
}

#define GATHER(T)                                                                                                      \
    /* to[i] = from[2 i], four at a time while an element behind them is still one of the line */                      \
    static void gather_evens_##T(const T *from, int64_t n, T *to)                                                      \
    {                                                                                                                  \
        typedef T Four __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));                     \
        int64_t i = 0;                                                                                                 \
        for (; i + 4 < n; i += 4)                                                                                      \
            *(Four *)(to + i) =                                                                                        \
                __builtin_shufflevector(*(const Four *)(from + 2 * i), *(const Four *)(from + 2 * i + 4), 0, 2, 4, 6); \
        for (; i < n; i++)                                                                                             \
            to[i] = from[2 * i];                                                                                       \
    }                                                                                                                  \
    /* some of a line; null: padding */                                                                                \
    static void gather_line_##T(const T *line, const Line *l, int64_t step, int64_t n, T fill, T *to)                  \
    {                                                                                                                  \
        const int64_t from = line ? l->from : n, end = line ? l->to : n;                                               \
        if (from > 0)                                                                                                  \
            FILL_##T(to, from, fill);                                                                                  \
        if (step == 1 && end > from)                                                                                   \
            memcpy(to + from, line + l->p0 + from, (size_t)(end - from) * sizeof(T));                                  \
        if (step == 2 && end > from)                                                                                   \
            gather_evens_##T(line + l->p0 + 2 * from, end - from, to + from);                                          \
        for (int64_t i = from; step > 2 && i < end; i++)                                                               \
            to[i] = line[l->p0 + i * step];                                                                            \
        if (end < n)                                                                                                   \
            FILL_##T(to + end, n - end, fill);                                                                         \
    }                                                                                                                  \
    /* whole lines that follow each other: one copy, then what it took from the neighbours is padding again */         \
    static void gather_lines_##T(const Window *w, const T *x, const int64_t *tap, const int64_t *at, const Line *l,    \
                                 int64_t lines, T fill, T *to)                                                         \
    {                                                                                                                  \
        const int64_t width = w->out[w->rank - 1];                                                                     \
        int64_t before, row, seen = lines_seen(w, tap, at, lines, &before, &row);                                      \
        if (seen == 0 || l->from == l->to) {                                                                           \
            FILL_##T(to, lines *width, fill);                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        FILL_##T(to, before *width, fill);                                                                             \
        to += before * width;                                                                                          \
        memcpy(to + l->from, x + row * width + l->p0 + l->from,                                                        \
               (size_t)((seen - 1) * width + l->to - l->from) * sizeof(T));                                            \
        for (int64_t i = 0; (l->from > 0 || l->to < width) && i < seen; i++) {                                         \
            for (int64_t k = 0; k < l->from; k++)                                                                      \
                to[i * width + k] = fill;                                                                              \
            for (int64_t k = l->to; k < width; k++)                                                                    \
                to[i * width + k] = fill;                                                                              \
        }                                                                                                              \
        FILL_##T(to + seen * width, (lines - before - seen) * width, fill);                                            \
    }                                                                                                                  \
    static void gather_##T(const Window *w, const T *x, const int64_t *tap, int64_t first, int64_t n, T fill, T *to)   \
    {                                                                                                                  \
        const int last = w->rank - 1;                                                                                  \
        const int64_t width = w->out[last];                                                                            \
        const bool follow = lines_follow(w);                                                                           \
        const Line whole = line_at(w, tap, 0, width);                                                                  \
        int64_t at[MAX_SPATIAL];                                                                                       \
        position_of(w->rank, w->out, first, at);                                                                       \
        for (int64_t done; n > 0; to += done, n -= done) {                                                             \
            const int64_t rest = width - at[last], row = row_at(w, tap, at);                                           \
            if (follow && at[last] == 0 && n >= width) {                                                               \
                const int64_t left = w->out[last - 1] - at[last - 1], lines = left < n / width ? left : n / width;     \
                gather_lines_##T(w, x, tap, at, &whole, lines, fill, to);                                              \
                at[last - 1] += lines - 1;                                                                             \
                done = lines * width;                                                                                  \
            } else {                                                                                                   \
                done = rest < n ? rest : n;                                                                            \
                const Line part = done < width ? line_at(w, tap, at[last], done) : whole;                              \
                gather_line_##T(row < 0 ? NULL : x + row * w->in[last], &part, w->stride[last], done, fill, to);       \
            }                                                                                                          \
            at[last] = width - 1; /* what ends within a line is the last */                                            \
            position_next(w->rank, w->out, at);                                                                        \
        }                                                                                                              \
    }
GATHER(f32)
GATHER(f64)
GATHER(u8)
GATHER(u16)
GATHER(u32)
#undef GATHER

void window_gather_f32(const Window *w, const f32 *x, const int64_t *tap, int64_t first, int64_t n, f32 *to)
{
    gather_f32(w, x, tap, first, n, 0, to);
}

void window_gather_f64(const Window *w, const f64 *x, const int64_t *tap, int64_t first, int64_t n, f64 *to)
{
    gather_f64(w, x, tap, first, n, 0, to);
}

void window_gather_u32(const Window *w, const u32 *x, const int64_t *tap, int64_t first, int64_t n, u32 fill, u32 *to)
{
    gather_u32(w, x, tap, first, n, fill, to);
}

void window_gather_u8(const Window *w, const u8 *x, const int64_t *tap, int64_t first, int64_t n, u8 fill, u8 *to)
{
    gather_u8(w, x, tap, first, n, fill, to);
}

void window_gather_u16(const Window *w, const u16 *x, const int64_t *tap, int64_t first, int64_t n, u16 fill, u16 *to)
{
    gather_u16(w, x, tap, first, n, fill, to);
}

/* to[i] += from[i], eight at a time for the compiler to see. */
#define ADD_RUN(T)                                                                                                     \
    static void add_run_##T(T *restrict to, const T *restrict from, int64_t n)                                         \
    {                                                                                                                  \
        enum { SIDE = 8 };                                                                                             \
        int64_t i = 0;                                                                                                 \
        for (; i + SIDE <= n; i += SIDE)                                                                               \
            for (int64_t k = 0; k < SIDE; k++)                                                                         \
                to[i + k] += from[i + k];                                                                              \
        for (; i < n; i++)                                                                                             \
            to[i] += from[i];                                                                                          \
    }

#define SCATTER(T)                                                                                                     \
    ADD_RUN(T)                                                                                                         \
    static void add_apart_##T(T *restrict to, int64_t step, const T *restrict from, int64_t n)                         \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i * step] += from[i];                                                                                   \
    }                                                                                                                  \
    void window_scatter_##T(const Window *w, T *x, const int64_t *tap, const T *from)                                  \
    {                                                                                                                  \
        const int last = w->rank - 1;                                                                                  \
        const int64_t step = w->stride[last], run = w->out[last];                                                      \
        const int64_t lines = run ? window_product(last, w->out) : 0;                                                  \
        const Line l = line_at(w, tap, 0, run);                                                                        \
        int64_t at[MAX_SPATIAL] = { 0 };                                                                               \
        for (int64_t k = 0; k < lines && l.from < l.to; k++, from += run) {                                            \
            const int64_t row = row_at(w, tap, at);                                                                    \
            T *line = x + (row < 0 ? 0 : row * w->in[last]);                                                           \
            if (row >= 0 && step == 1)                                                                                 \
                add_run_##T(line + l.p0 + l.from, from + l.from, l.to - l.from);                                       \
            else if (row >= 0 && step == 2)                                                                            \
                add_apart_##T(line + l.p0 + 2 * l.from, 2, from + l.from, l.to - l.from);                              \
            else if (row >= 0)                                                                                         \
                add_apart_##T(line + l.p0 + l.from * step, step, from + l.from, l.to - l.from);                        \
            position_next(last, w->out, at);                                                                           \
        }                                                                                                              \
    }
SCATTER(f32)
SCATTER(f64)
SCATTER(i64)
#undef SCATTER
