/* Ranges that are looked for: each is one of those that its formula chooses among, and no other one of them is better, by
 * plain loops in f64. */
#include <string.h>

#include "ops/quant/observe.h"
#include "ops/quant/quantize.h"
#include "support/calls.h"

enum { N = 700, ENDS = 100 };
enum { MSE, KL, HQO };

/* The codes of a case. */
typedef struct Codes {
    DType type;
    int least, largest;
    bool symmetric, pow2;
} Codes;

static const Codes codes[] = {
    { I8, -127, 127, true, false }, { I4, 0, 0, true, false },     { I4, -7, 7, true, true },
    { U8, 0, 0, false, false },     { U4, 0, 0, false, false },    { I8, 0, 0, false, false },
    { F8E4M3, 0, 0, true, false },  { F4E2M1, 0, 0, true, false }, { F6E3M2, 0, 0, true, false },
};

static void ends_of(const Codes *k, double *lo, double *hi)
{
    code_range(k->type, lo, hi);
    if (k->least || k->largest) {
        *lo = k->least;
        *hi = k->largest;
    }
    if (dtype_is_float(k->type)) {
        *hi = k->type == F8E4M3 ? 448 : k->type == F4E2M1 ? 6 : 28;
        *lo = -*hi;
    }
}

/* ---- what codes make of a number, in f64 ---- */

/* The nearest number of a float format: p significant bits, exponents from `low` on. */
static double nearest_float(DType type, double v)
{
    const int p = type == F8E4M3 ? 4 : type == F4E2M1 ? 2 : 3, low = type == F8E4M3 ? -6 : type == F4E2M1 ? 0 : -2;
    if (v == 0)
        return 0;
    int e = ilogb(v);
    e = e < low ? low : e;
    return ldexp(nearbyint(ldexp(v, p - 1 - e)), e - p + 1);
}

static double made_of(const Codes *k, double from, double to, double x)
{
    double lo, hi, s, z = 0;
    ends_of(k, &lo, &hi);
    if (k->symmetric) {
        const double bound = fmax(-from, to);
        s = (double)(float)(k->pow2 ? exp2(ceil(log2(bound / (hi + 1)))) : bound / hi);
    } else {
        s = (double)(float)((to - from) / (hi - lo));
        z = fmin(fmax(nearbyint(lo - from / s), lo), hi);
    }
    const double v = dtype_is_float(k->type) ? nearest_float(k->type, x / s) : nearbyint(x / s);
    return s * fmin(fmax(v, lo - z), hi - z);
}

/* ---- errors ---- */

typedef struct Data {
    const float *x;
    double least, most;
    bool counted; /* each stands at the middle of its bin */
    double width;
} Data;

static Data data_of(const float *x, bool counted)
{
    Data d = { .x = x, .counted = counted };
    for (int i = 0; i < N; i++) {
        d.least = (double)x[i] < d.least ? (double)x[i] : d.least;
        d.most = (double)x[i] > d.most ? (double)x[i] : d.most;
    }
    d.width = ldexp(1, ilogb(fmax(-d.least, d.most)) - 10);
    return d;
}

static double error_to(const Data *d, const Codes *k, double end)
{
    const double from = fmax(d->least, -end), to = fmin(d->most, end), sign = d->most >= -d->least ? 1 : -1;
    double sum = 0;
    for (int i = 0; i < N; i++) {
        double x = (double)d->x[i];
        if (d->counted)
            x = sign * (floor(fabs(x) / d->width) + 0.5) * d->width;
        const double off = x - made_of(k, from, to, x);
        sum += off * off;
    }
    return sum;
}

/* Of 100 ends none errs less than that one, which is one of them. */
static void check_error(const Data *d, const Codes *k, double end)
{
    const double largest = fmax(-d->least, d->most), have = error_to(d, k, end);
    bool found = false;
    for (int i = 0; i < ENDS; i++) {
        const double other = (double)(float)(largest * (0.1 + 0.9 * i / 99));
        found |= fabs(other - end) <= 1e-6 * largest;
        require(error_to(d, k, other) >= have * (1 - 1e-5), "%s: %g errs by %g, %g by %g\n", dtype_name(k->type), end,
                have, other, error_to(d, k, other));
    }
    require(found, "%s: nobody looks at %g of %g\n", dtype_name(k->type), end, largest);
}

/* ---- divergence ---- */

