/* f16 and bf16 as the evaluator keeps them: every pattern survives being widened, rounding is monotone with ties to even
 * at every place, and what rounding does to results is counted. */
#include "base/half.h"
#include "ops/contract/contract.h"
#include "support/calls.h"

static const DType narrow_types[] = { F16, BF16 };

enum { PATTERNS = 1 << 16 };

/* ---- conversions, by amp_cast ---- */

/* All patterns of a narrow type, in order. */
static Tensor *all_patterns(Context *c, DType t)
{
    const int64_t n = PATTERNS;
    Tensor *x = tensor_new(&c->arena, type_tensor(&c->ir.types, t, 1, &n));
    for (int i = 0; i < PATTERNS; i++)
        ((uint16_t *)x->data)[i] = (uint16_t)i;
    return x;
}

static Status every_pattern_comes_back(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(narrow_types); i++)
        for (size_t k = 0; kernels_levels[k]; k++) {
            const EvalOptions options = { .kernels = kernels_named(kernels_levels[k]) };
            Build b = fresh(c);
            Node *x = build_const(&b, all_patterns(c, narrow_types[i]));
            if (!options.kernels)
                continue;
            Tensor *y = value_of(c, build_amp_cast(&b, build_amp_cast(&b, x, F32), narrow_types[i]), &options);
            assert_int_equal(y->bytes, PATTERNS * sizeof(uint16_t));
            assert_memory_equal(y->data, constant(x)->data, y->bytes);
            tensor_drop(&c->heap, y);
        }
    return OK;
}

static f32 widened(DType t, uint16_t code)
{
    return t == F16 ? f16_to_f32(code) : bf16_to_f32(code);
}

enum { PLACES = 5 };

/* Between a code and the next one up: itself, right above, right below the middle, the middle, right above it. */
static void places_above(DType t, uint16_t code, f32 *x, uint16_t *wanted)
{
    const uint16_t infinity = t == F16 ? 0x7c00 : 0x7f80, next = (uint16_t)(code + 1);
    const f32 low = widened(t, code), step = low - widened(t, (uint16_t)(code ? code - 1 : 0));
    const double high = next == infinity ? (double)low + (double)step : (double)widened(t, next);
    const f32 middle = (f32)(((double)low + high) / 2);
    const f32 at[PLACES] = { low, nextafterf(low, INFINITY), nextafterf(middle, 0), middle,
                             nextafterf(middle, INFINITY) };
    const uint16_t to[PLACES] = { code, code, code, code & 1 ? next : code, next };
    memcpy(x, at, sizeof at);
    memcpy(wanted, to, sizeof to);
}

static Status rounding_is_monotone(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(narrow_types); i++) {
        const DType t = narrow_types[i];
        const int finite = t == F16 ? 0x7c00 : 0x7f80;
        const int64_t n = 2 * PLACES * finite;
        Tensor *x = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 1, &n));
        uint16_t *wanted = NEWS(&c->arena, uint16_t, n);
        f32 *v = x->data;
        for (int code = 0; code < finite; code++) {
            places_above(t, (uint16_t)code, v + PLACES * code, wanted + PLACES * code);
            for (int k = 0; k < PLACES; k++) {
                const int at = PLACES * code + k;
                v[n / 2 + at] = -v[at];
                wanted[n / 2 + at] = 0x8000 | wanted[at];
                assert_true(at == 0 || v[at - 1] <= v[at]);
                assert_true(at == 0 || wanted[at - 1] <= wanted[at]);
            }
        }
        Build b = fresh(c);
        Tensor *y = value_of(c, build_amp_cast(&b, build_const(&b, x), t), NULL);
        assert_memory_equal(y->data, wanted, (size_t)n * sizeof *wanted);
        tensor_drop(&c->heap, y);
    }
    return OK;
}

/* ---- counts ---- */

static Node *numbers(Build *b, Context *c, DType t, int rank, const int64_t *dims, const double *v)
{
    Tensor *x = tensor_new(&c->arena, type_tensor(&c->ir.types, t, rank, dims));
    for (int64_t i = 0; i < tensor_elements(x); i++)
        tensor_set_f64(x, i, v[i]);
    return build_const(b, x);
}

#define NUMBERS(b, c, t, ...)                                                                                          \
    numbers(b, c, t, 1, (int64_t[]){ (int64_t)COUNT(((double[]){ __VA_ARGS__ })) }, (double[]){ __VA_ARGS__ })

static void expect(const RoundingCounts *got, RoundingCounts want)
{
    assert_int_equal(got->rounded, want.rounded);
    assert_int_equal(got->subnormal, want.subnormal);
    assert_int_equal(got->flushed, want.flushed);
    assert_int_equal(got->overflowed, want.overflowed);
}

static void count(Context *c, Node *y, Parallel *pool, RoundingCounts want)
{
    RoundingCounts counts = { 0 };
    const EvalOptions options = { .rounding = &counts, .pool = pool };
    Tensor *v = value_of(c, y, &options);
    expect(&counts, want);
    tensor_drop(&c->heap, v);
}

