/* Contractions and sums go in the order that docs/arithmetic.md states: the bits of a loop written out, at every level that the
 * machine has and with any number of threads. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/recurrent/recurrent.h"
#include "ops/window/window.h"
#include "support/calls.h"
#include "support/chain.h"

/* What every element of the result must be. */
typedef double Expected(const void *case_, int64_t element);

/* One evaluation a level, each with another number of threads. */
static void expect_bits(Context *c, Node *y, Expected *expected, const void *case_, const char *what)
{
    double *want = NULL;
    for (int l = 0; kernels_levels[l]; l++) {
        const Kernels *kernels = kernels_named(kernels_levels[l]);
        if (!kernels)
            continue;
        Parallel *pool = parallel_open(1 + 2 * l, NULL);
        Tensor *z = value_of(c, y, &(EvalOptions){ .kernels = kernels, .pool = pool });
        const int64_t n = tensor_elements(z);
        assert_true(n > 0);
        if (!want) {
            want = NEWS(&c->arena, double, n);
            for (int64_t i = 0; i < n; i++)
                want[i] = expected(case_, i);
        }
        for (int64_t i = 0; i < n; i++)
            if (at(z, i) != want[i]) {
                print_error("%s, %s: element %d is %.17g, not %.17g\n", what, kernels_levels[l], (int)i, at(z, i),
                            want[i]);
                assert_true(false);
            }
        tensor_drop(&c->heap, z);
        parallel_close(pool);
    }
    assert_non_null(want);
}

static bool is_wide(const Tensor *t)
{
    return t->type->dtype == F64;
}

/* ---- matmul ---- */

typedef struct Product {
    const Tensor *a, *b;
    MatmulAttr turned;
    int64_t m, n, k;
} Product;

static double product_at(const void *case_, int64_t element)
{
    const Product *p = case_;
    const int64_t i = element / p->n, j = element % p->n;
    Chain sum = { .wide = is_wide(p->a) };
    for (int64_t k = 0; k < p->k; k++)
        chain_add(&sum, at(p->a, p->turned.ta ? k * p->m + i : i * p->k + k),
                  at(p->b, p->turned.tb ? j * p->k + k : k * p->n + j));
    return chain_total(&sum);
}

static Status products(void *arg)
{
    static const int64_t lengths[] = { 0, 1, 2047, 2048, 2049, 4096, 4097, 6145, 14337 };
    static const int64_t sides[][2] = { { 1, 9 }, { 50, 3 }, { 2, 35 }, { 5, 17 } };
    Context *c = arg;
    Rng rng = { 41 };
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (int round = 0; round < 4; round++) {
            Build b = fresh(c);
            const DType dtype = round % 2 ? F64 : F32;
            Product p = { .turned = { .ta = (i + (size_t)round) % 2, .tb = round / 2 }, .k = lengths[i] };
            p.m = sides[(i + (size_t)round) % 4][0], p.n = sides[(i + (size_t)round) % 4][1];
            Node *x = p.turned.ta ? DRAW(&b, &rng, dtype, p.k, p.m) : DRAW(&b, &rng, dtype, p.m, p.k);
            Node *y = p.turned.tb ? DRAW(&b, &rng, dtype, p.n, p.k) : DRAW(&b, &rng, dtype, p.k, p.n);
            p.a = constant(x), p.b = constant(y);
            expect_bits(c, CALL_ATTR(&b, matmul, p.turned, x, y), product_at, &p, "matmul");
        }
    return OK;
}

/* More columns than are summed together. */
static Status wide_products(void *arg)
{
    Context *c = arg;
    Rng rng = { 42 };
    Build b = fresh(c);
    Product p = { .m = 3, .n = 1030, .k = 2050 };
    Node *x = DRAW(&b, &rng, F32, p.m, p.k), *y = DRAW(&b, &rng, F32, p.k, p.n);
    p.a = constant(x), p.b = constant(y);
    expect_bits(c, CALL(&b, matmul, x, y), product_at, &p, "wide matmul");
    return OK;
}

/* ---- conv and conv_transpose ---- */

