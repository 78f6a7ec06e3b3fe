/* The numbers that codes of floats stand for, as a grid to round to. */
#ifndef OPS_QUANT_FLOAT_GRID_H
#define OPS_QUANT_FLOAT_GRID_H

#include "ir/type.h"
#include "ops/scalar.h"

/* Significand bits, the leading one counted, and the exponent of the least number above 0. */
typedef struct FloatGrid {
    i32 digits, low;
} FloatGrid;

/* That of a type of codes that are floats. */
FloatGrid float_grid(DType code);

/* The largest number of such a type. */
f32 float_codes_most(DType code);

/* The nearest number of a grid without an end, of two that are as near the one whose last digit is 0. */
f32 float_grid_nearest(FloatGrid grid, f32 v);

/* Stochastic rounding to a grid by a draw of [0, 1); what is on it, or no number, stays. */
f32 float_grid_round(FloatGrid grid, f32 v, f32 draw);

/* What lies between two numbers of the grid that have v's exponent; below the least exponent it is that of the least. */
f32 float_grid_step(FloatGrid grid, f32 v);

#endif
