/* The order of samples is a permutation for every seed and epoch, fixed for ever, and looks drawn. */
#include "testing.h"

#include <stdlib.h>

#include "runtime/data/order.h"

static void check_permutation(uint64_t seed, uint64_t epoch, uint64_t n)
{
    uint8_t *seen = calloc(n ? n : 1, 1);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t to = order_at(seed, ORDER_EPOCH, epoch, n, i);
        assert_true(to < n);
        assert_false(seen[to]);
        seen[to] = 1;
    }
    free(seen);
}

static void every_length_is_a_permutation(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 300; n++)
        check_permutation(n, n % 7, n);
    static const uint64_t more[] = { 4095, 4096, 4097, 50000, 65537 };
    for (size_t i = 0; i < COUNT(more); i++)
        check_permutation((uint64_t)1 << 40, 3, more[i]);
}

static void large_positions_stay_inside(void **state)
{
    (void)state;
    const uint64_t n = ((uint64_t)1 << 60) + 12345;
    uint64_t last = 0;
    for (uint64_t i = 0; i < 100; i++) {
        const uint64_t to = order_at(1, ORDER_EPOCH, 0, n, n - 1 - i);
        assert_true(to < n && to != last);
        last = to;
    }
}

/* A checkpoint of an older version must go on in the same order. */
static void the_order_is_fixed(void **state)
{
    (void)state;
    char text[100] = "";
    for (uint64_t i = 0; i < 10; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d ", (int)order_at(7, ORDER_EPOCH, 2, 10, i));
    assert_string_equal(text, "4 1 5 6 2 3 7 9 8 0 ");
}

/* Every sample comes to every place equally often, and so does every pair to neighbouring places. */
static void draws_are_even(void **state)
{
    (void)state;
    enum { N = 5, EPOCHS = 20000 };
    int at[N][N] = { { 0 } }, pairs[N][N] = { { 0 } };
    for (uint64_t e = 0; e < EPOCHS; e++) {
        uint64_t before = N;
        for (uint64_t i = 0; i < N; i++) {
            const uint64_t to = order_at(99, ORDER_EPOCH, e, N, i);
            at[i][to]++;
            if (before < N)
                pairs[before][to]++;
            before = to;
        }
    }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) { /* four standard deviations and a half */
            assert_in_range(at[i][k], EPOCHS / N - 260, EPOCHS / N + 260);
            if (i != k)
                assert_in_range(pairs[i][k], EPOCHS / N - 260, EPOCHS / N + 260);
        }
}

static void seeds_epochs_and_purposes_differ(void **state)
{
    (void)state;
    int same[3] = { 0 };
    for (uint64_t i = 0; i < 1000; i++) {
        const uint64_t to = order_at(1, ORDER_EPOCH, 0, 1000, i);
        same[0] += to == order_at(2, ORDER_EPOCH, 0, 1000, i);
        same[1] += to == order_at(1, ORDER_EPOCH, 1, 1000, i);
        same[2] += to == order_at(1, ORDER_SPLIT, 0, 1000, i);
    }
    for (int i = 0; i < 3; i++)
        assert_true(same[i] < 10);
}

static Status a_split_has_two_sides(void *arg)
{
    static const struct {
        uint64_t n;
        double fraction;
        uint64_t held;
    } rows[] = { { 10, 0.1, 1 },      { 1281167, 0.02, 25623 }, { 512, 0.5, 256 },
                 { 513, 0.999, 512 }, { 100, 0.0001, 1 },       { 2, 0.9, 1 },
                 { 1, 0.5, 0 },       { 5000, 0.3, 1500 } };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(rows); i++) {
        Split s;
        const uint64_t n = rows[i].n;
        split_open(&s, &c->arena, 11, n, rows[i].fraction);
        assert_int_equal(s.n_held, rows[i].held);
        uint64_t held = 0, kept = 0;
        for (uint64_t k = 0; k < n; k++) /* the two ascending lists merge into 0 .. n - 1 */
            if (held < s.n_held && split_at(&s, true, held) == k)
                held++;
            else if (split_at(&s, false, kept) == k)
                kept++;
            else
                assert_int_equal(k, -1);
        assert_true(held == s.n_held && kept == n - s.n_held);
    }
    return OK;
}

static void test_split(void **state)
{
    (void)state;
    with_context(a_split_has_two_sides);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_is_a_permutation),
        cmocka_unit_test(large_positions_stay_inside),
        cmocka_unit_test(the_order_is_fixed),
        cmocka_unit_test(draws_are_even),
        cmocka_unit_test(seeds_epochs_and_purposes_differ),
        cmocka_unit_test(test_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
