#!/usr/bin/env python3
"""Derives the polynomial coefficients of ops/scalar/*.h; run it to print all tables (needs mpmath).

Each job approximates g(x) on [a, b] by c0 + c1 x + .. + cn x^n so that the largest |w (p - g)| is least (Remez).  The
weight w is what one unit of error in p costs the result, relative to the result.  Coefficients are rounded to f32 one
after the other, lowest order first, each time solving again for those that remain, so that later ones absorb the
rounding of earlier ones.
"""
import struct
import sys
from mpmath import mp, mpf, matrix, lu_solve

mp.prec = 160


def f32(v):
    """v rounded to the nearest f32 (through a double whose own rounding is far below)"""
    return mpf(struct.unpack('f', struct.pack('f', float(v)))[0])


def remez(g, w, a, b, powers, rounds=30, grid=801):
    """minimax coefficients for the given powers of x"""
    n = len(powers)
    xs = [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * i / grid) for i in range(grid, -1, -1)]
    gs, ws = [g(x) for x in xs], [w(x) for x in xs]
    pick = [round((i + 0.5) * grid / (n + 1)) for i in range(n + 1)]
    best = None
    for _ in range(rounds):
        m, r = matrix(n + 1, n + 1), matrix(n + 1, 1)
        for row, k in enumerate(pick):
            for col, p in enumerate(powers):
                m[row, col] = ws[k] * xs[k] ** p
            m[row, n] = (-1) ** row
            r[row] = ws[k] * gs[k]
        s = lu_solve(m, r)
        c = [s[i] for i in range(n)]
        err = [w_ * (sum(ci * x ** p for ci, p in zip(c, powers)) - g_) for x, g_, w_ in zip(xs, gs, ws)]
        peaks = []                          # the largest error of every run of one sign
        for k, e in enumerate(err):
            if peaks and (e > 0) == (err[peaks[-1]] > 0):
                if abs(e) > abs(err[peaks[-1]]):
                    peaks[-1] = k
            else:
                peaks.append(k)
        worst = max(abs(err[k]) for k in peaks)
        if best is None or worst < best[0]:
            best = (worst, c)
        while len(peaks) > n + 1:
            drop = 0 if abs(err[peaks[0]]) < abs(err[peaks[-1]]) else -1
            del peaks[drop]
        if len(peaks) < n + 1 or peaks == pick:
            break
        pick = peaks
    return best


def rounded(g, w, a, b, degree, fixed=()):
    """coefficients of degree 0..n as f32; the leading ones may be fixed"""
    done = [f32(v) for v in fixed]
    while len(done) <= degree:
        rest = lambda x: g(x) - sum(c * x ** i for i, c in enumerate(done))
        _, c = remez(rest, w, a, b, list(range(len(done), degree + 1)))
        done.append(f32(c[0]))
    xs = [a + (b - a) * i / 1999 for i in range(2000)]
    err = max(abs(w(x) * (sum(c * x ** i for i, c in enumerate(done)) - g(x))) for x in xs)
    return done, err


def series(f, limit, tiny=mpf(2) ** -30):
    """f where it is well defined, its limit at 0 where it is not"""
    return lambda x: limit if abs(x) < tiny else f(x)


def sq(f, limit):
    """f as a function of z = x*x"""
    return series(lambda z: f(mp.sqrt(z)), limit, mpf(2) ** -60)


LN2, PI = mp.log(2), mp.pi
T = mpf(1) / 2 + mpf(1) / 64            # a little more than half, for roundings in the reduction
one = lambda x: mpf(1)

JOBS = {
    # exp(r) = 1 + r + r r p(r)
    'exp': (series(lambda r: (mp.exp(r) - 1 - r) / r ** 2, mpf(1) / 2, mpf(2) ** -40), lambda r: r * r,
            -LN2 * T, LN2 * T, 4),
    # 2^r = 1 + r p(r)
    'exp2': (series(lambda r: (mp.power(2, r) - 1) / r, LN2), lambda r: r, -T, T, 5),
    # log(1+f) = f + f f p(f)
    'log': (series(lambda f: (mp.log(1 + f) - f) / f ** 2, -mpf(1) / 2, mpf(2) ** -40),
            series(lambda f: f * f / mp.log(1 + f), mpf(2) ** -40), mpf('-0.2930'), mpf('0.4145'), 8),
    # tanh(x) = x + x z p(z), z = x x, x below 0.625
    'tanh': (sq(lambda x: (mp.tanh(x) - x) / x ** 3, -mpf(1) / 3), lambda z: z, mpf(0), mpf('0.6251') ** 2, 4),
    'sinh': (sq(lambda x: (mp.sinh(x) - x) / x ** 3, mpf(1) / 6), lambda z: z, mpf(0), mpf('1.001') ** 2, 3),
    'atanh': (sq(lambda x: (mp.atanh(x) - x) / x ** 3, mpf(1) / 3), lambda z: z, mpf(0), mpf('0.5001') ** 2, 6),
    'sin': (sq(lambda x: (mp.sin(x) - x) / x ** 3, -mpf(1) / 6), lambda z: z, mpf(0), (PI / 4 * mpf('1.001')) ** 2, 3),
    # cos(x) = 1 - z/2 + z z p(z)
    'cos': (sq(lambda x: (mp.cos(x) - 1 + x * x / 2) / x ** 4, mpf(1) / 24), lambda z: z * z, mpf(0),
            (PI / 4 * mpf('1.001')) ** 2, 2),
    'atan': (sq(lambda x: (mp.atan(x) - x) / x ** 3, -mpf(1) / 3),
             lambda z: z * mp.sqrt(z) / mp.atan(mp.sqrt(z)) if z else mpf(2) ** -90, mpf(0), mpf(1), 8),
    'asin': (sq(lambda x: (mp.asin(x) - x) / x ** 3, mpf(1) / 6), lambda z: z, mpf(0), mpf('0.3165'), 5),
    # erf(x) = x + x p(z), |x| below 0.875
    'erf': (sq(lambda x: mp.erf(x) / x - 1, 2 / mp.sqrt(PI) - 1), one, mpf(0), mpf('0.8751') ** 2, 6),
    # erf(x) = 1 - exp(p(x)), 0.875 <= x <= 3.95
    'erf_tail': (lambda x: mp.log(mp.erfc(x)), lambda x: mp.erfc(x) / mp.erf(x), mpf('0.875'), mpf('3.95'), 8),
    # log2 for pow: log2(m) = 2/ln2 atanh(s), s = (m-1)/(m+1), = s (2/ln2) + s z p(z)
    'pow_log2': (sq(lambda s: (mp.atanh(s) - s) / s ** 3 * 2 / LN2, 2 / LN2 / 3), lambda z: z, mpf(0), mpf('0.1717') ** 2, 3),
}


def main():
    for name in sys.argv[1:] or JOBS:
        g, w, a, b, degree = JOBS[name]
        c, err = rounded(g, w, a, b, degree)
        print('%-9s error 2^%.1f' % (name, float(mp.log(err, 2))))
        print('   ', ', '.join(float(v).hex().replace('0000000p', 'p') + 'f' for v in c))
        print('   ', ', '.join('%.9gf' % float(v) for v in c))


if __name__ == '__main__':
    main()