static void smoothed(double *p, int n)
{
    int zeros = 0;
    for (int i = 0; i < n; i++)
        zeros += p[i] == 0;
    for (int i = 0; i < n; i++)
        p[i] = p[i] == 0 ? 1e-4 : p[i] - 1e-4 * zeros / (n - zeros);
}

static double divergence_at(const Data *d, int n, int levels)
{
    double h[2048] = { 0 }, p[2048], q[2048], sp = 0, sq = 0, sum = 0;
    for (int i = 0; i < N; i++)
        h[(int)(fabs((double)d->x[i]) / d->width)] += 1;
    memcpy(p, h, sizeof p);
    for (int i = n; i < 2048; i++)
        p[n - 1] += h[i];
    for (int i = 0; i < n; i++) {
        const int level = ((i + 1) * levels - 1) / n; /* the last whose first bin is not behind i */
        const int from = level * n / levels, to = (level + 1) * n / levels;
        double all = 0, holding = 0;
        for (int j = from; j < to; j++) {
            all += h[j];
            holding += p[j] > 0;
        }
        q[i] = p[i] > 0 ? all / holding : 0;
    }
    smoothed(p, n);
    smoothed(q, n);
    for (int i = 0; i < n; i++) {
        sp += p[i];
        sq += q[i];
    }
    for (int i = 0; i < n; i++)
        sum += p[i] / sp * log(p[i] / sp / (q[i] / sq));
    return sum;
}

static void check_divergence(const Data *d, const Codes *k, double end)
{
    double lo, hi;
    ends_of(k, &lo, &hi);
    const double largest = fmax(-d->least, d->most);
    const int levels = (int)(k->symmetric ? hi + 1 : hi - lo + 1), first = levels > 128 ? levels : 128;
    const int used = (int)(largest / d->width) + 1, have = (int)nearbyint(end / d->width);
    require(have >= first && (used - have) % 16 == (used - have >= 0 ? (used - first) % 16 : 0), "%d of %d bins\n",
            have, used);
    for (int n = first; n <= used; n += 16)
        require(divergence_at(d, n, levels) >= divergence_at(d, have, levels) - 1e-5,
                "%s: %d bins diverge by %g, %d by %g\n", dtype_name(k->type), have, divergence_at(d, have, levels), n,
                divergence_at(d, n, levels));
}

/* ---- half-quadratic ---- */

static double halves(const Data *d, const Codes *k)
{
    double lo, hi, s, best = 0, lowest = INFINITY, beta = 1e5;
    ends_of(k, &lo, &hi);
    s = fmax(-d->least, d->most) / hi;
    for (int t = 0; t < 1000; t++, beta *= 1.01) {
        double loss = 0, over = 0, under = 0;
        for (int i = 0; i < N; i++) {
            const double x = (double)d->x[i];
            const double v = dtype_is_float(k->type) ? nearest_float(k->type, x / s) : nearbyint(x / s);
            const double q = fmin(fmax(v, lo), hi), r = x - s * q, rest = fabs(r) - pow(fabs(r), -0.3) / beta;
            loss += fabs(r);
            over += q * (x - (r != 0 && rest > 0 ? copysign(rest, r) : 0));
            under += q * q;
        }
        if (loss >= lowest)
            break;
        lowest = loss;
        best = s;
        s = over / under;
    }
    return best * hi;
}

/* ---- the words ---- */

static void fill(float *x, uint64_t seed)
{
    Rng rng = { seed };
    for (int i = 0; i < N; i++) {
        double v = 0;
        for (int k = 0; k < 6; k++)
            v += rng_unit(&rng) - 0.45;
        x[i] = (float)(i % 97 ? v : 3 * v); /* some stand out */
    }
}

static Tensor *numbers(Context *c, const float *x, int rank, const int64_t *dims)
{
    Tensor *t = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, rank, dims));
    memcpy(t->data, x, N * sizeof *x);
    return t;
}

static double end_of(double lo, double hi)
{
    return fmax(-lo, hi);
}

