/* Products of words of four bytes, where the level has an instruction for them, as wide as its largest vectors. */
#include "ops/kernels/level/level.h"

static void add(size_t n, u32 more, i32 *c)
{
    LEVEL_VECTOR
    for (size_t i = 0; i < n; i++)
        c[i] = (i32)((u32)c[i] + more);
}

static void integers(size_t n, const f32 *restrict v, i32 *restrict to)
{
    LEVEL_VECTOR
    for (size_t i = 0; i < n; i++)
        to[i] = (i32)v[i];
}

#ifdef __AVX512VNNI__
#include <immintrin.h>

enum { ROWS = 12, FEW = 4, VECTORS = 2, LANES = 16, WIDTH = VECTORS * LANES };

/* In one line of assembler: gcc 12 moves sums of the intrinsic through other registers and the stack. */
static inline __m512i dot(__m512i s, __m512i unsigned_bytes, __m512i bytes)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(s) : "v"(unsigned_bytes), "v"(bytes));
    return s;
}

static void quad(size_t n, const u8 *const lines[4], u32 flip, u32 *restrict to)
{
    const u8 *restrict a = lines[0], *restrict b = lines[1], *restrict c = lines[2], *restrict d = lines[3];
    LEVEL_VECTOR
    for (size_t i = 0; i < n; i++)
        to[i] = ((u32)a[i] | (u32)b[i] << 8 | (u32)c[i] << 16 | (u32)d[i] << 24) ^ flip;
}

/* Some rows against a panel: sums live in registers for all words. */
#define TILE(id, rows)                                                                                                 \
    static void id(const PairProduct *p, const u32 *a, const u32 *b, i32 *c)                                           \
    {                                                                                                                  \
        __m512i sum[rows][VECTORS];                                                                                    \
        for (size_t i = 0; i < (rows); i++)                                                                            \
            for (size_t j = 0; j < VECTORS; j++)                                                                       \
                sum[i][j] = p->fresh ? _mm512_setzero_si512() : _mm512_loadu_si512(c + i * p->ldc + j * LANES);        \
        for (size_t w = 0; w < p->words; w++, a += ROWS, b += p->ldb) {                                                \
            __m512i column[VECTORS];                                                                                   \
            for (size_t j = 0; j < VECTORS; j++)                                                                       \
                column[j] = _mm512_loadu_si512(b + j * LANES);                                                         \
            for (size_t i = 0; i < (rows); i++) {                                                                      \
                const __m512i one = _mm512_set1_epi32((i32)a[i]);                                                      \
                for (size_t j = 0; j < VECTORS; j++)                                                                   \
                    sum[i][j] = dot(sum[i][j], column[j], one);                                                        \
            }                                                                                                          \
        }                                                                                                              \
        for (size_t i = 0; i < (rows); i++)                                                                            \
            for (size_t j = 0; j < VECTORS; j++)                                                                       \
                _mm512_storeu_si512(c + i * p->ldc + j * LANES, sum[i][j]);                                            \
    }
TILE(tile_full, ROWS)
TILE(tile_few, FEW)
TILE(tile_one, 1)
#undef TILE

static void multiply(const PairProduct *p, const u32 *a, const u32 *b, i32 *c)
{
    for (size_t j = 0; j < p->n; j += WIDTH, b += p->panel, c += WIDTH) {
        const u32 *rows = a;
        size_t i = 0;
        for (; i + ROWS <= p->m; i += ROWS, rows += p->tile)
            tile_full(p, rows, b, c + i * p->ldc);
        for (; i + FEW <= p->m; i += FEW, rows += FEW)
            tile_few(p, rows, b, c + i * p->ldc);
        for (; i < p->m; i++, rows++)
            tile_one(p, rows, b, c + i * p->ldc);
    }
}

const QuadLoops LEVEL_NAME(quads) = { ROWS, WIDTH, quad, multiply, add, integers };
#else
const QuadLoops LEVEL_NAME(quads) = { .add = add, .integers = integers };
#endif