typedef struct Convolution {
    DType dtype;
    int64_t groups, channels, results, in[2], kernel[2], stride[2], dilation[2], begin[2], end[2];
    const Tensor *x, *filter, *bias;
    int64_t out[2];
} Convolution;

/* Where the tap looks, -1 outside: of a transposed one only where it reaches (-2: it does not). */
static int64_t place_of(const Convolution *v, bool back, int i, int64_t position, int64_t tap)
{
    int64_t p = position * v->stride[i] - v->begin[i] + tap * v->dilation[i];
    if (back) {
        p = position + v->begin[i] - tap * v->dilation[i];
        if (p % v->stride[i])
            return -2;
        p /= v->stride[i];
    }
    return p < 0 || p >= v->in[i] ? -1 : p;
}

static double summed(const Convolution *v, bool back, int64_t element)
{
    const int64_t plane = v->out[0] * v->out[1], m = element / plane % (v->groups * v->results);
    const int64_t image = element / plane / (v->groups * v->results), group = m / v->results;
    const int64_t row = element % plane / v->out[1], column = element % v->out[1];
    Chain sum = { .wide = is_wide(v->x) };
    for (int64_t t = 0; t < v->kernel[0] * v->kernel[1]; t++) {
        const int64_t y = place_of(v, back, 0, row, t / v->kernel[1]);
        const int64_t x = place_of(v, back, 1, column, t % v->kernel[1]);
        for (int64_t c = group * v->channels; y > -2 && x > -2 && c < (group + 1) * v->channels; c++) {
            const int64_t from = ((image * v->groups * v->channels + c) * v->in[0] + y) * v->in[1] + x;
            const int64_t pair = back ? c * v->results + m % v->results : m * v->channels + c % v->channels;
            chain_add(&sum, at(v->filter, pair * v->kernel[0] * v->kernel[1] + t), y < 0 || x < 0 ? 0 : at(v->x, from));
        }
    }
    const double total = chain_total(&sum), bias = at(v->bias, m);
    return is_wide(v->x) ? total + bias : (double)((float)total + (float)bias);
}

static double convolved(const void *case_, int64_t element)
{
    return summed(case_, false, element);
}

static double spread(const void *case_, int64_t element)
{
    return summed(case_, true, element);
}

static const Convolution convolutions[] = {
    { F32, 1, 3, 5, { 7, 9 }, { 3, 2 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 0 } },
    { F32, 2, 3, 2, { 9, 8 }, { 3, 3 }, { 2, 1 }, { 1, 2 }, { 1, 2 }, { 0, 2 } },
    { F64, 3, 2, 2, { 6, 7 }, { 2, 3 }, { 2, 3 }, { 1, 1 }, { 0, 1 }, { 0, 1 } },
    { F32, 1, 2, 3, { 9, 9 }, { 3, 3 }, { 2, 2 }, { 2, 2 }, { 2, 2 }, { 2, 2 } },    /* taps miss every second place */
    { F32, 1, 1, 1, { 11, 9 }, { 2, 2 }, { 4, 3 }, { 1, 1 }, { 0, 0 }, { 1, 0 } },   /* places that no tap reaches */
    { F32, 1, 683, 3, { 3, 4 }, { 1, 3 }, { 1, 1 }, { 1, 1 }, { 0, 1 }, { 0, 1 } },  /* 2049 */
    { F32, 1, 512, 50, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 } }, /* 2048 */
    { F64, 1, 2049, 2, { 3, 3 }, { 3, 1 }, { 1, 2 }, { 1, 1 }, { 1, 0 }, { 1, 0 } }, /* 6147 */
    { F32, 1, 4096, 5, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 0, 0 } },
};

