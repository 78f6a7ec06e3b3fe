/* Putting elements in order: every element type as unsigned keys that compare like its values. */
#ifndef OPS_MOVE_ORDER_H
#define OPS_MOVE_ORDER_H

#include "ops/card/cards.h"

/* A key for each element of a tensor, in scratch: smaller key, smaller value.  Both zeros have one key; all NaNs have
 * one, the greatest. */
uint64_t *order_keys(Eval *e, const Tensor *t);

/* Rows of `width` keys, each `stride` keys behind the other, compared from their first key on. */
typedef struct Rows {
    const uint64_t *keys;
    int64_t width;
    int64_t row, step; /* from row to row, from key to key of a row, in keys */
} Rows;

/* Negative, zero or positive as row a is below, equal to or above row b. */
int order_compare(const Rows *rows, int64_t a, int64_t b);

/* The numbers 0 .. n - 1 so that the rows they name ascend; equal rows stay in order.  In scratch. */
int64_t *order_sort(Eval *e, const Rows *rows, int64_t n);

#endif
