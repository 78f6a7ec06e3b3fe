/* Products of words of four bytes by vectors of sixteen words, where the level has an instruction for them, or by tiles. */
#include "ops/kernels/level/quads_common.h"
#include "ops/kernels/level/tiles.h"
#include "ops/kernels/level/turn.h"

#include <string.h>

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

static inline void fill_words(size_t n, __m512i word, u32 *to)
{
    for (size_t i = 0; i < n; i += LANES)
        put_words(to + i, n - i, word, _mm512_setzero_si512());
}

static void quads(const QuadLines *q, const u8 *const lines[4], u32 *to)
{
    const u8 *x[] = { lines[0], lines[1], lines[2], lines[3] };
    const __m512i zero = _mm512_set1_epi32((i32)q->zero);
    for (size_t l = 0; l < q->lines; l++, to += q->pitch) {
        fill_words(q->before, zero, to);
        quad(q->n, x, q->flip, to + q->before);
        fill_words(q->pitch - q->before - q->n, zero, to + q->before + q->n);
        for (size_t k = 0; k < DEPTH; k++)
            x[k] += q->apart;
    }
}

static void evens(size_t n, const u32 *from, u32 *to)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    for (size_t i = 0; i < n; i += LANES) {
        const __m512i low = _mm512_loadu_si512(from + 2 * i), high = _mm512_loadu_si512(from + 2 * i + LANES);
        put_words(to + i, n - i, _mm512_permutex2var_epi32(low, even, high), _mm512_setzero_si512());
    }
}

/* Lane l of four words begins with word l * stride of what is loaded, and word i of it with byte i * stride. */
static void byte_lines(const ByteLines *l, const u8 *x, u32 *restrict to)
{
    enum { LANE = 4, BYTES = 64, ALIKE = 0x01010101, IN_ORDER = 0x03020100 };
    const size_t n = l->n, lines = l->lines, apart = l->apart;
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i in_four = _mm512_and_si512(lane, _mm512_set1_epi32(LANE - 1)), four = _mm512_srli_epi32(lane, 2);
    const __m512i of_words = _mm512_add_epi32(_mm512_mullo_epi32(four, _mm512_set1_epi32((i32)l->stride)), in_four);
    const __m512i of_bytes = _mm512_add_epi32(_mm512_mullo_epi32(in_four, _mm512_set1_epi32((i32)l->stride * ALIKE)),
                                              _mm512_set1_epi32(IN_ORDER));
    const __m512i zero = _mm512_set1_epi8((char)l->zero), turn = _mm512_set1_epi8((char)l->flip);
    for (size_t i = 0; i < n; i += LANES) {
        const int64_t first = l->begin + (int64_t)(i * l->stride), left = l->width - first;
        __mmask64 seen = left >= BYTES ? ~(__mmask64)0 : left > 0 ? ((__mmask64)1 << left) - 1 : 0;
        if (first < 0)
            seen = first > -BYTES ? seen & ~(__mmask64)0 << -first : 0;
        const __mmask16 some = (__mmask16)(n - i < LANES ? (1u << (n - i)) - 1 : 0xffff);
        for (size_t k = 0; k < lines; k++) {
            const __m512i v = _mm512_xor_si512(_mm512_mask_loadu_epi8(zero, seen, x + first + k * apart), turn);
            _mm512_mask_storeu_epi32(to + k * n + i, some,
                                     _mm512_shuffle_epi8(_mm512_permutexvar_epi32(of_words, v), of_bytes));
        }
    }
}

/* Four vectors of sums at a time. */
enum { FOUR = 4 };
typedef struct Sums {
    __m512i s[FOUR];
} Sums;

static inline Sums sums_along(const WordTaps *t, const u32 *x, u32 start)
{
    const __m512i from = _mm512_set1_epi32((i32)start);
    Sums v = { { from, from, from, from } };
    for (size_t w = 0; w < t->words; w++) {
        const __m512i weights = _mm512_set1_epi32((i32)t->weights[w]);
        const u32 *words = x + t->at[w];
        WHOLE_LOOP
        for (size_t k = 0; k < FOUR; k++)
            v.s[k] = dot(v.s[k], _mm512_loadu_si512(words + k * LANES), weights);
    }
    return v;
}

