/* Rows where the element types of operands differ, operands are absent, or there is no arithmetic. */
#include "base/str.h"
#include "testing.h"

static Node *vector(Build *b, DType d, int n, const double *v)
{
    const int64_t dims[] = { n };
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, d, 1, dims));
    for (int i = 0; i < n; i++)
        tensor_set_f64(t, i, v[i]);
    return build_const(b, t);
}

static void expect(Context *c, Node *y, DType d, int n, const double *want)
{
    Tensor *got = NULL;
    assert_non_null(y);
    graph_return(y->graph, 1, &y, NULL);
    if (evaluate(y->graph, NULL, &c->heap, NULL, &got) != OK)
        print_error("%s\n", c->last);
    assert_non_null(got);
    assert_int_equal(got->type->dtype, d);
    assert_int_equal(tensor_elements(got), n);
    for (int i = 0; i < n; i++)
        assert_true(tensor_get_f64(got, i) == want[i]);
    tensor_drop(&c->heap, got);
}

static Status numbers(void *arg)
{
    Context *c = arg;
    Build b = build_at_end(graph_new(&c->ir, &c->arena, "f"));
    static const double v[] = { 1, 2, 3 }, w[] = { 4, 5, 6 }, s[] = { -3, 0, 300 };

    /* an integer to a real power is a real power, truncated */
    expect(c, CALL(&b, pow, vector(&b, I32, 3, v), vector(&b, F32, 3, w)), I32, 3, (const double[]){ 1, 32, 729 });
    expect(c, CALL(&b, pow, vector(&b, F32, 3, v), vector(&b, I64, 3, w)), F32, 3, (const double[]){ 1, 32, 729 });
    /* absent bounds do not bound */
    Node *x = vector(&b, I32, 3, s);
    expect(c, CALL(&b, clip, x), I32, 3, s);
    expect(c, CALL(&b, clip, x, NULL, build_scalar(&b, I32, 7)), I32, 3, (const double[]){ -3, 0, 7 });
    expect(c, CALL(&b, clip, x, build_scalar(&b, I32, -1)), I32, 3, (const double[]){ -1, 0, 300 });
    /* a fold of one, and of several */
    expect(c, CALL(&b, max, x), I32, 3, s);
    expect(c, CALL(&b, sum, vector(&b, F32, 3, v), vector(&b, F32, 3, w), vector(&b, F32, 3, v)), F32, 3,
           (const double[]){ 6, 9, 12 });
    /* narrow integers wrap */
    static const double bytes[] = { 200, 0, 255 };
    expect(c, CALL(&b, mul, vector(&b, U8, 3, bytes), vector(&b, U8, 3, w)), U8, 3, (const double[]){ 32, 0, 250 });
    return b.status;
}

static void mixed_and_absent_operands(void **state)
{
    (void)state;
    with_context(numbers);
}

static Node *words(Build *b, int n, const char *const *v)
{
    const int64_t dims[] = { n };
    Arena *arena = b->graph->arena;
    Str *texts = NEWS(arena, Str, n);
    Tensor *t = NEW(arena, Tensor);
    *t = (Tensor){ .type = type_tensor(&b->graph->ir->types, STRING, 1, dims), .data = texts, .refs = 1 };
    t->bytes = (size_t)n * sizeof *texts;
    for (int i = 0; i < n; i++)
        texts[i] = str(v[i]);
    return build_const(b, t);
}

/* Strings have a type in equal and where, though they are not computed with. */
static Status strings(void *arg)
{
    Context *c = arg;
    Build b = build_at_end(graph_new(&c->ir, &c->arena, "f"));
    Node *x = words(&b, 3, (const char *const[]){ "a", "bc", "" });
    Node *y = CALL(&b, equal, x, words(&b, 1, (const char *const[]){ "bc" }));
    assert_non_null(y);
    assert_ptr_equal(y->type, type_vector(&c->ir.types, BOOL, 3));
    assert_ptr_equal(CALL(&b, where, y, x, x)->type, x->type);
    return b.status;
}

static void strings_have_types(void **state)
{
    (void)state;
    with_context(strings);
}

static Status refusals(void *arg)
{
    Context *c = arg;
    static const double v[] = { 1, 2, 3 };
    struct {
        Op op;
        DType x, y;
    } calls[] = { { OP_add, F32, F16 },  { OP_add, BOOL, BOOL },      { OP_and, I32, I32 },
                  { OP_exp, I32, I32 },  { OP_bitwise_or, F32, F32 }, { OP_where, F32, F32 },
                  { OP_pow, F32, BOOL }, { OP_less, STRING, STRING }, { OP_bit_shift, I32, I64 } };
    for (size_t i = 0; i < COUNT(calls); i++) {
        Build b = build_at_end(graph_new(&c->ir, &c->arena, "f"));
        Node *x = calls[i].x == STRING ? words(&b, 1, (const char *const[]){ "a" }) : vector(&b, calls[i].x, 3, v);
        Node *y = calls[i].y == STRING ? x : vector(&b, calls[i].y, 3, v);
        Node *in[] = { x, y, y };
        const OpDef *def = ops_table.defs[calls[i].op];
        assert_null(build_node(&b, calls[i].op, NULL, def->max_in, in));
        assert_int_equal(b.status, INVALID);
    }
    return OK;
}

static void what_a_row_does_not_take(void **state)
{
    (void)state;
    with_context(refusals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed_and_absent_operands),
        cmocka_unit_test(strings_have_types),
        cmocka_unit_test(what_a_row_does_not_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
