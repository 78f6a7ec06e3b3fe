/* Reductions over axes: what their cards share, and what expansions build with. */
#ifndef OPS_CARD_REDUCTION_H
#define OPS_CARD_REDUCTION_H

#include "ops/card/attrs.h"
#include "ops/card/eval.h"

/* Attributes of every reduction over axes (operand 1, optional). */
typedef struct ReduceAttr {
    bool keepdims, noop_with_empty_axes;
    int out; /* DType + 1 of the result; 0: as the operand */
} ReduceAttr;

typedef struct CumAttr {
    bool exclusive, reverse;
    int out;
} CumAttr;

typedef struct ArgAttr {
    int64_t axis;
    bool keepdims, select_last_index;
} ArgAttr;

typedef struct LogSoftmaxAttr {
    int64_t axis;
    int out;
} LogSoftmaxAttr;

/* The element type a float or integer of this type computes in: f64, f32, u64 or i64. */
DType dtype_wide(DType d);

/* The arithmetic of that. */
Arithmetic dtype_arithmetic(DType d);

/* Whether values of this type lie as the arithmetic has them. */
bool dtype_is_native(DType d, Arithmetic a);

/* A reduction (OP_reduce_sum, OP_reduce_max ...) of x over n axes, all of them kept as 1. */
Node *build_reduce(Build *b, Op op, Node *x, int n_axes, const int64_t *axes);

/* What goes back through them (ops/fold/reduce_adjoint.c). */
void adjoint_reduce_sum(Build *b, const Site *s, Node **dx);
void adjoint_reduce_mean(Build *b, const Site *s, Node **dx);
void adjoint_reduce_sum_square(Build *b, const Site *s, Node **dx);
void adjoint_reduce_l1(Build *b, const Site *s, Node **dx);
void adjoint_reduce_l2(Build *b, const Site *s, Node **dx);
void adjoint_reduce_log_sum(Build *b, const Site *s, Node **dx);
void adjoint_reduce_log_sum_exp(Build *b, const Site *s, Node **dx);
void adjoint_reduce_extreme(Build *b, const Site *s, Node **dx);
void adjoint_reduce_prod(Build *b, const Site *s, Node **dx);
void adjoint_softmax(Build *b, const Site *s, Node **dx);
void adjoint_log_softmax(Build *b, const Site *s, Node **dx);
void adjoint_hardmax(Build *b, const Site *s, Node **dx);
void adjoint_cum_sum(Build *b, const Site *s, Node **dx);
void adjoint_cum_prod(Build *b, const Site *s, Node **dx);

#endif
