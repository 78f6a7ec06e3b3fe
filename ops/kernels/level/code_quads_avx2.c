/* Products of words of four bytes by vectors of eight words, where the level has no larger ones with an instruction for them.
 *
 * Where it has none at all, two products of bytes are added up in 16 bits, which is exact if their weights allow it for any data:
 * plain words.  Others are parted into bytes of even and of odd places, as pairs of 16 bits, and each two pairs are multiplied. */
#include "ops/kernels/level/quads_common.h"

#if defined(__AVX2__) && !defined(__AVX512VNNI__)
#include <immintrin.h>

#include <string.h>

enum { VECTORS = 2, LANES = 8, DEPTH = 4, WIDTH = VECTORS * LANES, BYTES = LANES * DEPTH };

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline void store(void *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

static inline __m256i load_halves(const void *low, const void *high)
{
    const __m128i first = _mm_loadu_si128((const __m128i *)low), second = _mm_loadu_si128((const __m128i *)high);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
}

/* ---- sums of products ---- */

#ifdef __AVXVNNI__
enum { ROWS = 6 };

static bool is_plain(u32 word)
{
    (void)word;
    return true;
}

/* In one line of assembler: gcc 12 moves sums of the intrinsic through other registers and the stack. */
static inline __m256i add_plain(__m256i s, __m256i x, __m256i w)
{
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(s) : "x"(x), "x"(w));
    return s;
}
#else
enum { ROWS = 4 };

/* Whether no two products of neighbours, of bytes up to 255 and these weights, add up to what 16 bits cannot hold. */
static bool is_plain(u32 word)
{
    enum { MOST = INT16_MAX / UINT8_MAX };
    for (u32 k = 0; k < DEPTH; k += 2) {
        const i32 first = (i8)(word >> 8 * k), second = (i8)(word >> 8 * (k + 1));
        const bool alike = (first < 0) == (second < 0);
        if (alike && (first + second > MOST || first + second < -MOST))
            return false;
    }
    return true;
}

/* Of gcc 12, too, sums leave their registers where these are intrinsics. */
static inline __m256i add_plain(__m256i s, __m256i x, __m256i w)
{
    __m256i pairs;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
            : "+x"(s), "=&x"(pairs)
            : "x"(x), "x"(w), "xm"(_mm256_set1_epi16(1)));
    return s;
}
#endif

static inline __m256i add_pairs(__m256i s, __m256i x, __m256i w)
{
    __m256i pairs;
    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(s), "=&x"(pairs) : "x"(x), "x"(w));
    return s;
}

static inline __m256i of_word(u32 word)
{
    return _mm256_set1_epi32((i32)word);
}

/* Bytes of even and of odd places: those of data have no sign, those of weights have one. */
enum { ODD = 8, EVENS = 0x00ff00ff, PARTS = 2 };

static inline __m256i evens_of(__m256i words)
{
    return _mm256_and_si256(words, of_word(EVENS));
}

static inline __m256i odds_of(__m256i words)
{
    return _mm256_srli_epi16(words, ODD);
}

static void part(u32 word, u32 to[PARTS])
{
    to[0] = (u32)(u16)(i8)word | (u32)(i8)(word >> 2 * ODD) << 2 * ODD;
    to[1] = (u32)(u16)(i8)(word >> ODD) | (u32)(i8)(word >> 3 * ODD) << 2 * ODD;
}

/* A packed tile: how many of its words are plain in all rows, which words these are, and then the others; what they are in each row, and
 * the parts of the others. */
typedef struct Tile {
    size_t plain;
    const u32 *word, *plains, *parted;
} Tile;

static size_t tile_room(size_t words)
{
    return 1 + words + words * ROWS * PARTS;
}

static Tile tile_of(const u32 *packed, size_t words)
{
    const u32 *word = packed + 1, *plains = word + words;
    return (Tile){ .plain = *packed, .word = word, .plains = plains, .parted = plains + *packed * ROWS };
}

