/* f32: sine, cosine, tangent, of every finite angle. */
#ifndef QCC_OPS_SCALAR_TRIG_H
#define QCC_OPS_SCALAR_TRIG_H

/* |x| = q pi/2 + r + lo, q modulo 4, |r| at most a little above pi/4, lo what r has lost. */
typedef struct Q_Angle {
    f32 r, lo;
    u32 q;
} Q_Angle;

/* For a < 2^17.  The first difference is exact (both sides are multiples of 2^-24, or of the ulp of a); the second may
 * cancel nearly all of it, so its two roundings are kept. */
Q_FN Q_Angle angle_near(f32 a)
{
    const f32 magic = fma_f32(a, 0.636619747f, Q_MAGIC), k = magic - Q_MAGIC;
    const f32 first = fma_f32(k, -1.57079637f, a);
    const f32 next = k * 4.37113883e-08f, next_lo = fma_f32(k, 4.37113883e-08f, -next);
    const f32 sum = first + next, seen = sum - first, sum_lo = (first - (sum - seen)) + (next - seen);
    const f32 lost = sum_lo + fma_f32(k, 1.71512451e-15f, next_lo), r = sum + lost;
    const Q_Angle v = { r, lost - (r - sum), bits_of(magic) };
    return v;
}

/* One of four constants by a two-bit index whose bits are spread to masks: gcc makes a table of anything simpler. */
Q_FN u32 one_of(u32 a, u32 b, u32 c, u32 d, u32 low, u32 high)
{
    const u32 ab = a ^ ((a ^ b) & low), cd = c ^ ((c ^ d) & low);
    return ab ^ ((ab ^ cd) & high);
}

/* 32 bits of the same stream, beginning `shift` bits into word i. */
Q_FN u32 funnel(u32 left, u32 right, u32 shift)
{
    return (left << shift) | ((right >> 1) >> (31 - shift));
}

Q_FN u32 high_product(u32 x, u32 y)
{
    return (u32)(((u64)x * y) >> 32);
}

/* pi/2 in units of 2^30, rounded; the rest is -4.07e-17. */
#define Q_TURN 1.46291812e-09f

/* For a >= 2^17: a = m 2^(s-6), and a 2/pi modulo 4 is m times the 96 bits of 2/pi that begin s-8 bits after the point
 * (w0 w1 .. is 2/pi from bit 32 (s / 32) - 8 on); the bits before give multiples of 4, those behind less than 2^-70.
 * Kept: 64 bits, the upper two of which are q. */
Q_FN Q_Angle angle_far(f32 a)
{
    const u32 w = bits_of(a), m = (w & 0x007fffffu) | 0x00800000u;
    const i32 s = (i32)(w >> 23) - 144, t = s < 0 ? 0 : s > 110 ? 110 : s;
    const u32 shift = (u32)t & 31, low = 0 - ((u32)t >> 5 & 1), high = 0 - ((u32)t >> 6 & 1);
    const u32 w0 = one_of(0x00a2f983u, 0x6e4e4415u, 0x29fc2757u, 0xd1f534ddu, low, high);
    const u32 w1 = one_of(0x6e4e4415u, 0x29fc2757u, 0xd1f534ddu, 0xc0db6295u, low, high);
    const u32 w2 = one_of(0x29fc2757u, 0xd1f534ddu, 0xc0db6295u, 0x993c4390u, low, high);
    const u32 w3 = one_of(0xd1f534ddu, 0xc0db6295u, 0x993c4390u, 0x41fe5163u, low, high);
    const u32 top = funnel(w0, w1, shift), mid = funnel(w1, w2, shift), end = funnel(w2, w3, shift);
    const u32 carry_in = high_product(m, end), lo = m * mid + carry_in;
    const u32 hi = m * top + high_product(m, mid) + (lo < carry_in ? 1u : 0u);
    const u32 q = (hi + 0x20000000u) >> 30;
    /* the rest of hi.lo, in units of 2^-30, as two floats: whole + part + the fraction's lower half */
    const i32 rest = (i32)(hi - (q << 30));
    const f32 whole = (f32)rest, part = (f32)(rest - (i32)whole) + (f32)(i32)(lo >> 16) * 1.52587891e-05f;
    const f32 sum = whole + part, lost = (part - (sum - whole)) + (f32)(i32)(lo & 0xffffu) * 2.32830644e-10f;
    const f32 turn = sum + lost, turn_lo = lost - (turn - sum);
    const f32 r = turn * Q_TURN,
              r_lo = fma_f32(turn_lo, Q_TURN, fma_f32(turn, -4.07098001e-17f, fma_f32(turn, Q_TURN, -r)));
    const Q_Angle v = { r, r_lo, q };
    return v;
}

Q_FN Q_Angle angle_of(f32 a)
{
    const Q_Angle n = angle_near(a), f = angle_far(a);
    const int far = a >= 131072.0f;
    const Q_Angle v = { a < Q_INF ? (far ? f.r : n.r) : a - a, far ? f.lo : n.lo, far ? f.q : n.q };
    return v;
}

/* sin(r + lo), |r| <= pi/4, error 2^-32.5; keeps -0 and subnormals where lo is 0 */
Q_FN f32 sin_kernel(f32 r, f32 lo)
{
    const f32 z = r * r;
    f32 p = 2.83724694e-06f;
    p = fma_f32(p, z, -0.000198534981f);
    p = fma_f32(p, z, 0.00833338033f);
    p = fma_f32(p, z, -0.166666672f);
    return r + fma_f32(p * z, r, lo);
}

/* cos(r + lo), |r| <= pi/4, error 2^-33.1: 1 - z/2 is formed with what it loses */
Q_FN f32 cos_kernel(f32 r, f32 lo)
{
    const f32 z = r * r;
    f32 p = 2.44306702e-05f;
    p = fma_f32(p, z, -0.00138873013f);
    p = fma_f32(p, z, 0.0416666456f);
    const f32 c = fma_f32(-0.5f, z, 1.0f), c_lo = fma_f32(-0.5f, z, 1 - c);
    const f32 z_lo = fma_f32(r, r, -z);
    return c + fma_f32(p * z, z, fma_f32(-r, lo, fma_f32(-0.5f, z_lo, c_lo)));
}

/* sin of quadrant q at r + lo. */
Q_FN f32 sin_quadrant(f32 r, f32 lo, u32 q)
{
    const f32 s = sin_kernel(r, lo), c = cos_kernel(r, lo), v = (q & 1) ? c : s;
    return float_of(bits_of(v) ^ ((q & 2) << 30));
}

Q_FN f32 sin_f32(f32 x)
{
    const Q_Angle v = angle_of(abs_f32(x));
    return float_of(bits_of(sin_quadrant(v.r, v.lo, v.q)) ^ (bits_of(x) & 0x80000000u));
}

Q_FN f32 cos_f32(f32 x)
{
    const Q_Angle v = angle_of(abs_f32(x));
    return sin_quadrant(v.r, v.lo, v.q + 1);
}

Q_FN f32 tan_f32(f32 x)
{
    const Q_Angle v = angle_of(abs_f32(x));
    const f32 s = sin_kernel(v.r, v.lo), c = cos_kernel(v.r, v.lo);
    const f32 t = (v.q & 1) ? -c / s : s / c;
    return float_of(bits_of(t) ^ (bits_of(x) & 0x80000000u));
}

#endif
