/* Products of words of four bytes, where the level has an instruction for them, as wide as its largest vectors, or tiles. */
#include "ops/kernels/level/tiles.h"
#include "ops/kernels/level/turn.h"

#include <string.h>

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

enum { VECTORS = 2, LANES = 16, DEPTH = 4, WIDTH = VECTORS * LANES };

/* In one line of assembler: gcc 12 moves sums of the intrinsic through other registers and the stack. */
static inline __m512i dot(__m512i s, __m512i unsigned_bytes, __m512i bytes)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(s) : "v"(unsigned_bytes), "v"(bytes));
    return s;
}

static inline void put_words(u32 *to, size_t left, __m512i words, __m512i flip)
{
    if (left >= LANES)
        _mm512_storeu_si512(to, _mm512_xor_si512(words, flip));
    else
        _mm512_mask_storeu_epi32(to, (__mmask16)((1u << left) - 1), _mm512_xor_si512(words, flip));
}

/* Bytes between each other, then their lanes of four words in order. */
static void quad(size_t n, const u8 *const lines[4], u32 flip, u32 *restrict to)
{
    enum { BYTES = 64, AHEAD = 512, LOW = 0x44, HIGH = 0xee, EVEN = 0x88, ODD = 0xdd };
    const __m512i turn = _mm512_set1_epi32((i32)flip);
    for (size_t i = 0; i < n; i += BYTES) {
        const size_t left = n - i;
        for (size_t k = 0; k < DEPTH; k++)
            __builtin_prefetch(lines[k] + i + AHEAD);
        const __mmask64 some = left < BYTES ? ((__mmask64)1 << left) - 1 : ~(__mmask64)0;
        const __m512i a = _mm512_maskz_loadu_epi8(some, lines[0] + i), b = _mm512_maskz_loadu_epi8(some, lines[1] + i);
        const __m512i c = _mm512_maskz_loadu_epi8(some, lines[2] + i), d = _mm512_maskz_loadu_epi8(some, lines[3] + i);
        const __m512i ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
        const __m512i ab_high = _mm512_unpackhi_epi8(a, b), cd_high = _mm512_unpackhi_epi8(c, d);
        const __m512i w0 = _mm512_unpacklo_epi16(ab, cd), w1 = _mm512_unpackhi_epi16(ab, cd);
        const __m512i w2 = _mm512_unpacklo_epi16(ab_high, cd_high), w3 = _mm512_unpackhi_epi16(ab_high, cd_high);
        const __m512i low = _mm512_shuffle_i32x4(w0, w1, LOW), low_more = _mm512_shuffle_i32x4(w2, w3, LOW);
        put_words(to + i, left, _mm512_shuffle_i32x4(low, low_more, EVEN), turn);
        if (left > LANES)
            put_words(to + i + LANES, left - LANES, _mm512_shuffle_i32x4(low, low_more, ODD), turn);
        if (left <= BYTES / 2)
            return;
        const __m512i high = _mm512_shuffle_i32x4(w0, w1, HIGH), high_more = _mm512_shuffle_i32x4(w2, w3, HIGH);
        put_words(to + i + 2 * LANES, left - 2 * LANES, _mm512_shuffle_i32x4(high, high_more, EVEN), turn);
        if (left > 3 * LANES)
            put_words(to + i + 3 * LANES, left - 3 * LANES, _mm512_shuffle_i32x4(high, high_more, ODD), turn);
    }
}

/* Lines are short: what is left of one is a vector with a mask. */
static void copy(size_t lines, size_t n, const u8 *from, size_t from_apart, u8 flip, u8 *to, size_t to_apart)
{
    enum { BYTES = 64 };
    const __m512i turn = _mm512_set1_epi8((char)flip);
    const size_t whole = n / BYTES * BYTES;
    const __mmask64 rest = ((__mmask64)1 << n % BYTES) - 1;
    for (size_t l = 0; l < lines; l++, from += from_apart, to += to_apart) {
        for (size_t i = 0; i < whole; i += BYTES)
            _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), turn));
        if (rest)
            _mm512_mask_storeu_epi8(to + whole, rest,
                                    _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, from + whole), turn));
    }
}

