/* The losses of training against what PyTorch gives, values and gradients (tests/data/losses.py). */
#include <math.h>

#include "ops/card/attrs.h"
#include "ops/control/reverse.h"
#include "testing.h"

typedef struct Stored {
    Op op;
    int rank, target_rank;
    int64_t dims[4], target_dims[4];
    bool hard;
    double x[24], target[24];
    int n_class_weight, n_sample_weight;
    double class_weight[4], sample_weight[4];
    ClassLossAttr classes; /* of cross_entropy and nll */
    LossSumAttr sums;      /* of the others */
    double loss, gradient[24];
} Stored;

#include "data/losses.h"

static Tensor *tensor_from(Context *c, DType dtype, int rank, const int64_t *dims, const double *v)
{
    Tensor *t = tensor_new(&c->arena, type_tensor(&c->ir.types, dtype, rank, dims));
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, v[i]);
    return t;
}

static Node *weights(Context *c, Build *b, DType dtype, int n, const double *v)
{
    return n ? build_const(b, tensor_from(c, dtype, 1, (int64_t[]){ n }, v)) : NULL;
}

/* A graph of the loss and its gradient over the input x. */
static Graph *loss_graph(Context *c, const Stored *s, DType dtype)
{
    const bool of_classes = s->op == OP_cross_entropy || s->op == OP_nll || s->op == OP_focal;
    const bool has_pos = of_classes || s->op == OP_bce_logits; /* operand 2 weighs classes, not samples */
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Node *x = graph_input(g, "x", type_tensor(&c->ir.types, dtype, s->rank, s->dims));
    Build b = build_at_end(g);
    Node *in_[4] = { x, build_const(&b,
                                    tensor_from(c, s->hard ? I32 : dtype, s->target_rank, s->target_dims, s->target)) };
    if (has_pos)
        in_[2] = weights(c, &b, dtype, s->n_class_weight, s->class_weight);
    in_[has_pos ? 3 : 2] = weights(c, &b, dtype, s->n_sample_weight, s->sample_weight);
    Node *y = build_node(&b, s->op, of_classes ? (const void *)&s->classes : &s->sums, has_pos ? 4 : 3, in_);
    assert_non_null(y);
    Node *dy = build_scalar(&b, y->type->dtype, 1);
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &dy, .n_x = 1, .x = &x };
    ReverseResult r;
    assert_int_equal(reverse(&b, &q, &c->arena, &r), OK);
    if (!r.dx[0])
        print_error("%s has no gradient\n", op_of(y)->name);
    assert_non_null(r.dx[0]);
    graph_return(g, 2, (Node *[]){ y, r.dx[0] }, NULL);
    return g;
}

static bool close_to(double got, double want, double tolerance)
{
    return fabs(got - want) <= tolerance * (1 + fabs(want));
}

static void compare(Context *c, size_t i, DType dtype, double tolerance)
{
    const Stored *s = &stored[i];
    const Tensor *x = tensor_from(c, dtype, s->rank, s->dims, s->x);
    Tensor *out[2];
    assert_int_equal(evaluate(loss_graph(c, s, dtype), NULL, &c->heap, &x, out), OK);
    if (!close_to(tensor_get_f64(out[0], 0), s->loss, tolerance)) {
        print_error("stored %zu: loss %.9g, not %.9g\n", i, tensor_get_f64(out[0], 0), s->loss);
        assert_true(false);
    }
    assert_int_equal(tensor_elements(out[1]), tensor_elements(x));
    for (int64_t k = 0; k < tensor_elements(x); k++)
        if (!close_to(tensor_get_f64(out[1], k), s->gradient[k], tolerance)) {
            print_error("stored %zu: gradient %d is %.9g, not %.9g\n", i, (int)k, tensor_get_f64(out[1], k),
                        s->gradient[k]);
            assert_true(false);
        }
    tensor_drop(&c->heap, out[0]);
    tensor_drop(&c->heap, out[1]);
}

static Status stored_answers(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(stored); i++) {
        compare(c, i, F32, 2e-6);
        compare(c, i, F64, 2e-6);
    }
    return OK;
}

static void losses_agree_with_pytorch(void **state)
{
    (void)state;
    with_context(stored_answers);
}

/* A class that is not there is an error, also one below 0; the index to ignore is not. */
static Status classes_are_checked(void *arg)
{
    static const struct {
        double label;
        Status status;
    } cases[] = { { 0, OK }, { 2, OK }, { -100, OK }, { 3, INVALID }, { -1, INVALID } };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        Graph *g = graph_new(&c->ir, &c->arena, "f");
        Build b = build_at_end(g);
        const double x[3] = { 0 }, y[] = { cases[i].label };
        Node *in_[] = { build_const(&b, tensor_from(c, F32, 2, (int64_t[]){ 1, 3 }, x)),
                        build_const(&b, tensor_from(c, I64, 1, (int64_t[]){ 1 }, y)) };
        Node *loss = build_node(&b, OP_cross_entropy, NULL, 2, in_);
        graph_return(g, 1, &loss, NULL);
        Tensor *out = NULL;
        assert_int_equal(evaluate(g, NULL, &c->heap, NULL, &out), cases[i].status);
        if (out)
            tensor_drop(&c->heap, out);
    }
    return OK;
}

static void wrong_classes_are_errors(void **state)
{
    (void)state;
    with_context(classes_are_checked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_agree_with_pytorch),
        cmocka_unit_test(wrong_classes_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
