/* Learned quantizers: the values they leave and every gradient against formulas in f64. */
#include "passes/learned/learned.h"

#include <string.h>

#include "ops/control/reverse.h"
#include "ops/quant/quantize.h"
#include "support/calls.h"

enum { N = 512, LEARNED = 2 };

/* What is learned, x and what reaches the result; the formulas' answers. */
typedef struct Want {
    double y[N], dx[N], learned[LEARNED];
} Want;

typedef struct Kind {
    const char *what;
    bool ends, offset, code, power;
    DType codes;
    int64_t least, largest;
    double log2, zero; /* of the scale; the offset, or the code of 0 */
} Kind;

static const Kind kinds[] = {
    { "lsq", false, false, false, false, I8, -7, 7, -2.3, 0 },
    { "lsq+", false, true, false, false, U8, 0, 15, -2.3, -0.8 },
    { "lsq+", false, true, false, false, U8, 0, 3, -1.1, 0.4 }, /* beyond the codes */
    { "lsq+", false, true, false, false, I8, -8, 7, -2.3, 0.5 },
    { "lsq:learned", false, false, true, false, U8, 0, 15, -2.3, 4.4 },
    { "pact", true, false, false, false, U8, 0, 15, -2.9, 0 },
    { "pact", true, false, false, false, U8, 0, 3, -1.2, 0 },
    { "tqt", false, false, false, true, I8, -8, 7, -2.3, 0 },
    { "tqt", false, false, false, true, U8, 0, 255, -7, 0 },
};

/* The formulas: s the scale, b where codes begin; by hand what each paper has. */
static void formula(const Kind *k, const double *x, const double *dy, Want *w)
{
    const double s = (double)(float)exp2(k->power ? ceil(k->log2) : k->log2), lo = (double)k->least,
                 hi = (double)k->largest;
    const double raw = k->offset ? rint(-k->zero / s) : k->code ? rint(k->zero) : 0, z = fmin(fmax(raw, lo), hi);
    double ds = 0, dzero = 0;
    for (int i = 0; i < N; i++) {
        const double v = x[i] / s, c = fmin(fmax(rint(v) + z, lo), hi);
        const bool below = v<lo - z, above = v> hi - z, inside = !below && !above;
        w->y[i] = (c - z) * s;
        w->dx[i] = inside ? dy[i] : 0;
        const double out = k->offset ? (below ? lo : hi) : (below ? lo : hi) - z;
        ds += dy[i] * (inside ? (k->ends ? 0 : rint(v) - v) : out);
        dzero += inside ? 0 : k->offset ? dy[i] : -s * dy[i];
    }
    w->learned[0] = ds * s * log(2);
    w->learned[1] = dzero;
}

static Node *doubles(Build *b, const double *v)
{
    Tensor *t = tensor_new(b->graph->arena, type_vector(&b->graph->ir->types, F32, N));
    for (int i = 0; i < N; i++)
        tensor_set_f64(t, i, v[i]);
    return build_const(b, t);
}

/* The largest of what is apart, of the largest that is wanted. */
static double apart(const Tensor *got, const double *want, int64_t n)
{
    double most = 1e-30, off = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(want[i]));
        off = fmax(off, fabs(at(got, i) - want[i]));
    }
    return off / most;
}

static Node *zero_of(Build *b, const Kind *k, Node *learned, Node *scale)
{
    double lo, hi;
    code_range(k->codes, &lo, &hi);
    const LearnedZero zero = { k->codes, k->least, k->largest, (double)k->least == lo && (double)k->largest == hi };
    return k->offset ? learned_zero_of_offset(b, &zero, learned, scale)
           : k->code ? learned_zero_of_code(b, &zero, learned, scale)
                     : build_scalar(b, k->codes, 0);
}

