/* Rows of one kind in one arithmetic T; the law is at the head of ops/reduce.h. */

/* The accumulators of a segment; those of absent elements are the identity up to a multiple of eight. */
static inline T NAME(fold)(const T *a, size_t n)
{
    T t[REDUCE_ACROSS / 8];
    const size_t groups = (n + 7) / 8;
    for (size_t g = 0; g < groups; g++)
        t[g] = NAME(eight)(a + 8 * g);
    for (size_t g = groups; g < REDUCE_ACROSS / 8; g++)
        t[g] = IDENTITY_OF(T);
    for (size_t i = 0; i < 16; i++)
        t[i] = JOIN(t[i], t[i + 16]);
    for (size_t i = 0; i < 8; i++)
        t[i] = JOIN(t[i], t[i + 8]);
    for (size_t i = 0; i < 4; i++)
        t[i] = JOIN(t[i], t[i + 4]);
    return JOIN(JOIN(t[0], t[2]), JOIN(t[1], t[3]));
}

static inline T NAME(full)(const T *x)
{
    T a[REDUCE_ACROSS];
    for (size_t p = 0; p < REDUCE_ACROSS; p++) {
        const T first = JOIN(LOAD(x[p]), LOAD(x[p + 256]));
        a[p] = JOIN(JOIN(first, LOAD(x[p + 512])), LOAD(x[p + 768]));
    }
    return NAME(fold)(a, REDUCE_ACROSS);
}

/* One segment, 1 <= n <= 1024. */
static inline T NAME(segment)(const T *x, size_t n)
{
    if (n == REDUCE_SEGMENT)
        return NAME(full)(x);
    T a[REDUCE_ACROSS];
    const size_t width = n < REDUCE_ACROSS ? n : REDUCE_ACROSS;
    for (size_t p = 0; p < width; p++)
        a[p] = LOAD(x[p]);
    for (size_t p = width; p < REDUCE_ACROSS && p % 8; p++)
        a[p] = IDENTITY_OF(T);
    for (size_t base = REDUCE_ACROSS; base < n; base += REDUCE_ACROSS) {
        const size_t left = n - base < REDUCE_ACROSS ? n - base : REDUCE_ACROSS;
        for (size_t p = 0; p < left; p++)
            a[p] = JOIN(a[p], LOAD(x[base + p]));
    }
    return NAME(fold)(a, width);
}

/* A row of any length. */
static inline T NAME(row)(const T *x, size_t n)
{
    if (n <= REDUCE_SEGMENT)
        return n == 0 ? EMPTY_OF(T) : NAME(segment)(x, n);
    COUNTER c;
    c.count = 0;
    for (size_t base = 0; base < n; base += REDUCE_SEGMENT)
        NAME(push)(&c, NAME(segment)(x + base, n - base < REDUCE_SEGMENT ? n - base : REDUCE_SEGMENT));
    return NAME(total)(&c);
}

/* A row whose elements lie `stride` apart. */
static inline T NAME(strided)(const T *x, size_t n, ptrdiff_t stride)
{
    COUNTER c;
    c.count = 0;
    for (size_t base = 0; base < n; base += REDUCE_SEGMENT) {
        const size_t left = n - base < REDUCE_SEGMENT ? n - base : REDUCE_SEGMENT;
        T piece[REDUCE_SEGMENT];
        for (size_t p = 0; p < left; p++)
            piece[p] = x[(ptrdiff_t)(base + p) * stride];
        NAME(push)(&c, NAME(segment)(piece, left));
    }
    return NAME(total)(&c);
}
