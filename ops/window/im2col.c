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

enum { PADDING = -1 };

/* Runs under way: what data they are of, and where their next position goes. */
typedef struct Sight {
    SightRun *runs;
    size_t n;
    int64_t data, to;
} Sight;

static void add_run(Sight *s, int64_t from, int64_t to, int64_t n)
{
    if (n > 0)
        s->runs[s->n++] = (SightRun){ from == PADDING ? PADDING : s->data + from, (i32)(s->to + to), (i32)n };
}

/* Some of a line; below 0: padding. */
static void add_line(Sight *s, int64_t line, const Line *l, int64_t step, int64_t n)
{
    const int64_t from = line < 0 ? n : l->from, end = line < 0 ? n : l->to;
    add_run(s, PADDING, 0, from);
    add_run(s, line + l->p0 + from * step, from, end - from);
    add_run(s, PADDING, end, n - end);
}

/* Whole lines that follow each other: one run, and what it took from the neighbours is padding again. */
static void add_lines(Sight *s, const Window *w, const int64_t *tap, const int64_t *at, const Line *l, int64_t lines)
{
    const int64_t width = w->out[w->rank - 1];
    int64_t before, row, seen = lines_seen(w, tap, at, lines, &before, &row);
    if (seen == 0 || l->from == l->to) {
        add_run(s, PADDING, 0, lines * width);
        return;
    }
    add_run(s, PADDING, 0, before * width);
    add_run(s, row * width + l->p0 + l->from, before * width + l->from, (seen - 1) * width + l->to - l->from);
    for (int64_t i = before; i < before + seen; i++) {
        add_run(s, PADDING, i * width, l->from);
        add_run(s, PADDING, i * width + l->to, width - l->to);
    }
    add_run(s, PADDING, (before + seen) * width, (lines - before - seen) * width);
}

/* Positions [first, first + n) of one image. */
static void sight_image(Sight *s, const Window *w, const int64_t *tap, int64_t first, int64_t n)
{
    const int last = w->rank - 1;
    const int64_t width = w->out[last];
    const bool follow = lines_follow(w);
    const Line whole = line_at(w, tap, 0, width);
    int64_t at[MAX_SPATIAL];
    position_of(w->rank, w->out, first, at);
    for (int64_t done; n > 0; s->to += done, n -= done) {
        const int64_t rest = width - at[last];
        if (follow && at[last] == 0 && n >= width) {
            const int64_t left = w->out[last - 1] - at[last - 1], lines = left < n / width ? left : n / width;
            add_lines(s, w, tap, at, &whole, lines);
            at[last - 1] += lines - 1;
            done = lines * width;
        } else {
            const int64_t row = row_at(w, tap, at);
            done = rest < n ? rest : n;
            const Line part = done < width ? line_at(w, tap, at[last], done) : whole;
            add_line(s, row < 0 ? PADDING : row * w->in[last], &part, w->stride[last], done);
        }
        at[last] = width - 1; /* what ends within a line is the last */
        position_next(w->rank, w->out, at);
    }
}

size_t window_sight(const Window *w, const int64_t *tap, int64_t begin, int64_t n, int64_t image, SightRun *runs)
{
    const int64_t out = window_product(w->rank, w->out);
    Sight s = { .runs = runs };
    for (int64_t some; n > 0; begin += some, n -= some) {
        const int64_t left = out - begin % out;
        some = left < n ? left : n;
        s.data = begin / out * image;
        sight_image(&s, w, tap, begin % out, some);
    }
    return s.n;
}

/* Runs that n positions have at most: three a line, two of which may be cut in each image. */
static size_t most_runs(const Window *w, int64_t n)
{
    const int64_t out = window_product(w->rank, w->out), width = w->out[w->rank - 1];
    const int64_t lines = out ? n / width + 2 * (n / out + 2) : 0;
    return (size_t)(3 * lines < n ? 3 * lines : n);
}

size_t window_sights_bytes(const Window *w, int64_t n)
{
    const size_t taps = (size_t)window_product(w->rank, w->kernel), line = 64; /* of a cache: what follows begins one */
    return (taps * (most_runs(w, n) * sizeof(SightRun) + sizeof(size_t)) + line - 1) / line * line;
}

TapSights window_sights(const Window *w, int64_t begin, int64_t n, int64_t image, void *room)
{
    const size_t taps = (size_t)window_product(w->rank, w->kernel);
    int64_t tap[MAX_SPATIAL] = { 0 };
    TapSights s = { .runs = room, .most = most_runs(w, n) };
    s.n = (size_t *)(s.runs + taps * s.most);
    for (size_t k = 0; k < taps; k++, position_next(w->rank, w->kernel, tap))
        s.n[k] = window_sight(w, tap, begin, n, image, s.runs + k * s.most);
    return s;
}

