/* Multiply-adds of the calls that do most of a model's work, for OpDef.work. */
#ifndef OPS_CONTRACT_WORK_H
#define OPS_CONTRACT_WORK_H

#include "ir/graph.h"

double work_matmul(const Node *n);
double work_accumulate(const Node *n);
double work_gemm(const Node *n);
double work_conv(const Node *n);
double work_conv_weight_grad(const Node *n);
double work_conv_transpose(const Node *n);
double work_recurrent(const Node *n);
double work_attention(const Node *n);
double work_attention_grad(const Node *n);

/* Of any call: what its card says, or the estimate below. */
double work_of(const Node *n);

/* An estimate for any other call: of a product of two matrices it is exact. */
double work_product(const Node *n);

/* Whether a call multiplies operands of bf16 as they lie, where its engine may and the machine can. */
bool work_narrows(const Node *n);

/* Whether a call multiplies codes of 8 bits. */
bool work_of_codes(const Node *n);

#endif
