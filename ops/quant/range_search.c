/* Searches for the ends of ranges.  Sums are f64 in the order of what is added up, so results do not depend on who looks. */
#include "ops/quant/range_search.h"

#include "ops/quant/float_grid.h"

enum { CANDIDATES = 100, FIRST_BINS = 128, BINS_APART = 16, LOOKS = 256, HALVES = 1000 };

RangeCodes range_codes(DType type, int64_t least, int64_t largest, bool symmetric, bool pow2)
{
    RangeCodes c = { .type = type, .symmetric = symmetric, .pow2 = pow2 };
    double lo, hi;
    if (dtype_is_float(type)) {
        hi = float_codes_most(type);
        lo = -hi;
    } else {
        code_limits(type, least, largest, &lo, &hi);
    }
    c.lo = (f32)lo;
    c.hi = (f32)hi;
    return c;
}

/* ---- what codes make of numbers ---- */

/* A range up to an end, with its scale. */
typedef struct Cut {
    f32 scale, zero, lo, hi; /* codes without the zero point lie from lo to hi */
    bool floats;
    FloatGrid grid;
} Cut;

static f32 lower(f32 least, f32 end)
{
    return least < -end ? -end : least < 0 ? least : 0;
}

static f32 upper(f32 most, f32 end)
{
    return most > end ? end : most > 0 ? most : 0;
}

static Cut cut_at(const RangeCodes *c, f32 least, f32 most, f32 end)
{
    const f32 from = lower(least, end), to = upper(most, end);
    Cut k = { .floats = dtype_is_float(c->type) };
    if (k.floats)
        k.grid = float_grid(c->type);
    k.scale = c->symmetric ? symmetric_scale_f32(max_f32(-from, to), c->hi, c->pow2 && !k.floats)
                           : affine_scale_f32(from, to, c->lo, c->hi, c->pow2);
    if (k.floats && c->pow2)
        k.scale = power_above_f32(k.scale);
    k.zero = c->symmetric ? 0 : affine_zero_f32(from, k.scale, c->lo, c->hi);
    k.lo = c->lo - k.zero;
    k.hi = c->hi - k.zero;
    return k;
}

static f32 code_within(const Cut *k, f32 x)
{
    const f32 v = x / k->scale;
    return clamp_f32(k->floats ? float_grid_nearest(k->grid, v) : rint_f32(v), k->lo, k->hi);
}

static f64 error_at(const Cut *k, f32 x)
{
    const f64 off = (f64)x - (f64)(code_within(k, x) * k->scale);
    return off * off;
}

/* The i-th end from above: the first is the largest itself. */
static f32 end_at(f32 largest, int i)
{
    return (f32)((f64)largest * ((f64)(990 + 90 * (CANDIDATES - 1 - i)) / 9900));
}

static f32 size_of(f32 least, f32 most)
{
    return -least > most ? -least : most;
}

/* ---- of histograms ---- */

static int last_bin(const SizeCounts *s)
{
    int last = OBSERVE_BINS - 1;
    while (last > 0 && !s->count[last])
        last--;
    return last;
}

static f32 middle_of(const SizeCounts *s, int bin)
{
    return ((f32)bin + 0.5f) * s->width;
}

/* A size stands for a number on the side that reaches further: on the other one codes end no later. */
static f64 error_of_counts(const SizeCounts *s, const Cut *k, int n, f64 below)
{
    const f32 sign = s->most >= -s->least ? 1 : -1;
    f64 sum = 0;
    for (int i = 0; i < n && sum < below; i++)
        sum += (f64)s->count[i] * error_at(k, sign * middle_of(s, i));
    return sum;
}

f32 range_by_error(const SizeCounts *s, const RangeCodes *c)
{
    const f32 largest = size_of(s->least, s->most);
    const int n = last_bin(s) + 1;
    f32 best = largest;
    f64 least = (f64)Q_INF;
    for (int i = 0; i < CANDIDATES; i++) {
        const f32 end = end_at(largest, i);
        const Cut k = cut_at(c, s->least, s->most, end);
        const f64 error = error_of_counts(s, &k, n, least);
        if (error < least) {
            least = error;
            best = end;
        }
    }
    return best;
}

/* Zeros count so much, which the others give. */
static void smooth(f64 *p, int n)
{
    const f64 share = 1e-4;
    int zeros = 0;
    for (int i = 0; i < n; i++)
        zeros += p[i] == 0;
    const f64 less = zeros < n ? share * (f64)zeros / (f64)(n - zeros) : 0;
    for (int i = 0; i < n; i++)
        p[i] = p[i] == 0 ? share : p[i] - less;
}

/* What so many levels leave of n bins: the mean of those of a level that hold something (in p). */
static void merge_levels(const SizeCounts *s, const f64 *p, int n, int levels, f64 *q)
{
    for (int from = 0, level = 0; level < levels; level++) {
        const int to = (int)((int64_t)(level + 1) * n / levels);
        f64 sum = 0;
        int holding = 0;
        for (int i = from; i < to; i++) {
            sum += (f64)s->count[i];
            holding += p[i] > 0;
        }
        for (int i = from; i < to; i++)
            q[i] = p[i] > 0 ? sum / (f64)holding : 0;
        from = to;
    }
}