/* Lane l of four words begins with word l * stride of what is loaded, and word i of it with byte i * stride. */
static void along(const ByteTaps *t, size_t n, const u8 *x, u32 start, i32 *sums)
{
    enum { LANE = 4 };
    i32 words[LANES];
    u8 bytes[LANES * DEPTH];
    for (size_t i = 0; i < LANES; i++) {
        words[i] = (i32)(i / LANE * t->stride + i % LANE);
        for (size_t k = 0; k < DEPTH; k++)
            bytes[i * DEPTH + k] = (u8)(i % LANE * t->stride + k);
    }
    const __m512i of_words = _mm512_loadu_si512(words), of_bytes = _mm512_loadu_si512(bytes);
    for (size_t l = 0; l < t->lines; l++, x += t->step, sums += n)
        for (size_t i = 0; i < n; i += LANES) {
            __m512i sum = _mm512_set1_epi32((i32)start);
            for (size_t w = 0; w < t->words; w++) {
                const u8 *from = x + t->at[w] + i * t->stride;
                const __m512i seen =
                    t->stride == 1 ? _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)from))
                                   : _mm512_loadu_si512(from);
                const __m512i four = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(of_words, seen), of_bytes);
                sum = dot(sum, four, _mm512_set1_epi32((i32)t->weights[w]));
            }
            _mm512_storeu_si512(sums + i, sum);
        }
}

static void copy_runs(size_t n, const WordRun *runs, const u32 *restrict from, u32 *restrict to)
{
    for (size_t i = 0; i < n; i++)
        _mm512_storeu_si512(to + runs[i].to, _mm512_loadu_si512(from + runs[i].from));
}

#ifdef __AMX_INT8__
#define CODES NULL
enum { ROWS = 2 * TILE_SIDE, WHOLE = TILE_SIDE, AT_A_TIME = 16 * TILE_SIDE };

TILES(add_tiles, TILE_BYTES_SU)

/* Words of a row, sixteen in each block. */
static void pack(size_t rows, size_t words, const void *from, size_t row, u32 *tile, i32 *totals)
{
    const __m512i one = _mm512_set1_epi8(1);
    for (size_t i = 0; i < rows; i++, tile += LANES) {
        const char *x = (const char *)from + i * row;
        __m512i sum = _mm512_setzero_si512();
        for (size_t w = 0; w < words; w += LANES) {
            const size_t left = words - w;
            const __mmask16 some = (__mmask16)(left < LANES ? (1u << left) - 1 : 0xffff);
            const __m512i v = _mm512_maskz_loadu_epi32(some, x + w * sizeof(u32));
            _mm512_storeu_si512(tile + w * ROWS, v);
            sum = dot(sum, one, v);
        }
        totals[i] = _mm512_reduce_add_epi32(sum);
    }
}

/* Words between the lines, where all of them lie as far apart as the first two and begin lines of a cache; else 0. */
static size_t even_lines(size_t words, const u32 *b, const size_t *at)
{
    const size_t apart = at[1] - at[0];
    bool even = (uintptr_t)(b + at[0]) % TILE_LINE == 0 && apart % LANES == 0;
    for (size_t w = 1; even && w < words; w++)
        even = at[w] - at[w - 1] == apart;
    return even ? apart : 0;
}

/* Of each panel the lines are copied beside each other, for all rows, unless tiles can be read of them as they lie. */
static void multiply(const PairProduct *p, const u32 *a, const u32 *b, const size_t *at, i32 *c)
{
    _Alignas(TILE_LINE) u32 panel[AT_A_TIME * WIDTH];
    const size_t apart = even_lines(p->words, b, at);
    tiles_begin();
    for (size_t j = 0; j < p->n; j += WIDTH, b += p->panel, c += WIDTH) {
        for (size_t w = 0; w < p->words && !apart; w++)
            for (size_t k = 0; k < VECTORS; k++)
                _mm512_store_si512(panel + w * WIDTH + k * LANES, _mm512_loadu_si512(b + at[w] + k * LANES));
        const char *lines = (const char *)(apart ? b + at[0] : panel);
        const size_t line = (apart ? apart : WIDTH) * sizeof *b;
        for (size_t i = 0; i < p->m; i += ROWS)
            add_tiles(p->m - i < ROWS ? p->m - i : ROWS, WIDTH, p->words / TILE_SIDE,
                      (const char *)(a + i / ROWS * p->tile), TILE_LINE, TILE_SIDE * TILE_LINE, ROWS * TILE_LINE, lines,
                      line, (u32 *)c + i * p->ldc, p->ldc, p->fresh);
    }
    tiles_end();
}
#else
enum { ROWS = 12, FEW = 4, WHOLE = 1, AT_A_TIME = 128 };

