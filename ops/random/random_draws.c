#include "ops/random/random_draws.h"

#include <math.h>

void draws_open(Draws *d, const Eval *e, int64_t stream, bool has_own, uint32_t own, uint32_t numpy_seed)
{
    const EvalOptions *o = eval_options(e);
    *d = (Draws){ .seed = o->seed, .stream = (uint32_t)stream, .step = (uint32_t)o->step };
    d->iteration = eval_iteration(e);
    if (has_own)
        d->seed ^= (uint64_t)own << 32;
    d->numpy = o->random == RANDOM_NUMPY;
    if (d->numpy)
        mt19937_seed(&d->twister, has_own ? numpy_seed : (uint32_t)o->seed);
}

void draws_open_float(Draws *d, const Eval *e, int64_t stream, float seed)
{
    const bool own = seed == seed;
    draws_open(d, e, stream, own, bits_of(seed), own ? (uint32_t)q_i64(seed) : 0);
}

static Philox4 group_of(const Draws *d, uint64_t index)
{
    return philox_group(d->seed, d->stream, index, d->step, d->iteration, PHILOX_VALUE);
}

void draw_uniform_f32(Draws *d, int64_t n, f32 *u)
{
    Philox4 group = { { 0 } };
    for (int64_t i = 0; i < n; i++) {
        if (d->numpy) {
            u[i] = (f32)mt19937_uniform(&d->twister);
            continue;
        }
        if (i % 4 == 0)
            group = group_of(d, (uint64_t)i);
        u[i] = philox_uniform(group.v[i % 4]);
    }
}

/* Two words an element: element i owns words 2i and 2i + 1. */
void draw_uniform_f64(Draws *d, int64_t n, f64 *u)
{
    Philox4 group = { { 0 } };
    for (int64_t i = 0; i < n; i++) {
        if (d->numpy) {
            u[i] = mt19937_uniform(&d->twister);
            continue;
        }
        if (i % 2 == 0)
            group = group_of(d, 2 * (uint64_t)i);
        u[i] = philox_uniform_f64(group.v[i % 2 * 2], group.v[i % 2 * 2 + 1]);
    }
}

/* The polar method, two numbers a round, the second kept for the next call. */
static double numpy_normal(Draws *d)
{
    if (d->has_spare) {
        d->has_spare = false;
        return d->spare;
    }
    double x, y, r;
    do {
        x = 2.0 * mt19937_uniform(&d->twister) - 1.0;
        y = 2.0 * mt19937_uniform(&d->twister) - 1.0;
        r = x * x + y * y;
    } while (r >= 1.0 || r == 0.0);
    const double f = sqrt(-2.0 * log(r) / r);
    d->spare = f * x;
    d->has_spare = true;
    return f * y;
}

void draw_normal_f32(Draws *d, int64_t n, f32 *v)
{
    Philox4 group = { { 0 } };
    for (int64_t i = 0; i < n; i++) {
        if (d->numpy) {
            v[i] = (f32)numpy_normal(d);
            continue;
        }
        if (i % 4 == 0)
            group = group_of(d, (uint64_t)i);
        const Q_Pair pair = normal_pair(group.v[i % 4 / 2 * 2], group.v[i % 4 / 2 * 2 + 1]);
        v[i] = i % 2 ? pair.lo : pair.hi;
    }
}

/* Box and Muller with a group of four words an element. */
void draw_normal_f64(Draws *d, int64_t n, f64 *v)
{
    const double turn = 6.283185307179586;
    for (int64_t i = 0; i < n; i++) {
        if (d->numpy) {
            v[i] = numpy_normal(d);
            continue;
        }
        const Philox4 g = group_of(d, 4 * (uint64_t)i);
        const double radius = sqrt(-2.0 * log(1.0 - philox_uniform_f64(g.v[0], g.v[1])));
        v[i] = radius * cos(turn * philox_uniform_f64(g.v[2], g.v[3]));
    }
}

void draw_not_below(Draws *d, int64_t n, double p, uint8_t *keep)
{
    Philox4 group = { { 0 } };
    for (int64_t i = 0; i < n; i++) {
        if (!d->numpy && i % 4 == 0)
            group = group_of(d, (uint64_t)i);
        const double u = d->numpy ? mt19937_uniform(&d->twister) : (double)philox_uniform(group.v[i % 4]);
        keep[i] = u >= p;
    }
}
