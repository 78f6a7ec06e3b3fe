/* Random numbers by logical index: groups of four words side by side, each as philox4x32() makes it. */
#include <string.h>

#include "ops/kernels/level/level.h"

enum { GROUPS = 64, WORDS = 4 * GROUPS };

#ifdef __AVX512F__
#include <immintrin.h>

/* By hand: compilers multiply whole words of 64 bits.  Eight groups side by side, a word in each of 64 bits, whose upper half is
 * anything: the products that follow read the lower one. */
static inline void eight_groups(__m512i v[4], u32 k0, u32 k1)
{
    enum { ALL_THREE = 0x96, ROUNDS = 10 }; /* the table of an exclusive or */
    const __m512i first = _mm512_set1_epi64((i64)0xD2511F53u), second = _mm512_set1_epi64((i64)0xCD9E8D57u);
    for (int round = 0; round < ROUNDS; round++) {
        const __m512i p0 = _mm512_mul_epu32(first, v[0]), p1 = _mm512_mul_epu32(second, v[2]);
        v[0] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p1, 32), v[1], _mm512_set1_epi64((i64)k0), ALL_THREE);
        v[1] = p1;
        v[2] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p0, 32), v[3], _mm512_set1_epi64((i64)k1), ALL_THREE);
        v[3] = p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* Two words of each group beside each other. */
static inline __m512i beside(__m512i low, __m512i high)
{
    enum { UPPER = 0xaaaa };
    return _mm512_mask_mov_epi32(low, UPPER, _mm512_slli_epi64(high, 32));
}

/* Words 4 i .. 4 i + 3 are those of group `group` + i. */
static void draw_words(const DrawKey *key, u64 group, u32 *restrict words)
{
    enum { SIDE = 8 };
    const __m512i eight = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i front = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    const __m512i rear = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    const u32 key0 = (u32)key->seed, key1 = key->stream ^ (u32)(key->seed >> 32) * 0x9E3779B1u;
    for (u32 i = 0; i < GROUPS; i += SIDE) {
        const __m512i at = _mm512_add_epi64(_mm512_set1_epi64((i64)(group + i)), eight);
        const __m512i above = _mm512_slli_epi64(_mm512_srli_epi64(at, 32), 16);
        __m512i v[4] = { at, _mm512_set1_epi64((i64)key->step), _mm512_set1_epi64((i64)key->iteration),
                         _mm512_xor_si512(above, _mm512_set1_epi64(PHILOX_VALUE)) };
        eight_groups(v, key0, key1);
        const __m512i low = beside(v[0], v[1]), high = beside(v[2], v[3]);
        _mm512_storeu_si512(words + 4 * i, _mm512_permutex2var_epi64(low, front, high));
        _mm512_storeu_si512(words + 4 * i + 2 * SIDE, _mm512_permutex2var_epi64(low, rear, high));
    }
}
#else
/* One round of base/philox.h; the keys go on by constants. */
#define ROUND                                                                                                          \
    {                                                                                                                  \
        const u64 p0 = (u64)0xD2511F53u * a, p1 = (u64)0xCD9E8D57u * c;                                                \
        const u32 from_b = b, from_d = d;                                                                              \
        a = (u32)(p1 >> 32) ^ from_b ^ k0;                                                                             \
        b = (u32)p1;                                                                                                   \
        c = (u32)(p0 >> 32) ^ from_d ^ k1;                                                                             \
        d = (u32)p0;                                                                                                   \
        k0 += 0x9E3779B9u;                                                                                             \
        k1 += 0xBB67AE85u;                                                                                             \
    }
#define ROUNDS_5 ROUND ROUND ROUND ROUND ROUND

/* Words 4 i .. 4 i + 3 are those of group `group` + i. */
static void draw_words(const DrawKey *key, u64 group, u32 *restrict words)
{
    u32 lanes[4][GROUPS];
    const u32 key0 = (u32)key->seed, key1 = key->stream ^ (u32)(key->seed >> 32) * 0x9E3779B1u;
    LEVEL_VECTOR
    for (u32 i = 0; i < GROUPS; i++) {
        const u64 at = group + i;
        u32 a = (u32)at, b = key->step, c = key->iteration, d = (u32)PHILOX_VALUE ^ (u32)(at >> 32 << 16);
        u32 k0 = key0, k1 = key1;
        ROUNDS_5 ROUNDS_5 lanes[0][i] = a;
        lanes[1][i] = b;
        lanes[2][i] = c;
        lanes[3][i] = d;
    }
    for (u32 i = 0; i < GROUPS; i++)
        for (u32 k = 0; k < 4; k++)
            words[4 * i + k] = lanes[k][i];
}
#endif

static void make_numbers(PhiloxLaw law, f32 limit, const u32 *restrict words, f32 *restrict out)
{
    switch (law) {
    case PHILOX_KEEP:
        for (u32 i = 0; i < WORDS; i++)
            out[i] = philox_uniform(words[i]) >= limit ? 1.0f : 0.0f;
        break;
    case PHILOX_UNIFORM:
        for (u32 i = 0; i < WORDS; i++)
            out[i] = philox_uniform(words[i]);
        break;
    case PHILOX_NORMAL:
        for (u32 i = 0; i < WORDS; i += 2) {
            const Q_Pair pair = normal_pair(words[i], words[i + 1]);
            out[i] = pair.hi;
            out[i + 1] = pair.lo;
        }
        break;
    }
}

void LEVEL_NAME(draw)(const DrawKey *key, PhiloxLaw law, f32 limit, u64 first, size_t n, f32 *out)
{
    u32 words[WORDS];
    f32 numbers[WORDS];
    for (size_t done = 0; done < n;) {
        const u64 at = first + done, group = at / 4;
        const size_t skip = (size_t)(at % 4), left = n - done, room = WORDS - skip;
        const size_t now = left < room ? left : room;
        draw_words(key, group, words);
        make_numbers(law, limit, words, now == WORDS ? out + done : numbers);
        if (now < WORDS)
            memcpy(out + done, numbers + skip, now * sizeof *out);
        done += now;
    }
}
