/* Floats of few bits in plain numbers, from their digits alone: what codes of them are compared with. */
#ifndef TESTS_SUPPORT_FEW_FLOATS_H
#define TESTS_SUPPORT_FEW_FLOATS_H

#include <math.h>

#include "passes/recipe/quantizer.h"

/* Digits behind the point, the least exponent of a number that has all of them, the largest number. */
typedef struct FewFloats {
    int digits, least;
    double most;
} FewFloats;

static inline FewFloats few_floats(QuantFormat format)
{
    return format == FORMAT_E4M3   ? (FewFloats){ 3, -6, 448 }
           : format == FORMAT_E5M2 ? (FewFloats){ 2, -14, 57344 }
           : format == FORMAT_E2M3 ? (FewFloats){ 3, 0, 7.5 }
           : format == FORMAT_E3M2 ? (FewFloats){ 2, -2, 28 }
                                   : (FewFloats){ 1, 0, 6 };
}

/* The nearest of them, ties to the even digit; beyond the largest that one. */
static inline double few_floats_nearest(QuantFormat format, double v)
{
    const FewFloats f = few_floats(format);
    const double step = ldexp(1, (v == 0 ? f.least : (int)fmax(ilogb(v), f.least)) - f.digits);
    return fmin(fmax(rint(v / step) * step, -f.most), f.most);
}

#endif
