/* What the products of matrices of codes share: shapes, scales and zero points of rows and columns, codes of sums. */
#ifndef OPS_QUANT_MATMUL_CODES_H
#define OPS_QUANT_MATMUL_CODES_H

#include "ops/card/access.h"
#include "ops/quant/centred.h"
#include "ops/quant/products.h"
#include "ops/quant/words.h"

/* The operands of a product, either of which may be read transposed. */
typedef struct Factors {
    int a, a_zero, b, b_zero;
    bool ta, tb;
} Factors;

/* The type of a product; null after a complaint. */
const Type *infer_product(Infer *q, const Factors *f, DType dtype);

/* Whether operand i fits as scale or zero point of a factor: one number, one for each row of the left one (column of
 * the right one), or one for each of every matrix. */
bool infer_lanes(Infer *q, int i, const Factors *f, bool left);

/* The index of the scale of a row or column (`lane`) of a matrix. */
int64_t lane_at(const Tensor *t, int64_t matrix, int64_t lane, int64_t lanes);

/* The codes of a factor as floats, their zero points taken away. */
const f32 *centred_factor(Eval *e, const Factors *f, bool left);

/* The sums of the products, to who takes them. */
void multiply_factors(Eval *e, const Factors *f, const Stack *s, const SumTaker *to);

/* What sums become: codes, or numbers. */
typedef struct Rescaled {
    const Kernels *kernels;
    CodesOut out; /* of codes */
    f32 *numbers; /* the result, where there are no codes */
    const Stack *s;
    const Tensor *ta, *tb; /* the scales */
    const f32 *sa, *sb;
    f32 sy;             /* 1 for numbers */
    const f32 *factors; /* where there is one scale of the left factor: what belongs to each of the right one's */
    const i32 *bias;    /* a number for all columns or one for each; null: none */
    const f32 *addend;  /* the same, added to numbers */
    int64_t biases;
} Rescaled;

/* Reads the scales of a call with the operands of qlinear_matmul; the result is opened by who asks. */
Rescaled rescaled_open(Eval *e, const Stack *s);

/* What the sum in a row and column of a batch is multiplied by. */
f32 rescaled_factor(const Rescaled *r, int64_t ma, int64_t mb, int64_t row, int64_t column);

/* Takes sums (SumTaker.take). */
void rescaled_take(const void *rescaled, int64_t first, int64_t n, const i32 *sums);

/* Shapes of a product for samples: ranks 1 .. 4, broadcast batches. */
typedef struct DrawnProduct {
    int ra, rb;
    int64_t a[MAX_RANK], b[MAX_RANK];
} DrawnProduct;
DrawnProduct draw_product(Rng *rng, bool ta, bool tb);

/* A random scale or zero point of one of its factors: one for all rows (or columns), one for each, or one for each of
 * every matrix. */
Node *sample_lanes(Build *b, Rng *rng, DType dtype, const DrawnProduct *d, const Factors *f, bool left, bool zero);

#endif
