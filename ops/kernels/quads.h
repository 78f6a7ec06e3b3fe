/* Products of words of four bytes each, as convolutions of codes take them: of channels of one tap. */
#ifndef OPS_KERNELS_QUADS_H
#define OPS_KERNELS_QUADS_H

#include "ops/kernels/kernels.h"

/* Words of lines of `width` bytes, `apart` from each other: word i of a line holds byte begin + i * stride of it and the three behind,
 * their bits turned by `flip`; beyond both ends all bytes are `zero`.  Lines of n words follow each other.  So many bytes may be read before
 * the first line, and from its begin on. */
typedef struct ByteLines {
    size_t lines, n, stride, apart;
    int64_t begin, width, before, behind;
    u8 zero, flip;
} ByteLines;

/* Lines of n words between padding: line l begins l * apart bytes on, and at word l * pitch, where so many words are `zero` before its
 * own, and all that are left behind. */
typedef struct QuadLines {
    size_t lines, n, apart, before, pitch;
    u32 flip, zero;
} QuadLines;

/* What a position sees: word w is so many words on from it.  Weights have a sign, the bytes of words none. */
typedef struct WordTaps {
    size_t words;
    const size_t *at;
    const u32 *weights;
} WordTaps;

/* The largest stride; words that are read, or written, behind the last one. */
enum { BYTE_LINE_STRIDE = 4, WORDS_BEYOND = 64 };

/* Columns of a panel whose codes are neighbours: of the lanes that are set, lane i goes to place to + i of a row. */
typedef struct CodePiece {
    int64_t to;
    u32 panel, lanes;
} CodePiece;

/* What sums of rows become: codes of 8 bits, (start[i] + sum) * factor[i] rounded.  Factors are below 1 in size.  Pieces are those of
 * all panels, in their order; null: all columns are neighbours. */
typedef struct RowCodes {
    const i32 *start;
    const f32 *factor;
    CodeRange range;
    const CodePiece *pieces;
    size_t n_pieces;
} RowCodes;

/* Words that follow each other, as many as a vector has: where they are and where they go. */
typedef struct WordRun {
    u32 from, to;
} WordRun;

enum { WORD_RUN = 16 };

typedef struct QuadLoops {
    /* rows of a tile, columns of a panel; words of a row are filled up with zeros to a multiple of `whole`, of which shares of
     * them are multiples, too, and at most so many are multiplied at a time: SIZE_MAX is all of them.  0: the level has no products of
     * words, nor any of the next ten */
    size_t rows, width, whole, at_a_time;
    /* words that a packed tile of so many words of a row takes */
    size_t (*tile)(size_t words);
    /* to[i] = the word of lines[0][i] .. lines[3][i], their bits turned by flip */
    void (*quad)(size_t n, const u8 *const lines[4], u32 flip, u32 *to);
    /* lines of such words */
    void (*quads)(const QuadLines *q, const u8 *const lines[4], u32 *to);
    /* to[i] = from[2 i], of which whole vectors are read */
    void (*evens)(size_t n, const u32 *from, u32 *to);
    /* a tile of up to so many rows of bytes with a sign, each `row` bytes behind the one before: words of a row are neighbours;
     * totals[i] = the sum of all bytes of row i */
    void (*pack)(size_t rows, size_t words, const void *from, size_t row, u32 *tile, i32 *totals);
    /* c[m,n] += a b modulo 2^32: bytes of a have a sign, those of b none; a is packed, line w of b is at b + at[w]
     * (PairProduct.row and ldb are not read), and of b and c whole panels are read and written, whatever n is */
    void (*multiply)(const PairProduct *p, const u32 *a, const u32 *b, const size_t *at, i32 *c);
    /* the codes of such sums of all words, whatever `at_a_time` is: row i is at to + i * p->ldc, and nothing is written beside it;
     * of starts and factors whole tiles are read.  Null: the level has no such loop */
    void (*codes)(const PairProduct *p, const u32 *a, const u32 *b, const size_t *at, const RowCodes *of, u8 *to);
    /* copies runs, one after the other: where they meet the later one stays */
    void (*runs)(size_t n, const WordRun *runs, const u32 *from, u32 *to);
    /* words of bytes that are neighbours */
    void (*lines)(const ByteLines *l, const u8 *x, u32 *to);
    /* sums[i] = start + what position i sees, modulo 2^32, of which WORDS_BEYOND are written at a time; and their codes, n of them */
    void (*along)(const WordTaps *t, size_t n, const u32 *x, u32 start, i32 *sums);
    void (*along_codes)(const WordTaps *t, size_t n, const u32 *x, const RowCodes *of, u8 *to);
    /* c[i] += more; to[i] = v[i], which are integers */
    void (*add)(size_t n, u32 more, i32 *c);
    void (*integers)(size_t n, const f32 *v, i32 *to);
} QuadLoops;

const QuadLoops *kernels_quads(const Kernels *level);

#endif