static void pack(size_t rows, size_t words, const void *from, size_t row, u32 *tile, i32 *totals)
{
    const char *lines = from;
    u32 *word = tile + 1, *to = word + words, column[ROWS] = { 0 };
    size_t n = 0;
    memset(totals, 0, rows * sizeof *totals);
    for (int plain = 1; plain >= 0; plain--) {
        for (size_t w = 0; w < words; w++) {
            bool all = true;
            for (size_t i = 0; i < rows; i++) {
                memcpy(column + i, lines + i * row + w * sizeof *column, sizeof *column);
                all = all && is_plain(column[i]);
            }
            if (all != plain)
                continue;
            word[n++] = (u32)w;
            for (size_t i = 0; i < ROWS; i++, to += plain ? 1 : PARTS)
                if (plain)
                    *to = column[i];
                else
                    part(column[i], to);
            for (size_t i = 0; i < rows; i++)
                for (u32 k = 0; k < DEPTH; k++)
                    totals[i] += (i8)(column[i] >> 8 * k);
        }
        if (plain)
            *tile = (u32)n;
    }
}

/* Adds what all rows of a tile and so many vectors of a panel come to. */
#define ADD_TILE(id, vectors)                                                                                          \
    static inline void id(const Tile *t, size_t words, const u32 *x, const size_t *at, __m256i sum[ROWS][vectors])     \
    {                                                                                                                  \
        const u32 *a = t->plains, *part = t->parted;                                                                   \
        for (size_t w = 0; w < t->plain; w++, a += ROWS) {                                                             \
            __m256i column[vectors];                                                                                   \
            WHOLE_LOOP                                                                                                 \
            for (size_t j = 0; j < (vectors); j++)                                                                     \
                column[j] = load(x + at[t->word[w]] + j * LANES);                                                      \
            WHOLE_LOOP                                                                                                 \
            for (size_t i = 0; i < ROWS; i++) {                                                                        \
                const __m256i one = of_word(a[i]);                                                                     \
                for (size_t j = 0; j < (vectors); j++)                                                                 \
                    sum[i][j] = add_plain(sum[i][j], column[j], one);                                                  \
            }                                                                                                          \
        }                                                                                                              \
        for (size_t w = t->plain; w < words; w++, part += ROWS * PARTS) {                                              \
            __m256i even[vectors], odd[vectors];                                                                       \
            WHOLE_LOOP                                                                                                 \
            for (size_t j = 0; j < (vectors); j++) {                                                                   \
                const __m256i column = load(x + at[t->word[w]] + j * LANES);                                           \
                even[j] = evens_of(column);                                                                            \
                odd[j] = odds_of(column);                                                                              \
            }                                                                                                          \
            WHOLE_LOOP                                                                                                 \
            for (size_t i = 0; i < ROWS; i++) { /* each weight is read once, for gcc would keep them all */            \
                const __m256i first = of_word(part[i * PARTS]);                                                        \
                for (size_t j = 0; j < (vectors); j++)                                                                 \
                    sum[i][j] = add_pairs(sum[i][j], even[j], first);                                                  \
                const __m256i second = of_word(part[i * PARTS + 1]);                                                   \
                for (size_t j = 0; j < (vectors); j++)                                                                 \
                    sum[i][j] = add_pairs(sum[i][j], odd[j], second);                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }
ADD_TILE(add_tile, VECTORS)
ADD_TILE(add_half, 1)
#undef ADD_TILE

/* Sums live in registers for all words. */
static void multiply_tile(const PairProduct *p, size_t rows, const u32 *a, const u32 *b, const size_t *at, i32 *c)
{
    const Tile tile = tile_of(a, p->words);
    __m256i sum[ROWS][VECTORS];
    WHOLE_LOOP
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < VECTORS; j++)
            sum[i][j] = p->fresh || i >= rows ? _mm256_setzero_si256() : load(c + i * p->ldc + j * LANES);
    add_tile(&tile, p->words, b, at, sum);
    WHOLE_LOOP
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < VECTORS && i < rows; j++)
            store(c + i * p->ldc + j * LANES, sum[i][j]);
}

static void multiply(const PairProduct *p, const u32 *a, const u32 *b, const size_t *at, i32 *c)
{
    for (size_t j = 0; j < p->n; j += WIDTH, b += p->panel, c += WIDTH) {
        const u32 *tile = a;
        for (size_t i = 0; i < p->m; i += ROWS, tile += p->tile)
            multiply_tile(p, p->m - i, tile, b, at, c + i * p->ldc);
    }
}

