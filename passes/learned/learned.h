/* What learned quantizers are made of: steps whose gradients are those of something smooth beside them. */
#ifndef PASSES_LEARNED_LEARNED_H
#define PASSES_LEARNED_LEARNED_H

#include "ir/build.h"

/* 2^log2 of a state. */
Node *learned_power(Build *b, Node *log2);

/* The least power of two that is not below 2^log2, as TQT has it: its gradient is that of itself times ln 2. */
Node *learned_power_above(Build *b, Node *log2);

/* The code of 0 for numbers that begin at an offset, or for a code that is learned, which is between two numbers: what
 * it stands for goes straight on, whatever it is rounded to.  `axis`: of the scales, or -1 where there is one. */
typedef struct LearnedZero {
    DType codes;
    int64_t least, largest;
    bool all; /* the type has no others */
} LearnedZero;
Node *learned_zero_of_offset(Build *b, const LearnedZero *k, Node *offset, Node *scale);
Node *learned_zero_of_code(Build *b, const LearnedZero *k, Node *code, Node *scale);

/* Weights as -scale and scale, by their signs (0 is above); gradients pass as they are.  `axis`: of the scales. */
Node *learned_signs(Build *b, Node *weight, Node *scale, int axis);

/* Weights as -scale, 0 and scale: 0 where they are no larger than the threshold; gradients pass as they are. */
Node *learned_ternary(Build *b, Node *weight, Node *threshold, Node *scale, int axis);

/* Weights through tanh onto `steps` + 1 numbers from -1 to 1, as DoReFa has them: the largest counts as a constant. */
Node *learned_tanh(Build *b, Node *weight, int64_t steps);

/* How many of `n` intervals each number is behind the start, up to 15 of them, 0 before it: rounded it is how many thresholds,
 * the middles of intervals, it has passed. */
enum { LEARNED_LEVELS = 15 };
Node *learned_levels(Build *b, Node *x, Node *widths, Node *start, int n);

/* What levels were made of; null where it is none. */
Node *learned_levels_of(const Node *level);

/* How many bits codes have, from 2 to so many: a state holds them divided by a constant.  The largest code of so many bits, and a
 * weight cut to an end and its negative, which gets what reaches numbers beyond; what such numbers, or
 * ternary ones, were made of: null where they are none. */
#define LEARNED_BITS_PART 64
enum { LEARNED_BITS_LEAST = 2 };
Node *learned_bits(Build *b, Node *state, int most);
int learned_bits_known(const Node *state, int most,
                       Arena *scratch);         /* of what the state has; `most` where that is unknown */
const Node *learned_bits_of(const Node *scale); /* the state that a scale is made with; null: none */
Node *learned_largest(Build *b, Node *bits);
Node *learned_within(Build *b, Node *weight, Node *end, int axis);
Node *learned_parted_of(const Node *value);

/* The weight or the data that one of them is made of; the value itself where it is none. */
Node *learned_from(Node *value);

#endif
