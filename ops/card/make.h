/* What expansions are written with: smaller ops whose attributes and lists follow from plain numbers.
 *
 * Shapes are taken from arguments, so an expansion reads only types it was given; after a failed build every function
 * returns null. */
#ifndef OPS_CARD_MAKE_H
#define OPS_CARD_MAKE_H

#include "ops/card/reduction.h"

/* Whether every operand type is known, without which most expansions have no shape; fails the build otherwise. */
bool make_ready(Build *b, const Site *s);

/* Whether every extent of operand i is known; fails the build otherwise: of an adjoint that asks the run for others. */
bool make_extents(Build *b, const Site *s, int i);

/* The value of operand i, which must be a constant for this call to be taken apart; null after failing the build. */
const Tensor *make_known(Build *b, const Site *s, int i);

/* The type in which a call on that float type computes: f64 for f64, f32 for all others. */
DType make_width(DType dtype);

/* x in that type, as what a call does to its own operands, results and gradients: by an `amp_cast` between widths that
 * mixed precision knows (f32, f16, bf16), by a `cast` otherwise; nothing when the type is already that. */
Node *make_cast(Build *b, Node *x, DType to);

/* x with these dimensions. */
Node *make_reshape(Build *b, Node *x, int rank, const int64_t *dims);

/* The same, and x itself where it has them. */
Node *make_shaped(Build *b, Node *x, int rank, const int64_t *dims);

/* x with dimension i of the result taken from dimension order[i]. */
Node *make_transpose(Build *b, Node *x, int rank, const int64_t *order);

/* x with its last two dimensions having changed places. */
Node *make_swap_last(Build *b, Node *x);

/* What of each matrix stands on the diagonal `k` (0: the main one, -1: that below it) or below; zeros elsewhere. */
Node *make_lower(Build *b, Node *x, int64_t k);

/* Elements from, from + step ... below `to` of one axis. */
Node *make_slice(Build *b, Node *x, int axis, int64_t from, int64_t to, int64_t step);

/* Parts one behind the other along an axis. */
Node *make_concat(Build *b, int axis, int n, Node *const *parts);

/* x in n parts of these lengths along an axis; build_part has them. */
Node *make_split(Build *b, Node *x, int axis, Node *lengths, int n);

/* x with that many zeros before and after each axis; negative numbers cut off. */
Node *make_pad(Build *b, Node *x, int rank, const int64_t *before, const int64_t *after);

/* x repeated to these dimensions. */
Node *make_expand(Build *b, Node *x, int rank, const int64_t *dims);

/* gather and gather_elements along an axis. */
Node *make_gather(Build *b, Node *x, Node *indices, int axis);
Node *make_gather_elements(Build *b, Node *x, Node *indices, int axis);

/* What reaches x, from what reaches gather(x, indices) along an axis: sums in the order of the indices. */
Node *make_gather_back(Build *b, const Type *x, Node *indices, int axis, Node *dy);

/* softmax and log_softmax along an axis. */
Node *make_softmax(Build *b, Node *x, int axis);
Node *make_log_softmax(Build *b, Node *x, int axis);

/* A reduction over all axes, to a scalar. */
Node *make_reduce_all(Build *b, Op op, Node *x);

/* A reduction over the axes from `first` on, kept as 1. */
Node *make_reduce_from(Build *b, Op op, Node *x, int first, int rank);

/* A scalar zero in the type of another value's elements. */
Node *make_zero_like(Build *b, const Node *like);

/* A tensor of zeros. */
Node *make_zeros(Build *b, DType dtype, int rank, const int64_t *dims);

/* The same computed by the graph, not stored as a constant: `v` everywhere in the shape of a type, or zeros in the
 * shape of a value and in the type that calls on it compute in. */
Node *make_filled(Build *b, DType dtype, double v, const Type *like);
Node *make_zeros_like(Build *b, Node *x);

/* One vector [1, .., n, .., 1] of 0, 1, 2 ... along an axis. */
Node *make_count(Build *b, int rank, int axis, int64_t n);

/* x as a vector of channels to broadcast against data of that rank: [C, 1, ..] for channels in dimension 1. */
Node *make_channels(Build *b, Node *x, int64_t channels, int rank);

#endif
