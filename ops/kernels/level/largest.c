/* The largest of windows side by side: first of each column of taps, then of the columns that a window sees; where it stands,
 * or what it is.  Vectors as the
 * compiler knows them: loops with choices in them it leaves to chance. */
#include <string.h>

#include "ops/kernels/level/level.h"

/* The vectors of the level, every other element of two of them, from the first or the second on, and the halves of one with zeros of another between. */
#if defined(__AVX512F__)
enum { BLOCK = 16 };
#define EVENS 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODDS  1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define LOWER 0, 16, 1, 16, 2, 16, 3, 16, 4, 16, 5, 16, 6, 16, 7, 16
#define UPPER 8, 16, 9, 16, 10, 16, 11, 16, 12, 16, 13, 16, 14, 16, 15, 16
#elif defined(__AVX2__)
enum { BLOCK = 8 };
#define EVENS 0, 2, 4, 6, 8, 10, 12, 14
#define ODDS  1, 3, 5, 7, 9, 11, 13, 15
#define LOWER 0, 8, 1, 8, 2, 8, 3, 8
#define UPPER 4, 8, 5, 8, 6, 8, 7, 8
#else
enum { BLOCK = 4 };
#define EVENS 0, 2, 4, 6
#define ODDS  1, 3, 5, 7
#define LOWER 0, 4, 1, 4
#define UPPER 2, 4, 3, 4
#endif

enum { COLUMNS = 512 + LARGEST_REACH };

typedef i32 Lanes __attribute__((vector_size(BLOCK * sizeof(i32)), aligned(sizeof(i32)), may_alias));
typedef f32 Numbers __attribute__((vector_size(BLOCK * sizeof(f32)), aligned(sizeof(f32)), may_alias));

/* Columns of a line: the largest of each, as a number that orders likewise, and its row; beside the image what is below all
 * numbers.  Windows are read beyond the last. */
typedef struct Columns {
    i32 best[COLUMNS + 2 * BLOCK], row[COLUMNS + 2 * BLOCK];
} Columns;

static inline Lanes load(const void *from)
{
    return *(const Lanes *)from;
}

static inline Lanes choose(Lanes condition, Lanes x, Lanes y)
{
    return (x & condition) | (y & ~condition);
}

/* Orders as numbers do, 0 above -0 and a NaN above all. */
static inline Lanes key_of(Lanes bits)
{
    const Lanes key = bits ^ ((bits >> 31) & INT32_MAX);
    return choose((bits & INT32_MAX) > 0x7f800000, INT32_MAX - (Lanes){ 0 }, key);
}

/* The first n of a block. */
static inline Lanes load_some(const f32 *x, size_t n)
{
    Lanes v = { 0 };
    if (n == BLOCK)
        return load(x);
    memcpy(&v, x, n * sizeof *x);
    return v;
}

/* Of n columns, which are at most a block. */
static inline void largest_of_columns(const WindowTaps *t, const f32 *x, size_t n, Columns *to, size_t at)
{
    Lanes best = key_of(load_some(x, n)), row = { 0 };
    for (i32 k = 1; k < t->rows; k++) {
        x += t->row_step;
        const Lanes key = key_of(load_some(x, n)), better = key > best;
        row = choose(better, k - (Lanes){ 0 }, row);
        best = choose(better, key, best);
    }
    *(Lanes *)(to->best + at) = best;
    *(Lanes *)(to->row + at) = row;
}

/* Nothing in columns from .. end - 1. */
static void no_columns(Columns *to, i64 from, i64 end)
{
    for (i64 i = from; i < end; i++) {
        to->best[i] = INT32_MIN;
        to->row[i] = 0;
    }
}

/* n columns from number `first` of the image on.  The last block ends where the image does, and makes some of the one before
 * again. */
