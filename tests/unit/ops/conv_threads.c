/* A convolution gives the same bytes whatever the number of threads, where positions are split over them and where the
 * results are. */
#include "ops/window/window.h"
#include "support/calls.h"

typedef struct Case {
    DType dtype;
    int64_t batch, group, channels, size, results, kernel; /* channels and results of a group */
} Case;

static const Case cases[] = {
    { F32, 1, 1, 5, 7, 130, 3 },   /* one block of positions: results are split */
    { F32, 1, 1, 20, 9, 100, 1 },  /* the data is its own window matrix */
    { F32, 1, 3, 4, 6, 97, 3 },    /* groups, an odd number of results */
    { F32, 3, 1, 40, 40, 10, 3 },  /* many blocks of positions, few results */
    { F32, 1, 1, 200, 16, 60, 3 }, /* several blocks of positions, and results to split */
    { F64, 1, 1, 5, 7, 130, 3 },   { F64, 1, 2, 3, 20, 49, 1 }, { F16, 1, 1, 5, 7, 130, 3 },
};

static Tensor *convolved(Context *c, const Case *k, int threads)
{
    const int64_t kernel[] = { k->kernel, k->kernel }, pads[] = { k->kernel / 2, k->kernel / 2, k->kernel / 2, 0 };
    const ConvAttr at = { .window = { .pads = { 4, pads }, .kernel_shape = { 2, kernel } }, .group = k->group };
    Rng rng = { 31 };
    Build b = fresh(c);
    Node *x = DRAW(&b, &rng, k->dtype, k->batch, k->group * k->channels, k->size, k->size),
         *w = DRAW(&b, &rng, k->dtype, k->group * k->results, k->channels, k->kernel, k->kernel),
         *bias = DRAW(&b, &rng, k->dtype, k->group * k->results);
    Parallel *pool = threads ? parallel_open(threads, NULL) : NULL;
    Tensor *y = value_of(c, CALL_ATTR(&b, conv, at, x, w, bias), &(EvalOptions){ .pool = pool });
    parallel_close(pool);
    return y;
}

static Status threads_do_not_show(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const Tensor *alone = convolved(c, &cases[i], 0);
        double least = 0, most = 0;
        for (int64_t e = 0; e < tensor_elements(alone); e++) {
            least = at(alone, e) < least ? at(alone, e) : least;
            most = at(alone, e) > most ? at(alone, e) : most;
        }
        assert_true(least < -0.1 && most > 0.1);
        for (int threads = 1; threads <= 7; threads++) {
            const Tensor *y = convolved(c, &cases[i], threads);
            assert_int_equal(y->bytes, alone->bytes);
            assert_memory_equal(y->data, alone->data, y->bytes);
        }
    }
    return OK;
}

static void test_threads_do_not_show(void **state)
{
    (void)state;
    with_context(threads_do_not_show);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_threads_do_not_show) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