/* ---- codes ---- */

/* Sums below 2^31 times factors below 1 are rounded as integers, cut off as far as 16 bits and bytes reach on the way, and as bytes
 * without a sign by the smallest and the largest code: codes that have one are moved up before, and get it back by `flip`. */
typedef struct Bounds {
    __m256i z, least, most, flip;
} Bounds;

static Bounds bounds_of(const CodeRange *range)
{
    enum { UP = 0x80 };
    const i32 up = range->lo < 0 ? UP : 0;
    return (Bounds){ .z = _mm256_set1_epi16((int16_t)((i32)range->z + up)),
                     .least = _mm256_set1_epi8((char)((i32)range->lo + up)),
                     .most = _mm256_set1_epi8((char)((i32)range->hi + up)),
                     .flip = _mm256_set1_epi8((char)up) };
}

static inline __m256i scaled(__m256i sums, __m256 factor)
{
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(sums), factor));
}

static inline __m256i both_scaled(const Bounds *b, __m256i x, __m256i y, f32 factor)
{
    const __m256 by = _mm256_set1_ps(factor);
    return _mm256_adds_epi16(_mm256_packs_epi32(scaled(x, by), scaled(y, by)), b->z);
}

/* The codes of four vectors, one after the other, of two pairs that are scaled. */
static inline __m256i four_codes(const Bounds *b, __m256i low, __m256i high)
{
    const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(low, high), b->least), b->most);
    return _mm256_permutevar8x32_epi32(_mm256_xor_si256(bytes, b->flip), in_order);
}

/* Bytes first to first + n of a vector, n less than sixteen, a power of two of them at a time. */
static inline void put_some(u8 *to, __m128i codes, size_t first, size_t n)
{
    u8 bytes[WIDTH];
    _mm_storeu_si128((__m128i *)(void *)bytes, codes);
    const u8 *from = bytes + first;
    for (size_t some = WIDTH / 2; some; some /= 2)
        if (n & some) {
            for (size_t i = 0; i < some; i++)
                to[i] = from[i];
            to += some;
            from += some;
        }
}

enum { WHOLE_PIECE = (1 << WIDTH) - 1 };

static inline void put_row(const Corner *c, size_t row, __m128i codes, u8 *to)
{
    if (row >= c->rows)
        return;
    to += row * c->p->ldc;
    for (size_t i = 0; i < c->n_pieces; i++) {
        const CodePiece piece = c->pieces[i];
        const size_t first = (size_t)__builtin_ctz(piece.lanes), n = (size_t)__builtin_popcount(piece.lanes);
        if (piece.lanes == WHOLE_PIECE)
            _mm_storeu_si128((__m128i *)(void *)(to + piece.to), codes);
        else
            put_some(to + piece.to + (int64_t)first, codes, first, n);
    }
}

/* Sums never leave their registers. */
#define CODES_TILE(id, add, vectors)                                                                                   \
    static void id(const Corner *c, const Bounds *b, const u32 *a, const u32 *x, u8 *to)                               \
    {                                                                                                                  \
        const Tile tile = tile_of(a, c->p->words);                                                                     \
        const f32 *by = c->factor;                                                                                     \
        const size_t ldc = c->p->ldc;                                                                                  \
        const bool all = c->rows >= ROWS && c->n_pieces == 1 && c->pieces->lanes == WHOLE_PIECE;                       \
        u8 *const whole = all ? to + c->pieces->to : NULL;                                                             \
        __m256i sum[ROWS][vectors];                                                                                    \
        WHOLE_LOOP                                                                                                     \
        for (size_t i = 0; i < ROWS; i++)                                                                              \
            for (size_t j = 0; j < (vectors); j++)                                                                     \
                sum[i][j] = of_word((u32)c->start[i]);                                                                 \
        add(&tile, c->p->words, x, c->at, sum);                                                                        \
        WHOLE_LOOP                                                                                                     \
        for (size_t i = 0; i < ROWS; i += 2) {                                                                         \
            const __m256i low = both_scaled(b, sum[i][0], sum[i][(vectors)-1], by[i]);                                 \
            const __m256i high = both_scaled(b, sum[i + 1][0], sum[i + 1][(vectors)-1], by[i + 1]);                    \
            const __m256i both = four_codes(b, low, high);                                                             \
            const __m128i first = _mm256_castsi256_si128(both), second = _mm256_extracti128_si256(both, 1);            \
            if (whole) {                                                                                               \
                _mm_storeu_si128((__m128i *)(void *)(whole + i * ldc), first);                                         \
                _mm_storeu_si128((__m128i *)(void *)(whole + (i + 1) * ldc), second);                                  \
            } else {                                                                                                   \
                put_row(c, i, first, to);                                                                              \
                put_row(c, i + 1, second, to);                                                                         \
            }                                                                                                          \
        }                                                                                                              \
    }
