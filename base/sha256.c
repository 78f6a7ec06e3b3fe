#include "base/bytes.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

/* Fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

/* One round: the eight words stay where they are and the roles move on by one, so that nothing is copied. */
#define ROUND(T, A, B, C, D, E, F, G, H)                                                                               \
    do {                                                                                                               \
        H += (rotate(E, 6) ^ rotate(E, 11) ^ rotate(E, 25)) + ((E & F) ^ (~E & G)) + constants[T] + w[(T) % 16];       \
        D += H;                                                                                                        \
        H += (rotate(A, 2) ^ rotate(A, 13) ^ rotate(A, 22)) + ((A & B) ^ (A & C) ^ (B & C));                           \
    } while (0)

static void next_words(uint32_t w[16])
{
    for (int t = 0; t < 16; t++) {
        uint32_t near = w[(t + 14) % 16], far = w[(t + 1) % 16];
        w[t] += (rotate(near, 17) ^ rotate(near, 19) ^ near >> 10) + w[(t + 9) % 16] +
                (rotate(far, 7) ^ rotate(far, 18) ^ far >> 3);
    }
}

static void compress_one(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[16];
    for (int t = 0; t < 16; t++, block += 4)
        w[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 | block[3];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t += 8) {
        if (t && t % 16 == 0)
            next_words(w);
        ROUND(t, a, b, c, d, e, f, g, h);
        ROUND(t + 1, h, a, b, c, d, e, f, g);
        ROUND(t + 2, g, h, a, b, c, d, e, f);
        ROUND(t + 3, f, g, h, a, b, c, d, e);
        ROUND(t + 4, e, f, g, h, a, b, c, d);
        ROUND(t + 5, d, e, f, g, h, a, b, c);
        ROUND(t + 6, c, d, e, f, g, h, a, b);
        ROUND(t + 7, b, c, d, e, f, g, h, a);
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

#undef ROUND

static void compress_plain(uint32_t state[8], const unsigned char *blocks, size_t n)
{
    for (; n; n--, blocks += 64)
        compress_one(state, blocks);
}

#ifdef __x86_64__
/* The SHA extensions: two rounds an instruction, over the words of the state as (a, b, e, f) and (c, d, g, h). */
__attribute__((target("sha,sse4.1"))) static void compress_x86(uint32_t state[8], const unsigned char *blocks, size_t n)
{
    const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    uint32_t *s = state;
    __m128i abef = _mm_set_epi32((int)s[0], (int)s[1], (int)s[4], (int)s[5]);
    __m128i cdgh = _mm_set_epi32((int)s[2], (int)s[3], (int)s[6], (int)s[7]);
    for (; n; n--, blocks += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
        for (int i = 0; i < 4; i++)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(blocks + 16 * i)), big_endian);
        for (int i = 0; i < 16; i++) {
            __m128i *old = &w[i % 4], last = w[(i + 3) % 4];
            const __m128i k = _mm_loadu_si128((const __m128i *)(const void *)(constants + 4 * i));
            const __m128i sum = _mm_add_epi32(*old, k);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
            *old = _mm_sha256msg1_epu32(*old, w[(i + 1) % 4]);
            *old = _mm_add_epi32(*old, _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
            *old = _mm_sha256msg2_epu32(*old, last);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    uint32_t x[4], y[4];
    _mm_storeu_si128((__m128i *)(void *)x, abef);
    _mm_storeu_si128((__m128i *)(void *)y, cdgh);
    s[0] = x[3], s[1] = x[2], s[4] = x[1], s[5] = x[0];
    s[2] = y[3], s[3] = y[2], s[6] = y[1], s[7] = y[0];
}

static bool has_instructions(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}
#endif

void sha256_begin(Sha256 *s)
{
    sha256_begin_plain(s);
#ifdef __x86_64__
    if (has_instructions())
        s->compress = compress_x86;
#endif
}

void sha256_begin_plain(Sha256 *s)
{
    /* fractional parts of the square roots of the first eight primes */
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    memcpy(s->state, start, sizeof start);
    s->length = 0;
    s->compress = compress_plain;
}

void sha256_add(Sha256 *s, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    size_t held = s->length % 64;
    s->length += n;
    if (held) {
        size_t part = n < 64 - held ? n : 64 - held;
        bytes_copy(s->block + held, p, part);
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
        bytes_copy(s->block, p, n);
}

void sha256_end(Sha256 *s, uint8_t out[SHA256_BYTES])
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
    for (int i = 0; i < SHA256_BYTES; i++)
        out[i] = (uint8_t)(s->state[i / 4] >> (24 - i % 4 * 8));
}

void sha256_text(char out[SHA256_TEXT], const uint8_t digest[SHA256_BYTES])
{
    for (int i = 0; i < SHA256_BYTES; i++) {
        out[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    out[2 * SHA256_BYTES] = 0;
}
