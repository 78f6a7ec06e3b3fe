/* The inner loops that are compiled once per instruction set and chosen when a context opens: the same bits at
 * every level, only faster.  A level is one constant table; nothing is resolved at load time. */
#ifndef OPS_KERNELS_KERNELS_H
#define OPS_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "ir/tensor.h"
#include "ops/reduce/runs.h"
#include "ops/scalar.h"

/* The four arithmetics that carry all element types. */
typedef enum Arithmetic { ARITH_F32, ARITH_F64, ARITH_I64, ARITH_U64 } Arithmetic;

enum { ARITHMETICS = ARITH_U64 + 1, FIXED_OPERANDS = 3 };

/* The numbers of the rows. */
enum {
#define ROW(name, ...)  ROW_##name,
#define PICK(name, ...) ROW_##name,
#define FOLD(name, ...) ROW_##name,
#define TEST(name, ...) ROW_##name,
#include "ops/rows.def"
    ROW_COUNT
};

/* One row over a block: out[i] = value(x[i], y[i], z[i]; k[0], k[1]), all in one arithmetic (bool results as 0 and 1).
 * Operands the row does not read may be null; out may be one of the operands. */
typedef void RowLoop(size_t n, void *out, const void *x, const void *y, const void *z, const double *k);

/* The numbers of the chains. */
enum {
#define CHAIN(name, value) CHAIN_##name,
#include "ops/kernels/chains.def"
#undef CHAIN
    CHAIN_COUNT
};

enum { CHAIN_STREAMS = 3, CHAIN_NUMBERS = 5 };

/* A chain over n elements; out may be one of the streams.  What a chain does not read is null, of numbers anything. */
typedef void ChainLoop(size_t n, f32 *out, const f32 *const *streams, const f32 *numbers);

/* The reductions of ops/reduce.h. */
typedef enum ReduceKind { REDUCE_SUM, REDUCE_SQUARES, REDUCE_PRODUCT, REDUCE_MAX, REDUCE_MIN } ReduceKind;

enum { REDUCE_KINDS = REDUCE_MIN + 1 };

typedef struct ReduceLoops {
    /* out[r] = the reduction of row r of n contiguous elements */
    void (*rows)(size_t rows, size_t n, const void *x, void *out);
    /* out[c] = the reduction of column c over rows that lie `stride` elements apart */
    void (*cols)(size_t rows, size_t cols, size_t stride, const void *x, void *out);
    /* the same where the rows of a column lie in runs */
    void (*runs)(const ReduceRuns *runs, size_t cols, const void *x, void *out);
    /* columns piece by piece: `rows` rows from row `first` of a block of 64 join its eight sums, sums[8][cols]; the end
     * of a block of so many rows folds them; the sums of blocks, parts[blocks][cols], join to the whole.  The segments of
     * a row join likewise, as one column. */
    void (*sums_add)(size_t first, size_t rows, size_t cols, const void *x, void *sums);
    void (*sums_end)(size_t rows, size_t cols, void *sums, void *out);
    void (*join)(size_t blocks, size_t cols, const void *parts, void *out);
    /* out[b] = the block sum of elements 64 b .. 64 b + 63 of one column, whose n elements are neighbours */
    void (*lines)(size_t n, const void *x, void *out);
} ReduceLoops;

/* c[m,n] += a[m,k] b[k,n], k ascending by fma, starting from what c holds; row strides in elements.  Whole products,
 * which are sums of segments, are panels (ops/kernels/panel.h). */
typedef void GemmF32(size_t m, size_t n, size_t k, const f32 *a, size_t lda, const f32 *b, size_t ldb, f32 *c,
                     size_t ldc);
typedef void GemmF64(size_t m, size_t n, size_t k, const f64 *a, size_t lda, const f64 *b, size_t ldb, f64 *c,
                     size_t ldc);
/* Numbers of a result that is read much later: caches would not hold more. */
enum { PAST_CACHES = 1 << 18 };

/* Products of packed operands: rows of a in tiles of so many, columns of b in panels of so many, k filled up with zeros to a
 * multiple of depth; so much of k is best packed and multiplied at a time.  Those of bf16 have c in f32 and neither
 * multiply_beside nor turn; those that multiply tiles may have multiply_lying, and no others. */
