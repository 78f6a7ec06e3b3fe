/* How lanes of bf16, rows or columns of a product, become words of 32 bits, each of which holds two steps of k of one lane. */
#ifndef OPS_KERNELS_LEVEL_BF16_WORDS_H
#define OPS_KERNELS_LEVEL_BF16_WORDS_H

#include "ops/kernels/level/turn.h"

#include <string.h>

#ifdef __AVX512BF16__
#include <immintrin.h>

enum { DEPTH_OF_WORD = 2, TURNED_WORDS = 64 };

static inline void pair(size_t n, const u16 *restrict low, const u16 *restrict high, u32 *restrict to)
{
    LEVEL_VECTOR
    for (size_t i = 0; i < n; i++)
        to[i] = (u32)low[i] | (u32)high[i] << 16;
}

static inline void pair_one(size_t n, const u16 *restrict low, u32 *restrict to)
{
    LEVEL_VECTOR
    for (size_t i = 0; i < n; i++)
        to[i] = low[i];
}

/* to[i] = the word of low[i] and high[i]; null: of zeros. */
static inline void pair_words(size_t n, const u16 *low, const u16 *high, u32 *to)
{
    if (high)
        pair(n, low, high, to);
    else
        pair_one(n, low, to);
}

/* Sixteen words, or fewer, of neighbours, or of every other element: of these the words that they are in are read. */
static inline __m512i sixteen(const u16 *x, __mmask16 some, bool apart)
{
    const __m512i low = _mm512_set1_epi32(0xffff);
    return apart ? _mm512_and_si512(_mm512_maskz_loadu_epi32(some, x), low)
                 : _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, x));
}

/* Lines of words of elements that lie so far apart.  Of every other one the last is read alone: behind it there may be nothing. */
static inline void pair_some_lines(size_t lines, size_t n, size_t step, const u16 *low, const u16 *high, size_t from,
                                   u32 *to, size_t apart)
{
    enum { LANES = 16 };
    const size_t whole = step == 1 ? n : step == 2 && n ? n - 1 : 0;
    for (size_t i = 0; i < lines; i++, low += from, high += high ? from : 0, to += apart) {
        for (size_t j = 0; j < whole; j += LANES) {
            const __mmask16 some = (__mmask16)(whole - j < LANES ? (1u << (whole - j)) - 1 : 0xffff);
            __m512i v = sixteen(low + j * step, some, step == 2);
            if (high)
                v = _mm512_or_si512(v, _mm512_slli_epi32(sixteen(high + j * step, some, step == 2), 16));
            _mm512_mask_storeu_epi32(to + j, some, v);
        }
        for (size_t j = whole; j < n; j++)
            to[j] = (u32)low[j * step] | (high ? (u32)high[j * step] << 16 : 0);
    }
}

/* Words of `lanes` lanes whose steps are neighbours, four lanes by four words at a time. */
static inline void turn_words(size_t lanes, size_t words, size_t group, const u16 *from, size_t lane, u32 *to)
{
    size_t i = 0;
    if (lanes >= TURN_LEAST && words >= TURN_LEAST) {
        turn_words_wide(lanes, words, from, lane * sizeof *from, to, group);
        return;
    }
    for (; i + 4 <= lanes; i += 4) {
        const u16 *x = from + i * lane;
        size_t w = 0;
        for (; w + 4 <= words; w += 4) {
            __m128 a = _mm_loadu_ps((const void *)(x + 2 * w)), b = _mm_loadu_ps((const void *)(x + lane + 2 * w)),
                   c = _mm_loadu_ps((const void *)(x + 2 * lane + 2 * w)),
                   d = _mm_loadu_ps((const void *)(x + 3 * lane + 2 * w));
            _MM_TRANSPOSE4_PS(a, b, c, d);
            _mm_storeu_ps((void *)(to + w * group + i), a);
            _mm_storeu_ps((void *)(to + (w + 1) * group + i), b);
            _mm_storeu_ps((void *)(to + (w + 2) * group + i), c);
            _mm_storeu_ps((void *)(to + (w + 3) * group + i), d);
        }
        for (; w < words; w++)
            for (size_t r = 0; r < 4; r++)
                memcpy(to + w * group + i + r, x + r * lane + 2 * w, sizeof *to);
    }
    for (; i < lanes; i++)
        for (size_t w = 0; w < words; w++)
            memcpy(to + w * group + i, from + i * lane + 2 * w, sizeof *to);
}

/* Words of lanes that are neighbours, or lie anyhow. */
static inline void pair_steps(size_t lanes, size_t words, size_t group, const u16 *restrict from, size_t lane,
                              size_t step, u32 *restrict to)
{
    for (size_t w = 0; w < words; w++, from += 2 * step, to += group) {
        if (lane == 1 && lanes == MOST_PANEL_WIDTH) { /* of a known number: whole vectors */
            LEVEL_VECTOR
            for (size_t i = 0; i < MOST_PANEL_WIDTH; i++)
                to[i] = (u32)from[i] | (u32)from[step + i] << 16;
        } else if (lane == 1) {
            LEVEL_VECTOR
            for (size_t i = 0; i < lanes; i++)
                to[i] = (u32)from[i] | (u32)from[step + i] << 16;
        } else {
            for (size_t i = 0; i < lanes; i++)
                to[i] = (u32)from[i * lane] | (u32)from[i * lane + step] << 16;
        }
    }
}

/* Up to `group` lanes of k steps; behind an odd k stands a zero. */
static inline void pack_words(size_t lanes, size_t k, size_t group, const u16 *from, size_t lane, size_t step, u32 *to)
{
    const size_t words = k / DEPTH_OF_WORD;
    for (size_t w = 0; w < words && step == 1; w += TURNED_WORDS) /* what is written stays in a first-level cache */
        turn_words(lanes, words - w < TURNED_WORDS ? words - w : TURNED_WORDS, group, from + DEPTH_OF_WORD * w, lane,
                   to + w * group);
    if (step != 1)
        pair_steps(lanes, words, group, from, lane, step, to);
    for (size_t i = 0; k % DEPTH_OF_WORD && i < lanes; i++)
        to[words * group + i] = from[i * lane + (k - 1) * step];
}

/* Columns of b in panels of `width`, of words filled up with zeros to a multiple of `whole`, panels `apart` words apart. */
static inline void pack_panels(size_t width, size_t whole, size_t n, size_t k, const u16 *b, size_t row, size_t step,
                               u32 *to, size_t apart)
{
    const size_t words = (k + DEPTH_OF_WORD - 1) / DEPTH_OF_WORD, filled = (words + whole - 1) / whole * whole;
    for (size_t j = 0; j < n; j += width, to += apart) {
        const size_t some = n - j < width ? n - j : width;
        pack_words(some, k, width, b + j * step, step, row, to);
        for (size_t w = 0; w < words && some < width; w++)
            memset(to + w * width + some, 0, (width - some) * sizeof *to);
        memset(to + words * width, 0, (filled - words) * width * sizeof *to);
    }
}
#endif

#endif
