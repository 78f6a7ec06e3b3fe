/* Columns of one kind in one arithmetic T; the law is at the head of ops/reduce.h. */

/* One block of `cols` <= REDUCE_TILE columns. */
static inline void NAME(tile)(const T *x, size_t rows, size_t cols, ptrdiff_t stride, T *restrict out)
{
    T a[8][REDUCE_TILE];
    for (size_t r = 0; r < 8; r++)
        for (size_t c = 0; c < cols; c++)
            a[r][c] = r < rows ? LOAD(x[(ptrdiff_t)r * stride + (ptrdiff_t)c]) : IDENTITY_OF(T);
    for (size_t r = 8; r < rows; r++) {
        const T *row = x + (ptrdiff_t)r * stride;
        T *sum = a[r % 8];
        for (size_t c = 0; c < cols; c++)
            sum[c] = JOIN(sum[c], LOAD(row[c]));
    }
    for (size_t c = 0; c < cols; c++) {
        const T even = JOIN(JOIN(a[0][c], a[4][c]), JOIN(a[2][c], a[6][c]));
        const T odd = JOIN(JOIN(a[1][c], a[5][c]), JOIN(a[3][c], a[7][c]));
        out[c] = JOIN(even, odd);
    }
}

/* The block sums of any number of columns, 1 <= rows <= 64. */
static inline void NAME(block)(const T *x, size_t rows, size_t cols, ptrdiff_t stride, T *restrict out)
{
    for (size_t c = 0; c < cols; c += REDUCE_TILE)
        NAME(tile)(x + c, rows, cols - c < REDUCE_TILE ? cols - c : REDUCE_TILE, stride, out + c);
}

/* One more block sum of each of `cols` columns, as NAME(push) does for one. */
static inline void NAME(carry)(T (*digit)[REDUCE_TILE], u64 count, size_t cols, T *restrict v)
{
    size_t k = 0;
    for (; count >> k & 1; k++)
        for (size_t c = 0; c < cols; c++)
            v[c] = JOIN(digit[k][c], v[c]);
    for (size_t c = 0; c < cols; c++)
        digit[k][c] = v[c];
}

/* All block sums, as NAME(total) does for one column. */
static inline void NAME(settle)(T (*digit)[REDUCE_TILE], u64 count, size_t cols, T *restrict out)
{
    bool any = false;
    for (size_t k = 0; k < REDUCE_LEVELS && count >> k; k++)
        if (count >> k & 1) {
            for (size_t c = 0; c < cols; c++)
                out[c] = any ? JOIN(digit[k][c], out[c]) : digit[k][c];
            any = true;
        }
    for (size_t c = 0; c < cols && !any; c++)
        out[c] = EMPTY_OF(T);
}

/* Whole columns. */
static inline void NAME(cols)(const T *x, size_t rows, size_t cols, ptrdiff_t stride, T *restrict out)
{
    for (size_t base = 0; base < cols; base += REDUCE_TILE) {
        const size_t width = cols - base < REDUCE_TILE ? cols - base : REDUCE_TILE;
        T digit[REDUCE_LEVELS][REDUCE_TILE], v[REDUCE_TILE];
        u64 count = 0;
        for (size_t r = 0; r < rows; r += REDUCE_BLOCK, count++) {
            const size_t left = rows - r < REDUCE_BLOCK ? rows - r : REDUCE_BLOCK;
            NAME(tile)(x + (ptrdiff_t)r * stride + (ptrdiff_t)base, left, width, stride, v);
            NAME(carry)(digit, count, width, v);
        }
        NAME(settle)(digit, count, width, out + base);
    }
}

/* Up to 64 neighbours as a block of one column. */
static inline T NAME(line)(const T *x, size_t n)
{
    T a[8];
    for (size_t i = 0; i < 8; i++)
        a[i] = i < n ? LOAD(x[i]) : IDENTITY_OF(T);
    size_t r = 8;
    for (; r + 8 <= n; r += 8)
        for (size_t i = 0; i < 8; i++)
            a[i] = JOIN(a[i], LOAD(x[r + i]));
    for (; r < n; r++)
        a[r % 8] = JOIN(a[r % 8], LOAD(x[r]));
    return NAME(eight)(a);
}

/* All blocks of one column of neighbours. */
static inline void NAME(lines)(const T *x, size_t n, T *restrict out)
{
    for (size_t r = 0; r < n; r += REDUCE_BLOCK)
        *out++ = NAME(line)(x + r, n - r < REDUCE_BLOCK ? n - r : REDUCE_BLOCK);
}

/* Rows [first, first + n) of a column that lies in runs, one after the other. */
static inline void NAME(collect)(const T *x, const ReduceRuns *runs, size_t first, size_t n, size_t cols, T *to)
{
    for (size_t r = first; r < first + n; r++, to += REDUCE_TILE)
        for (size_t c = 0; c < cols; c++)
            to[c] = x[runs->at[r / runs->length] + (ptrdiff_t)(r % runs->length) * runs->step + (ptrdiff_t)c];
}

