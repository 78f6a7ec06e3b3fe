/* Matrix products: every element of c is summed in ascending k by fma, whatever the tiles. */
#include "ops/kernels/level/turn.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum {
    GEMM_VECTORS = 2,     /* of a tile's row */
    GEMM_PACKED = 384,    /* bytes of k: what is packed at a time; both packs together stay below 32 KiB of stack */
    GEMM_BLOCK = 48,      /* rows of a that are packed at a time: whole tiles */
    GEMM_STREAM = 2048,   /* columns of c that stay in cache */
    GEMM_THIN = 2,        /* rows that are not worth packing for */
    GEMM_AHEAD = 16,      /* rows of b that are asked for before they are packed: each may lie in a page of its own */
    GEMM_TURNED = 64,     /* elements of lines that are turned at a time */
    GEMM_PLAIN_WIDTH = 8, /* columns of a panel where there are no vectors */
};

/* The vectors of the level; none where there is no fma. */
#if defined(__AVX512F__)
#define GEMM_ROWS       12
#define GEMM_ALL(f, ps) _mm512_##f##_##ps
#define GEMM_BYTES      64
#define GEMM_V_f32      __m512
#define GEMM_V_f64      __m512d
#elif defined(__AVX2__) && defined(__FMA__)
#define GEMM_ROWS       6
#define GEMM_ALL(f, ps) _mm256_##f##_##ps
#define GEMM_BYTES      32
#define GEMM_V_f32      __m256
#define GEMM_V_f64      __m256d
#elif defined(__aarch64__)
#define GEMM_ROWS  12 /* 24 of 32 registers are sums */
#define GEMM_BYTES 16
#define GEMM_V_f32 float32x4_t
#define GEMM_V_f64 float64x2_t
#endif

#ifndef GEMM_ROWS
#define GEMM_ROWS 4
#endif

#ifdef GEMM_ALL
#define GEMM_LOAD_f32(p)       GEMM_ALL(loadu, ps)(p)
#define GEMM_ZERO_f32()        GEMM_ALL(setzero, ps)()
#define GEMM_STORE_f32(p, v)   GEMM_ALL(storeu, ps)(p, v)
#define GEMM_ONE_f32(x)        GEMM_ALL(set1, ps)(x)
#define GEMM_VFMA_f32(x, y, z) GEMM_ALL(fmadd, ps)(x, y, z)
#define GEMM_LOAD_f64(p)       GEMM_ALL(loadu, pd)(p)
#define GEMM_ZERO_f64()        GEMM_ALL(setzero, pd)()
#define GEMM_STORE_f64(p, v)   GEMM_ALL(storeu, pd)(p, v)
#define GEMM_ONE_f64(x)        GEMM_ALL(set1, pd)(x)
#define GEMM_VFMA_f64(x, y, z) GEMM_ALL(fmadd, pd)(x, y, z)
#elif defined(__aarch64__)
#define GEMM_LOAD_f32(p)       vld1q_f32(p)
#define GEMM_ZERO_f32()        vdupq_n_f32(0)
#define GEMM_STORE_f32(p, v)   vst1q_f32(p, v)
#define GEMM_ONE_f32(x)        vdupq_n_f32(x)
#define GEMM_VFMA_f32(x, y, z) vfmaq_f32(z, x, y)
#define GEMM_LOAD_f64(p)       vld1q_f64(p)
#define GEMM_ZERO_f64()        vdupq_n_f64(0)
#define GEMM_STORE_f64(p, v)   vst1q_f64(p, v)
#define GEMM_ONE_f64(x)        vdupq_n_f64(x)
#define GEMM_VFMA_f64(x, y, z) vfmaq_f64(z, x, y)
#endif

#define GEMM_FMA_f32(x, y, z) fma_f32(x, y, z)
#define GEMM_FMA_f64(x, y, z) fma_f64(x, y, z)

/* Four by four elements, turned. */
#define GEMM_TURN_PLAIN(T)                                                                                             \
    static inline void GEMM_TURN_##T(const T *from, size_t row, T *to, size_t to_row)                                  \
    {                                                                                                                  \
        for (size_t r = 0; r < 4; r++)                                                                                 \
            for (size_t c = 0; c < 4; c++)                                                                             \
                to[c * to_row + r] = from[r * row + c];                                                                \
    }
GEMM_TURN_PLAIN(f64)
#ifdef __x86_64__
static inline void GEMM_TURN_f32(const f32 *from, size_t row, f32 *to, size_t to_row)
{
    __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + row), c = _mm_loadu_ps(from + 2 * row),
           d = _mm_loadu_ps(from + 3 * row);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(to, a);
    _mm_storeu_ps(to + to_row, b);
    _mm_storeu_ps(to + 2 * to_row, c);
    _mm_storeu_ps(to + 3 * to_row, d);
}
#else
GEMM_TURN_PLAIN(f32)
#endif

/* All of it by larger squares, where there are any and it is worth them. */
#define GEMM_WIDE_TURN_f64(...) false
#ifdef __AVX512F__
static bool GEMM_WIDE_TURN_f32(size_t rows, size_t cols, const f32 *from, size_t row, f32 *to, size_t to_row)
{
    if (rows < TURN_LEAST || cols < TURN_LEAST)
        return false;
    turn_words_wide(rows, cols, from, row * sizeof *from, to, to_row);
    return true;
}

static void turn_past(size_t rows, size_t cols, const f32 *from, size_t row, f32 *to, size_t to_row)
{
    for (size_t c = 0; c < cols; c += TURN_SIDE)
        for (size_t r = 0; r < rows; r += TURN_SIDE) {
            const size_t across = cols - c < TURN_SIDE ? cols - c : TURN_SIDE;
            const __mmask16 read = (__mmask16)((1u << across) - 1);
            __m512 v[TURN_SIDE];
            for (size_t i = 0; i < TURN_SIDE; i++)
                v[i] = _mm512_maskz_loadu_ps(read, from + (r + i) * row + c);
            turn_square(v);
            for (size_t i = 0; i < across; i++)
                _mm512_stream_ps(to + (c + i) * to_row + r, v[i]);
        }
    _mm_sfence();
}
#define GEMM_TURN_PAST_f32 turn_past
#else
#define GEMM_WIDE_TURN_f32(...) false
#define GEMM_TURN_PAST_f32      NULL
#endif
#define GEMM_TURN_PAST_f64 NULL

#define T f32
#include "ops/kernels/level/gemm_tile.h"
#undef T
#define T f64
#include "ops/kernels/level/gemm_tile.h"
#undef T

#ifdef GEMM_BYTES
#define GEMM_WIDTH(T) (GEMM_VECTORS * GEMM_BYTES / sizeof(T))
#else
#define GEMM_WIDTH(T) GEMM_PLAIN_WIDTH
#endif
#define GEMM_PACKED_LOOPS(T)                                                                                           \
    {                                                                                                                  \
        .rows = GEMM_ROWS, .width = GEMM_WIDTH(T), .depth = 1, .at_a_time = USUAL_DEPTH, .pack_rows = pack_rows_##T,   \
        .pack_columns = pack_columns_##T, .multiply = multiply_##T, .multiply_beside = multiply_beside_##T,            \
        .turn = turned_##T, .turn_past = GEMM_TURN_PAST_##T                                                            \
    }
const PackedLoops LEVEL_NAME(packed)[2] = { GEMM_PACKED_LOOPS(f32), GEMM_PACKED_LOOPS(f64) };
