/* amp_cut against all labellings of small problems. */
#include "testing.h"

#include <math.h>

#include "passes/amp/amp.h"

/* Fails with a formatted message. */
#define check_that(condition, ...)                                                                                     \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            print_error(__VA_ARGS__);                                                                                  \
            assert_true(condition);                                                                                    \
        }                                                                                                              \
    } while (0)

enum { MOST = 10 };

static double draw_price(Rng *rng, int infinite)
{
    return rng_below(rng, 100) < infinite ? INFINITY : (double)rng_below(rng, 9);
}

/* What insertion makes of a graph, but wilder: fixed labels, copies, ties that may not be, prices that are savings. */
static AmpProblem draw_problem(Arena *a, Rng *rng, size_t n, int infinite)
{
    AmpProblem p = { .arena = a, .n = n, .n_ties = (size_t)rng_below(rng, (int64_t)(3 * n)) };
    p.variable = NEWS(a, AmpVariable, n);
    p.tie = NEWS(a, AmpTie, p.n_ties + 1);
    for (size_t i = 0; i < n; i++) {
        AmpVariable *v = &p.variable[i];
        *v = (AmpVariable){ .copy_of = i && rng_below(rng, 4) == 0 ? (int)rng_below(rng, (int64_t)i) : -1,
                            .led = rng_below(rng, 2),
                            .moves = rng_below(rng, 4) == 0,
                            .fixed = rng_below(rng, 4)   ? AMP_FREE
                                     : rng_below(rng, 2) ? AMP_WIDE
                                                         : AMP_NARROW,
                            .wide_price = draw_price(rng, infinite),
                            .narrow_price = draw_price(rng, infinite) - (double)rng_below(rng, 3) };
        v->moves &= v->copy_of < 0;
    }
    for (size_t i = 0; i < p.n_ties; i++)
        p.tie[i] = (AmpTie){ .a = (int)rng_below(rng, (int64_t)n),
                             .b = (int)rng_below(rng, (int64_t)n),
                             .wide_narrow = draw_price(rng, infinite),
                             .narrow_wide = draw_price(rng, infinite),
                             .leads = rng_below(rng, 2) };
    return p;
}

static void label_all(AmpProblem *p, unsigned narrow)
{
    for (size_t i = 0; i < p->n; i++)
        p->variable[i].label = narrow >> i & 1 ? AMP_NARROW : AMP_WIDE;
}

static unsigned narrow_ones(const AmpProblem *p)
{
    unsigned narrow = 0;
    for (size_t i = 0; i < p->n; i++) {
        assert_int_not_equal(p->variable[i].label, AMP_FREE);
        narrow |= (unsigned)(p->variable[i].label == AMP_NARROW) << i;
    }
    return narrow;
}

/* The least cost, and the values that every labelling of that cost has narrow. */
static double try_all(AmpProblem *p, unsigned *narrow)
{
    double least = INFINITY;
    for (unsigned s = 0; s < 1u << p->n; s++) {
        label_all(p, s);
        const double cost = amp_cost(p);
        if (cost < least)
            least = cost, *narrow = s;
        else if (cost == least)
            *narrow &= s;
    }
    return least;
}

static Status no_labelling_is_cheaper(void *context)
{
    Context *x = context;
    Rng rng = { 1 };
    int forbidden = 0, mixed = 0;
    for (int round = 0; round < 4000; round++) {
        const ArenaMark mark = arena_mark(&x->arena);
        AmpProblem p = draw_problem(&x->arena, &rng, (size_t)rng_range(&rng, 1, MOST), (int)rng_below(&rng, 12));
        unsigned want = 0;
        const double least = try_all(&p, &want);
        amp_cut(&p);
        const unsigned got = narrow_ones(&p);
        check_that(amp_cost(&p) == least, "round %d: %g, not %g", round, amp_cost(&p), least);
        check_that(isinf(least) || got == want, "round %d: narrow %x, not %x", round, got, want);
        amp_walk(&p);
        check_that(amp_cost(&p) >= least, "round %d: the walk costs %g, the cut %g", round, amp_cost(&p), least);
        forbidden += isinf(least);
        mixed += !isinf(least) && got && got != (1u << p.n) - 1;
        arena_reset(&x->arena, mark);
    }
    check_that(forbidden > 100 && forbidden < 2000 && mixed > 500, "%d of 4000 forbidden, %d mixed", forbidden, mixed);
    return OK;
}

static void the_cut_is_the_cheapest(void **state)
{
    (void)state;
    with_context(no_labelling_is_cheaper);
}

/* What costs the same either way stays wide, whoever asks first. */
static Status ties_stay_wide(void *context)
{
    Context *x = context;
    AmpVariable v[3] = { { .copy_of = -1, .wide_price = 4, .narrow_price = 4 },
                         { .copy_of = -1, .wide_price = 4, .narrow_price = 2 },
                         { .copy_of = -1, .fixed = AMP_WIDE } };
    AmpTie t[] = { { .a = 2, .b = 1, .wide_narrow = 2, .narrow_wide = INFINITY },
                   { .a = 0, .b = 0, .wide_narrow = 1 } };
    AmpProblem p = { .arena = &x->arena, .variable = v, .n = 3, .tie = t, .n_ties = 2 };
    amp_cut(&p);
    assert_int_equal(v[0].label, AMP_WIDE);
    assert_int_equal(v[1].label, AMP_WIDE);
    t[0].wide_narrow = 1;
    amp_cut(&p);
    assert_int_equal(v[1].label, AMP_NARROW);
    assert_true(amp_cost(&p) == 4 + 2 + 1);
    return OK;
}

static void what_costs_the_same_stays_wide(void **state)
{
    (void)state;
    with_context(ties_stay_wide);
}

/* A contradiction is labelled all the same, and shows in the cost. */
static Status contradictions_show(void *context)
{
    Context *x = context;
    AmpVariable v[2] = { { .copy_of = -1, .fixed = AMP_WIDE }, { .copy_of = -1, .fixed = AMP_NARROW } };
    AmpTie t = { .a = 0, .b = 1, .wide_narrow = INFINITY };
    AmpProblem p = { .arena = &x->arena, .variable = v, .n = 2, .tie = &t, .n_ties = 1 };
    amp_cut(&p);
    assert_true(isinf(amp_cost(&p)));
    p.n_ties = 0;
    v[0].wide_price = v[0].narrow_price = INFINITY;
    amp_cut(&p);
    assert_true(isinf(amp_cost(&p)));
    p.n = 0;
    amp_cut(&p);
    assert_true(amp_cost(&p) == 0);
    return OK;
}

static void contradictions_do_not_stop_it(void **state)
{
    (void)state;
    with_context(contradictions_show);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cut_is_the_cheapest),
        cmocka_unit_test(what_costs_the_same_stays_wide),
        cmocka_unit_test(contradictions_do_not_stop_it),
    };
    return cmocka_run_group_tests_name("amp_cut", tests, NULL, NULL);
}
