/* c[m,n] += a[m,k] b[k,n] in one element type T; included by gemm.c. */

#define JOIN_(name, T)  name##_##T
#define JOINED(name, T) JOIN_(name, T)
#define NAME(name)      JOINED(name, T)
#define FMA(x, y, z)    NAME(GEMM_FMA)(x, y, z)

/* A row of c against all of b, for few rows and for levels without fma: b is read once, as it lies. */
static void NAME(stream)(size_t n, size_t k, const T *a, const T *b, size_t ldb, T *c)
{
    for (size_t p = 0; p < k; p++) {
        LEVEL_VECTOR
        for (size_t j = 0; j < n; j++)
            c[j] = FMA(a[p], b[p * ldb + j], c[j]);
    }
}

static void NAME(streams)(size_t m, size_t n, size_t k, const T *a, size_t lda, const T *b, size_t ldb, T *c,
                          size_t ldc)
{
    for (size_t j = 0; j < n; j += GEMM_STREAM)
        for (size_t i = 0; i < m; i++)
            NAME(stream)(n - j < GEMM_STREAM ? n - j : GEMM_STREAM, k, a + i * lda, b + j, ldb, c + i * ldc + j);
}

#ifdef GEMM_BYTES
#define V     NAME(GEMM_V)
#define LANES (GEMM_BYTES / sizeof(T))
#define WIDTH (GEMM_VECTORS * LANES)
#define DEPTH (GEMM_PACKED / sizeof(T))

/* A tile of `rows` rows and some vectors lives in registers for all of k; `fresh`: it begins with zeros, not with what c
 * holds.  a is packed, GEMM_ROWS elements for each k; b has `ldb` of them, WIDTH where it is packed. */
#define TILE(id, rows, vectors)                                                                                        \
    static void NAME(id)(size_t k, const T *a, const T *b, size_t ldb, T *c, size_t ldc, bool fresh)                   \
    {                                                                                                                  \
        V sum[rows][vectors];                                                                                          \
        for (size_t i = 0; i < (rows); i++)                                                                            \
            for (size_t j = 0; j < (vectors); j++) {                                                                   \
                if (fresh)                                                                                             \
                    __builtin_prefetch(c + i * ldc + (j + (vectors)) * LANES, 1);                                      \
                sum[i][j] = fresh ? NAME(GEMM_ZERO)() : NAME(GEMM_LOAD)(c + i * ldc + j * LANES);                      \
            }                                                                                                          \
        for (size_t p = 0; p < k; p++) {                                                                               \
            V row[vectors];                                                                                            \
            for (size_t j = 0; j < (vectors); j++)                                                                     \
                row[j] = NAME(GEMM_LOAD)(b + p * ldb + j * LANES);                                                     \
            for (size_t i = 0; i < (rows); i++) {                                                                      \
                const V one = NAME(GEMM_ONE)(a[p * GEMM_ROWS + i]);                                                    \
                for (size_t j = 0; j < (vectors); j++)                                                                 \
                    sum[i][j] = NAME(GEMM_VFMA)(one, row[j], sum[i][j]);                                               \
            }                                                                                                          \
        }                                                                                                              \
        for (size_t i = 0; i < (rows); i++)                                                                            \
            for (size_t j = 0; j < (vectors); j++)                                                                     \
                NAME(GEMM_STORE)(c + i * ldc + j * LANES, sum[i][j]);                                                  \
    }

