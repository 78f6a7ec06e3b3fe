/* The largest of windows side by side: first of each column of taps, then of the columns that a window sees.  Vectors as the
 * compiler knows them: loops with choices in them it leaves to chance. */
#include <string.h>

#include "ops/kernels/level/level.h"

/* The vectors of the level, and every other element of two of them. */
#if defined(__AVX512F__)
enum { BLOCK = 16 };
#define EVENS 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#elif defined(__AVX2__)
enum { BLOCK = 8 };
#define EVENS 0, 2, 4, 6, 8, 10, 12, 14
#else
enum { BLOCK = 4 };
#define EVENS 0, 2, 4, 6
#endif

enum { COLUMNS = 512 + LARGEST_REACH };

typedef i32 Lanes __attribute__((vector_size(BLOCK * sizeof(i32)), aligned(sizeof(i32)), may_alias));

/* Columns of a line: the largest of each, as a number that orders likewise, and its row.  Windows are read beyond the last. */
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

/* The last block ends where the columns do, and makes some of the one before again. */
static void each_column(const WindowTaps *t, const f32 *x, size_t n, Columns *to)
{
    if (n < BLOCK)
        largest_of_columns(t, x, n, to, 0);
    for (size_t i = 0; n >= BLOCK && i < n; i += BLOCK) {
        const size_t at = i + BLOCK <= n ? i : n - BLOCK;
        largest_of_columns(t, x + at, BLOCK, to, at);
    }
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

void LEVEL_NAME(largest)(const WindowTaps *t, const f32 *x, size_t n, i32 *where)
{
    Columns c;
    const size_t stride = (size_t)t->stride, reach = (size_t)(t->cols - 1) * (size_t)t->col_step;
    const size_t most = (COLUMNS - 1 - reach) / stride + 1;
    for (size_t done = 0; done < n; done += most) {
        const size_t now = n - done < most ? n - done : most;
        each_column(t, x + done * stride, (now - 1) * stride + reach + 1, &c);
        if (stride == 1)
            each_window(t, now, 1, &c, where + done);
        else if (stride == 2)
            each_window(t, now, 2, &c, where + done);
        else
            each_window(t, now, stride, &c, where + done);
    }
}
