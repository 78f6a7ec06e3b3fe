/* Moves against index arithmetic written out, and the edges of each op. */
#include "ops/card/shapes.h"
#include "ops/move/move.h"
#include <math.h>

#include "testing.h"

/* What a graph of constants gives. */
static Tensor *value_of(Context *c, Node *y)
{
    Tensor *out = NULL;
    assert_non_null(y);
    graph_return(y->graph, 1, &y, NULL);
    assert_int_equal(evaluate(y->graph, NULL, &c->heap, NULL, &out), OK);
    return out;
}

static Build fresh(Context *c)
{
    return build_at_end(graph_new(&c->ir, &c->arena, "f"));
}

static Node *iota(Build *b, DType dtype, int rank, const int64_t *dims)
{
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, dtype, rank, dims));
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_i64(t, i, i);
    return build_const(b, t);
}

static void expect(Context *c, Node *y, int rank, const int64_t *dims, const int64_t *v)
{
    Tensor *t = value_of(c, y);
    assert_int_equal(t->type->rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(t->type->dims[i], dims[i]);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        if (tensor_get_i64(t, i) != v[i]) {
            print_error("element %d is %d, not %d\n", (int)i, (int)tensor_get_i64(t, i), (int)v[i]);
            assert_true(false);
        }
    tensor_drop(&c->heap, t);
}

#define EXPECT(c, y, dims, ...) expect(c, y, (int)COUNT(((int64_t[])dims)), (int64_t[])dims, (int64_t[]){ __VA_ARGS__ })
#define DIMS(...)                                                                                                      \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define LIST(b, ...) build_i64s(b, (int)COUNT(((int64_t[]){ __VA_ARGS__ })), (int64_t[]){ __VA_ARGS__ })

/* Nothing comes of the call, and the complaint says why. */
static void expect_refused(Context *c, Build *b, const Node *y, const char *why)
{
    assert_null(y);
    assert_int_equal(b->status, INVALID);
    if (!c->last || !strstr(c->last, why))
        print_error("\"%s\" does not say \"%s\"\n", c->last ? c->last : "", why);
    assert_true(c->last && strstr(c->last, why));
}

/* The call is legal by its types and fails when its values are seen. */
static void expect_failure(Context *c, Node *y, const char *why)
{
    Tensor *out = NULL;
    assert_non_null(y);
    graph_return(y->graph, 1, &y, NULL);
    assert_int_equal(evaluate(y->graph, NULL, &c->heap, NULL, &out), INVALID);
    if (!strstr(c->last, why))
        print_error("\"%s\" does not say \"%s\"\n", c->last, why);
    assert_non_null(strstr(c->last, why));
}

/* ---- the engine ---- */

/* Random strides on both sides, element sizes of every kind, checked position by position. */
static Status engine_copies(void *arg)
{
    Context *c = arg;
    static const size_t sizes[] = { 1, 2, 4, 8, 16 };
    Rng rng = { 5 };
    for (int round = 0; round < 400; round++) {
        enum { MOST = 1 << 14 };
        const size_t size = sizes[round % 5];
        const int rank = (int)rng_below(&rng, 5);
        Move m = { .size = size };
        int64_t dims[4], order[4] = { 0 }, to[4], from[4], n = 1;
        sample_dims(&rng, rank, round % 7 ? 5 : 40, dims);
        if (rank > 2)
            dims[0] = dims[0] > 3 ? 3 : dims[0], dims[1] = dims[1] > 3 ? 3 : dims[1];
        sample_order(&rng, rank, order);
        for (int i = rank - 1; i >= 0; i--)
            to[i] = n, n *= dims[i];
        int64_t step = 1;
        for (int i = rank - 1; i >= 0; i--)
            from[order[i]] = step, step *= dims[order[i]];
        assert_true(n <= MOST);
        for (int i = 0; i < rank; i++)
            move_axis(&m, dims[i], to[i], from[i]);
        unsigned char *x = arena_alloc(&c->arena, (size_t)n * size + 1),
                      *y = arena_alloc(&c->arena, (size_t)n * size + 1);
        for (size_t i = 0; i < (size_t)n * size; i++)
            x[i] = (unsigned char)rng_u64(&rng);
        move_run(&m, y, x);
        for (int64_t i = 0; i < n; i++) {
            int64_t source = 0;
            for (int k = 0; k < rank; k++)
                source += i / to[k] % dims[k] * from[k];
            assert_memory_equal(y + (size_t)i * size, x + (size_t)source * size, size);
        }
    }
    return OK;
}

/* Two- and four-bit elements move like others. */
static Status engine_moves_packed(void *arg)
{
    Context *c = arg;
    Build b = fresh(c);
    Node *x = iota(&b, U2, 2, (int64_t[]){ 1, 3 });
    EXPECT(c, CALL(&b, transpose, CALL(&b, tile, x, LIST(&b, 2, 1))), DIMS(3, 2), 0, 0, 1, 1, 2, 2);
    Build d = fresh(c);
    Node *y = iota(&d, I4, 1, (int64_t[]){ 5 });
    EXPECT(c, CALL(&d, slice, y, LIST(&d, -1), LIST(&d, INT64_MIN), LIST(&d, 0), LIST(&d, -2)), DIMS(3), 4, 2, 0);
    return OK;
}

/* ---- shapes ---- */

static Status reshapes(void *arg)
{
    Context *c = arg;
    struct {
        bool allowzero;
    } zero = { true };
    Build b = fresh(c);
    Node *x = iota(&b, F32, 2, (int64_t[]){ 2, 3 });
    expect_refused(c, &b, CALL(&b, reshape, x, LIST(&b, -1, -1)), "2 dimensions -1");
    b = fresh(c), x = iota(&b, F32, 2, (int64_t[]){ 2, 3 });
    expect_refused(c, &b, CALL(&b, reshape, x, LIST(&b, 4, -1)), "does not divide");
    b = fresh(c), x = iota(&b, F32, 2, (int64_t[]){ 2, 3 });
    expect_refused(c, &b, CALL(&b, reshape, x, LIST(&b, 2, 3, 0)), "does not have");
    b = fresh(c), x = iota(&b, F32, 2, (int64_t[]){ 2, 3 });
    expect_refused(c, &b, CALL(&b, reshape, x, LIST(&b, 7)), "7 elements out of 6");
    b = fresh(c), x = iota(&b, F32, 2, (int64_t[]){ 0, 3 });
    expect_refused(c, &b, CALL_ATTR(&b, reshape, zero, x, LIST(&b, 0, -1)), "beside a dimension 0");
    b = fresh(c), x = iota(&b, F32, 2, (int64_t[]){ 2, 3 });
    expect_refused(c, &b, CALL(&b, reshape, x, LIST(&b, INT64_MAX, INT64_MAX, 2)), "limit dim");

    /* what a 0 copies cancels: -1 is known although the batch is not */
    b = fresh(c);
    const int64_t batch[] = { DIM_UNKNOWN, 3, 4 };
    x = graph_input(b.graph, "x", type_tensor(&c->ir.types, F32, 3, batch));
    Node *y = CALL(&b, reshape, x, LIST(&b, 0, -1));
    assert_string_equal(type_text(&c->arena, y->type), "f32[?,12]");
    y = CALL(&b, reshape, x, LIST(&b, -1, 12));
    assert_string_equal(type_text(&c->arena, y->type), "f32[?,12]");
    return OK;
}

static Status slices(void *arg)
{
    Context *c = arg;
    Build b = fresh(c);
    Node *x = iota(&b, I64, 1, (int64_t[]){ 5 });
    EXPECT(c, CALL(&b, slice, x, LIST(&b, -10), LIST(&b, INT64_MIN), LIST(&b, 0), LIST(&b, -1)), DIMS(1), 0);
    b = fresh(c), x = iota(&b, I64, 1, (int64_t[]){ 5 });
    EXPECT(c, CALL(&b, slice, x, LIST(&b, INT64_MAX), LIST(&b, INT64_MIN), LIST(&b, -1), LIST(&b, INT64_MIN)), DIMS(1),
           4);
    b = fresh(c), x = iota(&b, I64, 1, (int64_t[]){ 5 });
    EXPECT(c, CALL(&b, slice, x, LIST(&b, 3), LIST(&b, -10)), DIMS(0), 0);
    b = fresh(c), x = iota(&b, I64, 1, (int64_t[]){ 5 });
    expect_refused(c, &b, CALL(&b, slice, x, LIST(&b, 0), LIST(&b, 1), LIST(&b, 0), LIST(&b, 0)), "step 0 is 0");
    b = fresh(c), x = iota(&b, I64, 2, (int64_t[]){ 5, 5 });
    expect_refused(c, &b, CALL(&b, slice, x, LIST(&b, 0, 0), LIST(&b, 1, 1), LIST(&b, 1, -1)), "axis 1 twice");
    b = fresh(c), x = iota(&b, I64, 2, (int64_t[]){ 5, 5 });
    expect_refused(c, &b, CALL(&b, slice, x, LIST(&b, 0, 0), LIST(&b, 1)), "lists 1 numbers");
    return OK;
}

static Status pads(void *arg)
{
    Context *c = arg;
    struct {
        int mode;
    } reflect = { 1 }, edge = { 2 }, wrap = { 3 };
    Build b = fresh(c);
    Node *x = iota(&b, I64, 1, (int64_t[]){ 3 });
    EXPECT(c, CALL_ATTR(&b, pad, reflect, x, LIST(&b, 3, 6)), DIMS(12), 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0);
    b = fresh(c), x = iota(&b, I64, 1, (int64_t[]){ 3 });
    EXPECT(c, CALL_ATTR(&b, pad, edge, x, LIST(&b, -1, 2)), DIMS(4), 1, 2, 2, 2);
    b = fresh(c), x = iota(&b, I64, 1, (int64_t[]){ 3 });
    EXPECT(c, CALL_ATTR(&b, pad, wrap, x, LIST(&b, 4, 1)), DIMS(8), 2, 0, 1, 2, 0, 1, 2, 0);
    b = fresh(c), x = iota(&b, I64, 1, (int64_t[]){ 3 });
    EXPECT(c, CALL(&b, pad, x, LIST(&b, -5, 4)), DIMS(2), 0, 0);
    b = fresh(c), x = iota(&b, I64, 1, (int64_t[]){ 3 });
    expect_refused(c, &b, CALL(&b, pad, x, LIST(&b, -2, -2)), "pads axis 0 of length 3 by -2 and -2");
    b = fresh(c), x = iota(&b, I64, 1, (int64_t[]){ 0 });
    expect_refused(c, &b, CALL_ATTR(&b, pad, edge, x, LIST(&b, 1, 0)), "nothing to repeat");
    b = fresh(c), x = iota(&b, I64, 1, (int64_t[]){ 3 });
    expect_refused(c, &b, CALL(&b, pad, x, LIST(&b, INT64_MAX, INT64_MAX)), "pads axis 0");
    return OK;
}

/* Nothing may be asked for that cannot be counted. */
static Status far_too_much(void *arg)
{
    Context *c = arg;
    Build b = fresh(c);
    expect_refused(c, &b, CALL(&b, tile, iota(&b, F32, 1, (int64_t[]){ 3 }), LIST(&b, INT64_MAX)), "too long");
    b = fresh(c);
    expect_refused(c, &b, CALL(&b, expand, build_scalar(&b, F32, 1), LIST(&b, 1 << 30, 1 << 30)), "limit elements");
    b = fresh(c);
    expect_refused(c, &b, CALL(&b, constant_of_shape, LIST(&b, 1 << 30, 1 << 30)), "limit elements");
    b = fresh(c);
    expect_refused(c, &b,
                   CALL(&b, range, build_scalar(&b, I64, 0), build_i64s(&b, 1, (int64_t[]){ INT64_MAX }),
                        build_scalar(&b, I64, 1)),
                   "limit elements");
    b = fresh(c);
    expect_refused(c, &b, CALL(&b, range, build_scalar(&b, F32, 0), build_scalar(&b, F32, 1), build_scalar(&b, F32, 0)),
                   "steps by 0");
    b = fresh(c);
    expect_refused(
        c, &b,
        CALL(&b, one_hot, build_scalar(&b, I64, 0), build_scalar(&b, I64, 0x1p50), iota(&b, F32, 1, (int64_t[]){ 2 })),
        "limit");
    return OK;
}

/* ---- values ---- */

static Status orders(void *arg)
{
    Context *c = arg;
    static const float some[] = { 1, NAN, -0.0f, 0, -INFINITY, NAN, 1 };
    const int64_t n = (int64_t)COUNT(some), k = 7;
    struct {
        int64_t axis;
        bool largest, sorted;
    } smallest = { -1, false, true };
    Build b = fresh(c);
    Tensor *t = tensor_new(&c->arena, type_vector(&c->ir.types, F32, n));
    memcpy(t->data, some, sizeof some);
    Node *ins[] = { build_const(&b, t), build_i64s(&b, 1, &k) };
    EXPECT(c, build_part(&b, build_node_n(&b, OP_top_k, NULL, 2, ins, 2), 1), DIMS(7), 1, 5, 0, 6, 2, 3, 4);
    b = fresh(c);
    Node *again[] = { build_const(&b, t), build_i64s(&b, 1, &k) };
    EXPECT(c, build_part(&b, build_node_n(&b, OP_top_k, &smallest, 2, again, 2), 1), DIMS(7), 4, 2, 3, 0, 6, 1, 5);
    b = fresh(c);
    Node *x = build_const(&b, t);
    EXPECT(c, build_part(&b, build_node_n(&b, OP_unique, NULL, 1, &x, 4), 3), DIMS(4), 1, 2, 2, 2);
    b = fresh(c), x = build_const(&b, t);
    EXPECT(c, build_part(&b, build_node_n(&b, OP_unique, NULL, 1, &x, 4), 2), DIMS(7), 2, 3, 1, 1, 0, 3, 2);
    return OK;
}

static Status indices(void *arg)
{
    Context *c = arg;
    Build b = fresh(c);
    Node *x = iota(&b, I64, 1, (int64_t[]){ 4 });
    expect_failure(c, CALL(&b, gather, x, LIST(&b, 1, -5)), "index -5 at position 1");
    b = fresh(c), x = iota(&b, I64, 2, (int64_t[]){ 2, 2 });
    expect_failure(c, CALL(&b, gather_nd, x, LIST(&b, 1, 2)), "index 2 at position 1");
    b = fresh(c), x = iota(&b, I64, 1, (int64_t[]){ 4 });
    expect_failure(c, CALL(&b, scatter_elements, x, LIST(&b, 4), LIST(&b, 9)), "index 4 at position 0");
    b = fresh(c), x = iota(&b, I64, 1, (int64_t[]){ 4 });
    EXPECT(c, CALL(&b, scatter_elements, x, LIST(&b, 1, -3, 0), LIST(&b, 7, 8, 9)), DIMS(4), 9, 8, 2, 3);
    b = fresh(c), x = iota(&b, I64, 1, (int64_t[]){ 4 });
    expect_refused(c, &b, CALL(&b, gather, x, build_scalar(&b, F32, 0)), "must hold integers");
    return OK;
}

/* Sums in f16 are rounded once, at the end. */
static Status scatter_rounds_once(void *arg)
{
    Context *c = arg;
    enum { N = 3000 };
    Build b = fresh(c);
    Node *x = build_const(&b, tensor_new(&c->arena, type_vector(&c->ir.types, F16, 1)));
    Node *at = build_const(&b, tensor_new(&c->arena, type_vector(&c->ir.types, I64, N)));
    Tensor *ones = tensor_new(&c->arena, type_vector(&c->ir.types, F16, N));
    for (int i = 0; i < N; i++)
        tensor_set_f64(ones, i, 1);
    const AttrSpec *reduction = attr_find(c->ir.ops->defs[OP_scatter_elements]->attrs, str("reduction"));
    void *attr = attrs_default(&c->arena, c->ir.ops->defs[OP_scatter_elements]->attrs);
    *(int *)attr_at(reduction, attr) = 1;
    Node *ins[] = { x, at, build_const(&b, ones) };
    EXPECT(c, build_node(&b, OP_scatter_elements, attr, 3, ins), DIMS(1), N);
    return OK;
}

static Status strings_are_refused(void *arg)
{
    Context *c = arg;
    Build b = fresh(c);
    Node *x = graph_input(b.graph, "x", type_vector(&c->ir.types, STRING, 2));
    Node *y = CALL(&b, reshape, x, LIST(&b, 2, 1));
    assert_string_equal(type_text(&c->arena, y->type), "string[2,1]");
    graph_return(b.graph, 1, &y, NULL);
    Str texts[2] = { str("a"), str("b") };
    const Tensor value = { .type = x->type, .data = texts, .bytes = sizeof texts, .refs = 1 }, *in[] = { &value };
    Tensor *out = NULL;
    assert_int_equal(evaluate(b.graph, NULL, &c->heap, in, &out), UNSUPPORTED);
    assert_non_null(strstr(c->last, "string"));
    return OK;
}

#define TEST(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(name);                                                                                            \
    }
TEST(engine_copies)
TEST(engine_moves_packed)
TEST(reshapes)
TEST(slices)
TEST(pads)
TEST(far_too_much)
TEST(orders)
TEST(indices)
TEST(scatter_rounds_once)
TEST(strings_are_refused)
#undef TEST

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_copies),
        cmocka_unit_test(test_engine_moves_packed),
        cmocka_unit_test(test_reshapes),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_pads),
        cmocka_unit_test(test_far_too_much),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_indices),
        cmocka_unit_test(test_scatter_rounds_once),
        cmocka_unit_test(test_strings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
