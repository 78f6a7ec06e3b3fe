/* The pieces that host and kernels share, of one kind in one arithmetic T; the law is at the head of ops/reduce.h. */

/* Eight neighbours. */
Q_FN T NAME(eight)(const T *a)
{
    const T even = JOIN(JOIN(a[0], a[4]), JOIN(a[2], a[6]));
    const T odd = JOIN(JOIN(a[1], a[5]), JOIN(a[3], a[7]));
    return JOIN(even, odd);
}

#ifdef __CUDACC__
/* The segment of a warp: lane l has accumulated elements 256 c + 8 l .. + 7 of each of the four chunks c into a[0..7]. */
Q_FN T NAME(warp)(const T *a)
{
    T t = NAME(eight)(a);
    for (int w = 16; w > 0; w >>= 1)
        t = JOIN(t, __shfl_down_sync(0xffffffffu, t, w));
    return __shfl_sync(0xffffffffu, t, 0);
}

/* A sum of nothing, eight of them, and a sum and one more element. */
Q_FN T NAME(none)()
{
    return IDENTITY_OF(T);
}

Q_FN void NAME(clear)(T *a)
{
    a[0] = a[1] = a[2] = a[3] = a[4] = a[5] = a[6] = a[7] = IDENTITY_OF(T);
}

Q_FN T NAME(add)(T so_far, T x)
{
    return JOIN(so_far, LOAD(x));
}
#endif

/* A binary counter of parts; digit[k] holds 2^k of them where bit k of count is set. */
typedef struct NAME(counter) {
    u64 count;
    T digit[REDUCE_LEVELS];
} COUNTER;

Q_FN void NAME(push)(COUNTER *c, T v)
{
    size_t k = 0;
    for (; c->count >> k & 1; k++)
        v = JOIN(c->digit[k], v);
    c->digit[k] = v;
    c->count++;
}

/* All parts, the leftover digits folded from the youngest to the oldest, which stands on the left. */
Q_FN T NAME(total)(const COUNTER *c)
{
    T v = EMPTY_OF(T);
    bool any = false;
    for (size_t k = 0; k < REDUCE_LEVELS && c->count >> k; k++)
        if (c->count >> k & 1) {
            v = any ? JOIN(c->digit[k], v) : c->digit[k];
            any = true;
        }
    return v;
}

#ifdef __CUDACC__
/* Four blocks of a column, of each of which eight lanes of a warp have the sums; so many of them join those before. */
Q_FN void NAME(four)(COUNTER *c, T a, u64 n)
{
    for (int w = 4; w > 0; w >>= 1)
        a = JOIN(a, __shfl_down_sync(0xffffffffu, a, w));
    for (u32 block = 0; block < 4; block++) {
        const T v = __shfl_sync(0xffffffffu, a, 8 * block);
        if (block < n)
            NAME(push)(c, v);
    }
}

/* n parts that lie `stride` apart, joined in their order. */
Q_FN T NAME(parts)(const T *part, u64 n, u64 stride)
{
    COUNTER c;
    c.count = 0;
    for (u64 i = 0; i < n; i++)
        NAME(push)(&c, part[i * stride]);
    return NAME(total)(&c);
}
#endif
