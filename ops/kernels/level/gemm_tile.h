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

/* A tile of `rows` rows and some vectors lives in registers for all of k.  a and b are packed: GEMM_ROWS and WIDTH
 * elements for each k. */
#define TILE(id, rows, vectors)                                                                                        \
    static void NAME(id)(size_t k, const T *a, const T *b, T *c, size_t ldc)                                           \
    {                                                                                                                  \
        V sum[rows][vectors];                                                                                          \
        for (size_t i = 0; i < (rows); i++)                                                                            \
            for (size_t j = 0; j < (vectors); j++)                                                                     \
                sum[i][j] = NAME(GEMM_LOAD)(c + i * ldc + j * LANES);                                                  \
        for (size_t p = 0; p < k; p++) {                                                                               \
            V row[vectors];                                                                                            \
            for (size_t j = 0; j < (vectors); j++)                                                                     \
                row[j] = NAME(GEMM_LOAD)(b + p * WIDTH + j * LANES);                                                   \
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
    static void NAME(id)(size_t m, size_t k, const T *a, const T *b, T *c, size_t ldc)                                 \
    {                                                                                                                  \
        size_t i = 0;                                                                                                  \
        if (m == GEMM_ROWS) {                                                                                          \
            NAME(id##_full)(k, a, b, c, ldc);                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (; i + 4 <= m; i += 4)                                                                                     \
            NAME(id##_few)(k, a + i, b, c + i * ldc, ldc);                                                             \
        for (; i < m; i++)                                                                                             \
            NAME(id##_one)(k, a + i, b, c + i * ldc, ldc);                                                             \
    }
ROWS(wide, GEMM_VECTORS)
ROWS(thin, 1)
#undef ROWS
#undef TILE

/* The same where the columns that are left are no whole vectors: through a tile of its own. */
static void NAME(edge)(size_t m, size_t n, size_t k, const T *a, const T *b, T *c, size_t ldc)
{
    T tile[GEMM_ROWS * WIDTH];
    for (size_t i = 0; i < m; i++) {
        memcpy(tile + i * WIDTH, c + i * ldc, n * sizeof(T));
        memset(tile + i * WIDTH + n, 0, (WIDTH - n) * sizeof(T));
    }
    (n <= LANES ? NAME(thin) : NAME(wide))(m, k, a, b, tile, WIDTH);
    for (size_t i = 0; i < m; i++)
        memcpy(c + i * ldc, tile + i * WIDTH, n * sizeof(T));
}

/* Rows of a in tiles of GEMM_ROWS, those of a tile beside each other; the last tile keeps what it held. */
static void NAME(pack_a)(size_t m, size_t k, const T *a, size_t lda, T *to)
{
    for (size_t i = 0; i < m; i++) {
        T *tile = to + i / GEMM_ROWS * GEMM_ROWS * k + i % GEMM_ROWS;
        for (size_t p = 0; p < k; p++)
            tile[p * GEMM_ROWS] = a[i * lda + p];
    }
}

/* Columns of b, beside each other and filled up with zeros. */
static void NAME(pack_b)(size_t n, size_t k, const T *b, size_t ldb, T *to)
{
    if (n == WIDTH) {
        for (size_t p = 0; p < k; p++)
            memcpy(to + p * WIDTH, b + p * ldb, WIDTH * sizeof(T));
        return;
    }
    if (n == LANES) {
        for (size_t p = 0; p < k; p++)
            memcpy(to + p * WIDTH, b + p * ldb, LANES * sizeof(T));
        return;
    }
    for (size_t p = 0; p < k; p++) {
        memcpy(to + p * WIDTH, b + p * ldb, n * sizeof(T));
        memset(to + p * WIDTH + n, 0, (WIDTH - n) * sizeof(T));
    }
}

static void NAME(block)(size_t m, size_t n, size_t k, const T *a, size_t lda, const T *b, size_t ldb, T *c, size_t ldc)
{
    T packed_a[GEMM_BLOCK * DEPTH], packed_b[DEPTH * WIDTH];
    NAME(pack_a)(m, k, a, lda, packed_a);
    for (size_t j = 0; j < n; j += WIDTH) {
        const size_t width = n - j < WIDTH ? n - j : WIDTH;
        NAME(pack_b)(width, k, b + j, ldb, packed_b);
        for (size_t i = 0; i < m; i += GEMM_ROWS) {
            const size_t rows = m - i < GEMM_ROWS ? m - i : GEMM_ROWS;
            if (width == WIDTH)
                NAME(wide)(rows, k, packed_a + i * k, packed_b, c + i * ldc + j, ldc);
            else if (width == LANES)
                NAME(thin)(rows, k, packed_a + i * k, packed_b, c + i * ldc + j, ldc);
            else
                NAME(edge)(rows, width, k, packed_a + i * k, packed_b, c + i * ldc + j, ldc);
        }
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
