/* Sums of products of codes: the integers themselves, in 32 bits, wrapping where they do not fit.
 *
 * Codes are multiplied as they are stored (ops/kernels: CodeProducts).  What their zero points, and what a level adds to
 * codes to multiply them, bring to a sum is taken away at its end:
 *
 *     sum (a - za)(b - zb) = sum a b - zb sum a - za sum b + k za zb,
 *
 * all of it modulo 2^32. */
#ifndef OPS_QUANT_PRODUCTS_H
#define OPS_QUANT_PRODUCTS_H

#include "ops/window/window.h"

/* Operand i as codes with the zero points of operand `zero` (absent: none). */
typedef struct Codes {
    const Tensor *tensor;
    int operand;
    const void *v;
    CodeType type;
    const i32 *zeros;
    int64_t n_zeros; /* 1: one for all */
    bool one_matrix; /* there is one a lane, not one a lane of every matrix */
} Codes;
Codes codes_of(Eval *e, int i, int zero);

/* Whether either has more than 8 bits. */
bool codes_are_wide(const Codes *a, const Codes *b);

/* What sums of a convolution become, where these are codes of 8 bits alone and all factors are below 1 in size: of each result
 * a factor, and a bias unless there are none. */
typedef struct SumCodes {
    u8 *to;
    const f32 *factor;
    const i32 *bias;
    CodeRange range;
} SumCodes;

/* Who is given the sums: n that follow each other in the result from element `first` on, by the threads that made
 * them.  Where there are `codes`, who makes the sums may make these instead, and gives none. */
typedef struct SumTaker {
    void (*take)(const void *user, int64_t first, int64_t n, const i32 *sums);
    const void *user;
    const SumCodes *codes;
} SumTaker;

/* A taker that keeps them as they are, in a tensor of i32. */
void sums_keep(const void *tensor, int64_t first, int64_t n, const i32 *sums);

/* Stacks of matrices, as numpy multiplies them. */
typedef struct Stack {
    int64_t m, k, n, batches;
    int64_t a_row, a_col, b_row, b_col; /* steps between elements of the factors as the product reads them */
    int rank;                           /* of the batch dimensions */
    int64_t dims[MAX_RANK], a_step[MAX_RANK], b_step[MAX_RANK]; /* in matrices; 0: broadcast */
} Stack;

/* The factors, either of which may be read transposed, of a result of that type. */
Stack stack_of_products(const Type *a, const Type *b, const Type *y, bool ta, bool tb);

/* The matrices of both factors that make batch `at` of the result. */
void stack_batch(const Stack *s, int64_t at, int64_t *a, int64_t *b);

/* Multiplies. */
void codes_multiply(Eval *e, const Stack *s, const Codes *a, const Codes *b, const SumTaker *to);

/* A convolution of x, [images, groups * channels, ..], with weights [groups * results, channels, ..]. */
typedef struct CodesConv {
    Window w;
    int64_t images, groups, channels, results; /* channels and results of a group */
} CodesConv;
/* The same of small groups along planes (ops/window/planes.h): as floats, which hold such sums exactly; and of words of four
 * channels, where the level has loops for them and weights have a sign and no zero points.  False: nothing was done. */
bool codes_along_planes(Eval *e, const CodesConv *c, const Codes *x, const Codes *filter, const SumTaker *to);
bool codes_convolve_words(Eval *e, const CodesConv *c, const Codes *x, const Codes *filter, const SumTaker *to);

void codes_convolve(Eval *e, const CodesConv *c, const Codes *x, const Codes *filter, const SumTaker *to);

/* ---- what both are made of ---- */

enum {
    TILE_ROWS = 3 * WHOLE_TILES, /* of a tile of sums, with whose columns they stay in a second-level cache */
    TILE_COLS = 256,             /* or positions of a convolution */
};

/* Lanes of matrices that lie packed: rows in tiles or columns in panels, with what sums of their codes need. */
typedef struct PackedCodes {
    u32 *words;
    size_t group, groups; /* lanes of a tile or panel; how many a matrix has */
    size_t apart;         /* words of one */
    i32 *sums;            /* of each lane what is packed of it: groups * group a matrix */
    const u32 *zeros;     /* of each lane, with what was added to its codes */
    size_t matrix_zeros;  /* from a matrix to the next: 0 where they share them */
    bool centred;         /* no zero is any but 0 */
} PackedCodes;

/* Matrices of lanes that lie in memory. */
typedef struct LooseCodes {
    const Codes *codes;
    CodeLanes lanes;
    size_t matrices, matrix; /* how many; codes from one to the next */
    bool rows;
    bool alone; /* nobody asks for the sums of lanes: no zero of the other factor is any but 0 */
} LooseCodes;
PackedCodes codes_pack(Eval *e, const CodeProducts *l, const LooseCodes *from);

/* Takes away what zeros bring to sums of `m` rows from `row` on of a matrix and n columns, whose zeros and sums are given. */
typedef struct Centre {
    const PackedCodes *rows;
    size_t matrix, row, k;
    const u32 *zeros;
    const i32 *sums;
    bool centred; /* no zero of a column is any but 0 */
} Centre;
void sums_centre(const CodeProducts *l, const Centre *c, size_t m, size_t n, i32 *sums, size_t ldc);

/* Shares of n things, in whole lots, of which `most` is one: as many as keep all threads busy where there are few. */
int64_t share_of(int64_t n, int64_t most, int64_t whole, int64_t wanted);

/* ---- how convolutions are cut (convolve_codes.c) ---- */

/* Blocks of results of a group, at positions of one or several images. */
typedef struct ConvCut {
    int64_t out;         /* positions of an image */
    int64_t rows, parts; /* results of a block, blocks of a group */
    int64_t cols, tiles; /* positions of a block, blocks of an image */
    int64_t span;        /* images of a block: several where they are small */
} ConvCut;

typedef struct ConvBlock {
    int64_t image, images, group, first, positions, result, rows;
} ConvBlock;

/* Blocks of at most so many positions and results, of multiples of `width` positions, where an image has more, and of `whole`
 * results, as many as threads want. */
ConvCut conv_cut(const CodesConv *c, int64_t out, int64_t positions, int64_t results, int64_t width, int64_t whole,
                 int64_t threads);

/* How many there are, and one of them. */
int64_t conv_cut_blocks(const ConvCut *cut, const CodesConv *c);
ConvBlock conv_cut_block(const ConvCut *cut, const CodesConv *c, int64_t item);

/* Whether taps see what lies so far behind a step along an axis. */
bool conv_part_is_seen(const Window *w, int axis, int64_t part);

/* Lines of data, [*begin, *end) of all, that are there where line i is line i * step + first of it. */
void conv_lines_there(int64_t first, int64_t step, int64_t all, int64_t height, int64_t *begin, int64_t *end);

/* Hands the sums of result i of a block to who takes them. */
void conv_cut_take(const ConvCut *cut, const CodesConv *c, const ConvBlock *b, int64_t i, const i32 *line,
                   const SumTaker *to);

#endif