typedef struct PackedLoops {
    size_t rows, width, depth, at_a_time;
    /* m rows of k elements, which lie `step` apart, into tiles that lie `apart` apart */
    void (*pack_rows)(size_t m, size_t k, const void *a, size_t row, size_t step, void *to, size_t apart);
    /* n columns of k elements, the rows of which lie `row` apart and the columns `step`, into panels `apart` apart */
    void (*pack_columns)(size_t n, size_t k, const void *b, size_t row, size_t step, void *to, size_t apart);
    /* c[m,n] += a b, k ascending by fma, of tiles `tile` apart and of panels; fresh: c begins with zeros, whatever it holds */
    void (*multiply)(size_t m, size_t n, size_t k, const void *a, size_t tile, const void *b, void *c, size_t ldc,
                     bool fresh);
    /* the same with b as it lies, for few rows; room for a panel */
    void (*multiply_beside)(size_t m, size_t n, size_t k, const void *a, size_t tile, const void *b, size_t ldb,
                            void *c, size_t ldc, bool fresh, void *room);
    /* the same with a as it lies, rows lda apart, and b packed; k is a multiple of depth */
    void (*multiply_lying)(size_t m, size_t n, size_t k, const void *a, size_t lda, const void *b, void *c, size_t ldc,
                           bool fresh);
    /* rows of f32 to where they stand, past the caches, which need not read what is written whole: of lines of a cache, which they
     * begin there, too; null: the level has none */
    void (*copy_past)(size_t rows, size_t cols, const f32 *from, size_t row, f32 *to, size_t to_row);
    /* to[c, r] = from[r, c], rows and columns of `from` */
    void (*turn)(size_t rows, size_t cols, const void *from, size_t row, void *to, size_t to_row);
    /* the same of f32 past the caches, which need not read what is written whole: of rows in lines of a cache, at which rows of `to`
     * begin, too; null: the level has none */
    void (*turn_past)(size_t rows, size_t cols, const f32 *from, size_t row, f32 *to, size_t to_row);
} PackedLoops;

/* Whether what has so many elements is written so: it is more than caches hold. */
static inline bool turns_past(const PackedLoops *l, size_t rows, size_t elements, const f32 *to, size_t to_row)
{
    enum { LINE = 64 / sizeof(f32) };
    return l->turn_past && rows % LINE == 0 && to_row % LINE == 0 && (uintptr_t)to % 64 == 0 && elements >= PAST_CACHES;
}

/* c[m,n] += a b of words, each of which holds two steps of k in bf16, the first one in its low half.  Of a, tiles of PairLoops.rows
 * rows lie `tile` words apart; in a tile word w of row i is at i * row + w, or where row is 1 it is packed: in blocks of depth words
 * the rows follow each other, so that it is at pair_place.  Of b, panels of PairLoops.width columns lie `panel` words apart; in a
 * panel word w of column j is at w * ldb + j.  Behind words that are no multiple of depth stand zeros in both, up to one.
 * Where the level has tiles (depth is more than 1), blocks of b may begin where `at` says: then a is packed, one panel has all
 * columns, and c has room for whole tiles. */
typedef struct PairProduct {
    size_t m, n, words;
    size_t row, tile, ldb, panel, ldc;
    const size_t *at; /* null: one after the other */
    bool fresh;       /* c begins with zeros, whatever it holds */
} PairProduct;

typedef struct PairLoops {
    size_t rows, width, depth;
    /* to[i] = the word of low[i] and high[i]; null: of zeros */
    void (*pair)(size_t n, const u16 *low, const u16 *high, u32 *to);
    /* the same of lines of n words, of elements `step` apart; lines lie `from` and `apart` elements and words apart */
    void (*pair_lines)(size_t lines, size_t n, size_t step, const u16 *low, const u16 *high, size_t from, u32 *to,
                       size_t apart);
    void (*multiply)(const PairProduct *p, const u32 *a, const u32 *b, f32 *c);
} PairLoops;

/* Where word w of row i of a packed tile is. */
static inline size_t pair_place(const PairLoops *l, size_t i, size_t w)
{
    return (w / l->depth * l->rows + i) * l->depth + w % l->depth;
}

/* So many words and the zeros behind them. */
static inline size_t pair_filled(const PairLoops *l, size_t words)
{
    return (words + l->depth - 1) / l->depth * l->depth;
}

/* How codes are stored. */
typedef enum CodeType { CODE_U8, CODE_I8, CODE_U16, CODE_I16, CODE_TYPES } CodeType;

/* Lanes of codes, rows or columns of a product: `lanes` of them, `lane` codes apart, each of k codes `step` codes apart. */
typedef struct CodeLanes {
    CodeType type;
    size_t lanes, k, lane, step;
} CodeLanes;