/* One column whose runs are of neighbours. */
static inline T NAME(in_runs)(const T *x, const ReduceRuns *runs)
{
    const size_t rows = runs->n * runs->length;
    COUNTER sum;
    sum.count = 0;
    size_t run = 0, in_run = 0; /* where row r stands */
    for (size_t r = 0, n; r < rows; r += n) {
        T piece[REDUCE_BLOCK];
        const T *p = x + runs->at[run] + (ptrdiff_t)in_run;
        n = rows - r < REDUCE_BLOCK ? rows - r : REDUCE_BLOCK;
        if (runs->length - in_run < n) {
            for (size_t have = 0, more; have < n; have += more) {
                more = runs->length - in_run < n - have ? runs->length - in_run : n - have;
                for (size_t i = 0; i < more; i++)
                    piece[have + i] = x[runs->at[run] + (ptrdiff_t)(in_run + i)];
                in_run += more;
                if (in_run == runs->length)
                    run++, in_run = 0;
            }
            p = piece;
        } else {
            in_run += n;
            if (in_run == runs->length)
                run++, in_run = 0;
        }
        NAME(push)(&sum, NAME(line)(p, n));
    }
    return NAME(total)(&sum);
}

/* Columns that lie in runs. */
static inline void NAME(runs)(const T *x, const ReduceRuns *runs, size_t cols, T *restrict out)
{
    const size_t rows = runs->n * runs->length;
    if (cols == 1 && runs->step == 1) {
        out[0] = NAME(in_runs)(x, runs);
        return;
    }
    for (size_t base = 0; base < cols; base += REDUCE_TILE) {
        const size_t width = cols - base < REDUCE_TILE ? cols - base : REDUCE_TILE;
        T digit[REDUCE_LEVELS][REDUCE_TILE], v[REDUCE_TILE], block[REDUCE_BLOCK * REDUCE_TILE];
        u64 count = 0;
        for (size_t r = 0; r < rows; r += REDUCE_BLOCK, count++) {
            const size_t left = rows - r < REDUCE_BLOCK ? rows - r : REDUCE_BLOCK, in_run = r % runs->length;
            const T *p = x + runs->at[r / runs->length] + (ptrdiff_t)in_run * runs->step;
            if (runs->length - in_run < left) {
                NAME(collect)(x + base, runs, r, left, width, block);
                NAME(tile)(block, left, width, REDUCE_TILE, v);
            } else {
                NAME(tile)(p + base, left, width, runs->step, v);
            }
            NAME(carry)(digit, count, width, v);
        }
        NAME(settle)(digit, count, width, out + base);
    }
}

/* Rows first, first + 1 .. of a block of columns join its eight sums; 0 <= first, first + rows <= 64. */
static inline void NAME(sums_add)(size_t first, size_t rows, size_t cols, const T *x, T *restrict sums)
{
    for (size_t r = first; r < first + rows; r++, x += cols) {
        T *sum = sums + r % 8 * cols;
        if (r < 8)
            for (size_t c = 0; c < cols; c++)
                sum[c] = LOAD(x[c]);
        else
            for (size_t c = 0; c < cols; c++)
                sum[c] = JOIN(sum[c], LOAD(x[c]));
    }
}

/* The block sum of each column, of as many rows as were added. */
static inline void NAME(sums_end)(size_t rows, size_t cols, T *restrict sums, T *restrict out)
{
    for (size_t r = rows; r < 8; r++)
        for (size_t c = 0; c < cols; c++)
            sums[r * cols + c] = IDENTITY_OF(T);
    for (size_t c = 0; c < cols; c++) {
        T a[8];
        for (size_t r = 0; r < 8; r++)
            a[r] = sums[r * cols + c];
        out[c] = NAME(eight)(a);
    }
}

/* Joins the block sums of one column: sixteen at a time, as a counter would, which takes those that are left as one. */
static inline T NAME(join_line)(size_t blocks, const T *part)
{
    enum { AT_ONCE = 16 };
    COUNTER sum, rest;
    sum.count = rest.count = 0;
    for (; blocks >= AT_ONCE; blocks -= AT_ONCE, part += AT_ONCE) {
        T t[AT_ONCE / 2];
        for (size_t i = 0; i < AT_ONCE / 2; i++)
            t[i] = JOIN(part[2 * i], part[2 * i + 1]);
        for (size_t n = AT_ONCE / 4; n; n /= 2)
            for (size_t i = 0; i < n; i++)
                t[i] = JOIN(t[2 * i], t[2 * i + 1]);
        NAME(push)(&sum, t[0]);
    }
    for (size_t i = 0; i < blocks; i++)
        NAME(push)(&rest, part[i]);
    if (blocks)
        NAME(push)(&sum, NAME(total)(&rest));
    return NAME(total)(&sum);
}

/* Joins the block sums of each column, which lie block by block. */
static inline void NAME(join)(size_t blocks, size_t cols, const T *parts, T *restrict out)
{
    if (cols == 1) {
        out[0] = NAME(join_line)(blocks, parts);
        return;
    }
    for (size_t base = 0; base < cols; base += REDUCE_TILE) {
        const size_t width = cols - base < REDUCE_TILE ? cols - base : REDUCE_TILE;
        T digit[REDUCE_LEVELS][REDUCE_TILE], v[REDUCE_TILE];
        for (u64 count = 0; count < blocks; count++) {
            for (size_t c = 0; c < width; c++)
                v[c] = parts[count * cols + base + c];
            NAME(carry)(digit, count, width, v);
        }
        NAME(settle)(digit, blocks, width, out + base);
    }
}
