/* Where indices point: flat positions in the data, for gathering from there and scattering to there. */
#ifndef OPS_MOVE_INDEX_POSITIONS_H
#define OPS_MOVE_INDEX_POSITIONS_H

#include "ops/card/cards.h"

/* n positions; each stands for `width` elements from there on. */
typedef struct Positions {
    int64_t n, width;
    int64_t *at; /* null after a failure */
} Positions;

/* The indices of operand i into `extent` elements, made non-negative, in scratch; null after eval_fail. */
int64_t *positions_indices(Eval *e, int i, int64_t extent);

/* For gather_elements and scatter_elements: element i0, i1, .. of operand `indices` points to the element i0, ..,
 * index, .. along `axis`. */
Positions positions_elements(Eval *e, const Type *data, int indices, int axis);

/* For gather_nd and scatter_nd: every tuple along the last axis of operand `indices` points to a slice; the first
 * `batch` axes of both are walked together. */
Positions positions_nd(Eval *e, const Type *data, int indices, int batch);

#endif