/* Up to GEMM_ROWS rows against one panel of b: all of its vectors, or the first one. */
#define ROWS(id, vectors)                                                                                              \
    TILE(id##_full, GEMM_ROWS, vectors)                                                                                \
    TILE(id##_few, 4, vectors)                                                                                         \
    TILE(id##_one, 1, vectors)                                                                                         \
    static void NAME(id)(size_t m, size_t k, const T *a, const T *b, size_t ldb, T *c, size_t ldc, bool fresh)         \
    {                                                                                                                  \
        size_t i = 0;                                                                                                  \
        if (m == GEMM_ROWS) {                                                                                          \
            NAME(id##_full)(k, a, b, ldb, c, ldc, fresh);                                                              \
            return;                                                                                                    \
        }                                                                                                              \
        for (; i + 4 <= m; i += 4)                                                                                     \
            NAME(id##_few)(k, a + i, b, ldb, c + i * ldc, ldc, fresh);                                                 \
        for (; i < m; i++)                                                                                             \
            NAME(id##_one)(k, a + i, b, ldb, c + i * ldc, ldc, fresh);                                                 \
    }
ROWS(wide, GEMM_VECTORS)
ROWS(thin, 1)
#undef ROWS
#undef TILE

/* The same where the columns that are left are no whole vectors: through a tile of its own. */
static void NAME(edge)(size_t m, size_t n, size_t k, const T *a, const T *b, T *c, size_t ldc, bool fresh)
{
    T tile[GEMM_ROWS * WIDTH];
    for (size_t i = 0; i < m && !fresh; i++) {
        memcpy(tile + i * WIDTH, c + i * ldc, n * sizeof(T));
        memset(tile + i * WIDTH + n, 0, (WIDTH - n) * sizeof(T));
    }
    (n <= LANES ? NAME(thin) : NAME(wide))(m, k, a, b, WIDTH, tile, WIDTH, fresh);
    for (size_t i = 0; i < m; i++)
        memcpy(c + i * ldc, tile + i * WIDTH, n * sizeof(T));
}

#else
#define WIDTH GEMM_PLAIN_WIDTH
#endif

/* to[c, r] = from[r, c]: rows of `from` lie `row` elements apart, those of `to` `to_row`. */
static void NAME(turn)(size_t rows, size_t cols, const T *from, size_t row, T *to, size_t to_row)
{
    size_t r = 0;
    if (NAME(GEMM_WIDE_TURN)(rows, cols, from, row, to, to_row))
        return;
    for (; r + 4 <= rows; r += 4) {
        size_t c = 0;
        for (; c + 4 <= cols; c += 4)
            NAME(GEMM_TURN)(from + r * row + c, row, to + c * to_row + r, to_row);
        for (; c < cols; c++)
            for (size_t i = 0; i < 4; i++)
                to[c * to_row + r + i] = from[(r + i) * row + c];
    }
    for (; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            to[c * to_row + r] = from[r * row + c];
}

/* Up to `wide` lines of `n` elements beside each other, element p of line i at to[p * wide + i]; lines lie `line` apart in
 * `from`, elements `step`. */
static void NAME(interleave)(size_t lines, size_t n, size_t wide, const T *from, size_t line, size_t step, T *to)
{
    for (size_t p = 0; p < n && step == 1; p += GEMM_TURNED) /* what is written stays in a first-level cache */
        NAME(turn)(lines, n - p < GEMM_TURNED ? n - p : GEMM_TURNED, from + p, line, to + p * wide, wide);
    if (step == 1)
        return;
    for (size_t p = 0; p < n; p++)
        for (size_t i = 0; i < lines; i++)
            to[p * wide + i] = from[i * line + p * step];
}

/* Rows of a in tiles of GEMM_ROWS, those of a tile beside each other; the last tile keeps what it held. */
static void NAME(pack_rows)(size_t m, size_t k, const void *from, size_t row, size_t step, void *room, size_t apart)
{
    const T *a = from;
    T *to = room;
    for (size_t i = 0; i < m; i += GEMM_ROWS, to += apart)
        NAME(interleave)(m - i < GEMM_ROWS ? m - i : GEMM_ROWS, k, GEMM_ROWS, a + i * row, row, step, to);
}

/* Columns of b in panels of WIDTH, beside each other and filled up with zeros. */
static void NAME(pack_columns)(size_t n, size_t k, const void *from, size_t row, size_t step, void *room, size_t apart)
{
    const T *b = from;
    T *to = room;
    for (size_t j = 0; j < n; j += WIDTH, to += apart) {
        const size_t width = n - j < WIDTH ? n - j : WIDTH;
        if (step != 1)
            NAME(interleave)(width, k, WIDTH, b + j * step, step, row, to);
        for (size_t p = 0; p < k && step == 1 && width == WIDTH; p++) {
            const T *ahead = b + j + (p + GEMM_AHEAD < k ? p + GEMM_AHEAD : p) * row;
            __builtin_prefetch(ahead);
            __builtin_prefetch(ahead + WIDTH / 2);
            memcpy(to + p * WIDTH, b + j + p * row, WIDTH * sizeof(T)); /* of a known size: no call */
        }
        for (size_t p = 0; p < k && step == 1 && width < WIDTH; p++)
            memcpy(to + p * WIDTH, b + j + p * row, width * sizeof(T));
        for (size_t p = 0; p < k && width < WIDTH; p++)
            memset(to + p * WIDTH + width, 0, (WIDTH - width) * sizeof(T));
    }
}

#ifdef GEMM_BYTES
/* Rows of a, packed, against up to WIDTH columns of b, packed. */
static void NAME(column)(size_t m, size_t n, size_t k, const T *a, size_t tile, const T *b, T *c, size_t ldc,
                         bool fresh)
{
    for (size_t i = 0; i < m; i += GEMM_ROWS, a += tile) {
        const size_t rows = m - i < GEMM_ROWS ? m - i : GEMM_ROWS;
        if (n == WIDTH)
            NAME(wide)(rows, k, a, b, WIDTH, c + i * ldc, ldc, fresh);
        else if (n == LANES)
            NAME(thin)(rows, k, a, b, WIDTH, c + i * ldc, ldc, fresh);
        else
            NAME(edge)(rows, n, k, a, b, c + i * ldc, ldc, fresh);
    }
}
#else
static void NAME(column)(size_t m, size_t n, size_t k, const T *a, size_t tile, const T *b, T *c, size_t ldc,
                         bool fresh)
{
    for (size_t i = 0; i < m && fresh; i++)
        memset(c + i * ldc, 0, n * sizeof(T));
    for (size_t i = 0; i < m; i++)
        for (size_t p = 0; p < k; p++) {
            const T one = a[i / GEMM_ROWS * tile + p * GEMM_ROWS + i % GEMM_ROWS];
            LEVEL_VECTOR
            for (size_t j = 0; j < n; j++)
                c[i * ldc + j] = FMA(one, b[p * WIDTH + j], c[i * ldc + j]);
        }
}
#endif

/* c += a b, both packed; tiles of a lie `tile` elements apart.  A tile meets all columns before the next one does. */
static void NAME(multiply)(size_t m, size_t n, size_t k, const void *rows, size_t tile, const void *columns, void *to,
                           size_t ldc, bool fresh)
{
    const T *a = rows;
    T *c = to;
    for (size_t i = 0; i < m; i += GEMM_ROWS, a += tile, c += GEMM_ROWS * ldc) {
        const size_t some = m - i < GEMM_ROWS ? m - i : GEMM_ROWS;
        const T *b = columns;
        for (size_t j = 0; j < n; j += WIDTH, b += k * WIDTH)
            NAME(column)(some, n - j < WIDTH ? n - j : WIDTH, k, a, tile, b, c + j, ldc, fresh);
    }
}

/* The same with b as it lies; only columns that are no whole panel are packed, into `room`. */
static void NAME(multiply_beside)(size_t m, size_t n, size_t k, const void *rows, size_t tile, const void *from,
                                  size_t ldb, void *to, size_t ldc, bool fresh, void *room)
{
    const T *b = from;
    T *c = to;
    size_t j = 0;
#ifdef GEMM_BYTES
    for (; j + WIDTH <= n; j += WIDTH) {
        const T *a = rows;
        for (size_t i = 0; i < m; i += GEMM_ROWS, a += tile)
            NAME(wide)(m - i < GEMM_ROWS ? m - i : GEMM_ROWS, k, a, b + j, ldb, c + i * ldc + j, ldc, fresh);
    }
#endif
    if (j == n)
        return;
    NAME(pack_columns)(n - j, k, b + j, ldb, 1, room, k * WIDTH);
    NAME(multiply)(m, n - j, k, rows, tile, room, c + j, ldc, fresh);
}

static void NAME(turned)(size_t rows, size_t cols, const void *from, size_t row, void *to, size_t to_row)
{
    NAME(turn)(rows, cols, from, row, to, to_row);
}

#ifdef GEMM_BYTES
/* Not inlined: few rows go by it, and need not have its packs on their stack. */
static __attribute__((noinline)) void NAME(block)(size_t m, size_t n, size_t k, const T *a, size_t lda, const T *b,
                                                  size_t ldb, T *c, size_t ldc)
{
    T packed_a[GEMM_BLOCK * DEPTH], packed_b[DEPTH * WIDTH];
    NAME(pack_rows)(m, k, a, lda, 1, packed_a, k * GEMM_ROWS);
    for (size_t j = 0; j < n; j += WIDTH) {
        const size_t width = n - j < WIDTH ? n - j : WIDTH;
        NAME(pack_columns)(width, k, b + j, ldb, 1, packed_b, k * WIDTH);
        NAME(column)(m, width, k, packed_a, k * GEMM_ROWS, packed_b, c + j, ldc, false);
    }
}
#endif

void LEVEL_NAME(NAME(gemm))(size_t m, size_t n, size_t k, const T *a, size_t lda, const T *b, size_t ldb, T *c,
                            size_t ldc)
{
#ifdef GEMM_BYTES
    for (size_t i = 0; m > GEMM_THIN && i < m; i += GEMM_BLOCK)
        for (size_t p = 0; p < k; p += DEPTH)
            NAME(block)
    (m - i < GEMM_BLOCK ? m - i : GEMM_BLOCK, n, k - p < DEPTH ? k - p : DEPTH, a + i * lda + p, lda, b + p * ldb, ldb,
     c + i * ldc, ldc);
    if (m > GEMM_THIN)
        return;
#endif
    NAME(streams)(m, n, k, a, lda, b, ldb, c, ldc);
}

#undef WIDTH
#undef DEPTH
#undef LANES
#undef V
#undef FMA
#undef NAME
#undef JOINED
#undef JOIN_