/* Products of codes, modulo 2^32, from words of `depth` steps of k: tiles of so many rows, panels of so many columns.  Words of a
 * lane are filled up with zeros to a multiple of `whole`, and so are shares of them; so many are best multiplied at a time.  What
 * is multiplied are the codes and what is added to each of them, by its type. */
typedef struct CodeProducts {
    size_t rows, width, depth, whole, at_a_time;
    i32 row_shift[CODE_TYPES], column_shift[CODE_TYPES];
    /* tiles, or panels, that lie `apart` words apart, the last one filled up with zeros; to sums (null: not wanted) is added
     * what is packed of each lane */
    void (*pack_rows)(const CodeLanes *c, const void *codes, u32 *to, size_t apart, i32 *sums);
    void (*pack_columns)(const CodeLanes *c, const void *codes, u32 *to, size_t apart, i32 *sums);
    /* c[m, panels * width] += a b over so many words of both; fresh: c begins with zeros, whatever it holds */
    void (*multiply)(size_t m, size_t panels, size_t words, const u32 *a, size_t tile, const u32 *b, size_t panel,
                     i32 *c, size_t ldc, bool fresh);
    /* c[i] += by_zero * zeros[i] + by_sum * sums[i] */
    void (*correct)(size_t n, u32 by_zero, const u32 *zeros, u32 by_sum, const i32 *sums, i32 *c);
} CodeProducts;

/* Where the numbers of a call that draws begin (base/philox.h). */
typedef struct DrawKey {
    u64 seed;
    u32 stream, step, iteration;
} DrawKey;

/* out[i] = the number of the element with logical index first + i; `limit` is that of PHILOX_KEEP. */
typedef void DrawLoop(const DrawKey *key, PhiloxLaw law, f32 limit, u64 first, size_t n, f32 *out);

/* Windows side by side that see the same rows of an image: `rows` rows of `cols` taps, so far apart, and the next window
 * `stride` columns on.  The first one begins `before` columns ahead of the image, or within it (below 0); of the `width` columns
 * of the image each sees one at least. */
typedef struct WindowTaps {
    i32 rows, cols, row_step, col_step, stride, before, width;
} WindowTaps;

/* Windows over planes: rows first, then columns. */
typedef struct PlaneWindows {
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], before[2]; /* padding before the first element */
} PlaneWindows;

/* The largest tap of each of n windows: the first of equals, a NaN above all numbers, 0 above -0.  x and dx point to the first
 * column of the row that the first row of taps sees; a row of taps reaches over less than LARGEST_REACH elements. */
typedef struct LargestLoops {
    /* where[i] = the tap, from where window i begins */
    void (*find)(const WindowTaps *taps, const f32 *x, size_t n, i32 *where);
    /* y = the largest element of each window of so many planes, `lowest` where it sees padding alone; no element is below that.
     * false: a NaN is the largest of some, and which one y does not say */
    bool (*values)(const PlaneWindows *w, f32 lowest, int64_t planes, const f32 *x, f32 *y);
    /* adds y[i] to the element where[i], window after window; nothing that windows may see in dx is -0 */
    void (*add)(const WindowTaps *taps, const i32 *where, const f32 *y, size_t n, f32 *dx);
} LargestLoops;

enum { LARGEST_REACH = 128 };

enum { LARGEST_PITCH = 4096 };

/* Columns that windows stand over, with their padding: at most LARGEST_PITCH. */
static inline int64_t largest_pitch(const PlaneWindows *w)
{
    const int64_t reach = (w->kernel[1] - 1) * w->dilation[1] + 1;
    return (w->out[1] - 1) * w->stride[1] + (reach < w->stride[1] ? w->stride[1] : reach);
}

/* Sums over few taps, and over positions with as many channels as a vector has lanes beside each other. */
typedef struct TapLoops {
    size_t lanes;
    /* y[i] = the sum over t of w[t] * x[at[t] + i], t ascending by fma from zero; up to lanes - 1 elements behind n are read
     * and made likewise */
    void (*weigh)(size_t taps, const size_t *at, const f32 *w, size_t n, const f32 *x, f32 *y);
    /* sums[t, lane] += the sum over i of x[at[t] + i * step + lane] * y[i, lane], i ascending by fma */
    void (*add)(size_t taps, const size_t *at, size_t n, const f32 *x, size_t step, const f32 *y, f32 *sums);
} TapLoops;

enum { MOST_LANES = 16 }; /* of any level */

/* Windows over a plane of codes, rows of `width`, none of which reaches beyond it; codes ^ flip order as unsigned numbers. */
typedef struct CodeWindows {
    size_t rows, cols; /* of windows */
    size_t kernel_rows, kernel_cols, row_stride, col_stride, width;
    uint8_t flip;
} CodeWindows;