CODES_TILE(codes_full, add_tile, VECTORS)
CODES_TILE(codes_half, add_half, 1)
#undef CODES_TILE

static void codes(const PairProduct *p, const u32 *a, const u32 *b, const size_t *at, const RowCodes *of, u8 *to)
{
    const Bounds bounds = bounds_of(&of->range);
    Corner c = { .p = p, .at = at, .pieces = of->pieces };
    CodePiece whole;
    for (size_t j = 0; j < p->n; j += WIDTH, b += p->panel) {
        const u32 *tile = a;
        corner_panel(&c, of, j, WIDTH, &whole);
        for (size_t i = 0; i < p->m; i += ROWS, tile += p->tile) {
            corner_tile(&c, of, i);
            (p->n - j > LANES ? codes_full : codes_half)(&c, &bounds, tile, b, to + i * p->ldc);
        }
    }
}

/* ---- words ---- */

static inline u32 byte_word(const u8 *const lines[4], size_t i)
{
    return (u32)lines[0][i] | (u32)lines[1][i] << 8 | (u32)lines[2][i] << 16 | (u32)lines[3][i] << 24;
}

static inline void quad_whole(const u8 *const lines[4], size_t i, __m256i turn, u32 *restrict to)
{
    enum { AHEAD = 512, LOW = 0x20, HIGH = 0x31 };
    for (size_t k = 0; k < DEPTH; k++)
        __builtin_prefetch(lines[k] + i + AHEAD);
    const __m256i a = load(lines[0] + i), b = load(lines[1] + i), c = load(lines[2] + i), d = load(lines[3] + i);
    const __m256i ab = _mm256_xor_si256(_mm256_unpacklo_epi8(a, b), turn);
    const __m256i ab_high = _mm256_xor_si256(_mm256_unpackhi_epi8(a, b), turn);
    const __m256i cd = _mm256_xor_si256(_mm256_unpacklo_epi8(c, d), turn);
    const __m256i cd_high = _mm256_xor_si256(_mm256_unpackhi_epi8(c, d), turn);
    const __m256i w0 = _mm256_unpacklo_epi16(ab, cd), w1 = _mm256_unpackhi_epi16(ab, cd);
    const __m256i w2 = _mm256_unpacklo_epi16(ab_high, cd_high), w3 = _mm256_unpackhi_epi16(ab_high, cd_high);
    store(to + i, _mm256_permute2x128_si256(w0, w1, LOW));
    store(to + i + LANES, _mm256_permute2x128_si256(w2, w3, LOW));
    store(to + i + 2 * LANES, _mm256_permute2x128_si256(w0, w1, HIGH));
    store(to + i + 3 * LANES, _mm256_permute2x128_si256(w2, w3, HIGH));
}

static inline void quad_eight(const u8 *const lines[4], size_t i, __m256i turn, u32 *restrict to)
{
    __m128i v[DEPTH];
    for (size_t k = 0; k < DEPTH; k++)
        v[k] = _mm_loadl_epi64((const __m128i *)(const void *)(lines[k] + i));
    const __m128i ab = _mm_unpacklo_epi8(v[0], v[1]), cd = _mm_unpacklo_epi8(v[2], v[3]);
    const __m256i words =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi16(ab, cd)), _mm_unpackhi_epi16(ab, cd), 1);
    store(to + i, _mm256_xor_si256(words, turn));
}