static void each_column(const WindowTaps *t, const f32 *x, i64 first, i64 n, Columns *to)
{
    const i64 from = first < 0 ? 0 : first, end = first + n < t->width ? first + n : t->width;
    const size_t seen = end > from ? (size_t)(end - from) : 0, at = (size_t)(from - first);
    x += from;
    if (seen && seen < BLOCK)
        largest_of_columns(t, x, seen, to, at);
    for (size_t i = 0; seen >= BLOCK && i < seen; i += BLOCK) {
        const size_t k = i + BLOCK <= seen ? i : seen - BLOCK;
        largest_of_columns(t, x + k, BLOCK, to, at + k);
    }
    no_columns(to, 0, from - first);
    no_columns(to, end - first, n + 2 * BLOCK);
}

/* n elements from there on, so far apart; in the usual cases more of them, which nobody looks at. */
static inline Lanes load_apart(const i32 *from, size_t n, size_t stride)
{
    Lanes v = { 0 };
    if (stride == 1)
        return load(from);
    if (stride == 2)
        return __builtin_shufflevector(load(from), load(from + BLOCK), EVENS);
    for (size_t i = 0; i < BLOCK && i < n; i++)
        v[i] = from[i * stride];
    return v;
}

/* Of equals the one in the first row, and there in the first column. */
static inline Lanes largest_of_windows(const WindowTaps *t, size_t n, size_t stride, const Columns *c, size_t at)
{
    Lanes best = load_apart(c->best + at, n, stride), row = load_apart(c->row + at, n, stride), column = { 0 };
    for (i32 k = 1; k < t->cols; k++) {
        at += (size_t)t->col_step;
        const Lanes key = load_apart(c->best + at, n, stride), r = load_apart(c->row + at, n, stride);
        const Lanes better = (key > best) | ((key == best) & (r < row));
        column = choose(better, k * t->col_step - (Lanes){ 0 }, column);
        row = choose(better, r, row);
        best = choose(better, key, best);
    }
    return row * t->row_step + column;
}

static inline void each_window(const WindowTaps *t, size_t n, size_t stride, const Columns *c, i32 *where)
{
    for (size_t i = 0; i < n; i += BLOCK) {
        const Lanes found = largest_of_windows(t, n - i, stride, c, i * stride);
        memcpy(where + i, &found, (n - i < BLOCK ? n - i : BLOCK) * sizeof *where);
    }
}

static bool any_of(Lanes condition)
{
    i32 any = 0;
    for (size_t i = 0; i < BLOCK; i++)
        any |= condition[i];
    return any != 0;
}

/* Windows at a time, the columns of which have room. */
static size_t most_windows(const WindowTaps *t)
{
    return (size_t)((COLUMNS - 1 - (t->cols - 1) * t->col_step) / t->stride + 1);
}

static i64 columns_of(const WindowTaps *t, size_t n)
{
    return (i64)(n - 1) * t->stride + (i64)(t->cols - 1) * t->col_step + 1;
}

static void find(const WindowTaps *t, const f32 *x, size_t n, i32 *where)
{
    Columns c;
    const size_t stride = (size_t)t->stride, most = most_windows(t);
    for (size_t done = 0; done < n; done += most) {
        const size_t now = n - done < most ? n - done : most;
        each_column(t, x, (i64)(done * stride) - t->before, columns_of(t, now), &c);
        if (stride == 1)
            each_window(t, now, 1, &c, where + done);
        else if (stride == 2)
            each_window(t, now, 2, &c, where + done);
        else
            each_window(t, now, stride, &c, where + done);
    }
}

/* Windows from .. end - 1, one after the other. */
static void add_each(const WindowTaps *t, const i32 *where, const f32 *y, size_t from, size_t end, f32 *dx)
{
    for (size_t i = from; i < end; i++)
        dx[(i64)i * t->stride - t->before + where[i]] += y[i];
}

/* What whole blocks of windows bring through one tap, and 0 where it is not the largest: a sum that is not -0 stays what it is. */
static inline void add_tap(i32 tap, const i32 *where, const f32 *y, size_t n, size_t stride, f32 *to)
{
    const Numbers none = { 0 };
    for (size_t i = 0; i < n; i += BLOCK, to += BLOCK * stride) {
        const Numbers v = (Numbers)(load(y + i) & (load(where + i) == tap));
        if (stride == 1) {
            *(Numbers *)to += v;
        } else {
            *(Numbers *)to += __builtin_shufflevector(v, none, LOWER);
            *(Numbers *)(to + BLOCK) += __builtin_shufflevector(v, none, UPPER);
        }
    }
}