static f64 divergence(const f64 *p, const f64 *q, int n)
{
    f64 all_p = 0, all_q = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        all_p += p[i];
        all_q += q[i];
    }
    f64 term = 0;
    for (int i = 0; i < n; i++) { /* bins beside each other often hold the same: nothing, where numbers are few */
        if (i == 0 || p[i] != p[i - 1] || q[i] != q[i - 1])
            term = p[i] / all_p * (f64)log_f32((f32)(p[i] / all_p / (q[i] / all_q)));
        sum += term;
    }
    return sum;
}

f32 range_by_divergence(const SizeCounts *s, const RangeCodes *c, f64 *room)
{
    const int used = last_bin(s) + 1;
    const f64 codes = c->symmetric ? (f64)c->hi + 1 : (f64)c->hi - (f64)c->lo + 1;
    const int levels = codes < OBSERVE_BINS ? (int)codes : OBSERVE_BINS,
              first = levels > FIRST_BINS ? levels : FIRST_BINS;
    f64 *p = room, *q = room + OBSERVE_BINS, least = (f64)Q_INF, beyond = 0;
    f32 best = size_of(s->least, s->most);
    int at = used;
    for (int n = used - (used - first) % BINS_APART; used > first && n >= first; n -= BINS_APART) {
        for (; at > n; at--)
            beyond += (f64)s->count[at - 1];
        for (int i = 0; i < n; i++)
            p[i] = (f64)s->count[i];
        p[n - 1] += beyond;
        merge_levels(s, p, n, levels, q);
        smooth(p, n);
        smooth(q, n);
        const f64 d = divergence(p, q, n);
        if (d < least) {
            least = d;
            best = (f32)n * s->width;
        }
    }
    return best;
}

f32 range_by_deviation(const SizeCounts *s, f32 deviations)
{
    f64 n = 0, sum = 0, squares = 0;
    for (int i = 0; i < OBSERVE_BINS; i++) {
        const f64 count = (f64)s->count[i];
        n += count;
        sum += count * (f64)middle_of(s, i);
    }
    const f64 mean = n > 0 ? sum / n : 0;
    for (int i = 0; i < OBSERVE_BINS; i++) {
        const f64 off = (f64)middle_of(s, i) - mean;
        squares += (f64)s->count[i] * (off * off);
    }
    return (f32)(mean + (f64)deviations * (n > 0 ? sqrt(squares / n) : 0));
}

/* ---- of numbers ---- */

static f64 error_of_numbers(const f32 *x, int64_t n, const Cut *k, f64 below)
{
    f64 sum = 0;
    for (int64_t i = 0; i < n && sum < below; i += LOOKS)
        for (int64_t j = i; j < n && j < i + LOOKS; j++)
            sum += error_at(k, x[j]);
    return sum;
}

f32 range_of_numbers_by_error(const f32 *x, int64_t n, f32 least, f32 most, const RangeCodes *c)
{
    const f32 largest = size_of(least, most);
    f32 best = largest;
    f64 lowest = (f64)Q_INF;
    for (int i = 0; i < CANDIDATES; i++) {
        const f32 end = end_at(largest, i);
        const Cut k = cut_at(c, least, most, end);
        const f64 error = error_of_numbers(x, n, &k, lowest);
        if (error < lowest) {
            lowest = error;
            best = end;
        }
    }
    return best;
}

/* The part of an error that |error|^0.7 leaves to outliers. */
static f32 shrunk(f32 r, f32 beta)
{
    const f32 size = abs_f32(r);
    if (size == 0)
        return 0;
    const f32 rest = size - exp_f32(-0.3f * log_f32(size)) / beta;
    return rest > 0 ? copysign_f32(rest, r) : 0;
}

f32 range_of_numbers_by_halves(const f32 *x, int64_t n, f32 least, f32 most, const RangeCodes *c)
{
    Cut k = cut_at(c, least, most, size_of(least, most));
    f32 best = k.scale, beta = 1e5f;
    f64 lowest = (f64)Q_INF;
    for (int i = 0; i < HALVES; i++) {
        f64 loss = 0, over = 0, under = 0;
        for (int64_t j = 0; j < n; j++) {
            const f32 q = code_within(&k, x[j]), r = x[j] - q * k.scale;
            loss += (f64)abs_f32(r);
            over += (f64)q * ((f64)x[j] - (f64)shrunk(r, beta));
            under += (f64)q * (f64)q;
        }
        if (!(loss < lowest))
            break;
        lowest = loss;
        best = k.scale;
        k.scale = under > 0 ? (f32)(over / under) : k.scale;
        beta *= 1.01f;
        if (!(k.scale > 0))
            break;
    }
    return best * c->hi;
}