static void expect_convolution(Context *c, const Convolution *of, bool back, int index)
{
    Rng rng = { 43 + (uint64_t)index };
    Build b = fresh(c);
    Convolution v = *of;
    const int64_t pads[] = { v.begin[0], v.begin[1], v.end[0], v.end[1] };
    const WindowAttr window = {
        .kernel_shape = { 2, v.kernel }, .strides = { 2, v.stride }, .dilations = { 2, v.dilation }, .pads = { 4, pads }
    };
    const int64_t m = v.groups * v.results, rows = back ? v.groups * v.channels : m;
    Node *x = DRAW(&b, &rng, v.dtype, 2, v.groups * v.channels, v.in[0], v.in[1]);
    Node *w = DRAW(&b, &rng, v.dtype, rows, back ? v.results : v.channels, v.kernel[0], v.kernel[1]);
    Node *bias = draw(&b, &rng, v.dtype, 1, &m);
    Node *y =
        back ? CALL_ATTR(&b, conv_transpose, ((ConvTransposeAttr){ .window = window, .group = v.groups }), x, w, bias)
             : CALL_ATTR(&b, conv, ((ConvAttr){ .window = window, .group = v.groups }), x, w, bias);
    v.x = constant(x), v.filter = constant(w), v.bias = constant(bias);
    assert_non_null(y);
    v.out[0] = y->type->dims[2], v.out[1] = y->type->dims[3];
    expect_bits(c, y, back ? spread : convolved, &v, back ? "conv_transpose" : "conv");
}

static Status all_convolutions(void *arg)
{
    for (int i = 0; i < (int)COUNT(convolutions); i++) {
        expect_convolution(arg, &convolutions[i], false, i);
        expect_convolution(arg, &convolutions[i], true, i);
    }
    return OK;
}

/* Behind the border stand zeros, which are multiplied like any: infinite weights make NaN of them. */
static Status borders_are_multiplied(void *arg)
{
    Context *c = arg;
    Rng rng = { 44 };
    Build b = fresh(c);
    const int64_t kernel[] = { 3 }, pads[] = { 0, 0 };
    const ConvTransposeAttr at_ = { .window = { .kernel_shape = { 1, kernel }, .pads = { 2, pads } }, .group = 1 };
    Node *x = DRAW(&b, &rng, F32, 1, 1, 2), *w = sample_tensor(&b, &rng, F32, 3, (const int64_t[]){ 1, 1, 3 }, 1, 1);
    Node *y = CALL_ATTR(&b, conv_transpose, at_, x, CALL(&b, div, w, build_scalar(&b, F32, 0)));
    Tensor *z = value_of(c, y, NULL);
    for (int64_t i = 0; i < 4; i++)
        assert_true(isnan(at(z, i)));
    tensor_drop(&c->heap, z);
    return OK;
}

/* ---- recurrent products ---- */

typedef struct Walk {
    const Tensor *x, *w;
    int64_t input, hidden;
} Walk;

/* One step from a state of zeros, with an activation that does nothing. */
static double walked(const void *case_, int64_t element)
{
    const Walk *k = case_;
    Chain sum = { .wide = is_wide(k->x) };
    for (int64_t i = 0; i < k->input; i++)
        chain_add(&sum, at(k->x, element / k->hidden * k->input + i), at(k->w, element % k->hidden * k->input + i));
    return chain_total(&sum);
}

static Status walks(void *arg)
{
    static const char *const nothing[] = { "Affine" };
    Context *c = arg;
    Rng rng = { 45 };
    for (int round = 0; round < 2; round++) {
        Build b = fresh(c);
        Walk k = { .input = 6145, .hidden = 3 };
        const DType dtype = round ? F64 : F32;
        Node *x = DRAW(&b, &rng, dtype, 1, 5, k.input), *w = DRAW(&b, &rng, dtype, 1, k.hidden, k.input);
        Node *r = DRAW(&b, &rng, dtype, 1, k.hidden, k.hidden), *ins[] = { x, w, r };
        const RecurrentAttr at_ = { .activations = { 1, nothing }, .hidden_size = k.hidden };
        k.x = constant(x), k.w = constant(w);
        expect_bits(c, build_part(&b, build_node_n(&b, OP_rnn, &at_, 3, ins, 2), 0), walked, &k, "rnn");
    }
    return OK;
}

/* ---- sums around kept axes ---- */

typedef struct Around {
    const Tensor *x;
    uint32_t mask;
} Around;

