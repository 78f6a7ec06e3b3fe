#include "testing.h"

static Status casts_round_once(void *arg)
{
    Context *c = arg;
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    const int64_t dims[] = { 3 };
    Node *x = graph_input(g, "x", type_tensor(&c->ir.types, F32, 1, dims));
    Build b = build_at_end(g);
    Node *y = build_cast(&b, build_cast(&b, x, BF16), F32);
    graph_return(g, 1, &y, NULL);

    Tensor *in = tensor_new(&c->arena, x->type);
    ((float *)in->data)[0] = 1.00390625f; /* a tie: to even */
    ((float *)in->data)[1] = 1.01171875f; /* a tie: to even */
    ((float *)in->data)[2] = -3.0f;
    const Tensor *inputs[] = { in };
    Tensor *out[1];
    assert_int_equal(evaluate(g, NULL, &c->heap, inputs, out), OK);
    assert_true(((float *)out[0]->data)[0] == 1.0f);
    assert_true(((float *)out[0]->data)[1] == 1.015625f);
    assert_true(((float *)out[0]->data)[2] == -3.0f);
    return OK;
}

static void casts(void **state)
{
    (void)state;
    with_context(casts_round_once);
}

static Status copies(void *arg)
{
    Context *c = arg;
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    Node *parts[] = { build_scalar(&b, F32, 1), build_scalar(&b, I64, 2) };
    Node *t = build_tuple(&b, 2, parts);
    Node *y = build_part(&b, t, 1);
    graph_return(g, 1, &y, NULL);
    Graph *h = graph_copy(g, &c->arena);
    assert_int_equal(graph_count(h), 4);
    assert_true(graph_result(h, 0)->type == type_scalar(&c->ir.types, I64));
    return OK;
}

static void copying(void **state)
{
    (void)state;
    with_context(copies);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(casts), cmocka_unit_test(copying) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
