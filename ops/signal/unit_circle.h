/* Roots of unity, the sines and cosines of fractions of a circle, for spectra and windows: no libm, the same bits
 * everywhere. */
#ifndef OPS_SIGNAL_UNIT_CIRCLE_H
#define OPS_SIGNAL_UNIT_CIRCLE_H

#include <stdint.h>

typedef struct UnitRoot {
    double c, s;
} UnitRoot;

/* cos and sin of 2 pi j / n, 0 <= j < n < 2^59, within an ulp or two of f64: rounded to f32 they are correctly rounded
 * but for one in some 10^8.  Multiples of a quarter turn are exact. */
UnitRoot unit_root(int64_t j, int64_t n);

#endif