static double add(bool wide, double x, double y)
{
    return wide ? x + y : (double)((float)x + (float)y);
}

/* A column: blocks of 64 rows, eight accumulators each, which fold by halves; blocks join by the binary counter. */
static double column(const double *v, size_t n, bool wide)
{
    Chain blocks = { .wide = wide };
    size_t count = 0;
    for (size_t first = 0; first < n; first += 64, count++) {
        double a[8];
        for (size_t i = 0; i < 8; i++)
            a[i] = first + i < n ? v[first + i] : -0.0;
        for (size_t i = 8; i < 64 && first + i < n; i++)
            a[i % 8] = add(wide, a[i % 8], v[first + i]);
        for (size_t half = 4; half > 0; half /= 2)
            for (size_t i = 0; i < half; i++)
                a[i] = add(wide, a[i], a[i + half]);
        assert_true(count < CHAIN_SEGMENTS);
        blocks.sum[count] = a[0];
    }
    return chain_fold(&blocks, 0, count);
}

/* What the reduced indices bring to an element, in their order. */
static double summed_around(const void *case_, int64_t element)
{
    const Around *k = case_;
    const Type *t = k->x->type;
    static double v[64 * CHAIN_SEGMENTS];
    size_t n = 0;
    for (int64_t i = 0; i < tensor_elements(k->x); i++) {
        int64_t rest = i, to = 0, step = 1;
        for (int d = t->rank - 1; d >= 0; d--) {
            to += k->mask >> d & 1 ? 0 : rest % t->dims[d] * step;
            step *= k->mask >> d & 1 ? 1 : t->dims[d];
            rest /= t->dims[d];
        }
        if (to == element)
            v[n++] = at(k->x, i);
    }
    return column(v, n, is_wide(k->x));
}

static Status sums_around(void *arg)
{
    static const struct {
        DType dtype;
        int64_t dims[5];
        uint32_t mask;
    } cases[] = {
        { F32, { 3, 5, 128, 1, 1 }, 1 | 4 },     { F32, { 3, 2, 49, 7, 1 }, 1 | 4 | 8 },
        { F64, { 7, 3, 100, 1, 1 }, 1 | 4 },     { F32, { 2, 3, 5, 70, 1 }, 1 | 4 },
        { F32, { 2, 3, 40, 2, 3 }, 1 | 4 | 16 }, { F64, { 3, 2, 3, 2, 9 }, 1 | 4 },
        { F32, { 65, 2, 3, 1, 1 }, 1 | 4 },      { F32, { 2, 3, 2, 300, 2 }, 2 | 8 },
        { F32, { 4, 1, 1000, 3, 1 }, 1 | 4 },    { F32, { 2, 2, 2048, 1, 1 }, 1 | 4 },
        { F32, { 4, 3, 1, 1, 64 }, 1 | 16 },
    };
    Context *c = arg;
    Rng rng = { 46 };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Build b = fresh(c);
        int64_t axes[5];
        int n = 0;
        for (int d = 0; d < 5; d++)
            if (cases[i].mask >> d & 1)
                axes[n++] = d;
        Node *x = draw(&b, &rng, cases[i].dtype, 5, cases[i].dims);
        const Around k = { constant(x), cases[i].mask };
        expect_bits(c, build_reduce(&b, OP_reduce_sum, x, n, axes), summed_around, &k, "reduce_sum");
    }
    return OK;
}

/* ---- running sums ---- */

typedef struct Running {
    const Tensor *x;
    bool exclusive, reverse, product;
} Running;

static double join(const Running *k, double x, double y)
{
    const bool wide = is_wide(k->x);
    return !k->product ? add(wide, x, y) : wide ? x * y : (double)((float)x * (float)y);
}

/* Element `last` of the way; x is [2, n, 2]. */
static double run_to(const Running *k, int64_t row, int64_t column_, int64_t last)
{
    const int64_t n = k->x->type->dims[1], begin = last / 1024 * 1024;
    double v = 0;
    for (int64_t i = begin; i <= last; i++) {
        const double e = at(k->x, (row * n + (k->reverse ? n - 1 - i : i)) * 2 + column_);
        v = i == begin ? e : join(k, v, e);
    }
    return begin ? join(k, run_to(k, row, column_, begin - 1), v) : v;
}