/* Bytes between each other, all four turned alike.  The last ones are taken together with some before them. */
static void quad(size_t n, const u8 *const lines[4], u32 flip, u32 *restrict to)
{
    const __m256i turn = _mm256_set1_epi32((i32)flip);
    size_t i = 0;
    for (; i + BYTES <= n; i += BYTES)
        quad_whole(lines, i, turn, to);
    for (; i + LANES <= n; i += LANES)
        quad_eight(lines, i, turn, to);
    if (i < n && n >= LANES)
        quad_eight(lines, n - LANES, turn, to);
    for (; i < n && n < LANES; i++)
        to[i] = byte_word(lines, i) ^ flip;
}

static inline void fill_words(size_t n, u32 word, u32 *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = word;
}

static void quads(const QuadLines *q, const u8 *const lines[4], u32 *to)
{
    const u8 *x[] = { lines[0], lines[1], lines[2], lines[3] };
    for (size_t l = 0; l < q->lines; l++, to += q->pitch) {
        fill_words(q->before, q->zero, to);
        quad(q->n, x, q->flip, to + q->before);
        fill_words(q->pitch - q->before - q->n, q->zero, to + q->before + q->n);
        for (size_t k = 0; k < DEPTH; k++)
            x[k] += q->apart;
    }
}

static void evens(size_t n, const u32 *from, u32 *to)
{
    enum { EVEN = 0x88, IN_ORDER = 0xd8 };
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const __m256 low = _mm256_castsi256_ps(load(from + 2 * i)),
                     high = _mm256_castsi256_ps(load(from + 2 * i + LANES));
        const __m256i words = _mm256_castps_si256(_mm256_shuffle_ps(low, high, EVEN));
        store(to + i, _mm256_permute4x64_epi64(words, IN_ORDER));
    }
    for (; i < n; i++)
        to[i] = from[2 * i];
}

static void copy_runs(size_t n, const WordRun *runs, const u32 *restrict from, u32 *restrict to)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < WORD_RUN; k += LANES)
            store(to + runs[i].to + k, load(from + runs[i].from + k));
}

/* ---- words of bytes that are neighbours ---- */

enum { HALF = LANES / 2, HALF_BYTES = HALF * DEPTH };

static inline i8 within_bytes(int64_t at)
{
    return (i8)(at < -1 ? -1 : at > INT8_MAX ? INT8_MAX : at);
}

/* Which bytes of eight words, at these places behind the first one, lie in a line; the others are of padding. */
static inline __m256i bytes_there(__m256i places, int64_t first, int64_t width)
{
    const __m256i before = _mm256_set1_epi8(within_bytes(-first - 1)),
                  end = _mm256_set1_epi8(within_bytes(width - first));
    return _mm256_and_si256(_mm256_cmpgt_epi8(places, before), _mm256_cmpgt_epi8(end, places));
}

/* Both halves of eight words as they are loaded, of a line of which not all may be read. */
static __m256i halves_within(const ByteLines *l, const u8 *line, int64_t first, int64_t second)
{
    u8 bytes[2][HALF_BYTES] = { { 0 } };
    const int64_t begin[] = { first, second };
    for (int h = 0; h < 2; h++)
        for (int64_t i = 0; i < HALF_BYTES; i++)
            if (begin[h] + i >= 0 && begin[h] + i < l->width)
                bytes[h][i] = line[begin[h] + i];
    return load(bytes);
}