static void check_rows(Context *c, const float *x, const Codes *k, int kind)
{
    Build b = fresh(c);
    const SearchRangeAttr attr = { kind, k->least, k->largest, k->symmetric, k->pow2, (int)k->type + 1 };
    Node *in = build_const(&b, numbers(c, x, 2, (int64_t[]){ 1, N }));
    Tensor *got = value_of(c, build_node_n(&b, OP_search_range, &attr, 1, &in, 2), NULL);
    const double end = end_of(at(got->items[0], 0), at(got->items[1], 0));
    const Data d = data_of(x, false);
    if (kind == MSE)
        check_error(&d, k, end);
    else if (kind == KL)
        check_divergence(&d, k, end);
    else
        require(fabs(end - halves(&d, k)) <= 1e-4 * end, "%s: half-quadratic %.9g, not %.9g\n", dtype_name(k->type),
                end, halves(&d, k));
    tensor_drop(&c->heap, got);
}

static Status all_rows(void *arg)
{
    static float x[N];
    for (size_t k = 0; k < COUNT(codes); k++) {
        fill(x, 11 + k);
        check_rows(arg, x, &codes[k], MSE);
        if (!codes[k].pow2)
            check_rows(arg, x, &codes[k], KL);
        if (codes[k].symmetric && !codes[k].pow2)
            check_rows(arg, x, &codes[k], HQO);
    }
    return OK;
}

static void rows_have_the_range_of_the_formula(void **state)
{
    (void)state;
    with_context(all_rows);
}

static Status all_observed(void *arg)
{
    Context *c = arg;
    static float x[N];
    for (size_t k = 0; k < COUNT(codes); k++)
        for (int kind = OBSERVE_MSE; kind <= OBSERVE_SIGMA; kind++) {
            const Codes *as = &codes[k];
            const ObserveAttr attr = { .kind = kind,
                                       .rate = 1,
                                       .percentile = 100,
                                       .sigma = 2.5f,
                                       .least = as->least,
                                       .largest = as->largest,
                                       .symmetric = as->symmetric,
                                       .pow2 = as->pow2,
                                       .to = (int)as->type + 1 };
            fill(x, 77 + k);
            Build b = fresh(c);
            Node *in[] = { build_const(&b, numbers(c, x, 1, (int64_t[]){ N })),
                           build_const(&b,
                                       tensor_new(&c->arena, type_vector(&c->ir.types, F32, observed_size(kind)))) };
            Tensor *got = value_of(c, build_node(&b, OP_observe, &attr, 2, in), NULL);
            const double end = end_of(at(got, OBSERVED_LO), at(got, OBSERVED_HI));
            const Data d = data_of(x, true);
            double sum = 0, squares = 0;
            for (int i = 0; i < N; i++) {
                const double size = (floor(fabs((double)x[i]) / d.width) + 0.5) * d.width;
                sum += size / N;
                squares += size * size / N;
            }
            if (kind == OBSERVE_MSE)
                check_error(&d, as, end);
            else if (kind == OBSERVE_KL && !as->pow2)
                check_divergence(&d, as, end);
            else if (kind == OBSERVE_SIGMA)
                require(fabs(end - (sum + 2.5 * sqrt(squares - sum * sum))) <= 1e-5 * end, "sigma=2.5: %.9g\n", end);
            tensor_drop(&c->heap, got);
        }
    return OK;
}

static void observers_tell_the_range_of_the_formula(void **state)
{
    (void)state;
    with_context(all_observed);
}

/* Rows of zeros, and of what is no number, have no range that is looked for. */
static Status odd_rows(void *arg)
{
    Context *c = arg;
    for (int kind = MSE; kind <= HQO; kind++) {
        Build b = fresh(c);
        const SearchRangeAttr attr = { .kind = kind, .symmetric = true, .to = (int)I8 + 1 };
        static const float v[] = { 0, 0, 0, 1, NAN, 2, 1, INFINITY, 2 };
        Tensor *t = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 2, (int64_t[]){ 3, 3 }));
        memcpy(t->data, v, sizeof v);
        Node *in = build_const(&b, t);
        Tensor *got = value_of(c, build_node_n(&b, OP_search_range, &attr, 1, &in, 2), NULL);
        require(at(got->items[1], 0) == 0, "zeros reach to %g\n", at(got->items[1], 0));
        require(isnan(at(got->items[1], 1)), "a NaN leaves %g\n", at(got->items[1], 1));
        require(!isfinite(at(got->items[1], 2)), "an infinity leaves %g\n", at(got->items[1], 2));
        tensor_drop(&c->heap, got);
    }
    return OK;
}

static void rows_without_a_range_say_so(void **state)
{
    (void)state;
    with_context(odd_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_the_range_of_the_formula),
        cmocka_unit_test(observers_tell_the_range_of_the_formula),
        cmocka_unit_test(rows_without_a_range_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
