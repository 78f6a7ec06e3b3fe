/* base/min_cut against all labellings of small networks, and in all orders. */
#include "unit/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/min_cut.h"
#include "base/rng.h"

enum { MOST = 14 };

typedef struct Arrow {
    size_t a, b;
    double forward, backward;
} Arrow;

typedef struct Net {
    size_t n, n_arrows;
    double source[MOST], sink[MOST];
    Arrow arrow[4 * MOST];
} Net;

/* Small whole numbers meet in sums often; some are 0, some infinite. */
static double draw(Rng *rng, int most, int infinite)
{
    if (rng_below(rng, 100) < infinite)
        return INFINITY;
    return rng_below(rng, 3) ? (double)rng_below(rng, most) : 0;
}

static Net draw_net(Rng *rng)
{
    Net net = { .n = (size_t)rng_range(rng, 1, rng_below(rng, 40) ? 9 : MOST) };
    const int most = (int)rng_range(rng, 2, 12), infinite = (int)rng_below(rng, 20);
    for (size_t i = 0; i < net.n; i++) {
        net.source[i] = draw(rng, most, infinite);
        net.sink[i] = draw(rng, most, infinite / 2);
    }
    net.n_arrows = (size_t)rng_below(rng, (int64_t)(4 * net.n));
    for (size_t i = 0; i < net.n_arrows; i++)
        net.arrow[i] = (Arrow){ (size_t)rng_below(rng, (int64_t)net.n), (size_t)rng_below(rng, (int64_t)net.n),
                                draw(rng, most, infinite), draw(rng, most, infinite) };
    return net;
}

/* Bit i of `sinks`: node i is on the sink's side. */
static double cost(const Net *net, unsigned sinks)
{
    double sum = 0;
    for (size_t i = 0; i < net->n; i++)
        sum += sinks >> i & 1 ? net->source[i] : net->sink[i];
    for (size_t i = 0; i < net->n_arrows; i++) {
        const Arrow *r = &net->arrow[i];
        const unsigned a = sinks >> r->a & 1, b = sinks >> r->b & 1;
        if (a != b)
            sum += a ? r->backward : r->forward;
    }
    return sum;
}

/* The least cost, and the fewest sinks that reach it: what all labellings of that cost have in common. */
static double try_all(const Net *net, unsigned *sinks)
{
    double least = INFINITY;
    for (unsigned s = 0; s < 1u << net->n; s++) {
        const double k = cost(net, s);
        if (k < least)
            least = k, *sinks = s;
        else if (k == least)
            *sinks &= s;
    }
    return least;
}

static double cut(Memory *m, const Net *net, unsigned *sinks)
{
    Arena arena;
    arena_open(&arena, m);
    MinCut *c = min_cut_open(&arena, net->n);
    for (size_t i = 0; i < net->n; i++)
        min_cut_terminal(c, i, net->source[i], net->sink[i]);
    for (size_t i = 0; i < net->n_arrows; i++)
        min_cut_edge(c, net->arrow[i].a, net->arrow[i].b, net->arrow[i].forward, net->arrow[i].backward);
    const double k = min_cut_run(c);
    *sinks = 0;
    for (size_t i = 0; i < net->n; i++)
        *sinks |= (unsigned)min_cut_sinks(c, i) << i;
    arena_close(&arena);
    return k;
}

static void no_labelling_is_cheaper(void **state)
{
    (void)state;
    Rng rng = { 1 };
    Memory m;
    memory_open(&m, NULL);
    int infinite = 0, several = 0;
    for (int round = 0; round < 6000; round++) {
        const Net net = draw_net(&rng);
        unsigned want = 0, got;
        const double least = try_all(&net, &want), k = cut(&m, &net, &got);
        check_that(k == least, "round %d: %g, not %g", round, k, least);
        if (isinf(least)) {
            infinite++;
            continue;
        }
        check_that(cost(&net, got) == least, "round %d: the sides cost %g, not %g", round, cost(&net, got), least);
        check_that(got == want, "round %d: sinks %x, not %x", round, got, want);
        for (size_t i = 0; i < net.n && want == got; i++)
            several += cost(&net, got ^ 1u << i) == least;
    }
    check_that(infinite > 150 && infinite < 4000, "%d of 6000 forbidden", infinite);
    check_that(several > 1000, "only %d ties", several);
}

/* Renames nodes, deals edges and terminals in another order, some of them in two parts or from the other end. */
static Net shuffle(Rng *rng, const Net *net, size_t *to)
{
    Net s = { .n = net->n, .n_arrows = net->n_arrows };
    for (size_t i = 0; i < net->n; i++) {
        const size_t j = (size_t)rng_below(rng, (int64_t)i + 1);
        to[i] = to[j];
        to[j] = i;
    }
    for (size_t i = 0; i < net->n; i++) {
        s.source[to[i]] = net->source[i];
        s.sink[to[i]] = net->sink[i];
    }
    for (size_t i = 0; i < net->n_arrows; i++) {
        const Arrow *r = &net->arrow[i];
        const size_t j = (size_t)rng_below(rng, (int64_t)i + 1);
        s.arrow[i] = s.arrow[j];
        s.arrow[j] = rng_below(rng, 2) ? (Arrow){ to[r->a], to[r->b], r->forward, r->backward }
                                       : (Arrow){ to[r->b], to[r->a], r->backward, r->forward };
    }
    return s;
}