static void check_kind(Context *c, const Kind *k, const double *xs, const double *dys)
{
    Want want;
    Build b = fresh(c);
    Node *x = doubles(&b, xs), *dy = doubles(&b, dys), *log2 = build_scalar(&b, F32, k->log2),
         *zero = build_scalar(&b, F32, k->zero);
    Node *scale = k->power ? learned_power_above(&b, log2) : learned_power(&b, log2);
    Node *z = zero_of(&b, k, zero, scale);
    const QuantizeAttr attr = { .axis = 1,
                                .saturate = true,
                                .least = k->least,
                                .largest = k->largest,
                                .mask = MASK_BY_VALUE,
                                .learned = true,
                                .gain = 1,
                                .ends = k->ends,
                                .learned_zero = k->offset || k->code };
    const DequantizeAttr back = { .axis = 1 };
    Node *codes = CALL_ATTR(&b, quantize_linear, attr, x, scale, z);
    Node *y = CALL_ATTR(&b, dequantize_linear, back, codes, scale, z), *of[] = { x, log2, zero };
    const bool both = attr.learned_zero;
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &dy, .n_x = 2 + both, .x = of, .narrow = true };
    ReverseResult r;
    Tensor *out[4];
    assert_int_equal(b.status, OK);
    assert_int_equal(reverse(&b, &q, &c->arena, &r), OK);
    graph_return(b.graph, 4, (Node *[]){ y, r.dx[0], r.dx[1], both ? r.dx[2] : log2 }, NULL);
    assert_int_equal(evaluate(b.graph, NULL, &c->heap, NULL, out), OK);
    formula(k, xs, dys, &want);
    if (!both)
        want.learned[1] = k->log2;
    require(apart(out[0], want.y, N) < 3e-7, "%s to %d: a number is off\n", k->what, (int)k->largest);
    require(apart(out[1], want.dx, N) < 1e-7, "%s to %d: a gradient is off\n", k->what, (int)k->largest);
    for (int i = 0; i < LEARNED; i++)
        require(apart(out[2 + i], &want.learned[i], 1) < 1e-5, "%s to %d: learned %d has %.9g, not %.9g\n", k->what,
                (int)k->largest, i, at(out[2 + i], 0), want.learned[i]);
    for (int i = 0; i < 4; i++)
        tensor_drop(&c->heap, out[i]);
}

static Status all_kinds(void *arg)
{
    Rng rng = { 7 };
    double x[N], dy[N];
    for (int i = 0; i < N; i++) {
        const double u = rng_below(&rng, 1 << 16), v = rng_below(&rng, 1 << 16);
        x[i] = (double)(float)((u + 0.37) / 12000 - 2.5);
        dy[i] = (double)(float)((v - 20000) / 32768);
    }
    for (size_t i = 0; i < COUNT(kinds); i++)
        check_kind(arg, &kinds[i], x, dy);
    return OK;
}

static void formulas_of_papers(void **state)
{
    (void)state;
    with_context(all_kinds);
}

/* Powers of two are the same to the bit, and themselves. */
static Status all_powers(void *arg)
{
    Context *c = arg;
    for (int e = -20; e <= 20; e++)
        for (int part = 0; part < 4; part++) {
            Build b = fresh(c);
            const double log2 = e - part / 4.0;
            Tensor *got = value_of(c, learned_power_above(&b, build_scalar(&b, F32, log2)), NULL);
            const double want = ldexp(1, e);
            require(at(got, 0) == want, "2^%g: %g\n", log2, at(got, 0));
            tensor_drop(&c->heap, got);
        }
    return OK;
}

static void powers_are_powers(void **state)
{
    (void)state;
    with_context(all_powers);
}

/* Numbers of codes of that type between two, with a scale that learns. */
static Node *in_codes(Build *b, Node *x, Node *scale, DType type, int least, int largest)
{
    const QuantizeAttr attr = { .axis = 1,
                                .output_dtype = (int)type + 1,
                                .saturate = true,
                                .least = least,
                                .largest = largest,
                                .mask = MASK_NONE,
                                .learned = true,
                                .gain = 1 };
    const DequantizeAttr back = { .axis = 1 };
    return CALL_ATTR(b, dequantize_linear, back, CALL_ATTR(b, quantize_linear, attr, x, scale), scale);
}