/* The same over a plane of `height` rows, before which so many rows and columns of windows reach, and beyond which they may: every
 * window sees some of it.  Of codes nothing orders below 0 ^ flip. */
typedef struct LargestCodes {
    CodeWindows windows;
    size_t height, before_rows, before_cols;
} LargestCodes;

/* to[window] = its largest code; room: a line of codes as far as windows reach, and two more. */
typedef void LargestCodesLoop(const LargestCodes *l, const uint8_t *x, u16 *room, uint8_t *to);

/* keys[window] = (its largest code ^ flip) * 256 + 255 - the first tap that has it; room: rows * width. */
typedef void CodeWindowsLoop(const CodeWindows *w, const uint8_t *x, u16 *room, u16 *keys);

/* What a code stands for 0, and the smallest and the largest one. */
typedef struct CodeRange {
    f32 z, lo, hi;
} CodeRange;

/* Codes of 8 bits, and what each is multiplied by; flip: 0x80 where they have a sign, else 0. */
typedef struct CodeBytes {
    const u8 *v;
    i32 flip;
    f32 ratio;
} CodeBytes;

/* From sums of products of codes to codes (ops/scalar/quant.h); `codes` are integers kept as f32, and lie apart. */
typedef struct CodeLoops {
    /* v[i] = f32(sums[i] + bias) * factor, one of each or one for each */
    void (*rescale)(size_t n, const i32 *sums, u32 bias, f32 factor, f32 *v);
    void (*rescale_each)(size_t n, const i32 *sums, const i32 *bias, const f32 *factor, f32 *v);
    /* the codes of these, in 8 bits */
    void (*requantize)(size_t n, const i32 *sums, u32 bias, f32 factor, const CodeRange *b, u8 *to);
    void (*requantize_each)(size_t n, const i32 *sums, const i32 *bias, const f32 *factor, const CodeRange *b, u8 *to);
    /* those of x[i] / scale[i * each], each 0 or 1, rounded to the nearest integer or, where there are draws, by chance */
    void (*quantize)(size_t n, const f32 *x, const f32 *scale, size_t each, const f32 *draw, const CodeRange *b,
                     u8 *to);
    /* likewise what `sum` and `round_shifted` below make of two such */
    void (*sum_codes)(size_t n, const CodeBytes *a, const CodeBytes *b, f32 base, const CodeRange *of, u8 *to);
    /* u[i] = fma(a[i], ra, fma(b[i], rb, base)); (a[i] - za) * (b[i] - zb) * m + z */
    void (*sum)(size_t n, const f32 *a, const f32 *b, f32 ra, f32 rb, f32 base, f32 *u);
    void (*product)(size_t n, const f32 *a, const f32 *b, f32 za, f32 zb, f32 m, f32 z, f32 *u);
    /* v[i] /= scale; r[i] = rint_f32(v[i]); r[i] = code_of_f32(r[i], z, lo, hi) */
    void (*divide)(size_t n, f32 *v, f32 scale);
    void (*nearest)(size_t n, const f32 *v, f32 *r);
    void (*settle)(size_t n, f32 *r, f32 z, f32 lo, f32 hi);
    /* codes[i] = stored_code_f32(v[i], z, lo, hi), shifted_code_f32(u[i], z, lo, hi) */
    void (*round)(size_t n, const f32 *v, f32 z, f32 lo, f32 hi, f32 *codes);
    /* as rows, of numbers x and of integers x: the codes k[0] .. k[1] with the zero point y, one number, or none (null) */
    RowLoop *stored, *settled;
    void (*round_shifted)(size_t n, const f32 *u, f32 z, f32 lo, f32 hi, f32 *codes);
    /* most[i] = the larger of it and |x[i]| */
    void (*sizes)(size_t n, const f32 *x, f32 *most);
} CodeLoops;

/* Of any level; of f32 and f64; of bf16; and rows that are whole tiles of floats and of bf16 at every level. */
enum {
    MOST_TILE_ROWS = 32,
    MOST_FLOAT_ROWS = 12,
    MOST_PANEL_WIDTH = 32,
    MOST_DEPTH = 32,
    WHOLE_TILES = 96,
    USUAL_DEPTH = 512
};

typedef struct Kernels Kernels;

/* The fastest level of this machine, which is the same on all machines of a kind. */
const Kernels *kernels_best(void);

/* The names of the levels of this build, from the slowest on; null behind the last. */
extern const char *const kernels_levels[];

/* The level of that name, null when the machine or the build lacks it. */
const Kernels *kernels_named(const char *name);

