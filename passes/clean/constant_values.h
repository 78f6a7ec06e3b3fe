/* What the values of a constant say about it. */
#ifndef PASSES_CLEAN_CONSTANT_VALUES_H
#define PASSES_CLEAN_CONSTANT_VALUES_H

#include "ir/graph.h"

/* Every element has the same bits; of one element, true. */
bool is_one_value(const Node *n);

/* Every value is 0 or below -50, some of each: what is added to scores to hide them. */
bool is_additive_mask(const Node *n);

/* Whole numbers, 16 at least and not all the same: a mask of ones, a grid, anchors; nothing that was trained. */
bool is_whole_numbers(const Node *n);

/* Numbers that count up by one from a whole number, 3 at least, along one axis: positions that were folded. */
bool is_counting(const Node *n);

/* Every value is 0. */
bool is_zeros(const Node *n);

/* The identity matrix, or a stack of it. */
bool is_identity_matrix(const Node *n);

/* Numbers at equal distances along one axis, 4 at least: a grid. */
bool is_progression(const Node *n);

/* The rows backwards are the rows with the other sign, 3 at least: coordinates around a middle. */
bool is_antisymmetric(const Node *n);

/* Each row is sines and cosines of the same angles, in turn or one half each: positions. */
bool is_sinusoidal(const Node *n);

/* Whether a^2 + b^2 = 1 throughout, and not only with ones and zeros: cosines and sines of the same angles. */
bool are_cosines_and_sines(const Node *a, const Node *b);

/* Whether the elements of b rise, or fall, as those of a do, which has as many (`in_a_line`: in proportion): some function of a, as
 * far as a sample of both tells that has at least 16 different numbers of each. */
bool are_ordered_alike(const Node *a, const Node *b, bool in_a_line);

/* Whether b is a (or, `transposed` and of rank 2, a with its axes swapped), bit for bit. */
bool are_equal(const Node *a, const Node *b, bool transposed);

/* Whether b, of rank 2, is a (or, `transposed`, a with its axes swapped), bit for bit, and not one repeated value. */
bool is_copy(const Node *a, const Node *b, bool transposed);

#endif
