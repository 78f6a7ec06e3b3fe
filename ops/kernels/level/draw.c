/* Random numbers by logical index: groups of four words side by side, each as philox4x32() makes it. */
#include <string.h>

#include "ops/kernels/level/level.h"

enum { GROUPS = 64, WORDS = 4 * GROUPS };

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
        make_numbers(law, limit, words, numbers);
        memcpy(out + done, numbers + skip, now * sizeof *out);
        done += now;
    }
}
