/* Words of ours said in standard words mean the same, to rounding: every sample of every word that has no ONNX name. */
#include <math.h>

#include "frontends/onnx/write/encode.h"
#include "frontends/onnx/write/standard_words.h"
#include "ir/text/print.h"
#include "ops/card/eval.h"
#include "support/samples.h"
#include "testing.h"

static Tensor *value_of(Context *c, Graph *g)
{
    Tensor *t = NULL;
    return evaluate(g, NULL, &c->heap, NULL, &t) == OK ? t : NULL;
}

/* Sums go in another order: the bound grows with what was added up. */
static bool close_enough(const Tensor *a, const Tensor *b)
{
    const double eps = a->type->dtype == F16 ? 4e-3 : a->type->dtype == BF16 ? 3e-2 : 2e-5;
    double largest = 1;
    bool same = a->type == b->type;
    for (int64_t i = 0; same && i < tensor_elements(a); i++)
        largest = fmax(largest, isfinite(tensor_get_f64(a, i)) ? fabs(tensor_get_f64(a, i)) : 0);
    for (int64_t i = 0; same && i < tensor_elements(a); i++) {
        const double x = tensor_get_f64(a, i), y = tensor_get_f64(b, i);
        same = x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= eps * largest;
    }
    return same;
}

static const char *text_of(Context *c, const Graph *g)
{
    Text t;
    text_open(&t, &c->arena);
    (void)print_graph(&t, g, NULL);
    return text_get(&t);
}

static int compare(CardTour *k, Graph *g, int variant)
{
    Context *c = k->c;
    Map left;
    Graph *plain = graph_copy(g, &c->arena);
    c->last = NULL;
    map_open(&left, &c->arena);
    if (standardize_graph(plain, &left) != OK)
        return print_error("%s, variant %d: %s\n", k->def->name, variant, c->last), 1;
    if (left.n)
        return 0;
    Tensor *want = value_of(c, g), *got = value_of(c, plain);
    const bool same = want && got && close_enough(want, got);
    if (!same)
        print_error("%s, variant %d: %s\n%s\n%s\n", k->def->name, variant, c->last ? c->last : "", text_of(c, g),
                    text_of(c, plain));
    tensor_drop(&c->heap, want);
    tensor_drop(&c->heap, got);
    k->said++;
    return !same;
}

static Status check_op(void *arg)
{
    CardTour *k = arg;
    int bad = 0;
    for (int v = 0; k->def->mode == MODE_PURE && v < k->def->n_variants; v++) {
        Node *y = sample_of(k->c, k->def, v);
        assert_non_null(y);
        Graph *g = y->graph;
        Build b = build_at_end(g);
        Node *first = build_part(&b, y, 0);
        if (encode_is_standard(y, ONNX_OPSET_NEWEST) || first->type->kind != TYPE_TENSOR)
            continue;
        graph_return(g, 1, &first, NULL);
        k->n++;
        bad += compare(k, g, v);
    }
    return bad ? INVALID : OK;
}

static void standard_words_mean_the_same(void **state)
{
    CardTour t = { .n = 0 };
    (void)state;
    const int bad = each_card(&t, check_op);
    print_message("%d of %d samples without an ONNX name have standard words\n", t.said, t.n);
    assert_int_equal(bad, 0);
    assert_true(t.said > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(standard_words_mean_the_same) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