/* y, and what comes back to each of `of`. */
static void evaluate_back(Context *c, Build *b, Node *y, Node *dy, int n, Node **of, Tensor **out)
{
    Node *results[8] = { y };
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &dy, .n_x = n, .x = of, .narrow = true };
    ReverseResult r;
    assert_int_equal(b->status, OK);
    assert_int_equal(reverse(b, &q, &c->arena, &r), OK);
    for (int i = 0; i < n; i++)
        results[1 + i] = r.dx[i];
    graph_return(b->graph, 1 + n, results, NULL);
    assert_int_equal(evaluate(b->graph, NULL, &c->heap, NULL, out), OK);
}

static void drop_all(Context *c, int n, Tensor **list)
{
    for (int i = 0; i < n; i++)
        tensor_drop(&c->heap, list[i]);
}

/* ---- levels ---- */

enum { MOST_LEVELS = 15, LEVELS_LEARN = MOST_LEVELS + 2 };

/* By hand: number x in interval i, which begins at d, stands for s RNE(i + (x - d) / a); dx, and what reaches the scale, the
 * start and the logarithm of each width, to the base 2. */
typedef struct Levels {
    int n;
    double scale, start, log2[MOST_LEVELS], y[N], dx[N], learned[LEVELS_LEARN];
} Levels;

static void level_of(Levels *k, double x, double dy, double *y, double *dx)
{
    double begins = k->start, width = 0;
    int i = 0;
    for (; i < k->n; i++, begins += width)
        if (width = exp2(k->log2[i]), x <= begins + width)
            break;
    const bool inside = x > k->start && i < k->n;
    const double level = x <= k->start ? 0 : i == k->n ? k->n : i + (x - begins) / width;
    *y = k->scale * rint(level);
    *dx = inside ? dy * k->scale / width : 0;
    k->learned[0] += dy * rint(level);
    if (!inside)
        return;
    k->learned[1] -= *dx;
    for (int j = 0; j < i; j++)
        k->learned[2 + j] -= *dx * exp2(k->log2[j]) * log(2);
    k->learned[2 + i] -= *dx * (x - begins) * log(2);
}

static void check_levels(Context *c, Levels *k, const double *xs, const double *dys)
{
    Build b = fresh(c);
    b.flags = NODE_OURS;
    Tensor *logs = tensor_new(&c->arena, type_vector(&c->ir.types, F32, k->n)), *out[5];
    for (int i = 0; i < k->n; i++)
        tensor_set_f64(logs, i, k->log2[i]);
    for (int i = 0; i < N; i++)
        level_of(k, xs[i], dys[i], &k->y[i], &k->dx[i]);
    Node *x = doubles(&b, xs), *dy = doubles(&b, dys), *scale = build_scalar(&b, F32, k->scale),
         *start = build_scalar(&b, F32, k->start), *log2 = build_const(&b, logs);
    Node *levels = learned_levels(&b, x, learned_power(&b, log2), start, k->n), *number = CALL(&b, mul, scale, levels);
    assert_true(learned_levels_of(levels) == x && learned_from(number) == x);
    Node *y = in_codes(&b, number, scale, U8, 0, k->n);
    evaluate_back(c, &b, y, dy, 4, (Node *[]){ x, scale, start, log2 }, out);
    require(apart(out[0], k->y, N) < 3e-7, "%d thresholds: a number is off\n", k->n);
    require(apart(out[1], k->dx, N) < 1e-6, "%d thresholds: a gradient is off\n", k->n);
    for (int i = 0; i < 3; i++)
        require(apart(out[2 + i], &k->learned[i], i < 2 ? 1 : k->n) < 1e-5, "%d thresholds: learned %d is off\n", k->n,
                i);
    drop_all(c, 5, out);
}

/* Numbers lie before the first interval, where it begins, in each and behind the last. */
static Status all_levels(void *arg)
{
    Rng rng = { 5 };
    double x[N], dy[N];
    for (int i = 0; i < N; i++) {
        const double u = (double)rng_below(&rng, 1 << 16), v = (double)rng_below(&rng, 1 << 16);
        x[i] = i < 8 ? 0.125 : (double)(float)((u + 0.37) / 16000 - 0.6);
        dy[i] = (double)(float)((v - 20000) / 32768);
    }
    for (int n = 1; n <= MOST_LEVELS; n = 2 * n + 1) {
        Levels k = { .n = n, .scale = 0.375, .start = 0.125 };
        for (int i = 0; i < n; i++)
            k.log2[i] = (double)(float)(log2(3.0 / n) + 0.5 * sin(i + n));
        check_levels(arg, &k, x, dy);
    }
    return OK;
}

