/* The words that compute on codes as ONNX Runtime does: their operands and attributes.
 *
 * A tensor of codes is followed by its scale and its zero point; the result's stand behind those of the operands.
 * Result 0 are codes of the type of the result's zero point.  Result 1, for those who ask, is the quotient: what the
 * codes were rounded from, before the zero point was added.  What reaches codes as a gradient, and goes on from them,
 * is that of the numbers they stand for. */
#ifndef OPS_QUANT_WORDS_H
#define OPS_QUANT_WORDS_H

#include "ops/quant/integer.h"
#include "ops/window/window.h"

enum { SUMS_BLOCK = 512 }; /* sums that are looked at together */

/* qconv, qlinear_conv: a bias is i32, in units of x_scale * w_scale.  qconv without Y_SCALE and Y_ZERO gives numbers, to
 * which a bias of f32 may be added. */
enum {
    QCONV_X,
    QCONV_X_SCALE,
    QCONV_X_ZERO,
    QCONV_W,
    QCONV_W_SCALE,
    QCONV_W_ZERO,
    QCONV_Y_SCALE,
    QCONV_Y_ZERO,
    QCONV_BIAS,
};

typedef struct QconvAttr {
    ConvAttr conv;
    CodesAttr codes;
} QconvAttr;

/* matmul_integer: a factor of two or more dimensions is read transposed. */
typedef struct MatmulIntegerAttr {
    bool ta, tb;
} MatmulIntegerAttr;

/* qmatmul, qlinear_matmul.  Without Y_SCALE and Y_ZERO the result are numbers, to which a bias of f32 may be added. */
enum {
    QMATMUL_A,
    QMATMUL_A_SCALE,
    QMATMUL_A_ZERO,
    QMATMUL_B,
    QMATMUL_B_SCALE,
    QMATMUL_B_ZERO,
    QMATMUL_Y_SCALE,
    QMATMUL_Y_ZERO,
    QMATMUL_BIAS,
};

typedef struct QmatmulAttr {
    bool transpose_a, transpose_b;
    CodesAttr codes;
} QmatmulAttr;

/* qadd, qmul: numpy's broadcasting. */
enum {
    QBINARY_A,
    QBINARY_A_SCALE,
    QBINARY_A_ZERO,
    QBINARY_B,
    QBINARY_B_SCALE,
    QBINARY_B_ZERO,
    QBINARY_Y_SCALE,
    QBINARY_Y_ZERO,
};

typedef struct QbinaryAttr {
    CodesAttr codes;
} QbinaryAttr;

/* A sum in fixed point: operands have so many bits more, and scales in units of twice the larger one. */
enum { FIXED_SUM_BITS = 20 };
typedef struct FixedSum {
    FixedFactor a, b, y; /* of the operands, and of their sum */
} FixedSum;
FixedSum fixed_sum_factors(f32 sa, f32 sb, f32 sy);

/* qaverage_pool, qglobal_average_pool. */
enum {
    QPOOL_X,
    QPOOL_X_SCALE,
    QPOOL_X_ZERO,
    QPOOL_Y_SCALE,
    QPOOL_Y_ZERO,
};

typedef struct QpoolAttr {
    PoolAttr pool;
    CodesAttr codes;
} QpoolAttr;

typedef struct QglobalAttr {
    CodesAttr codes;
} QglobalAttr;

/* What reaches the operands, straight through: what the mask lets through of what reaches the codes goes on as the
 * call on the numbers would let it (ops/quant/words_adjoint.c). */
void adjoint_qconv(Build *b, const Site *s, Node **dx);
void adjoint_qmatmul(Build *b, const Site *s, Node **dx);
void adjoint_qadd(Build *b, const Site *s, Node **dx);
void adjoint_qmul(Build *b, const Site *s, Node **dx);
void adjoint_qaverage_pool(Build *b, const Site *s, Node **dx);
void adjoint_qglobal_average_pool(Build *b, const Site *s, Node **dx);

#endif
