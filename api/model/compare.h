/* Comparing values as numpy.testing.assert_allclose does. */
#ifndef API_MODEL_COMPARE_H
#define API_MODEL_COMPARE_H

#include "ir/tensor.h"

/* Null when `got` equals `want` within atol + rtol |want| (types and shapes exactly; NaN equals NaN), else what
 * differs first, in `arena`. */
const char *compare_values(Arena *arena, const Tensor *got, const Tensor *want, double rtol, double atol);

#endif
