/* Observers: the ranges that their states tell, what is left out, and states that are merged. */
#include <stdlib.h>

#include "base/parallel.h"
#include "ops/quant/observe.h"
#include "support/calls.h"

static Tensor *fresh_state(Context *c, int kind)
{
    return tensor_new(&c->arena, type_vector(&c->ir.types, F32, observed_size(kind)));
}

static Tensor *batch_of(Context *c, int64_t n, const float *v)
{
    Tensor *t = tensor_new(&c->arena, type_vector(&c->ir.types, F32, n));
    if (n)
        memcpy(t->data, v, (size_t)n * sizeof *v);
    return t;
}

/* A copy that the arena holds. */
static Tensor *kept(Context *c, Tensor *t)
{
    Tensor *copy = tensor_new(&c->arena, t->type);
    memcpy(copy->data, t->data, t->bytes);
    tensor_drop(&c->heap, t);
    return copy;
}

static Tensor *observed(Context *c, const ObserveAttr *attr, const Tensor *x, const Tensor *state, Parallel *pool)
{
    Build b = fresh(c);
    const EvalOptions options = { .pool = pool };
    Node *in[] = { build_const(&b, x), build_const(&b, state) };
    return kept(c, value_of(c, build_node(&b, OP_observe, attr, 2, in), &options));
}

static Tensor *merged(Context *c, const ObserveAttr *attr, const Tensor *x, const Tensor *y)
{
    Build b = fresh(c);
    Node *in[] = { build_const(&b, x), build_const(&b, y) };
    return kept(c, value_of(c, build_node(&b, OP_merge_ranges, attr, 2, in), NULL));
}

static void expect(const char *what, const Tensor *state, double lo, double hi, int seen, int bad)
{
    const float *v = state->data;
    require((double)v[OBSERVED_LO] == lo && (double)v[OBSERVED_HI] == hi, "%s: [%.9g, %.9g], not [%.9g, %.9g]\n", what,
            (double)v[OBSERVED_LO], (double)v[OBSERVED_HI], lo, hi);
    require(v[OBSERVED_SEEN] == (float)seen && v[OBSERVED_BAD] == (float)bad, "%s: %g seen, %g left out\n", what,
            (double)v[OBSERVED_SEEN], (double)v[OBSERVED_BAD]);
}

/* ---- ranges ---- */

static Status some_ranges(void *arg)
{
    Context *c = arg;
    const float one[] = { 0.5f, 2, 1 }, two[] = { -1, 3 }, nan[] = { 7, NAN }, inf[] = { -INFINITY, 9 };
    for (int kind = OBSERVE_MINMAX; kind <= OBSERVE_EMA; kind++) {
        const ObserveAttr attr = { .kind = kind, .rate = 0.25f, .percentile = 100 };
        Tensor *s = fresh_state(c, kind);
        expect("before", s, 0, 0, 0, 0);
        s = observed(c, &attr, batch_of(c, 2, nan), s, NULL);
        expect("a NaN first", s, 0, 0, 0, 1);
        s = observed(c, &attr, batch_of(c, 3, one), s, NULL);
        expect("one batch", s, 0, 2, 1, 1); /* 0 lies in every range */
        s = observed(c, &attr, batch_of(c, 2, inf), s, NULL);
        expect("an infinity", s, 0, 2, 1, 2);
        s = observed(c, &attr, batch_of(c, 0, NULL), s, NULL);
        expect("nothing", s, 0, 2, 1, 2);
        s = observed(c, &attr, batch_of(c, 2, two), s, NULL);
        expect("two", s, kind == OBSERVE_EMA ? -0.25 : -1, kind == OBSERVE_EMA ? 2.25 : 3, 2, 2);
        Build b = fresh(c);
        Node *in = build_const(&b, s);
        Tensor *range = value_of(c, build_node_n(&b, OP_observed_range, NULL, 1, &in, 2), NULL);
        assert_true(at(range->items[0], 0) == at(s, OBSERVED_LO) && at(range->items[1], 0) == at(s, OBSERVED_HI));
        tensor_drop(&c->heap, range);
    }
    return OK;
}

static void ranges_are_as_stated(void **state)
{
    (void)state;
    with_context(some_ranges);
}

/* ---- histograms ---- */

static int by_size(const void *a, const void *b)
{
    const float x = fabsf(*(const float *)a), y = fabsf(*(const float *)b);
    return (x > y) - (x < y);
}

static int64_t counted(const Tensor *state)
{
    const float *bins = (const float *)state->data + OBSERVED_BINS;
    int64_t n = 0;
    for (int i = 0; i < OBSERVE_BINS; i++)
        n += (int64_t)bins[i] + ((int64_t)bins[OBSERVE_BINS + i] << 24);
    return n;
}

enum { MANY = 100000 };

