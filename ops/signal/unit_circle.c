#include "ops/signal/unit_circle.h"

/* Taylor series on [0, pi/4], to below 2^-60. */
static double sin_series(double x)
{
    const double z = x * x;
    double p = 1.0 / 355687428096000.0;
    p = p * z - 1.0 / 1307674368000.0;
    p = p * z + 1.0 / 6227020800.0;
    p = p * z - 1.0 / 39916800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z - 1.0 / 5040.0;
    p = p * z + 1.0 / 120.0;
    p = p * z - 1.0 / 6.0;
    return x + x * (z * p);
}

static double cos_series(double x)
{
    const double z = x * x;
    double p = -1.0 / 6402373705728000.0;
    p = p * z + 1.0 / 20922789888000.0;
    p = p * z - 1.0 / 87178291200.0;
    p = p * z + 1.0 / 479001600.0;
    p = p * z - 1.0 / 3628800.0;
    p = p * z + 1.0 / 40320.0;
    p = p * z - 1.0 / 720.0;
    p = p * z + 1.0 / 24.0;
    return 1.0 - (0.5 * z - z * z * p);
}

/* Eighths of a turn are counted in integers; what is left is an angle of at most pi/4. */
UnitRoot unit_root(int64_t j, int64_t n)
{
    const int64_t octant = 8 * j / n, rest = 8 * j - octant * n;
    const double x = (double)(octant % 2 ? n - rest : rest) / (double)n * 0.78539816339744830962;
    const double c = cos_series(x), s = sin_series(x);
    switch (octant) {
    case 0:
        return (UnitRoot){ c, s };
    case 1:
        return (UnitRoot){ s, c };
    case 2:
        return (UnitRoot){ -s, c };
    case 3:
        return (UnitRoot){ -c, s };
    case 4:
        return (UnitRoot){ -c, -s };
    case 5:
        return (UnitRoot){ -s, -c };
    case 6:
        return (UnitRoot){ s, -c };
    default:
        return (UnitRoot){ c, -s };
    }
}
