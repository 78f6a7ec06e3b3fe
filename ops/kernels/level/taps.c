/* Windows whose taps are few and whose channels do not meet: what a product would do with tiles that are nearly empty.  A sum
 * stays in a register for all of its taps, or for a run of positions; each is one chain of fma in the order given. */
#include "ops/kernels/level/level.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* The vectors of the level. */
#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__) && defined(__FMA__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

typedef f32 Lanes __attribute__((vector_size(LANES * sizeof(f32)), aligned(sizeof(f32)), may_alias));

static inline Lanes load(const f32 *from)
{
    return *(const Lanes *)from;
}

static inline void store(f32 *to, Lanes v)
{
    *(Lanes *)to = v;
}

static inline Lanes fused(Lanes x, Lanes y, Lanes z)
{
#if defined(__AVX512F__)
    return (Lanes)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)z);
#elif defined(__AVX2__) && defined(__FMA__)
    return (Lanes)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)z);
#elif defined(__aarch64__)
    return (Lanes)vfmaq_f32((float32x4_t)z, (float32x4_t)x, (float32x4_t)y);
#else
    for (size_t i = 0; i < LANES; i++)
        z[i] = fma_f32(x[i], y[i], z[i]);
    return z;
#endif
}

/* So many vectors of results. */
#define WEIGH(vectors)                                                                                                 \
    static inline void weigh_##vectors(size_t taps, const size_t *at, const f32 *w, const f32 *x, f32 *y)              \
    {                                                                                                                  \
        Lanes sum[vectors];                                                                                            \
        for (size_t j = 0; j < (vectors); j++)                                                                         \
            sum[j] = (Lanes){ 0 };                                                                                     \
        for (size_t t = 0; t < taps; t++) {                                                                            \
            const f32 *seen = x + at[t];                                                                               \
            const Lanes one = w[t] - (Lanes){ 0 };                                                                     \
            for (size_t j = 0; j < (vectors); j++)                                                                     \
                sum[j] = fused(one, load(seen + j * LANES), sum[j]);                                                   \
        }                                                                                                              \
        for (size_t j = 0; j < (vectors); j++)                                                                         \
            store(y + j * LANES, sum[j]);                                                                              \
    }
WEIGH(4)
WEIGH(1)
#undef WEIGH

static void weigh(size_t taps, const size_t *at, const f32 *w, size_t n, const f32 *x, f32 *y)
{
    size_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        weigh_4(taps, at, w, x + i, y + i);
    for (; i < n; i += LANES)
        weigh_1(taps, at, w, x + i, y + i);
}

/* So many taps at a run of positions. */
#define ADD(taps)                                                                                                      \
    static inline void add_##taps(const size_t *at, size_t n, const f32 *x, size_t step, const f32 *y, f32 *sums)      \
    {                                                                                                                  \
        Lanes sum[taps];                                                                                               \
        for (size_t t = 0; t < (taps); t++)                                                                            \
            sum[t] = load(sums + t * LANES);                                                                           \
        for (size_t i = 0; i < n; i++, x += step, y += LANES) {                                                        \
            const Lanes one = load(y);                                                                                 \
            for (size_t t = 0; t < (taps); t++)                                                                        \
                sum[t] = fused(load(x + at[t]), one, sum[t]);                                                          \
        }                                                                                                              \
        for (size_t t = 0; t < (taps); t++)                                                                            \
            store(sums + t * LANES, sum[t]);                                                                           \
    }
ADD(9)
ADD(3)
ADD(1)
#undef ADD

static void add(size_t taps, const size_t *at, size_t n, const f32 *x, size_t step, const f32 *y, f32 *sums)
{
    for (; taps >= 9; taps -= 9, at += 9, sums += 9 * LANES)
        add_9(at, n, x, step, y, sums);
    for (; taps >= 3; taps -= 3, at += 3, sums += 3 * LANES)
        add_3(at, n, x, step, y, sums);
    for (; taps > 0; taps--, at++, sums += LANES)
        add_1(at, n, x, step, y, sums);
}

const TapLoops LEVEL_NAME(taps) = { LANES, weigh, add };
