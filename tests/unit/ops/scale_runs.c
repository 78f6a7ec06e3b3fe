/* Runs of elements that share a scale are what the indices of their scales say. */
#include "ops/quant/quantize.h"
#include "testing.h"

enum { MOST = 4096 };

static void walk(const Type *x, const Type *scale, int64_t axis, int64_t block, Rng *rng)
{
    static int64_t index[MOST];
    const ScaleLayout g = scale_layout_of(x, scale, axis, block);
    const int64_t n = type_elements(x);
    assert_true(n <= MOST);
    scale_layout_indices(&g, 0, n, index);
    for (int i = 0; i < 50; i++) {
        const int64_t first = rng_below(rng, (int)n), rest = 1 + rng_below(rng, (int)(n - first));
        int64_t shared, run = scale_layout_run(&g, first, rest, &shared);
        assert_in_range(run, 1, rest);
        for (int64_t k = 0; k < run; k++)
            assert_int_equal(index[first + k], shared);
        /* with long runs none ends early */
        if (scale_layout_shares(&g) && run < rest)
            assert_int_not_equal(index[first + run], shared);
    }
}

static Status layouts(void *arg)
{
    Context *c = arg;
    Rng rng = { 5 };
    for (int i = 0; i < 300; i++) {
        const int rank = 1 + (int)rng_below(&rng, 4), at = (int)rng_below(&rng, rank);
        int64_t dims[MAX_RANK], scales[MAX_RANK];
        for (int k = 0; k < rank; k++)
            scales[k] = dims[k] = rng_range(&rng, 1, rank == 1 ? 600 : rank == 2 ? 60 : 7);
        const Type *x = type_tensor(&c->ir.types, F32, rank, dims);
        walk(x, type_tensor(&c->ir.types, F32, 0, NULL), 0, 0, &rng);
        walk(x, type_tensor(&c->ir.types, F32, 1, &dims[at]), at, 0, &rng);
        const int64_t block = rng_range(&rng, 1, 40);
        scales[at] = (dims[at] + block - 1) / block;
        walk(x, type_tensor(&c->ir.types, F32, rank, scales), at - rank, block, &rng);
    }
    return OK;
}

static void runs_share_a_scale(void **state)
{
    (void)state;
    with_context(layouts);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(runs_share_a_scale) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