/* Some rows against a panel: sums live in registers for all words. */
#define TILE(id, rows)                                                                                                 \
    static void id(const PairProduct *p, const u32 *a, const u32 *b, const size_t *at, i32 *c)                         \
    {                                                                                                                  \
        __m512i sum[rows][VECTORS];                                                                                    \
        for (size_t i = 0; i < (rows); i++)                                                                            \
            for (size_t j = 0; j < VECTORS; j++)                                                                       \
                sum[i][j] = p->fresh ? _mm512_setzero_si512() : _mm512_loadu_si512(c + i * p->ldc + j * LANES);        \
        for (size_t w = 0; w < p->words; w++, a += ROWS) {                                                             \
            __m512i column[VECTORS];                                                                                   \
            for (size_t j = 0; j < VECTORS; j++)                                                                       \
                column[j] = _mm512_loadu_si512(b + at[w] + j * LANES);                                                 \
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

static void multiply(const PairProduct *p, const u32 *a, const u32 *b, const size_t *at, i32 *c)
{
    for (size_t j = 0; j < p->n; j += WIDTH, b += p->panel, c += WIDTH) {
        const u32 *rows = a;
        size_t i = 0;
        for (; i + ROWS <= p->m; i += ROWS, rows += p->tile)
            tile_full(p, rows, b, at, c + i * p->ldc);
        for (; i + FEW <= p->m; i += FEW, rows += FEW)
            tile_few(p, rows, b, at, c + i * p->ldc);
        for (; i < p->m; i++, rows++)
            tile_one(p, rows, b, at, c + i * p->ldc);
    }
}

/* ---- sums that become codes where they are made ---- */

/* Sums below 2^31 times factors below 1 are rounded as integers, cut off as far as 16 bits and bytes reach on the way, and as bytes
 * without a sign by the smallest and the largest code: codes that have one are moved up before, and get it back by `flip`. */
typedef struct Bounds {
    __m512i z, least, most, flip;
} Bounds;

static inline __m512i scaled(__m512i sums, f32 factor)
{
    return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_set1_ps(factor)));
}

static inline __m512i both_scaled(const Bounds *b, __m512i x, __m512i y, f32 of_x, f32 of_y)
{
    return _mm512_adds_epi16(_mm512_packs_epi32(scaled(x, of_x), scaled(y, of_y)), b->z);
}

/* The codes of four vectors, one after the other, of two pairs that are scaled. */
static inline __m512i four_codes(const Bounds *b, __m512i low, __m512i high)
{
    const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(low, high), b->least), b->most);
    return _mm512_permutexvar_epi32(in_order, _mm512_xor_si512(bytes, b->flip));
}

/* Of one tile and one panel: rows that there are, columns of each as a mask. */
typedef struct Corner {
    const PairProduct *p;
    const size_t *at;
    const i32 *start;
    const f32 *factor;
    size_t rows;
    u32 columns;
} Corner;

/* One row in each half, or in each quarter. */
static inline void put_halves(const Corner *c, size_t row, __m512i codes, u8 *to)
{
    const __mmask32 columns = c->columns;
    const size_t ldc = c->p->ldc;
    if (row < c->rows)
        _mm256_mask_storeu_epi8(to + row * ldc, columns, _mm512_castsi512_si256(codes));
    if (row + 1 < c->rows)
        _mm256_mask_storeu_epi8(to + (row + 1) * ldc, columns, _mm512_extracti64x4_epi64(codes, 1));
}

static inline void put_quarters(const Corner *c, size_t row, __m512i codes, u8 *to)
{
    const __mmask16 columns = (__mmask16)c->columns;
    const __m128i quarters[] = { _mm512_castsi512_si128(codes), _mm512_extracti32x4_epi32(codes, 1),
                                 _mm512_extracti32x4_epi32(codes, 2), _mm512_extracti32x4_epi32(codes, 3) };
    for (size_t i = 0; i < COUNT(quarters); i++)
        if (row + i < c->rows)
            _mm_mask_storeu_epi8(to + (row + i) * c->p->ldc, columns, quarters[i]);
}

