/* Squares of sixteen by sixteen words, turned, where the level has vectors of as many. */
#ifndef OPS_KERNELS_LEVEL_TURN_H
#define OPS_KERNELS_LEVEL_TURN_H

#include "ops/kernels/level/level.h"

enum { TURN_SIDE = 16, TURN_LEAST = 8 }; /* words; of them along both sides, a square is worth its shuffles */

#ifdef __AVX512F__
#include <immintrin.h>

/* The square in eight by two steps: pairs of words, pairs of these, and quarters of vectors. */
static inline void turn_square(__m512 v[TURN_SIDE])
{
    __m512 t[TURN_SIDE];
    for (int i = 0; i < TURN_SIDE; i += 2) {
        t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < TURN_SIDE; i += 4)
        for (int k = 0; k < 2; k++) {
            const __m512d low = (__m512d)t[i + k], high = (__m512d)t[i + k + 2];
            v[i + 2 * k] = (__m512)_mm512_unpacklo_pd(low, high);
            v[i + 2 * k + 1] = (__m512)_mm512_unpackhi_pd(low, high);
        }
    for (int i = 0; i < 4; i++) {
        const __m512 even = _mm512_shuffle_f32x4(v[i], v[4 + i], 0x88),
                     odd = _mm512_shuffle_f32x4(v[i], v[4 + i], 0xdd);
        const __m512 evens = _mm512_shuffle_f32x4(v[8 + i], v[12 + i], 0x88),
                     odds = _mm512_shuffle_f32x4(v[8 + i], v[12 + i], 0xdd);
        t[i] = _mm512_shuffle_f32x4(even, evens, 0x88);
        t[4 + i] = _mm512_shuffle_f32x4(odd, odds, 0x88);
        t[8 + i] = _mm512_shuffle_f32x4(even, evens, 0xdd);
        t[12 + i] = _mm512_shuffle_f32x4(odd, odds, 0xdd);
    }
    for (int i = 0; i < TURN_SIDE; i++)
        v[i] = t[i];
}

/* to[c, r] = from[r, c] of words; rows of `from` lie `row` bytes apart, those of `to` `to_row` words.  What each row has a few
 * lines of a cache on is asked for: there may be more rows than the processor would guess about. */
static inline void turn_words_wide(size_t rows, size_t cols, const void *from, size_t row, void *to, size_t to_row)
{
    enum { AHEAD = 256 };
    for (size_t r = 0; r < rows; r += TURN_SIDE)
        for (size_t c = 0; c < cols; c += TURN_SIDE) {
            const size_t down = rows - r < TURN_SIDE ? rows - r : TURN_SIDE,
                         across = cols - c < TURN_SIDE ? cols - c : TURN_SIDE;
            const __mmask16 read = (__mmask16)((1u << across) - 1), written = (__mmask16)((1u << down) - 1);
            const char *x = (const char *)from + r * row + c * sizeof(u32);
            f32 *y = (f32 *)to + c * to_row + r;
            __m512 v[TURN_SIDE];
            for (size_t i = 0; i < TURN_SIDE; i++) {
                v[i] = i < down ? _mm512_maskz_loadu_ps(read, x + i * row) : _mm512_setzero_ps();
                if (i < down)
                    __builtin_prefetch(x + i * row + AHEAD);
            }
            turn_square(v);
            for (size_t i = 0; i < TURN_SIDE; i++)
                if (i < across)
                    _mm512_mask_storeu_ps(y + i * to_row, written, v[i]);
        }
}
#endif

#endif
