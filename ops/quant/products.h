/* Sums of products of codes: the integers themselves, in 32 bits, wrapping where they do not fit.
 *
 * Codes are centred (their zero points taken away) and widened to f32, or to f64 where they may have more than 8
 * bits.  What is summed over is cut into chunks so short that no partial sum leaves the integers which that type
 * holds exactly: products of floats (ops/kernels/panel.h) then give those integers, in whatever order they add.
 * Chunks are added up in 32 bits. */
#ifndef OPS_QUANT_PRODUCTS_H
#define OPS_QUANT_PRODUCTS_H

#include "ops/window/window.h"

/* Zero points, or scales, of the lines of a tensor: matrices of `height` lines of `width` elements. */
typedef struct Lanes {
    int64_t width, height;
    bool across; /* there is one for each element of a line, not one a line */
} Lanes;

/* Operand i with the zero points of operand `zero` (one number, or one a lane of every matrix or of all of them;
 * absent: none) taken away. */
typedef struct Codes {
    const void *v;
    bool f64;    /* holds f64, not f32 */
    double most; /* no element is larger */
} Codes;
Codes codes_centred(Eval *e, int i, int zero, const Lanes *lanes, bool f64);

/* Whether products of codes of these types need f64. */
bool codes_are_wide(DType a, DType b);

/* Who is given the sums: n that follow each other in the result from element `first` on, by the threads that made
 * them. */
typedef struct SumTaker {
    void (*take)(const void *user, int64_t first, int64_t n, const i32 *sums);
    const void *user;
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
void codes_convolve(Eval *e, const CodesConv *c, const Codes *x, const Codes *filter, const SumTaker *to);

#endif
