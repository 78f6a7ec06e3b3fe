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
        bool any = false;
        for (size_t k = 0; k < REDUCE_LEVELS && count >> k; k++)
            if (count >> k & 1) {
                for (size_t c = 0; c < width; c++)
                    out[base + c] = any ? JOIN(digit[k][c], out[base + c]) : digit[k][c];
                any = true;
            }
        for (size_t c = 0; c < width && !any; c++)
            out[base + c] = EMPTY_OF(T);
    }
}
