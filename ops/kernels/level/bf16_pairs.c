/* Products of words with sums in f32, where the level has an instruction for them: each word holds two steps of k in bf16.
 * Neither operand need be packed, since windows of words are gathered as rows that lie beside each other; what the instruction
 * rounds and flushes is what it does in bf16_products.c. */
#include "ops/kernels/level/bf16_words.h"

#if defined(__AVX512BF16__) && !defined(__AMX_BF16__)

enum { ROWS = 12, FEW = 4, VECTORS = 2, LANES = 16, WIDTH = VECTORS * LANES };

/* Some rows against the columns of so many vectors: sums live in registers for all words.  Of rows that lie apart every fourth has
 * a pointer of its own, so that all of them stay in registers.  `some`: the columns that are there, where these are no whole
 * vectors. */
#define TILE(id, rows, vectors)                                                                                        \
    static inline __attribute__((always_inline)) void id(const PairProduct *p, size_t row, size_t step, bool whole,    \
                                                         const __mmask16 *some, const u32 *a, const u32 *b, f32 *c)    \
    {                                                                                                                  \
        __m512 sum[rows][vectors];                                                                                     \
        const u32 *from[(rows + FEW - 1) / FEW];                                                                       \
        for (size_t i = 0; i < COUNT(from); i++)                                                                       \
            from[i] = a + i * FEW * row;                                                                               \
        for (size_t i = 0; i < (rows); i++)                                                                            \
            for (size_t j = 0; j < (vectors); j++)                                                                     \
                sum[i][j] = p->fresh ? _mm512_setzero_ps()                                                             \
                            : whole  ? _mm512_loadu_ps(c + i * p->ldc + j * LANES)                                     \
                                     : _mm512_maskz_loadu_ps(some[j], c + i * p->ldc + j * LANES);                      \
        for (size_t w = 0; w < p->words; w++, b += p->ldb) {                                                           \
            __m512i column[vectors];                                                                                   \
            for (size_t j = 0; j < (vectors); j++)                                                                     \
                column[j] =                                                                                            \
                    whole ? _mm512_loadu_si512(b + j * LANES) : _mm512_maskz_loadu_epi32(some[j], b + j * LANES);      \
            for (size_t i = 0; i < (rows); i++) {                                                                      \
                const __m512i one = _mm512_set1_epi32((i32)from[i / FEW][i % FEW * row + w * step]);                   \
                for (size_t j = 0; j < (vectors); j++)                                                                 \
                    sum[i][j] = _mm512_dpbf16_ps(sum[i][j], (__m512bh)one, (__m512bh)column[j]);                       \
            }                                                                                                          \
        }                                                                                                              \
        for (size_t i = 0; i < (rows); i++)                                                                            \
            for (size_t j = 0; j < (vectors); j++)                                                                     \
                if (whole)                                                                                             \
                    _mm512_storeu_ps(c + i * p->ldc + j * LANES, sum[i][j]);                                           \
                else                                                                                                   \
                    _mm512_mask_storeu_ps(c + i * p->ldc + j * LANES, some[j], sum[i][j]);                             \
    }
#define ROWS_OF(id, vectors)                                                                                           \
    TILE(id##_full, ROWS, vectors)                                                                                     \
    TILE(id##_few, FEW, vectors)                                                                                       \
    TILE(id##_one, 1, vectors)
ROWS_OF(wide, VECTORS)
ROWS_OF(thin, 1)
#undef ROWS_OF
#undef TILE

/* Of a tile that is packed, the rows of a word are neighbours, ROWS of them; else the words of a row are. */
#define RUN(id, tile, row, step, whole)                                                                                \
    static void id(const PairProduct *p, size_t m, const __mmask16 *some, const u32 *a, const u32 *b, f32 *c)          \
    {                                                                                                                  \
        size_t i = 0;                                                                                                  \
        if (m == ROWS) {                                                                                               \
            tile##_full(p, row, step, whole, some, a, b, c);                                                           \
            return;                                                                                                    \
        }                                                                                                              \
        for (; i + FEW <= m; i += FEW)                                                                                 \
            tile##_few(p, row, step, whole, some, a + i * (row), b, c + i * p->ldc);                                   \
        for (; i < m; i++)                                                                                             \
            tile##_one(p, row, step, whole, some, a + i * (row), b, c + i * p->ldc);                                   \
    }
RUN(packed_whole, wide, 1, ROWS, true)
RUN(packed_edge, wide, 1, ROWS, false)
RUN(packed_thin, thin, 1, ROWS, false)
RUN(lines_whole, wide, p->row, 1, true)
RUN(lines_edge, wide, p->row, 1, false)
RUN(lines_thin, thin, p->row, 1, false)
#undef RUN

typedef void Run(const PairProduct *p, size_t m, const __mmask16 *some, const u32 *a, const u32 *b, f32 *c);

/* By the columns that are there: those of both vectors, more than those of one, and the rest. */
static Run *run_of(const PairProduct *p, size_t n)
{
    if (p->row == 1)
        return n >= WIDTH ? packed_whole : n > LANES ? packed_edge : packed_thin;
    return n >= WIDTH ? lines_whole : n > LANES ? lines_edge : lines_thin;
}

static void multiply(const PairProduct *p, const u32 *a, const u32 *b, f32 *c)
{
    for (size_t j = 0; j < p->n; j += WIDTH, b += p->panel) {
        const size_t n = p->n - j;
        Run *const run = run_of(p, n);
        const __mmask16 some[VECTORS] = { (__mmask16)(n < LANES ? (1u << n) - 1 : 0xffff),
                                          (__mmask16)(n <= LANES  ? 0
                                                      : n < WIDTH ? (1u << (n - LANES)) - 1
                                                                  : 0xffff) };
        const u32 *rows = a;
        for (size_t i = 0; i < p->m; i += ROWS, rows += p->tile)
            run(p, p->m - i < ROWS ? p->m - i : ROWS, some, rows, b, c + i * p->ldc + j);
    }
}

const PairLoops LEVEL_NAME(pairs_bf16) = { ROWS, WIDTH, 1, pair_words, pair_some_lines, multiply };
#elif !defined(__AMX_BF16__)
const PairLoops LEVEL_NAME(pairs_bf16) = { 0 };
#endif