static double ran(const void *case_, int64_t element)
{
    const Running *k = case_;
    const int64_t n = k->x->type->dims[1], at_ = element / 2 % n, i = k->reverse ? n - 1 - at_ : at_;
    if (k->exclusive)
        return i ? run_to(k, element / 2 / n, element % 2, i - 1) : k->product;
    return run_to(k, element / 2 / n, element % 2, i);
}

static Status running_sums(void *arg)
{
    static const int64_t lengths[] = { 5, 1024, 1025, 2100 };
    Context *c = arg;
    Rng rng = { 47 };
    const int64_t axis = 1;
    for (int i = 0; i < 16; i++) {
        Build b = fresh(c);
        const CumAttr a = { .exclusive = i & 1, .reverse = i & 2 };
        Node *x = DRAW(&b, &rng, i & 8 ? F64 : F32, 2, lengths[(i + i / 4) % 4], 2);
        const Running k = { constant(x), a.exclusive, a.reverse, i & 4 };
        Node *ins[] = { x, sample_ints(&b, I64, 0, NULL, &axis) };
        expect_bits(c, build_node(&b, k.product ? OP_cum_prod : OP_cum_sum, &a, 2, ins), ran, &k, "running sums");
    }
    return OK;
}

/* ---- gru's product with the gated state ---- */

typedef struct Gated {
    const Tensor *h, *r;
} Gated;

static double gated(const void *case_, int64_t element)
{
    const Gated *k = case_;
    const int64_t n = k->h->type->dims[2], j = element % n;
    Chain sum = { .wide = is_wide(k->h) };
    for (int64_t i = 0; i < n; i++)
        chain_add(&sum, at(k->h, element / n * n + i), at(k->r, j * n + i));
    return chain_total(&sum);
}

/* With functions that do nothing, an update gate of 0 and a reset gate of 1 the next state is that product. */
static Status gated_states(void *arg)
{
    enum { HIDDEN = 2060 };
    static const char *const nothing[] = { "Affine", "Affine" };
    static const int64_t w_dims[] = { 1, 3 * HIDDEN, 1 }, zero_dims[] = { 1, 2 * HIDDEN, HIDDEN };
    Context *c = arg;
    Rng rng = { 48 };
    Build b = fresh(c);
    Tensor *w = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 3, w_dims));
    for (int64_t i = 0; i < 3 * HIDDEN; i++)
        tensor_set_f64(w, i, i / HIDDEN == 1);
    Node *x = sample_tensor(&b, &rng, F32, 3, (const int64_t[]){ 1, 2, 1 }, 1, 1);
    Node *r = DRAW(&b, &rng, F32, 1, HIDDEN, HIDDEN), *h = DRAW(&b, &rng, F32, 1, 2, HIDDEN);
    Node *both[] = { make_zeros(&b, F32, 3, zero_dims), r };
    Node *ins[] = { x, build_const(&b, w), make_concat(&b, 1, 2, both), NULL, NULL, h };
    const RecurrentAttr at_ = { .activations = { 2, nothing }, .hidden_size = HIDDEN };
    const Gated k = { constant(h), constant(r) };
    expect_bits(c, build_part(&b, build_node_n(&b, OP_gru, &at_, 6, ins, 2), 1), gated, &k, "gru");
    return OK;
}

#define TEST(body)                                                                                                     \
    static void test_##body(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(body);                                                                                            \
    }
TEST(products)
TEST(wide_products)
TEST(all_convolutions)
TEST(borders_are_multiplied)
TEST(walks)
TEST(sums_around)
TEST(running_sums)
TEST(gated_states)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_wide_products),
        cmocka_unit_test(test_all_convolutions),
        cmocka_unit_test(test_borders_are_multiplied),
        cmocka_unit_test(test_walks),
        cmocka_unit_test(test_sums_around),
        cmocka_unit_test(test_running_sums),
        cmocka_unit_test(test_gated_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
