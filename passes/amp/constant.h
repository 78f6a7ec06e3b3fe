/* What a narrow type does to constants, and where a small one guards against zero: rules C-16 and C-17. */
#ifndef PASSES_AMP_CONSTANT_H
#define PASSES_AMP_CONSTANT_H

#include "ir/graph.h"

typedef enum AmpFit {
    AMP_FITS,      /* every element survives; infinities and NaN are themselves in any width */
    AMP_OVERFLOWS, /* a finite element rounds to infinity */
    AMP_VANISHES,  /* one that is not zero rounds to zero */
    AMP_ROUNDS,    /* one moves further than allowed */
    AMP_UNSTATED,  /* not a constant, or its values cannot be read */
} AmpFit;

/* Whether the values of a constant survive in `target` (F16 or BF16).  `rtol` bounds the relative error of rounding;
 * 0: it does not count. */
AmpFit amp_constant_fit(const Node *value, DType target, double rtol);

/* The same of one number. */
AmpFit amp_number_fit(double value, DType target, double rtol);

/* Whether a node belongs to an epsilon guard, which is one region in f32: `y + eps`, `max(y, eps)` or `clip(y, eps, ..)`
 * with 0 < eps < 2^-14 throughout, the roots and moves behind it, and the quotient, logarithm, reciprocal or power that
 * it guards. */
bool amp_eps_guard(const Node *n);

#endif
