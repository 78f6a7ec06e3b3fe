#include "ops/quant/fixed.h"

#include <math.h>

FixedFactor fixed_factor(f32 v)
{
    int power;
    if (!(v > 0) || isinf(v))
        return (FixedFactor){ 0 };
    const double part = frexp((double)v, &power); /* below 1, 24 bits */
    const int left = power > 0 ? power : 0, right = power < 0 ? -power : 0;
    return (FixedFactor){ .m = (i32)ldexp(part, FIXED_BITS),
                          .left = left < FIXED_MOST_LEFT ? left : FIXED_MOST_LEFT,
                          .right = right < FIXED_MOST_RIGHT ? right : FIXED_MOST_RIGHT };
}
