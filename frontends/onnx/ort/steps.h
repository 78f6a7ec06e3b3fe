/* The steps of a prediction, in the order in which they are taken. */
#ifndef FRONTENDS_ONNX_ORT_STEPS_H
#define FRONTENDS_ONNX_ORT_STEPS_H

#include "frontends/onnx/ort/calls.h"

/* Each reader of a DQ gets a DQ of its own. */
void ort_own_dq(Calls *g);

/* Takes out what does nothing, paddings that become a product's, and quantizers of constants. */
void ort_clean(Calls *g);

/* Two pairs in a row are one. */
void ort_double_pairs(Calls *g);

/* Equal calls are one, but for DQ. */
void ort_merge(Calls *g);

/* Shapes of Reshape that are computed become numbers where they can. */
void ort_shapes(Calls *g);

/* A product and the sum behind it are a Gemm. */
void ort_gemm(Calls *g);

/* Reshapes in a row are one, where the last knows all sizes. */
void ort_reshapes(Calls *g);

/* Pairs go through moves, with the data and against them. */
void ort_propagate(Calls *g);

/* Float weights and biases of products between pairs become codes. */
void ort_float_parameters(Calls *g);

/* Numbers that a Where reads beside a DQ become codes. */
void ort_where_numbers(Calls *g);

/* Pairs of signed codes become unsigned. */
void ort_unsigned(Calls *g);

/* Takes out Relu and Clip where the Q behind them does their work. */
void ort_redundant(Calls *g);

/* Fuses groups. */
void ort_groups(Calls *g);

/* What becomes of floats that are left. */
void ort_floats(Calls *g);

/* Takes out a DQ and the Q behind it where they are equal. */
void ort_neighbours(Calls *g);

/* Takes out what nobody reads. */
void ort_unread(Calls *g);

#endif