static Status casts_are_counted(void *arg)
{
    Context *c = arg;
    Build b = fresh(c);
    Node *x = NUMBERS(&b, c, F32, 1, 0, -0.0, NAN, INFINITY, 0x1p-14, 0x1p-15, -0x1p-24, 0x1.8p-25, 0x1p-25, 65519,
                      -65520, 0x1.fffp-15);
    count(c, build_amp_cast(&b, x, F16), NULL, (RoundingCounts){ 13, 3, 1, 1 });
    b = fresh(c);
    x = NUMBERS(&b, c, F32, 1, 0x1p-126, 0x1p-127, -0x1p-133, 0x1p-134, 0x1p-149, 0x1.fffffep127, 0x1.fep127,
                -INFINITY);
    count(c, build_amp_cast(&b, x, BF16), NULL, (RoundingCounts){ 9, 2, 2, 1 });
    b = fresh(c);
    count(c, build_cast(&b, NUMBERS(&b, c, F64, 1e-30, 1e300, 0x1p-24), F16), NULL, (RoundingCounts){ 3, 1, 1, 1 });
    b = fresh(c);
    count(c, build_amp_cast(&b, NUMBERS(&b, c, F16, 0x1p-24, 1), F32), NULL, (RoundingCounts){ 0 });
    return OK;
}

static Status rows_are_counted(void *arg)
{
    enum { MANY = 5000 };
    static const Op ops[] = { OP_mul, OP_add };
    static const RoundingCounts wanted[] = { { MANY, MANY / 5, MANY / 5, MANY / 5 }, { MANY, MANY / 5, 0, MANY / 5 } };
    Context *c = arg;
    Parallel *pool = parallel_open(2, NULL);
    const int64_t n = MANY;
    Tensor *x = tensor_new(&c->arena, type_tensor(&c->ir.types, F16, 1, &n));
    for (int i = 0; i < MANY; i++)
        tensor_set_f64(x, i, i % 5 == 0 ? 40000 : i % 5 == 1 ? 0x1p-20 : i % 5 == 2 ? 0x1p-8 : 1);
    for (size_t i = 0; i < COUNT(ops); i++) {
        Build b = fresh(c);
        Node *v = build_const(&b, x);
        count(c, build_node(&b, ops[i], NULL, 2, (Node *[]){ v, v }), pool, wanted[i]);
        b = fresh(c);
        v = build_amp_cast(&b, build_const(&b, x), F32);
        count(c, build_node(&b, ops[i], NULL, 2, (Node *[]){ v, v }), pool, (RoundingCounts){ 0 });
    }
    parallel_close(pool);
    return OK;
}

static Status products_are_counted(void *arg)
{
    Context *c = arg;
    const int64_t two[] = { 2, 2 };
    for (int wide = 0; wide < 2; wide++) {
        Build b = fresh(c);
        Node *x = numbers(&b, c, F16, 2, two, (const double[]){ 300, 0x1p-14, 0x1p-20, 0 });
        Node *y = numbers(&b, c, F16, 2, two, (const double[]){ 300, 0, 0, 0x1p-6 });
        Node *z = CALL_ATTR(&b, matmul, ((MatmulAttr){ .out = wide ? F32 + 1 : 0 }), x, y);
        /* 90000, 2^-20; 300 * 2^-20, 0 */
        count(c, z, NULL, wide ? (RoundingCounts){ 0 } : (RoundingCounts){ 4, 1, 0, 1 });
    }
    return OK;
}

/* What each node adds, as observe sees it. */
typedef struct Watch {
    RoundingCounts counts;
    uint64_t before;
    int nodes;
    uint64_t flushed[8];
} Watch;

static void watch(void *user, const Node *n, const Tensor *value)
{
    Watch *w = user;
    (void)value;
    if (op_of(n)->structural)
        return;
    w->flushed[w->nodes++] = w->counts.flushed - w->before;
    w->before = w->counts.flushed;
}

static Status nodes_are_told_apart(void *arg)
{
    Context *c = arg;
    Watch w = { .nodes = 0 };
    const EvalOptions options = { .rounding = &w.counts, .observe = watch, .user = &w };
    Build b = fresh(c);
    Node *x = build_amp_cast(&b, NUMBERS(&b, c, F32, 0x1p-20, 1, 0x1p-30), F16);
    Node *s = CALL(&b, softmax, NUMBERS(&b, c, F16, 0, -40, -50));
    Tensor *y = value_of(c, CALL(&b, add, CALL(&b, mul, x, x), s), &options);
    tensor_drop(&c->heap, y);
    assert_int_equal(w.nodes, 4);
    assert_int_equal(w.flushed[0], 1);
    assert_int_equal(w.flushed[1], 2);
    assert_int_equal(w.flushed[2], 1);
    assert_int_equal(w.flushed[3], 0);
    return OK;
}

#define TEST(body)                                                                                                     \
    static void test_##body(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(body);                                                                                            \
    }
TEST(every_pattern_comes_back)
TEST(rounding_is_monotone)
TEST(casts_are_counted)
TEST(rows_are_counted)
TEST(products_are_counted)
TEST(nodes_are_told_apart)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pattern_comes_back), cmocka_unit_test(test_rounding_is_monotone),
        cmocka_unit_test(test_casts_are_counted),        cmocka_unit_test(test_rows_are_counted),
        cmocka_unit_test(test_products_are_counted),     cmocka_unit_test(test_nodes_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