/* Of the windows of a line that share an element, the first has it in its last column: so columns are gone through from the last
 * one on, each for all windows. */
static void add(const WindowTaps *t, const i32 *where, const f32 *y, size_t n, f32 *dx)
{
    const i64 stride = t->stride, reach = (i64)(t->cols - 1) * t->col_step;
    const i64 inside = t->before <= 0 ? 0 : (t->before + stride - 1) / stride;
    const size_t from = inside < (i64)n ? (size_t)inside : n;
    const i64 first = (i64)from * stride - t->before, room = t->width - reach - first;
    const size_t fit = room > 0 && stride <= 2 ? (size_t)(room / stride) : 0, left = n - from;
    const size_t whole = (fit < left ? fit : left) / BLOCK * BLOCK;
    add_each(t, where, y, 0, from, dx);
    for (i32 k = t->cols - 1; k >= 0 && whole; k--)
        for (i32 i = 0; i < t->rows; i++) {
            const i32 tap = i * t->row_step + k * t->col_step;
            if (stride == 1)
                add_tap(tap, where + from, y + from, whole, 1, dx + first + tap);
            else
                add_tap(tap, where + from, y + from, whole, 2, dx + first + tap);
        }
    add_each(t, where, y, from + whole, n, dx);
}

/* ---- what it is ---- */

/* Lines of a plane between columns that no window takes. */
typedef struct Lines {
    i32 key[LARGEST_PITCH + LARGEST_REACH + 2 * BLOCK];
} Lines;

static void fill_with(i32 v, size_t n, i32 *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = v;
}

/* Keys of n columns, or what of them is larger than what is there.  Reads to the end of a block where `more` elements behind
 * the columns are there, and writes to it. */
static inline void take_line(const f32 *x, size_t n, size_t more, bool is_first, i32 *to)
{
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t at = i + BLOCK <= n + more || n < BLOCK ? i : n - BLOCK;
        const Lanes key = key_of(load_some(x + at, n + more < BLOCK ? n : BLOCK)), was = load(to + at);
        *(Lanes *)(to + at) = is_first ? key : choose(key > was, key, was);
    }
}

/* Of each column what the taps of one row of windows see. */
static void line_of(const PlaneWindows *w, const f32 *x, size_t pitch, int64_t row, i32 lowest, i32 *to)
{
    const size_t room = pitch - (size_t)w->before[1], n = (size_t)w->in[1] < room ? (size_t)w->in[1] : room;
    bool is_first = true;
    for (int64_t k = 0; k < w->kernel[0]; k++) {
        const int64_t at = row * w->stride[0] - w->before[0] + k * w->dilation[0];
        if (at < 0 || at >= w->in[0])
            continue;
        take_line(x + at * w->in[1], n, (size_t)((w->in[0] - at) * w->in[1]) - n, is_first, to + w->before[1]);
        is_first = false;
    }
    fill_with(lowest, (size_t)w->before[1], to);
    if (is_first)
        fill_with(lowest, n, to + w->before[1]);
    fill_with(lowest, room - n, to + w->before[1] + n);
}

/* Numbers of n windows, whose first taps are so far apart; where one is a NaN, of which a key does not say which. */
static inline Lanes values_of_planes(const PlaneWindows *w, size_t n, size_t stride, const i32 *from, f32 *y)
{
    Lanes nan = { 0 };
    for (size_t i = 0; i < n; i += BLOCK) {
        Lanes best = load_apart(from + i * stride, n - i, stride);
        for (int64_t k = 1; k < w->kernel[1]; k++) {
            const Lanes key = load_apart(from + i * stride + k * w->dilation[1], n - i, stride);
            best = choose(key > best, key, best);
        }
        Lanes is_nan = best == INT32_MAX;
        for (size_t k = n - i; k < BLOCK; k++)
            is_nan[k] = 0; /* nothing stands behind the last window */
        nan |= is_nan;
        best ^= (best >> 31) & INT32_MAX;
        if (n - i >= BLOCK)
            memcpy(y + i, &best, sizeof best);
        else
            memcpy(y + i, &best, (n - i) * sizeof *y);
    }
    return nan;
}

