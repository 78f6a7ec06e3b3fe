/* What a transpose changes places with: f of a turned value is f of the value, turned. */
#ifndef PASSES_LOWER_TURNED_H
#define PASSES_LOWER_TURNED_H

#include "ir/build.h"

/* Whether a call computes element by element, each of them whatever its place. */
bool turned_maps(const Node *n);

/* Whether a value is a line of elements, so that a reshape turns it. */
bool turned_is_line(const Node *n);

/* Whether a node is a reshape that leaves the last two dimensions. */
bool turned_keeps_matrices(const Node *n);

/* Whether all who read a transpose, and all who read what these make of it, compute element by element, look for the largest or
 * smallest, or are products that read turned matrices as they lie: then it is gone in the end. */
bool turned_is_absorbed(const Node *turn);

/* Whether a product of codes reads operand i turned as well: its scale and zero point say nothing of how it lies. */
bool turned_is_read(const Node *product, int i);

/* The transpose below which a call stands that could stand before it: all its operands are turned alike, or are read alike
 * whichever way the others lie; null: there is none. */
Node *turned_below(const Node *n);

/* What takes the place of such a call. */
Node *turned_sink(Build *b, const Node *n, const Node *turn);

/* What takes the place of a transpose of what is made, element by element, of sums of products of codes: the same of the sums of
 * the turned product.  Null where it is no such transpose. */
Node *turned_product(Build *b, const Node *turn);

#endif
