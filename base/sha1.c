#include "base/sha1.h"

#include <stdbool.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

static uint32_t rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

/* Square roots of 2, 3, 5 and 10. */
static const uint32_t constants[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };

/* One round: the five words stay where they are and the roles move on by one, so that nothing is copied. */
#define ROUND(T, MIX, A, B, C, D, E)                                                                                   \
    do {                                                                                                               \
        E += rotate(A, 5) + MIX(B, C, D) + constants[(T) / 20] + w[T];                                                 \
        B = rotate(B, 30);                                                                                             \
    } while (0)
#define CHOOSE(B, C, D)   (((B) & (C)) | (~(B) & (D)))
#define PARITY(B, C, D)   ((B) ^ (C) ^ (D))
#define MAJORITY(B, C, D) (((B) & (C)) | ((B) & (D)) | ((C) & (D)))
#define TWENTY(FROM, MIX)                                                                                              \
    for (int t = FROM; t < FROM + 20; t += 5) {                                                                        \
        ROUND(t, MIX, a, b, c, d, e);                                                                                  \
        ROUND(t + 1, MIX, e, a, b, c, d);                                                                              \
        ROUND(t + 2, MIX, d, e, a, b, c);                                                                              \
        ROUND(t + 3, MIX, c, d, e, a, b);                                                                              \
        ROUND(t + 4, MIX, b, c, d, e, a);                                                                              \
    }

static void compress_one(uint32_t state[5], const unsigned char *block)
{
    uint32_t w[80];
    for (int t = 0; t < 16; t++, block += 4)
        w[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 | block[3];
    for (int t = 16; t < 80; t++)
        w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    TWENTY(0, CHOOSE)
    TWENTY(20, PARITY)
    TWENTY(40, MAJORITY)
    TWENTY(60, PARITY)
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
}

#undef ROUND
#undef CHOOSE
#undef PARITY
#undef MAJORITY
#undef TWENTY

static void compress_plain(uint32_t state[5], const unsigned char *blocks, size_t n)
{
    for (; n; n--, blocks += 64)
        compress_one(state, blocks);
}

#ifdef __x86_64__
/* The SHA extensions: four rounds an instruction, over (a, b, c, d) and e. */
__attribute__((target("sha,sse4.1"))) static void compress_x86(uint32_t state[5], const unsigned char *blocks, size_t n)
{
    const __m128i big_endian = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m128i abcd = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)state), 0x1b);
    __m128i e = _mm_set_epi32((int)state[4], 0, 0, 0);
    for (; n; n--, blocks += 64) {
        const __m128i abcd_before = abcd, e_before = e;
        __m128i w[4], older = abcd;
        for (int i = 0; i < 4; i++)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(blocks + 16 * i)), big_endian);
        for (int i = 0; i < 20; i++) {
            __m128i *now = &w[i % 4], with;
            if (i >= 4) {
                *now = _mm_xor_si128(_mm_sha1msg1_epu32(*now, w[(i + 1) % 4]), w[(i + 2) % 4]);
                *now = _mm_sha1msg2_epu32(*now, w[(i + 3) % 4]);
            }
            with = i ? _mm_sha1nexte_epu32(older, *now) : _mm_add_epi32(e, *now);
            older = abcd;
            abcd = i < 5    ? _mm_sha1rnds4_epu32(abcd, with, 0)
                   : i < 10 ? _mm_sha1rnds4_epu32(abcd, with, 1)
                   : i < 15 ? _mm_sha1rnds4_epu32(abcd, with, 2)
                            : _mm_sha1rnds4_epu32(abcd, with, 3);
        }
        e = _mm_sha1nexte_epu32(older, e_before);
        abcd = _mm_add_epi32(abcd, abcd_before);
    }
    _mm_storeu_si128((__m128i *)(void *)state, _mm_shuffle_epi32(abcd, 0x1b));
    state[4] = (uint32_t)_mm_extract_epi32(e, 3);
}

static bool has_instructions(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}
#endif

void sha1_begin(Sha1 *s)
{
    sha1_begin_plain(s);
#ifdef __x86_64__
    if (has_instructions())
        s->compress = compress_x86;
#endif
}

void sha1_begin_plain(Sha1 *s)
{
    static const uint32_t start[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
    memcpy(s->state, start, sizeof start);
    s->length = 0;
    s->compress = compress_plain;
}

void sha1_add(Sha1 *s, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    const size_t held = s->length % 64;
    s->length += n;
    if (held) {
        const size_t part = n < 64 - held ? n : 64 - held;
        memcpy(s->block + held, p, part);
        p += part, n -= part;
        if (held + part < 64)
            return;
        s->compress(s->state, s->block, 1);
    }
    if (n >= 64)
        s->compress(s->state, p, n / 64);
    p += n / 64 * 64;
    n %= 64;
    if (n)
        memcpy(s->block, p, n);
}

void sha1_end(Sha1 *s, uint8_t out[SHA1_BYTES])
{
    size_t held = s->length % 64;
    s->block[held++] = 0x80;
    if (held > 56) {
        memset(s->block + held, 0, 64 - held);
        s->compress(s->state, s->block, 1);
        held = 0;
    }
    memset(s->block + held, 0, 56 - held);
    for (int i = 0; i < 8; i++)
        s->block[56 + i] = (unsigned char)(s->length * 8 >> (56 - 8 * i));
    s->compress(s->state, s->block, 1);
    for (int i = 0; i < SHA1_BYTES; i++)
        out[i] = (uint8_t)(s->state[i / 4] >> (24 - i % 4 * 8));
}

void sha1_text(char out[SHA1_TEXT], const uint8_t digest[SHA1_BYTES])
{
    for (int i = 0; i < SHA1_BYTES; i++) {
        out[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    out[2 * SHA1_BYTES] = 0;
}