/* One line after the other: what is written behind a line is the beginning of the next one, which comes later. */
static void byte_lines(const ByteLines *l, const u8 *x, u32 *restrict to)
{
    const size_t n = l->n;
    const int64_t stride = (int64_t)l->stride;
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), turn = _mm256_set1_epi8((char)l->flip);
    const __m256i zero = _mm256_xor_si256(_mm256_set1_epi8((char)l->zero), turn);
    u8 in_line[BYTES], in_half[BYTES];
    for (size_t i = 0; i < BYTES; i++) {
        in_line[i] = (u8)(i / DEPTH * l->stride + i % DEPTH);
        in_half[i] = (u8)(i / DEPTH % HALF * l->stride + i % DEPTH);
    }
    const __m256i places = load(in_line), order = load(in_half);
    for (size_t k = 0; k < l->lines; k++, to += n) {
        const int64_t at = (int64_t)(k * l->apart);
        for (size_t i = 0; i < n; i += LANES) {
            const int64_t first = l->begin + (int64_t)i * stride, second = first + HALF * stride;
            const bool whole = first >= 0 && second + HALF_BYTES <= l->width;
            const bool readable = whole || (at + first >= -l->before && at + second + HALF_BYTES <= l->behind);
            const __m256i v =
                readable ? load_halves(x + at + first, x + at + second) : halves_within(l, x + at, first, second);
            __m256i words = _mm256_xor_si256(_mm256_shuffle_epi8(v, order), turn);
            if (!whole)
                words = _mm256_blendv_epi8(zero, words, bytes_there(places, first, l->width));
            if (k + 1 < l->lines || n - i >= LANES)
                store(to + i, words);
            else
                _mm256_maskstore_epi32((i32 *)to + i, _mm256_cmpgt_epi32(_mm256_set1_epi32((i32)(n - i)), lane), words);
        }
    }
}

/* Four vectors of sums at a time. */
enum { FOUR = 4 };
typedef struct Sums {
    __m256i s[FOUR];
} Sums;

static inline Sums sums_along(const WordTaps *t, const u32 *x, u32 start)
{
    const __m256i from = of_word(start);
    Sums v = { { from, from, from, from } };
    for (size_t w = 0; w < t->words; w++) {
        const u32 *words = x + t->at[w];
        if (is_plain(t->weights[w])) {
            const __m256i weights = of_word(t->weights[w]);
            WHOLE_LOOP
            for (size_t k = 0; k < FOUR; k++)
                v.s[k] = add_plain(v.s[k], load(words + k * LANES), weights);
            continue;
        }
        u32 parts[PARTS];
        part(t->weights[w], parts);
        const __m256i even = of_word(parts[0]), odd = of_word(parts[1]);
        WHOLE_LOOP
        for (size_t k = 0; k < FOUR; k++) {
            const __m256i column = load(words + k * LANES);
            v.s[k] = add_pairs(add_pairs(v.s[k], evens_of(column), even), odds_of(column), odd);
        }
    }
    return v;
}

static void along(const WordTaps *t, size_t n, const u32 *x, u32 start, i32 *sums)
{
    for (size_t i = 0; i < n; i += FOUR * LANES) {
        const Sums v = sums_along(t, x + i, start);
        WHOLE_LOOP
        for (size_t k = 0; k < FOUR; k++)
            store(sums + i + k * LANES, v.s[k]);
    }
}

static void along_codes(const WordTaps *t, size_t n, const u32 *x, const RowCodes *of, u8 *restrict to)
{
    const Bounds b = bounds_of(&of->range);
    const f32 by = *of->factor;
    for (size_t i = 0; i < n; i += FOUR * LANES) {
        const Sums v = sums_along(t, x + i, (u32)*of->start);
        const __m256i made = four_codes(&b, both_scaled(&b, v.s[0], v.s[1], by), both_scaled(&b, v.s[2], v.s[3], by));
        if (n - i >= FOUR * LANES) {
            store(to + i, made);
            continue;
        }
        const size_t low = n - i < WIDTH ? n - i : WIDTH, high = n - i - low;
        if (low == WIDTH)
            _mm_storeu_si128((__m128i *)(void *)(to + i), _mm256_castsi256_si128(made));
        else
            put_some(to + i, _mm256_castsi256_si128(made), 0, low);
        put_some(to + i + low, _mm256_extracti128_si256(made, 1), 0, high);
    }
}

const QuadLoops LEVEL_NAME(quads) = { .rows = ROWS,
                                      .width = WIDTH,
                                      .tile = tile_room,
                                      .whole = 1,
                                      .at_a_time = SIZE_MAX,
                                      .quad = quad,
                                      .quads = quads,
                                      .evens = evens,
                                      .pack = pack,
                                      .multiply = multiply,
                                      .codes = codes,
                                      .runs = copy_runs,
                                      .lines = byte_lines,
                                      .along = along,
                                      .along_codes = along_codes,
                                      .add = quads_add,
                                      .integers = quads_integers };
#endif