/* Sums never leave their registers: all loops but that of the words are turned into as many lines. */
#ifdef __clang__
#define WHOLE_LOOP _Pragma("clang loop unroll(full)")
#else
#define WHOLE_LOOP _Pragma("GCC unroll 24")
#endif
#define TILE(id, count, vectors, PUT)                                                                                  \
    static void id(const Corner *c, const Bounds *b, const u32 *a, const u32 *x, u8 *to)                               \
    {                                                                                                                  \
        const size_t *at = c->at, words = c->p->words;                                                                 \
        const f32 *factor = c->factor;                                                                                 \
        __m512i sum[(count) * (vectors)];                                                                              \
        WHOLE_LOOP                                                                                                     \
        for (size_t i = 0; i < (count) * (vectors); i++)                                                               \
            sum[i] = _mm512_set1_epi32(c->start[i / (vectors)]);                                                       \
        for (size_t w = 0; w < words; w++, a += ROWS) {                                                                \
            __m512i column[vectors];                                                                                   \
            WHOLE_LOOP                                                                                                 \
            for (size_t j = 0; j < (vectors); j++)                                                                     \
                column[j] = _mm512_loadu_si512(x + at[w] + j * LANES);                                                 \
            WHOLE_LOOP                                                                                                 \
            for (size_t i = 0; i < (count) * (vectors); i++)                                                           \
                sum[i] = dot(sum[i], column[i % (vectors)], _mm512_set1_epi32((i32)a[i / (vectors)]));                 \
        }                                                                                                              \
        WHOLE_LOOP                                                                                                     \
        for (size_t i = 0; i < (count) * (vectors); i += 4) {                                                          \
            const size_t row = i / (vectors);                                                                          \
            const __m512i low = both_scaled(b, sum[i], sum[i + 1], factor[row], factor[(i + 1) / (vectors)]);          \
            const __m512i high =                                                                                       \
                both_scaled(b, sum[i + 2], sum[i + 3], factor[(i + 2) / (vectors)], factor[(i + 3) / (vectors)]);      \
            PUT(c, row, four_codes(b, low, high), to);                                                                 \
        }                                                                                                              \
    }
enum { MORE = 8 };
TILE(codes_full, ROWS, 2, put_halves)
TILE(codes_more, MORE, 2, put_halves)
TILE(codes_few, FEW, 2, put_halves)
TILE(codes_full_half, ROWS, 1, put_quarters)
TILE(codes_more_half, MORE, 1, put_quarters)
TILE(codes_few_half, FEW, 1, put_quarters)
#undef TILE
#undef WHOLE_LOOP

static void codes(const PairProduct *p, const u32 *a, const u32 *b, const size_t *at, const RowCodes *of, u8 *to)
{
    enum { UP = 0x80 };
    const i32 up = of->range.lo < 0 ? UP : 0;
    const Bounds bounds = { .z = _mm512_set1_epi16((int16_t)((i32)of->range.z + up)),
                            .least = _mm512_set1_epi8((char)((i32)of->range.lo + up)),
                            .most = _mm512_set1_epi8((char)((i32)of->range.hi + up)),
                            .flip = _mm512_set1_epi8((char)up) };
    for (size_t j = 0; j < p->n; j += WIDTH, b += p->panel, to += WIDTH) {
        const size_t left = p->n - j;
        const u32 *rows = a;
        for (size_t i = 0; i < p->m; i += ROWS, rows += p->tile) {
            const Corner c = { .p = p,
                               .at = at,
                               .start = of->start + i,
                               .factor = of->factor + i,
                               .rows = p->m - i,
                               .columns = left < WIDTH ? (1u << left) - 1 : ~0u };
            u8 *const first = to + i * p->ldc;
            if (left > LANES)
                (c.rows > MORE ? codes_full : c.rows > FEW ? codes_more : codes_few)(&c, &bounds, rows, b, first);
            else
                (c.rows > MORE  ? codes_full_half
                 : c.rows > FEW ? codes_more_half
                                : codes_few_half)(&c, &bounds, rows, b, first);
        }
    }
}
#define CODES codes

/* Words beside each other, and their sums along the tile. */
static void pack(size_t rows, size_t words, const void *from, size_t row, u32 *tile, i32 *totals)
{
    const __mmask16 lanes = (__mmask16)((1u << rows) - 1);
    const __m512i one = _mm512_set1_epi8(1);
    __m512i sum = _mm512_setzero_si512();
    if (rows < ROWS)
        memset(tile, 0, words * ROWS * sizeof *tile);
    turn_words_wide(rows, words, from, row, tile, ROWS);
    for (size_t w = 0; w < words; w++)
        sum = dot(sum, one, _mm512_maskz_loadu_epi32(lanes, tile + w * ROWS));
    _mm512_mask_storeu_epi32(totals, lanes, sum);
}
#endif

const QuadLoops LEVEL_NAME(quads) = { ROWS,  WIDTH,     WHOLE, AT_A_TIME, quad, pack,    multiply,
                                      CODES, copy_runs, along, copy,      add,  integers };
#undef CODES
#else
const QuadLoops LEVEL_NAME(quads) = { .add = add, .integers = integers };
#endif