/* Two blocks that may meet: no call for what small images have in a line. */
#define COPY_BLOCKS(bytes)                                                                                             \
    if (n >= (bytes)) {                                                                                                \
        memcpy(to, from, bytes);                                                                                       \
        memcpy(to + n - (bytes), from + n - (bytes), bytes);                                                           \
        return;                                                                                                        \
    }
static inline void copy_run(char *restrict to, const char *restrict from, size_t n)
{
    enum { MOST = 64, HALF = 32, QUARTER = 16, WORD = 8, LEAST = 4 };
    if (n > MOST) {
        memcpy(to, from, n);
        return;
    }
    COPY_BLOCKS(HALF)
    COPY_BLOCKS(QUARTER)
    COPY_BLOCKS(WORD)
    COPY_BLOCKS(LEAST)
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}
#undef COPY_BLOCKS

#define EVENS_8(x, y)  __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define EVENS_16(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14)
#define EVENS_32(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6)
#define EVENS_64(x, y) __builtin_shufflevector(x, y, 0, 2)

#define SEE(T, EVENS)                                                                                                  \
    /* to[i] = from[2 i], sixteen bytes at a time while an element behind them is still one of the line */             \
    static void see_evens_##T(const T *from, int64_t n, T *to)                                                         \
    {                                                                                                                  \
        typedef T Some __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));                                \
        enum { AT_ONCE = 16 / sizeof(T) };                                                                             \
        int64_t i = 0;                                                                                                 \
        for (; i + AT_ONCE < n; i += AT_ONCE)                                                                          \
            *(Some *)(to + i) = EVENS(*(const Some *)(from + 2 * i), *(const Some *)(from + 2 * i + AT_ONCE));         \
        for (; i < n; i++)                                                                                             \
            to[i] = from[2 * i];                                                                                       \
    }                                                                                                                  \
    static void fill_##T(T *to, int64_t n, T fill)                                                                     \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i] = fill;                                                                                              \
    }                                                                                                                  \
    static void see_##T(const SightRun *runs, size_t n, int64_t step, const T *x, T fill, T *to)                       \
    {                                                                                                                  \
        for (const SightRun *r = runs; r < runs + n; r++) {                                                            \
            if (r->from == PADDING && r->n == 1) /* at the ends of lines */                                            \
                to[r->to] = fill;                                                                                      \
            else if (r->from == PADDING)                                                                               \
                fill_##T(to + r->to, r->n, fill);                                                                      \
            else if (step == 1)                                                                                        \
                copy_run((char *)(to + r->to), (const char *)(x + r->from), (size_t)r->n * sizeof(T));                 \
            else if (step == 2)                                                                                        \
                see_evens_##T(x + r->from, r->n, to + r->to);                                                          \
            else                                                                                                       \
                for (int64_t i = 0; i < r->n; i++)                                                                     \
                    to[r->to + i] = x[r->from + i * step];                                                             \
        }                                                                                                              \
    }
SEE(f32, EVENS_32)
SEE(f64, EVENS_64)
SEE(u8, EVENS_8)
SEE(u16, EVENS_16)
SEE(u32, EVENS_32)
#undef SEE
#undef EVENS_8
#undef EVENS_16
#undef EVENS_32
#undef EVENS_64

#define GATHER(T)                                                                                                      \
    static void gather_##T(const Window *w, const T *x, const int64_t *tap, int64_t first, int64_t n, T fill, T *to)   \
    {                                                                                                                  \
        enum { AT_ONCE = 256 };                                                                                        \
        SightRun runs[AT_ONCE];                                                                                        \
        for (int64_t some; n > 0; first += some, n -= some, to += some) {                                              \
            some = n < AT_ONCE ? n : AT_ONCE;                                                                          \
            see_##T(runs, window_sight(w, tap, first, some, 0, runs), w->stride[w->rank - 1], x, fill, to);            \
        }                                                                                                              \
    }
GATHER(f32)
GATHER(u8)
GATHER(u16)
GATHER(u32)
#undef GATHER

#define SEEN(T)                                                                                                        \
    void window_see_##T(const Window *w, const SightRun *runs, size_t n, const T *x, T *to)                            \
    {                                                                                                                  \
        see_##T(runs, n, w->stride[w->rank - 1], x, 0, to);                                                            \
    }
SEEN(f32)
SEEN(f64)
SEEN(u16)
SEEN(u32)
#undef SEEN

void window_gather_f32(const Window *w, const f32 *x, const int64_t *tap, int64_t first, int64_t n, f32 *to)
{
    gather_f32(w, x, tap, first, n, 0, to);
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