static Lanes line_values(const PlaneWindows *w, size_t n, const i32 *from, f32 *y)
{
    if (w->stride[1] == 1)
        return values_of_planes(w, n, 1, from, y);
    if (w->stride[1] == 2)
        return values_of_planes(w, n, 2, from, y);
    return values_of_planes(w, n, (size_t)w->stride[1], from, y);
}

/* Windows of which none sees rows of two: planes are one that is so much higher. */
static bool parts_planes(const PlaneWindows *w)
{
    return w->before[0] == 0 && w->in[0] == w->out[0] * w->stride[0] &&
           (w->kernel[0] - 1) * w->dilation[0] < w->stride[0];
}

/* Windows of two by two that meet nowhere, of so many lines whose blocks are whole: nothing is kept between lines and columns.
 * Lines of one block are taken two windows high. */
static bool are_squares(const PlaneWindows *w, int64_t lines)
{
    for (int i = 0; i < 2; i++)
        if (w->kernel[i] != 2 || w->stride[i] != 2 || w->dilation[i] != 1 || w->before[i] || w->in[i] != 2 * w->out[i])
            return false;
    return w->out[1] % BLOCK == 0 || (w->in[1] == BLOCK && lines % 2 == 0);
}

static inline Lanes larger(Lanes a, Lanes b)
{
    return choose(a > b, a, b);
}

static inline Lanes pair_of_lines(const f32 *x, size_t width)
{
    return larger(key_of(load(x)), key_of(load(x + width)));
}

static Lanes squares(size_t width, int64_t lines, const f32 *x, f32 *y)
{
    Lanes nan = { 0 };
    const bool one = width == BLOCK;
    const size_t blocks = one ? 1 : width / (2 * BLOCK), apart = one ? 2 * BLOCK : BLOCK, high = one ? 2 : 1;
    for (size_t l = 0; l < (size_t)lines; l += high, x += 2 * high * width)
        for (size_t i = 0; i < blocks; i++, y += BLOCK) {
            const f32 *at = x + i * 2 * BLOCK;
            const Lanes first = pair_of_lines(at, width), second = pair_of_lines(at + apart, width);
            Lanes best =
                larger(__builtin_shufflevector(first, second, EVENS), __builtin_shufflevector(first, second, ODDS));
            nan |= best == INT32_MAX;
            best ^= (best >> 31) & INT32_MAX;
            memcpy(y, &best, sizeof best);
        }
    return nan;
}

static bool values(const PlaneWindows *windows, f32 lowest, int64_t planes, const f32 *x, f32 *y)
{
    if (are_squares(windows, planes * windows->out[0]))
        return !any_of(squares((size_t)windows->in[1], planes * windows->out[0], x, y));
    Lines lines;
    Lanes nan = { 0 };
    PlaneWindows w = *windows;
    i32 low;
    memcpy(&low, &lowest, sizeof low);
    low ^= (low >> 31) & INT32_MAX;
    if (parts_planes(&w)) {
        w.in[0] *= planes, w.out[0] *= planes;
        planes = 1;
    }
    const size_t pitch = (size_t)largest_pitch(&w), cols = (size_t)w.out[1];
    const int64_t most = (int64_t)(LARGEST_PITCH / pitch);
    const bool flat = pitch == cols * (size_t)w.stride[1];
    for (int64_t p = 0; p < planes; p++, x += w.in[0] * w.in[1])
        for (int64_t row = 0; row < w.out[0]; row += most) {
            const int64_t n = w.out[0] - row < most ? w.out[0] - row : most;
            for (int64_t r = 0; r < n; r++)
                line_of(&w, x, pitch, row + r, low, lines.key + (size_t)r * pitch);
            for (int64_t r = 0; r < n; r += flat ? n : 1, y += flat ? (size_t)n * cols : cols)
                nan |= line_values(&w, flat ? (size_t)n * cols : cols, lines.key + (size_t)r * pitch, y);
        }
    return !any_of(nan);
}

const LargestLoops LEVEL_NAME(largest) = { find, values, add };
