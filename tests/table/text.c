/* A sample of every op as text: printed, parsed and printed it is the same, verified and evaluated it is what it was,
 * and so is a copy of it. */
#include "ir/text/print.h"
#include "ir/verify.h"
#include "support/samples.h"
#include "testing.h"

static const char *printed(Context *c, const Graph *g)
{
    Text t;
    text_open(&t, &c->arena);
    assert_int_equal(print_graph(&t, g, NULL), OK);
    return text_get(&t);
}

static bool same_value(Context *c, Graph *g, Graph *h)
{
    const EvalOptions options = { .seed = 3 };
    Tensor *a = NULL, *b = NULL;
    if (evaluate(g, &options, &c->heap, NULL, &a) != OK || evaluate(h, &options, &c->heap, NULL, &b) != OK)
        return false;
    const bool same = tensor_same(a, b);
    tensor_drop(&c->heap, a);
    tensor_drop(&c->heap, b);
    return same;
}

static const char *difference(Context *c, Graph *g)
{
    Module *m;
    const char *text = printed(c, g);
    if (parse_module(&c->ir, &c->arena, str(text), "sample.qir", NULL, NULL, &m) != OK)
        return c->last;
    if (strcmp(printed(c, m->graphs[0]), text) != 0)
        return "prints as another text when it was parsed";
    if (verify(m->graphs[0], NULL) != OK)
        return c->last;
    Graph *copy = graph_copy(g, &c->arena);
    if (strcmp(printed(c, copy), text) != 0)
        return "its copy prints as another text";
    if (!same_value(c, g, m->graphs[0]) || !same_value(c, g, copy))
        return "has another value when it was parsed or copied";
    return NULL;
}

static Status check_op(void *arg)
{
    CardTour *k = arg;
    int bad = 0;
    for (int v = 0; v < k->def->n_variants; v++) {
        Node *y = sample_of(k->c, k->def, v);
        assert_non_null(y);
        Graph *g = y->graph;
        graph_return(g, 1, &y, NULL);
        const char *why = difference(k->c, g);
        if (why)
            print_error("%s, variant %d: %s\n%s", k->def->name, v, why, printed(k->c, g)), bad++;
        k->n++;
    }
    return bad ? INVALID : OK;
}

static void samples_are_text(void **state)
{
    CardTour t = { .n = 0 };
    (void)state;
    const int bad = each_card(&t, check_op);
    print_message("%d samples\n", t.n);
    assert_true(t.n > 1000);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(samples_are_text) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