static void thresholds_are_learned(void **state)
{
    (void)state;
    with_context(all_levels);
}

/* ---- bits ---- */

/* By hand: of `bits` bits codes reach to the end e, in steps of e / q, q = 2^(bits - 1) - 1. */
static void bits_by_hand(const double *x, const double *dy, double log2, int bits, Want *w)
{
    const double end = (double)(float)exp2(log2), q = exp2(bits - 1) - 1, s = end / q;
    double of_end = 0, of_q = 0;
    for (int i = 0; i < N; i++) {
        const bool inside = fabs(x[i]) <= end;
        const double v = x[i] / s;
        w->y[i] = inside ? rint(v) * s : copysign(end, x[i]);
        w->dx[i] = inside ? dy[i] : 0;
        of_end += dy[i] * (inside ? (rint(v) - v) / q : copysign(1, x[i]));
        of_q -= inside ? dy[i] * (rint(v) - v) * end / (q * q) : 0;
    }
    w->learned[0] = of_end * end * log(2);
    w->learned[1] = of_q * exp2(bits - 1) * log(2) * LEARNED_BITS_PART;
}

static void check_bits(Context *c, double said, int bits, const double *xs, const double *dys)
{
    const double log2 = -0.3;
    Want want;
    Build b = fresh(c);
    b.flags = NODE_OURS;
    Node *x = doubles(&b, xs), *dy = doubles(&b, dys), *ends = build_scalar(&b, F32, log2),
         *state = build_scalar(&b, F32, said / LEARNED_BITS_PART);
    Node *end = learned_power(&b, ends), *scale = CALL(&b, div, end, learned_largest(&b, learned_bits(&b, state, 8)));
    Node *within = learned_within(&b, x, end, -1);
    require(learned_from(within) == x, "what was cut to an end is lost\n");
    Node *y = in_codes(&b, within, scale, I8, -127, 127);
    Tensor *out[4];
    evaluate_back(c, &b, y, dy, 3, (Node *[]){ x, ends, state }, out);
    bits_by_hand(xs, dys, log2, bits, &want);
    require(apart(out[0], want.y, N) < 3e-7, "%g bits: a number is off\n", said);
    require(apart(out[1], want.dx, N) < 1e-7, "%g bits: a gradient is off\n", said);
    for (int i = 0; i < LEARNED; i++)
        require(apart(out[2 + i], &want.learned[i], 1) < 1e-3, "%g bits: learned %d has %.9g, not %.9g\n", said, i,
                at(out[2 + i], 0), want.learned[i]);
    drop_all(c, 4, out);
}

/* Rounded, and within 2 and 8 whatever is said. */
static Status all_bits(void *arg)
{
    Rng rng = { 3 };
    double x[N], dy[N];
    for (int i = 0; i < N; i++) {
        const double u = (double)rng_below(&rng, 1 << 16), v = (double)rng_below(&rng, 1 << 16);
        x[i] = (double)(float)((u + 0.37) / 32768 - 1);
        dy[i] = (double)(float)((v - 20000) / 32768);
    }
    for (int bits = 2; bits <= 8; bits++) {
        check_bits(arg, bits, bits, x, dy);
        check_bits(arg, bits + 0.4, bits, x, dy);
    }
    check_bits(arg, -3, 2, x, dy);
    check_bits(arg, 11, 8, x, dy);
    return OK;
}

static void bits_are_learned(void **state)
{
    (void)state;
    with_context(all_bits);
}

/* ---- weights ---- */

