/* f32: division with remainder.  fmod is exact, by long division of the significands: the one loop of the f32
 * functions. */
#ifndef QCC_OPS_SCALAR_MODULO_H
#define QCC_OPS_SCALAR_MODULO_H

Q_FN f32 div_f32(f32 x, f32 y)
{
    return x / y;
}

/* |x| modulo |y| for finite x and finite y != 0, both given as bits: 40 quotient bits a turn, seven turns at most. */
Q_FN f32 fmod_finite(u32 x, u32 y)
{
    const i32 ex = (i32)(x >> 23), ey = (i32)(y >> 23);
    const u64 mx = (x & 0x007fffffu) | (ex > 0 ? 0x00800000u : 0), my = (y & 0x007fffffu) | (ey > 0 ? 0x00800000u : 0);
    i32 n = (ex > 0 ? ex : 1) - (ey > 0 ? ey : 1);
    u64 r = n < 0 ? 0 : mx % my;
    while (n > 0) {
        const i32 step = n < 40 ? n : 40;
        r = (r << step) % my;
        n -= step;
    }
    /* r < 2^24 in units of y's last place, which scales it exactly */
    const i32 unit = (ey > 0 ? ey : 1) - 150;
    const f32 scaled = scale_f32((f32)(u32)r, unit);
    return x < y ? float_of(x) : scaled;
}

/* x - y trunc(x / y), exactly; the sign is that of x, also of a zero. */
Q_FN f32 fmod_f32(f32 x, f32 y)
{
    const f32 a = abs_f32(x), b = abs_f32(y);
    const int proper = a < Q_INF && b > 0 && b < Q_INF;
    const f32 r = fmod_finite(bits_of(proper ? a : 0.0f), bits_of(proper ? b : 1.0f));
    const f32 finite = copysign_f32(proper ? r : a, x);
    const f32 v = a < Q_INF && b > 0 ? finite : Q_NAN;
    return x != x || y != y ? x + y : v;
}

/* x - y floor(x / y): the remainder moved to the sign of y, rounded where that adds y; a zero takes the sign of y. */
Q_FN f32 mod_f32(f32 x, f32 y)
{
    const f32 r = fmod_f32(x, y), moved = (r < 0) != (y < 0) ? r + y : r;
    return r == 0 ? copysign_f32(r, y) : moved;
}

#endif