/* The name of a level. */
const char *kernels_name(const Kernels *k);

/* The loop of a row (Row.number), null in an arithmetic the row does not have. */
RowLoop *kernels_row(const Kernels *level, int row, Arithmetic arithmetic);

/* The same loop where that operand is one number; null where there is none of its own. */
RowLoop *kernels_row_fixed(const Kernels *level, int row, Arithmetic arithmetic, int operand);

/* The loops of a reduction. */
const ReduceLoops *kernels_reduce(const Kernels *level, ReduceKind kind, Arithmetic arithmetic);

/* The loop that draws. */
DrawLoop *kernels_draw(const Kernels *level);

/* The loops of the largest of windows. */
const LargestLoops *kernels_largest(const Kernels *level);

/* The loops over few taps. */
const TapLoops *kernels_taps(const Kernels *level);

/* The loop that finds the largest codes of windows. */
CodeWindowsLoop *kernels_code_windows(const Kernels *level);
LargestCodesLoop *kernels_largest_codes(const Kernels *level);

/* The loops that make codes. */
ChainLoop *kernels_chain(const Kernels *level, int chain);
const CodeLoops *kernels_codes(const Kernels *level);

/* c[m,n] += a b as above, at a level. */
void kernels_gemm_f32(const Kernels *level, size_t m, size_t n, size_t k, const f32 *a, size_t lda, const f32 *b,
                      size_t ldb, f32 *c, size_t ldc);
void kernels_gemm_f64(const Kernels *level, size_t m, size_t n, size_t k, const f64 *a, size_t lda, const f64 *b,
                      size_t ldb, f64 *c, size_t ldc);

/* The loops of products of codes of these types. */
const CodeProducts *kernels_code_products(const Kernels *level, CodeType rows, CodeType columns);

/* Words of a lane of k codes. */
size_t code_words(const CodeProducts *l, size_t k);

/* The loops of packed products of f32 or f64. */
const PackedLoops *kernels_packed(const Kernels *level, Arithmetic arithmetic);

/* Those of bf16 with sums in f32, within a bound of the products of widened operands (docs/arithmetic.md); null where the
 * level has no instruction for them. */
const PackedLoops *kernels_packed_bf16(const Kernels *level);
const PairLoops *kernels_pairs_bf16(const Kernels *level);

/* Whole-tensor conversions between storage and arithmetic (ops/kernels/level/store.c): n elements, any storage type,
 * at the best level of the machine. */
void load_f32(f32 *to, const Tensor *from, int64_t first, int64_t n);
void load_f64(f64 *to, const Tensor *from, int64_t first, int64_t n);
void load_i64(i64 *to, const Tensor *from, int64_t first, int64_t n);
void load_u64(u64 *to, const Tensor *from, int64_t first, int64_t n);
void store_f32(Tensor *to, int64_t first, const f32 *from, int64_t n);
void store_f64(Tensor *to, int64_t first, const f64 *from, int64_t n);
void store_i64(Tensor *to, int64_t first, const i64 *from, int64_t n);
void store_u64(Tensor *to, int64_t first, const u64 *from, int64_t n);

/* The same at a level. */
void kernels_load_f32(const Kernels *level, f32 *to, const Tensor *from, int64_t first, int64_t n);
void kernels_load_f64(const Kernels *level, f64 *to, const Tensor *from, int64_t first, int64_t n);
void kernels_load_i64(const Kernels *level, i64 *to, const Tensor *from, int64_t first, int64_t n);
void kernels_load_u64(const Kernels *level, u64 *to, const Tensor *from, int64_t first, int64_t n);
void kernels_store_f32(const Kernels *level, Tensor *to, int64_t first, const f32 *from, int64_t n);
void kernels_store_f64(const Kernels *level, Tensor *to, int64_t first, const f64 *from, int64_t n);
void kernels_store_i64(const Kernels *level, Tensor *to, int64_t first, const i64 *from, int64_t n);
void kernels_store_u64(const Kernels *level, Tensor *to, int64_t first, const u64 *from, int64_t n);

/* to[i] = what is read of from[i] that was stored as bf16; both may be the same. */
void kernels_round_bf16(const Kernels *level, int64_t n, const f32 *from, f32 *to);

/* Those with an arithmetic that is chosen at run time. */
void kernels_load(const Kernels *level, Arithmetic a, void *to, const Tensor *from, int64_t first, int64_t n);
void kernels_store(const Kernels *level, Arithmetic a, Tensor *to, int64_t first, const void *from, int64_t n);

#endif