/* The bound is the upper edge of the bin that holds the last number inside: at most a width above that number. */
static Status some_percentiles(void *arg)
{
    Context *c = arg;
    static const float shares[] = { 50, 99, 99.9f, 100 };
    Rng rng = { 3 };
    float *x = NEWS(&c->arena, float, MANY);
    for (size_t k = 0; k < COUNT(shares); k++) {
        const ObserveAttr attr = { .kind = OBSERVE_PCT, .rate = 1, .percentile = shares[k] };
        for (int i = 0; i < MANY; i++)
            x[i] = (float)((rng_unit(&rng) + rng_unit(&rng) + rng_unit(&rng) - 1.5) * (k % 2 ? 1e-3 : 40));
        x[77] = x[77] * 5;
        Tensor *t = batch_of(c, MANY, x), *s = fresh_state(c, OBSERVE_PCT);
        for (int i = 0; i < 3; i++)
            s = observed(c, &attr, t, s, NULL);
        assert_int_equal(counted(s), 3 * MANY);
        qsort(x, MANY, sizeof *x, by_size);
        const double last = (double)fabsf(x[(int)ceil((double)shares[k] / 100 * MANY) - 1]);
        const double got = fmax(at(s, OBSERVED_HI), -at(s, OBSERVED_LO)), width = at(s, OBSERVED_WIDTH);
        require(got >= last && got <= last + width, "%g %% lie within %.9g, told are %.9g\n", (double)shares[k], last,
                got);
        require(width * OBSERVE_BINS <= 2 * (double)fabsf(x[MANY - 1]), "bins of %g for %g\n", width,
                (double)fabsf(x[MANY - 1]));
    }
    return OK;
}

static void percentiles_hold_so_many(void **state)
{
    (void)state;
    with_context(some_percentiles);
}

/* Zeros, which have no width; then small and large numbers: the same bins, whichever came first. */
static Status any_order(void *arg)
{
    Context *c = arg;
    const float zeros[4] = { 0 }, small[] = { 1e-6f, -3e-6f, 0 }, large[] = { 3e38f, -1 }, least[] = { 0x1p-149f, 0 };
    const Tensor *batches[] = { batch_of(c, 4, zeros), batch_of(c, 3, small), batch_of(c, 2, large),
                                batch_of(c, 2, least) };
    const ObserveAttr attr = { .kind = OBSERVE_PCT, .rate = 1, .percentile = 75 };
    Tensor *first = NULL;
    for (int order = 0; order < 4; order++) {
        Tensor *s = fresh_state(c, OBSERVE_PCT);
        for (int i = 0; i < 4; i++)
            s = observed(c, &attr, batches[(i * 3 + order) % 4], s, NULL);
        assert_int_equal(counted(s), 11);
        if (!first)
            first = s;
        assert_memory_equal(first->data, s->data, s->bytes);
    }
    assert_true(at(first, OBSERVED_WIDTH) == 0x1p117);
    return OK;
}

static void order_does_not_matter(void **state)
{
    (void)state;
    with_context(any_order);
}

/* A count beyond what one f32 holds is exact. */
static Status count_far(void *arg)
{
    Context *c = arg;
    const ObserveAttr attr = { .kind = OBSERVE_PCT, .rate = 1, .percentile = 100 };
    const float one[] = { 1, 1, 1 };
    Tensor *s = observed(c, &attr, batch_of(c, 3, one), fresh_state(c, OBSERVE_PCT), NULL);
    for (int i = 0; i < 30; i++)
        s = merged(c, &attr, s, s);
    s = observed(c, &attr, batch_of(c, 1, one), s, NULL);
    assert_true(counted(s) == ((int64_t)3 << 30) + 1);
    return OK;
}

static void counts_are_exact(void **state)
{
    (void)state;
    with_context(count_far);
}

/* ---- parts ---- */

/* Halves that are seen apart and merged, and the whole on several threads. */
static Status halves(void *arg)
{
    Context *c = arg;
    Rng rng = { 9 };
    Parallel *pool = parallel_open(3, NULL);
    float *x = NEWS(&c->arena, float, MANY);
    for (int kind = OBSERVE_MINMAX; kind <= OBSERVE_PCT; kind++) {
        const ObserveAttr attr = { .kind = kind, .rate = 0.1f, .percentile = 99 };
        Tensor *whole = fresh_state(c, kind), *left = whole, *right = whole, *shared = whole;
        int64_t all = 0;
        for (int step = 0; step < 4; step++) {
            const int n = MANY / (step + 1), cut = n / 3;
            all += n;
            for (int i = 0; i < n; i++)
                x[i] = (float)((rng_unit(&rng) - (i < cut ? 0.9 : 0.05)) * ldexp(1, step * 5 % 7));
            whole = observed(c, &attr, batch_of(c, n, x), whole, NULL);
            shared = observed(c, &attr, batch_of(c, n, x), shared, pool);
            left = observed(c, &attr, batch_of(c, cut, x), left, NULL);
            right = observed(c, &attr, batch_of(c, n - cut, x + cut), right, NULL);
        }
        Tensor *both = merged(c, &attr, left, right), *turned = merged(c, &attr, right, left);
        assert_memory_equal(whole->data, shared->data, whole->bytes);
        assert_memory_equal(both->data, turned->data, both->bytes);
        assert_memory_not_equal(left->data, whole->data, whole->bytes);
        assert_true(kind != OBSERVE_PCT || counted(whole) == all); /* though bins became wider */
        if (kind != OBSERVE_EMA)
            assert_memory_equal(whole->data, both->data, whole->bytes);
    }
    parallel_close(pool);
    return OK;
}

