/* Attributes of the contractions, and what their files share. */
#ifndef OPS_CONTRACT_CONTRACT_H
#define OPS_CONTRACT_CONTRACT_H

#include "base/half.h"
#include "ops/card/cards.h"
#include "ops/kernels/panel.h"

enum { MATMUL_BESIDE = PRODUCTS_BESIDE }; /* products of one left operand that run as one */

typedef struct MatmulAttr {
    bool ta, tb; /* an operand of two or more dimensions is read transposed */
    int out;     /* DType + 1: of the result; 0: that of the operands */
} MatmulAttr;

typedef struct AccumulateAttr {
    bool ta, tb; /* an operand is read transposed */
} AccumulateAttr;

typedef struct GemmAttr {
    float alpha, beta;
    bool transA, transB;
    int out;
} GemmAttr;

typedef struct EinsumAttr {
    const char *equation;
    int out;
} EinsumAttr;

/* The adjoints of matmul and gemm, and their two halves for y = A B: the gradients of A and of B, where either may
 * be read transposed. */
void adjoint_matmul(Build *b, const Site *s, Node **dx);
void adjoint_gemm(Build *b, const Site *s, Node **dx);
Node *contract_left(Build *b, Node *r, Node *dy, bool ta, bool tb);
Node *contract_right(Build *b, Node *l, Node *dy, bool ta, bool tb);

/* The matrix product x y (x y' with `transpose_y`) inside a call on data of type `own`: operands are rounded to f16
 * or bf16 where `own` is one of these, and the result has the wider type that the call computes in. */
Node *make_product(Build *b, DType own, Node *x, Node *y, bool transpose_y);

/* Whether a product multiplies elements of a type as codes: floats of eight bits, of either kind beside the other one. */
bool contracts_codes(DType type);

/* The element type a contraction gives: `out`, or that of operand i; false after a complaint. */
bool infer_contracted(Infer *q, int out, int i, DType *dtype);

/* The two operands of a matrix product, tensors of one type or codes with a type of the result said, and the element type it
 * gives; false after a complaint. */
bool infer_factors(Infer *q, int out, const Type **a, const Type **b, DType *dtype);

/* Whether the extents that a product sums over may be equal (-1: unknown); false after a complaint. */
bool infer_inner(Infer *q, int64_t ka, int64_t kb);

/* x as an operand of a product within a call on `own`: rounded to f16 or bf16 if it is one of these. */
static inline f32 narrowed_f32(DType own, f32 x)
{
    return own == F16 ? f16_to_f32(f16_from_f32(x)) : own == BF16 ? bf16_to_f32(bf16_from_f32(x)) : x;
}
static inline f64 narrowed_f64(DType own, f64 x)
{
    (void)own;
    return x;
}

#endif