static void check_weights(Context *c, Node *y, Node *x, Node *dy, Build *b, const double *want_y, const double *want_dx,
                          const char *what)
{
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &dy, .n_x = 1, .x = &x, .narrow = true };
    ReverseResult r;
    Tensor *out[2];
    assert_int_equal(b->status, OK);
    assert_int_equal(reverse(b, &q, &c->arena, &r), OK);
    graph_return(b->graph, 2, (Node *[]){ y, r.dx[0] }, NULL);
    assert_int_equal(evaluate(b->graph, NULL, &c->heap, NULL, out), OK);
    require(apart(out[0], want_y, N) < 3e-7, "%s: a number is off\n", what);
    require(apart(out[1], want_dx, N) < 2e-6, "%s: a gradient is off\n", what);
    for (int i = 0; i < 2; i++)
        tensor_drop(&c->heap, out[i]);
}

static void check_signs(Context *c, const double *x, const double *dy)
{
    const double sizes[] = { 0.25 };
    double y[N], moved[N];
    for (int i = 0; i < N; i++) {
        moved[i] = i == 0 ? -0.0 : i == 1 ? 0 : x[i];
        y[i] = moved[i] < 0 ? -sizes[0] : sizes[0]; /* 0 is above, as is -0 */
    }
    Build b = fresh(c);
    Node *w = doubles(&b, moved), *back = doubles(&b, dy);
    check_weights(c, learned_signs(&b, w, build_scalar(&b, F32, sizes[0]), -1), w, back, &b, y, dy, "signs");
}

/* 0 where a number is no larger than the threshold, which is no part of what is beyond. */
static void check_ternary(Context *c, const double *x, const double *dy)
{
    const double size = 0.75, edge = 0.5;
    double y[N], moved[N];
    for (int i = 0; i < N; i++) {
        moved[i] = i < 2 ? 0.5 - i : i == 2 ? -0.0 : x[i];
        y[i] = moved[i] > edge ? size : moved[i] < -edge ? -size : 0;
    }
    Build b = fresh(c);
    b.flags = NODE_OURS;
    Node *w = doubles(&b, moved), *back = doubles(&b, dy);
    Node *to = learned_ternary(&b, w, build_scalar(&b, F32, edge), build_scalar(&b, F32, size), -1);
    require(learned_from(to) == w, "the weight behind -1, 0 and 1 is lost\n");
    check_weights(c, to, w, back, &b, y, dy, "ternary");
}

static void check_tanh(Context *c, int64_t steps, const double *x, const double *dy)
{
    double y[N], dx[N], most = 0;
    for (int i = 0; i < N; i++)
        most = fmax(most, fabs(tanh(x[i])));
    for (int i = 0; i < N; i++) {
        const double t = tanh(x[i]), n = (double)steps;
        y[i] = 2 * rint((t / (2 * most) + 0.5) * n) / n - 1;
        dx[i] = dy[i] * (1 - t * t) / most;
    }
    Build b = fresh(c);
    b.flags = NODE_OURS;
    Node *w = doubles(&b, x), *back = doubles(&b, dy), *to = learned_tanh(&b, w, steps);
    require(learned_from(to) == w, "the weight behind %d steps is lost\n", (int)steps);
    check_weights(c, to, w, back, &b, y, dx, "tanh");
}

static Status all_weights(void *arg)
{
    Rng rng = { 11 };
    double x[N], dy[N];
    for (int i = 0; i < N; i++) {
        const double u = (double)rng_below(&rng, 1 << 16), v = (double)rng_below(&rng, 1 << 16);
        x[i] = (double)(float)((u + 0.37) / 20000 - 1.6);
        dy[i] = (double)(float)((v - 20000) / 32768);
    }
    check_signs(arg, x, dy);
    check_ternary(arg, x, dy);
    for (int64_t steps = 1; steps < 128; steps = 2 * steps + 1)
        check_tanh(arg, steps, x, dy);
    return OK;
}

static void weights_become_others(void **state)
{
    (void)state;
    with_context(all_weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_of_papers),     cmocka_unit_test(powers_are_powers),
        cmocka_unit_test(thresholds_are_learned), cmocka_unit_test(bits_are_learned),
        cmocka_unit_test(weights_become_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