/* Where a cut exists and where it is forbidden. */
static void order_does_not_matter(void **state)
{
    (void)state;
    Rng rng = { 2 };
    Memory m;
    memory_open(&m, NULL);
    for (int round = 0; round < 3000; round++) {
        const Net net = draw_net(&rng);
        size_t to[MOST];
        const Net other = shuffle(&rng, &net, to);
        unsigned a, b;
        const double ka = cut(&m, &net, &a), kb = cut(&m, &other, &b);
        check_that(ka == kb, "round %d: %g and %g", round, ka, kb);
        for (size_t i = 0; i < net.n; i++)
            check_that((a >> i & 1) == (b >> to[i] & 1), "round %d: node %zu changes sides", round, i);
    }
}

/* source -> 0 -> 1 -> sink without end, a node beside each: exactly those that infinite edges join to the sink. */
static void contradictions_are_told(void **state)
{
    (void)state;
    const Net net = { .n = 4,
                      .n_arrows = 3,
                      .source = { INFINITY, 0, 7, 0 },
                      .sink = { 0, INFINITY, 0, 9 },
                      .arrow = { { 0, 1, INFINITY, 0 }, { 2, 1, INFINITY, 0 }, { 3, 1, 5, INFINITY } } };
    Memory m;
    memory_open(&m, NULL);
    unsigned sinks;
    assert_true(isinf(cut(&m, &net, &sinks)));
    assert_int_equal(sinks, 1 | 2 | 4);
    const Net both = { .n = 1, .source = { INFINITY }, .sink = { INFINITY } };
    assert_true(isinf(cut(&m, &both, &sinks)));
    assert_int_equal(sinks, 1);
    const Net none = { .n = 0 };
    assert_true(cut(&m, &none, &sinks) == 0);
}

/* No node would be cheaper on the other side, and the cost is that of the sides, in a network far too large to try
 * all labellings. */
static void large_networks_are_cut(void **state)
{
    (void)state;
    enum { N = 20000, EDGES = 100000 };
    Rng rng = { 3 };
    Memory m;
    Arena arena;
    memory_open(&m, NULL);
    arena_open(&arena, &m);
    MinCut *c = min_cut_open(&arena, N);
    double *gain = NEWS(&arena, double, N), sum = 0; /* what changing a node's side saves */
    Arrow *arrow = NEWS(&arena, Arrow, EDGES);
    double(*terminal)[2] = arena_array(&arena, N, sizeof *terminal);
    for (size_t i = 0; i < N; i++) {
        terminal[i][rng_below(&rng, 2)] = rng_below(&rng, 1000) ? (double)rng_below(&rng, 1 << 20) : INFINITY;
        min_cut_terminal(c, i, terminal[i][0], terminal[i][1]);
    }
    for (size_t i = 0; i < EDGES; i++) {
        const size_t a = (size_t)rng_below(&rng, N);
        arrow[i] = (Arrow){ a, (a + (size_t)rng_range(&rng, 1, 30)) % N, (double)rng_below(&rng, 1 << 20),
                            (double)rng_below(&rng, 1 << 20) };
        min_cut_edge(c, arrow[i].a, arrow[i].b, arrow[i].forward, arrow[i].backward);
    }
    const double k = min_cut_run(c);
    for (size_t i = 0; i < N; i++) {
        sum += terminal[i][!min_cut_sinks(c, i)];
        gain[i] = terminal[i][!min_cut_sinks(c, i)] - terminal[i][min_cut_sinks(c, i)];
    }
    for (size_t i = 0; i < EDGES; i++) {
        const Arrow *r = &arrow[i];
        const bool a = min_cut_sinks(c, r->a), b = min_cut_sinks(c, r->b);
        const double now = a == b ? 0 : a ? r->backward : r->forward;
        sum += now;
        gain[r->a] += now - (!a == b ? 0 : !a ? r->backward : r->forward);
        gain[r->b] += now - (a == !b ? 0 : a ? r->backward : r->forward);
    }
    assert_true(k == sum);
    for (size_t i = 0; i < N; i++)
        check_that(gain[i] <= 0, "node %zu would save %g", i, gain[i]);
    arena_close(&arena);
}

/* A chain as long as a program unrolled, held together far more strongly than its nodes are drawn apart, is cut where
 * its prefix sums say. */
static void long_chains_are_cut(void **state)
{
    (void)state;
    enum { N = 5000 };
    Rng rng = { 4 };
    Memory m;
    Arena arena;
    memory_open(&m, NULL);
    arena_open(&arena, &m);
    for (int round = 0; round < 3; round++) {
        const double tie = round == 0 ? 1 : round == 1 ? 100 : 2000;
        MinCut *c = min_cut_open(&arena, N);
        double best[2] = { 0, 0 }; /* of the chain so far, ending on the source's side, on the sink's */
        for (size_t i = 0; i < N; i++) {
            const double source = (double)rng_below(&rng, 100), sink = (double)rng_below(&rng, 100);
            min_cut_terminal(c, i, source, sink);
            if (i)
                min_cut_edge(c, i - 1, i, tie, tie);
            const double to_source = fmin(best[0], best[1] + tie), to_sink = fmin(best[1], best[0] + tie);
            best[0] = (i ? to_source : 0) + sink;
            best[1] = (i ? to_sink : 0) + source;
        }
        const double k = min_cut_run(c), want = fmin(best[0], best[1]);
        check_that(k == want, "round %d: %g, not %g", round, k, want);
    }
    arena_close(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_labelling_is_cheaper), cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(contradictions_are_told), cmocka_unit_test(large_networks_are_cut),
        cmocka_unit_test(long_chains_are_cut),
    };
    return cmocka_run_group_tests_name("min_cut", tests, NULL, NULL);
}