static void parts_make_the_whole(void **state)
{
    (void)state;
    with_context(halves);
}

/* The state of `n` ranks, each of which has seen its own part, in any order. */
static Tensor *gathered(Context *c, const ObserveAttr *attr, Tensor *const *parts, int n)
{
    Tensor *all = parts[n / 2];
    for (int r = 1; r < n; r++)
        all = merged(c, attr, all, parts[(n / 2 + r) % n]);
    return all;
}

enum { RANKS = 8 };

/* Ranks that see parts of each batch.  Merged at the end, ranges of kinds minmax and pct are those of who sees all of it.
 * Those of kind ema are, where ranks merge behind every batch; merged at the end they lie within that. */
static Status ranks(void *arg)
{
    Context *c = arg;
    Rng rng = { 21 };
    float *x = NEWS(&c->arena, float, MANY);
    for (int n = 1; n <= RANKS; n++)
        for (int kind = OBSERVE_MINMAX; kind <= OBSERVE_PCT; kind++) {
            const ObserveAttr attr = { .kind = kind, .rate = 0.3f, .percentile = 99.5f };
            Tensor *whole = fresh_state(c, kind), *part[RANKS], *together = whole;
            for (int r = 0; r < n; r++)
                part[r] = whole;
            for (int step = 0; step < 5; step++) {
                Tensor *now[RANKS];
                const int each = 1000 + 37 * step;
                for (int i = 0; i < n * each; i++)
                    x[i] = (float)((rng_unit(&rng) - 0.4) * ldexp(1 + i / each, step * 3 % 5));
                whole = observed(c, &attr, batch_of(c, n * each, x), whole, NULL);
                for (int r = 0; r < n; r++) {
                    part[r] = observed(c, &attr, batch_of(c, each, x + r * each), part[r], NULL);
                    now[r] = observed(c, &attr, batch_of(c, each, x + r * each), together, NULL);
                }
                if (kind == OBSERVE_EMA)
                    together = gathered(c, &attr, now, n);
            }
            const Tensor *all = gathered(c, &attr, part, n), *same = kind == OBSERVE_EMA ? together : all;
            require(memcmp(whole->data, same->data, whole->bytes) == 0, "%d ranks, kind %d: another state\n", n, kind);
            require(at(all, OBSERVED_LO) >= at(whole, OBSERVED_LO) && at(all, OBSERVED_HI) <= at(whole, OBSERVED_HI),
                    "%d ranks, kind %d: a wider range\n", n, kind);
        }
    return OK;
}

static void ranks_make_the_whole(void **state)
{
    (void)state;
    with_context(ranks);
}

static Status wrong_calls(void *arg)
{
    Context *c = arg;
    Build b = fresh(c);
    Node *x = build_scalar(&b, F32, 1), *state = build_const(&b, fresh_state(c, OBSERVE_MINMAX)),
         *whole = build_scalar(&b, I32, 1);
    const ObserveAttr pct = { .kind = OBSERVE_PCT, .rate = 1, .percentile = 50 }, still = { .rate = 0 },
                      none = { .rate = 1, .percentile = 0 }, plain = { .rate = 1, .percentile = 1 };
    expect_refused(c, &b, CALL_ATTR(&b, observe, pct, x, state), "must be a state f32[4103] of kind pct");
    expect_refused(c, &b, CALL_ATTR(&b, observe, still, x, state), "rate must be above 0");
    expect_refused(c, &b, CALL_ATTR(&b, merge_ranges, none, state, state), "percentile must be above 0");
    expect_refused(c, &b, CALL_ATTR(&b, observe, plain, whole, state), "observes f32, f16 and bf16, got i32");
    expect_refused(c, &b, CALL(&b, observed_range, x), "wants the state of an observer");
    return OK;
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    with_context(wrong_calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_as_stated),  cmocka_unit_test(percentiles_hold_so_many),
        cmocka_unit_test(order_does_not_matter), cmocka_unit_test(counts_are_exact),
        cmocka_unit_test(parts_make_the_whole),  cmocka_unit_test(ranks_make_the_whole),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
