/* Windows as matrices: rows are taps, columns are positions. */
#include <string.h>

#include "ops/window.h"

/* Part of one line of positions, in one dimension the data's innermost one. */
typedef struct Line {
    int64_t row;      /* of the data line that the tap sees */
    bool inside;      /* there is one */
    int64_t p0;       /* where the tap stands in it at position 0 of the run */
    int64_t from, to; /* positions of the run that see data */
} Line;

static Line line_at(const Window *w, const int64_t *tap, const int64_t *at, int64_t run)
{
    const int last = w->rank - 1;
    const int64_t step = w->stride[last], extent = w->in[last];
    Line l = { .inside = true };
    for (int i = 0; i < last; i++) {
        const int64_t p = at[i] * w->stride[i] - w->begin[i] + tap[i] * w->dilation[i];
        l.inside = l.inside && p >= 0 && p < w->in[i];
        l.row = l.row * w->in[i] + p;
    }
    l.p0 = at[last] * step - w->begin[last] + tap[last] * w->dilation[last];
    if (!l.inside || l.p0 >= extent)
        return l;
    l.to = (extent - l.p0 - 1) / step + 1;
    l.to = l.to < run ? l.to : run;
    l.from = l.p0 < 0 ? (-l.p0 + step - 1) / step : 0;
    l.from = l.from < l.to ? l.from : l.to;
    return l;
}

#define GATHER(T)                                                                                                      \
    void window_gather_##T(const Window *w, const T *x, const int64_t *tap, int64_t first, int64_t n, T *to)           \
    {                                                                                                                  \
        const int last = w->rank - 1;                                                                                  \
        const int64_t step = w->stride[last];                                                                          \
        int64_t at[MAX_SPATIAL];                                                                                       \
        position_of(w->rank, w->out, first, at);                                                                       \
        while (n > 0) {                                                                                                \
            const int64_t rest = w->out[last] - at[last], run = rest < n ? rest : n;                                   \
            const Line l = line_at(w, tap, at, run);                                                                   \
            memset(to, 0, (size_t)l.from * sizeof(T));                                                                 \
            const T *line = l.to > l.from ? x + l.row * w->in[last] : NULL;                                            \
            if (line && step == 1)                                                                                     \
                memcpy(to + l.from, line + l.p0 + l.from, (size_t)(l.to - l.from) * sizeof(T));                        \
            else                                                                                                       \
                for (int64_t i = l.from; i < l.to; i++)                                                                \
                    to[i] = line[l.p0 + i * step];                                                                     \
            memset(to + l.to, 0, (size_t)(run - l.to) * sizeof(T));                                                    \
            to += run;                                                                                                 \
            n -= run;                                                                                                  \
            at[last] += run - 1;                                                                                       \
            position_next(w->rank, w->out, at);                                                                        \
        }                                                                                                              \
    }
GATHER(f32)
GATHER(f64)
#undef GATHER

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
    void window_scatter_##T(const Window *w, T *x, const int64_t *tap, const T *from)                                  \
    {                                                                                                                  \
        const int last = w->rank - 1;                                                                                  \
        const int64_t step = w->stride[last], run = w->out[last];                                                      \
        const int64_t lines = run ? window_product(last, w->out) : 0;                                                  \
        int64_t at[MAX_SPATIAL] = { 0 };                                                                               \
        for (int64_t k = 0; k < lines; k++, from += run) {                                                             \
            const Line l = line_at(w, tap, at, run);                                                                   \
            if (step == 1 && l.from < l.to)                                                                            \
                add_run_##T(x + l.row * w->in[last] + l.p0 + l.from, from + l.from, l.to - l.from);                    \
            for (int64_t i = l.from; step != 1 && i < l.to; i++)                                                       \
                x[l.row * w->in[last] + l.p0 + i * step] += from[i];                                                   \
            position_next(last, w->out, at);                                                                           \
        }                                                                                                              \
    }
SCATTER(f32)
SCATTER(f64)
SCATTER(i64)
#undef SCATTER
