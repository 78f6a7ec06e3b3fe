#include "ops/quant/float_grid.h"

FloatGrid float_grid(DType code)
{
    switch (code) {
    case F8E4M3:
        return (FloatGrid){ 4, -9 };
    case F8E4M3FNUZ:
        return (FloatGrid){ 4, -10 };
    case F8E5M2:
        return (FloatGrid){ 3, -16 };
    case F8E5M2FNUZ:
        return (FloatGrid){ 3, -17 };
    case F6E2M3:
        return (FloatGrid){ 4, -3 };
    case F6E3M2:
        return (FloatGrid){ 3, -4 };
    default:
        return (FloatGrid){ 2, -1 }; /* of e2m1 */
    }
}

f32 float_grid_step(FloatGrid grid, f32 v)
{
    return grid_step_f32(grid.digits, grid.low, v);
}

f32 float_grid_round(FloatGrid grid, f32 v, f32 draw)
{
    return grid_round_f32(grid.digits, grid.low, v, draw);
}

f32 float_grid_nearest(FloatGrid grid, f32 v)
{
    const f32 step = float_grid_step(grid, v);
    return abs_f32(v) < Q_INF ? rint_f32(v / step) * step : v;
}

f32 float_codes_most(DType code)
{
    switch (code) {
    case F8E4M3:
        return 448;
    case F8E4M3FNUZ:
        return 240;
    case F4E2M1:
        return 6;
    case F6E2M3:
        return 7.5f;
    case F6E3M2:
        return 28;
    default:
        return 57344; /* of e5m2 in both forms */
    }
}