static void along(const WordTaps *t, size_t n, const u32 *x, u32 start, i32 *sums)
{
    for (size_t i = 0; i < n; i += FOUR * LANES) {
        const Sums v = sums_along(t, x + i, start);
        WHOLE_LOOP
        for (size_t k = 0; k < FOUR; k++)
            _mm512_storeu_si512(sums + i + k * LANES, v.s[k]);
    }
}

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

static Bounds bounds_of(const CodeRange *range)
{
    enum { UP = 0x80 };
    const i32 up = range->lo < 0 ? UP : 0;
    return (Bounds){ .z = _mm512_set1_epi16((int16_t)((i32)range->z + up)),
                     .least = _mm512_set1_epi8((char)((i32)range->lo + up)),
                     .most = _mm512_set1_epi8((char)((i32)range->hi + up)),
                     .flip = _mm512_set1_epi8((char)up) };
}

static void along_codes(const WordTaps *t, size_t n, const u32 *x, const RowCodes *of, u8 *restrict to)
{
    const Bounds b = bounds_of(&of->range);
    const f32 by = *of->factor;
    for (size_t i = 0; i < n; i += FOUR * LANES) {
        const Sums v = sums_along(t, x + i, (u32)*of->start);
        const __m512i codes =
            four_codes(&b, both_scaled(&b, v.s[0], v.s[1], by, by), both_scaled(&b, v.s[2], v.s[3], by, by));
        if (n - i >= FOUR * LANES)
            _mm512_storeu_si512(to + i, codes);
        else
            _mm512_mask_storeu_epi8(to + i, ((__mmask64)1 << (n - i)) - 1, codes);
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

/* One row in each half, or in each quarter. */
static inline void put_halves(const Corner *c, size_t row, __m512i codes, u8 *to)
{
    const size_t ldc = c->p->ldc;
    to += row * ldc;
    for (const CodePiece *piece = c->pieces; piece < c->pieces + c->n_pieces; piece++) {
        if (row < c->rows)
            _mm256_mask_storeu_epi8(to + piece->to, piece->lanes, _mm512_castsi512_si256(codes));
        if (row + 1 < c->rows)
            _mm256_mask_storeu_epi8(to + ldc + piece->to, piece->lanes, _mm512_extracti64x4_epi64(codes, 1));
    }
}

static inline void put_quarters(const Corner *c, size_t row, __m512i codes, u8 *to)
{
    const __m128i quarters[] = { _mm512_castsi512_si128(codes), _mm512_extracti32x4_epi32(codes, 1),
                                 _mm512_extracti32x4_epi32(codes, 2), _mm512_extracti32x4_epi32(codes, 3) };
    for (const CodePiece *piece = c->pieces; piece < c->pieces + c->n_pieces; piece++)
        for (size_t i = 0; i < COUNT(quarters); i++)
            if (row + i < c->rows)
                _mm_mask_storeu_epi8(to + (row + i) * c->p->ldc + piece->to, (__mmask16)piece->lanes, quarters[i]);
}

/* Sums never leave their registers. */
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

static void codes(const PairProduct *p, const u32 *a, const u32 *b, const size_t *at, const RowCodes *of, u8 *to)
{
    const Bounds bounds = bounds_of(&of->range);
    Corner c = { .p = p, .at = at, .pieces = of->pieces };
    CodePiece whole;
    for (size_t j = 0; j < p->n; j += WIDTH, b += p->panel) {
        const u32 *rows = a;
        corner_panel(&c, of, j, WIDTH, &whole);
        for (size_t i = 0; i < p->m; i += ROWS, rows += p->tile) {
            u8 *const first = to + i * p->ldc;
            corner_tile(&c, of, i);
            if (p->n - j > LANES)
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

static size_t tile_room(size_t words)
{
    return words * ROWS;
}

const QuadLoops LEVEL_NAME(quads) = { .rows = ROWS,
                                      .width = WIDTH,
                                      .tile = tile_room,
                                      .whole = WHOLE,
                                      .at_a_time = AT_A_TIME,
                                      .quad = quad,
                                      .quads = quads,
                                      .evens = evens,
                                      .pack = pack,
                                      .multiply = multiply,
                                      .codes = CODES,
                                      .runs = copy_runs,
                                      .lines = byte_lines,
                                      .along = along,
                                      .along_codes = along_codes,
                                      .add = quads_add,
                                      .integers = quads_integers };
#undef CODES
#elif !defined(__AVX2__)
const QuadLoops LEVEL_NAME(quads) = { .add = quads_add, .integers = quads_integers };
#endif
