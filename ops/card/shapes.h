/* What the cards say about shapes, axes and indices in common. */
#ifndef OPS_CARD_SHAPES_H
#define OPS_CARD_SHAPES_H

#include "ops/card/cards.h"

/* No axis was given: a value no axis can have, the default of optional axis attributes. */
enum { AXIS_NONE = -1000000 };

/* The tensor type of these dimensions after checking them against the limits; null with a complaint. */
const Type *infer_dims(Infer *q, DType dtype, int64_t rank, const int64_t *dims);

/* A tensor type of that rank with unknown dimensions. */
const Type *infer_unknown_dims(Infer *q, DType dtype, int64_t rank);

/* Axes, made non-negative. */
typedef struct Axes {
    int n;
    int v[MAX_RANK];
} Axes;

/* Checks axes of a tensor of that rank: their range, and that none comes twice; false after a complaint. */
bool infer_axes(Infer *q, const int64_t *v, int64_t n, int rank, Axes *out);

/* Operand i must hold integers; returns its type, or null with a complaint. */
const Type *infer_integers(Infer *q, int i);

/* Operand i must be a list of integers (a scalar counts as one): *n is their number, -1 unknown; false after a
 * complaint. */
bool infer_list(Infer *q, int i, int64_t *n);

/* Operand i must be one integer (a scalar or one element): *known says whether its value is, *v is it; false after a
 * complaint. */
bool infer_one(Infer *q, int i, bool *known, int64_t *v);

/* Whether two operands have one element type; false after a complaint. */
bool infer_same_dtype(Infer *q, int a, int b);

/* Whether dimensions agree; a ? agrees with everything. */
static inline bool dims_fit(int64_t a, int64_t b)
{
    return a == b || a < 0 || b < 0;
}

/* The dimension two agreeing ones say together. */
static inline int64_t dims_meet(int64_t a, int64_t b)
{
    return a < 0 ? b : a;
}

/* An index into n elements, the last one also being -1: false when it is outside. */
static inline bool index_wrap(int64_t *i, int64_t n)
{
    if (*i < 0)
        *i += n;
    return *i >= 0 && *i < n;
}

/* An axis of an evaluated call, which infer has checked. */
static inline int axis_wrap(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}

/* ---- helpers of sample ---- */

/* A constant of an integer type with these values. */
Node *sample_ints(Build *b, DType dtype, int rank, const int64_t *dims, const int64_t *v);

/* A random constant of integers in [lo, hi]. */
Node *sample_indices(Build *b, Rng *rng, DType dtype, int rank, const int64_t *dims, int64_t lo, int64_t hi);

/* The i-th of a list of element types that covers every width, packed ones included. */
DType sample_dtype(int i);

/* A random shape without empty dimensions. */
void sample_full_dims(Rng *rng, int rank, int64_t most, int64_t *dims);

/* A random permutation of 0 .. n - 1. */
void sample_order(Rng *rng, int n, int64_t *order);

/* Operand i must be floats [n] (-1: any number); false after a complaint. */
bool infer_vector(Infer *q, int i, int64_t n);

/* Operand 0 must be floats of at least `least` dimensions; null after a complaint. */
const Type *infer_floats(Infer *q, int least);

/* A float type for a sample. */
DType sample_float(Rng *rng);

#endif
