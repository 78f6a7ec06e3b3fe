/* Convolutions in bf16 that are multiplied as they lie: forward, to the data and to the weights within the bound of
 * docs/arithmetic.md, the same bytes with any number of threads, rounded as every result is, and the bits of the reference where
 * these are asked for. */
#include "base/half.h"
#include "base/parallel.h"
#include "ops/window/window.h"
#include "support/calls.h"

typedef struct Case {
    int64_t batch, group, channels, results; /* channels and results of a group */
    int64_t in[2], kernel[2], stride[2], dilation[2], pad[4];
} Case;

static const Case cases[] = {
    { 2, 1, 8, 16, { 9, 7 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 1, 1, 3, 13, { 21, 19 }, { 7, 7 }, { 2, 2 }, { 1, 1 }, { 3, 3, 3, 3 } }, /* an odd number of channels: a stem */
    { 3, 1, 20, 33, { 7, 7 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 } },  /* the data is its own window matrix */
    { 2,
      2,
      5,
      7,
      { 70, 61 },
      { 1, 1 },
      { 1, 1 },
      { 1, 1 },
      { 0, 0, 0, 0 } }, /* the same of an odd number, in large planes */
    { 2, 5, 1, 1, { 15, 18 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 0, 1 } }, /* along planes, by steps of two */
    { 2, 1, 7, 5, { 12, 11 }, { 1, 1 }, { 2, 2 }, { 1, 1 }, { 0, 0, 0, 0 } },
    { 1, 3, 6, 9, { 10, 13 }, { 3, 2 }, { 1, 2 }, { 2, 1 }, { 2, 0, 1, 3 } },
    { 2, 2, 5, 7, { 8, 9 }, { 2, 4 }, { 3, 1 }, { 1, 2 }, { 0, 4, 2, 0 } },
    { 1,
      1,
      300,
      14,
      { 6, 5 },
      { 3, 3 },
      { 1, 1 },
      { 1, 1 },
      { 1, 1, 1, 1 } }, /* more than a segment of taps and channels */
    { 1, 1, 2, 50, { 40, 33 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } }, /* several blocks of positions */
    { 5, 1, 4, 12, { 29, 31 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } }, /* segments that end inside images */
    { 2, 1, 2, 1, { 3, 3 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 5, 5, 5, 5 } },    /* windows in the padding alone */
    { 2, 5, 1, 1, { 9, 14 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },   /* along planes, which load their data */
    { 1, 3, 2, 3, { 70, 61 }, { 5, 2 }, { 2, 3 }, { 1, 2 }, { 2, 0, 1, 3 } },
    { 1, 4, 1, 2, { 300, 90 }, { 3, 3 }, { 1, 1 }, { 2, 1 }, { 2, 1, 2, 1 } },  /* several blocks of lines */
    { 1, 1, 65, 97, { 14, 14 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 } }, /* steps of two */
    { 1,
      1,
      3,
      5,
      { 19, 20 },
      { 18, 18 },
      { 1, 1 },
      { 1, 1 },
      { 0, 0, 0, 0 } }, /* more taps than are turned at a time */
    { 3, 1, 64, 40, { 17, 15 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } }, /* whole blocks of words */
    { 2, 1, 64, 33, { 34, 33 }, { 3, 3 }, { 1, 1 }, { 2, 1 }, { 2, 1, 2, 1 } },
    { 2, 2, 32, 64, { 18, 17 }, { 3, 2 }, { 2, 2 }, { 1, 1 }, { 1, 0, 1, 1 } },
    { 5, 1, 160, 32, { 7, 7 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },  /* segments that end inside taps */
    { 1, 1, 512, 512, { 1, 2 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 } }, /* weights that no cache holds */
    { 1, 1, 64, 500, { 4, 3 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },  /* the same of several taps */
};

static int64_t extent(const Case *k, int i)
{
    return (k->in[i] + k->pad[i] + k->pad[2 + i] - (k->kernel[i] - 1) * k->dilation[i] - 1) / k->stride[i] + 1;
}

static ConvAttr attr_of(const Case *k, bool wide)
{
    return (ConvAttr){ .window = { .kernel_shape = { 2, k->kernel },
                                   .strides = { 2, k->stride },
                                   .dilations = { 2, k->dilation },
                                   .pads = { 4, k->pad } },
                       .group = k->group,
                       .out = wide ? F32 + 1 : 0 };
}

/* Data, weights and what reaches the result, the same in each graph. */
static Node *drawn(Build *b, const Case *k, int which)
{
    Rng rng = { (uint64_t)which + 3 };
    const int64_t x = k->group * k->channels, y = k->group * k->results;
    return which == 0   ? DRAW(b, &rng, BF16, k->batch, x, k->in[0], k->in[1])
           : which == 1 ? DRAW(b, &rng, BF16, y, k->channels, k->kernel[0], k->kernel[1])
                        : DRAW(b, &rng, BF16, k->batch, y, extent(k, 0), extent(k, 1));
}

enum { FORWARD, TO_DATA, TO_WEIGHTS, SIDES };

static Tensor *value(Context *c, const Case *k, int side, bool wide, bool narrow, int threads)
{
    const ConvAttr at = attr_of(k, wide);
    Build b = fresh(c);
    Node *y;
    if (side == TO_DATA) {
        Window w;
        assert_null(window_place(&w, b.graph->arena, &at.window, 2, k->in, k->kernel));
        y = window_input_grad(&b, &w, k->group, drawn(&b, k, 2), drawn(&b, k, 1));
        ((ConvTransposeAttr *)(uintptr_t)y->attr)->out = at.out;
        assert_int_equal(node_retype(y), OK);
    } else if (side == FORWARD) {
        y = CALL_ATTR(&b, conv, at, drawn(&b, k, 0), drawn(&b, k, 1));
    } else {
        y = CALL_ATTR(&b, conv_weight_grad, at, drawn(&b, k, 0), drawn(&b, k, 2));
    }
    Parallel *pool = threads > 1 ? parallel_open(threads, NULL) : NULL;
    Tensor *v = value_of(c, y, &(EvalOptions){ .pool = pool, .narrow = narrow });
    parallel_close(pool);
    return v;
}

/* Sums of products by element of each side's result, of their sizes, and how many they are. */
typedef struct Sums {
    double *sum, *size, *n;
} Sums;

static void add(const Sums *s, int64_t i, double a, double b)
{
    s->sum[i] += a * b;
    s->size[i] += fabs(a * b);
    s->n[i] += 1;
}

/* What tap t of position p of one plane sees; -1: padding. */
static int64_t seen(const Case *k, int64_t p, int64_t t)
{
    const int64_t y = p / extent(k, 1) * k->stride[0] - k->pad[0] + t / k->kernel[1] * k->dilation[0];
    const int64_t x = p % extent(k, 1) * k->stride[1] - k->pad[1] + t % k->kernel[1] * k->dilation[1];
    return y < 0 || x < 0 || y >= k->in[0] || x >= k->in[1] ? -1 : y * k->in[1] + x;
}

static void sum_up(Context *c, const Case *k, int side, const Sums *s)
{
    Build b = fresh(c);
    const Tensor *x = constant(drawn(&b, k, 0)), *w = constant(drawn(&b, k, 1)), *dy = constant(drawn(&b, k, 2));
    const int64_t out = extent(k, 0) * extent(k, 1), in = k->in[0] * k->in[1], taps = k->kernel[0] * k->kernel[1];
    for (int64_t i = 0; i < tensor_elements(dy); i++) {
        const int64_t row = i / out % (k->group * k->results), image = i / out / (k->group * k->results);
        for (int64_t u = 0; u < k->channels * taps; u++) {
            const int64_t plane = (image * k->group + row / k->results) * k->channels + u / taps;
            const int64_t p = seen(k, i % out, u % taps), weight = row * k->channels * taps + u;
            if (p >= 0 && side == FORWARD)
                add(s, i, at(x, plane * in + p), at(w, weight));
            else if (p >= 0 && side == TO_DATA)
                add(s, plane * in + p, at(dy, i), at(w, weight));
            else if (p >= 0)
                add(s, weight, at(dy, i), at(x, plane * in + p));
        }
    }
}

/* Returns how many elements have other bits than the reference. */
static int64_t check_side(Context *c, const Case *k, int side)
{
    const Tensor *wide = value(c, k, side, true, true, 1), *y = value(c, k, side, false, true, 1),
                 *plain = value(c, k, side, true, false, 1);
    const int64_t n = tensor_elements(wide);
    Sums s = { NEWS(&c->arena, double, n), NEWS(&c->arena, double, n), NEWS(&c->arena, double, n) };
    int64_t moved = 0;
    sum_up(c, k, side, &s);
    for (int64_t i = 0; i < n; i++) {
        const double slack = 2 * s.n[i] * 0x1p-24 * s.size[i] + s.n[i] * 0x1p-126;
        require(fabs(at(wide, i) - s.sum[i]) <= slack, "case %d, side %d, element %d: %.9g, not %.9g\n",
                (int)(k - cases), side, (int)i, at(wide, i), s.sum[i]);
        require(((const u16 *)y->data)[i] == bf16_from_f32((f32)at(wide, i)),
                "case %d, side %d, element %d: not rounded\n", (int)(k - cases), side, (int)i);
        moved += at(wide, i) != at(plain, i);
    }
    for (int threads = 2; threads <= 5; threads++) {
        const Tensor *t = value(c, k, side, false, true, threads);
        assert_memory_equal(t->data, y->data, y->bytes);
        t = value(c, k, side, true, true, threads);
        assert_memory_equal(t->data, wide->data, wide->bytes);
    }
    return moved;
}

static Status sums_are_near(void *arg)
{
    for (int side = 0; side < SIDES; side++) {
        int64_t moved = 0;
        for (size_t i = 0; i < COUNT(cases); i++)
            moved += check_side(arg, &cases[i], side);
        require(moved || !kernels_packed_bf16(kernels_best()), "side %d has the bits of the reference\n", side);
    }
    return OK;
}

static void test_sums_are_near(void **state)
{
    (void)state;
    with_context(sums_are_near);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums_are_near) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
