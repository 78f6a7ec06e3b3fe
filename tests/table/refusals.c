/* Targets that are no classes: lowered losses refuse what the losses themselves refuse, in the same words, and take
 * what they take. */
#include <string.h>

#include "ir/text/parse.h"
#include "passes/pipelines.h"
#include "testing.h"

enum { CLASSES = 7, SAMPLES = 5 };

static const char *const losses[] = {
    "cross_entropy(%s, %t, axis=1)",
    "cross_entropy(%s, %t, axis=1, label_smoothing=0.125, ignore_index=3)",
    "cross_entropy(%s, %t, %w, axis=1, reduction=sum)",
    "nll(%s, %t, axis=1)",
    "softmax_cross_entropy_loss(%s, %t)",
    "softmax_cross_entropy_loss(%s, %t, %w, ignore_index=-5)",
    "negative_log_likelihood_loss(%s, %t, %w)",
};

static const int64_t targets[] = {
    0, CLASSES - 1, CLASSES, CLASSES + 1, -1, -5, -CLASSES, -CLASSES - 1, -100, 1l << 40
};

/* What a graph gives, or how it complains. */
static const char *outcome(Context *c, Graph *g, const Tensor *const *inputs, const Tensor **given)
{
    Tensor *results[2] = { NULL, NULL };
    const EvalOptions options = { .seed = 0 };
    c->last = "";
    *given = NULL;
    if (evaluate(g, &options, &c->heap, inputs, results) != OK)
        return arena_printf(&c->arena, "%s", c->last);
    *given = results[0];
    return "";
}

static Status check_loss(Context *c, const char *loss, int64_t target, int *refused, int *picks)
{
    SourceMap source;
    Module *m;
    const char *text = arena_printf(&c->arena,
                                    "graph @f(%%x: f32[%d,%d], %%t: i64[%d], %%w: f32[%d]) -> (%%loss) {\n"
                                    "    %%s: f32[%d,%d] = tanh(%%x)\n"
                                    "    %%loss: f32[] = %s\n}\n",
                                    SAMPLES, CLASSES, SAMPLES, CLASSES, SAMPLES, CLASSES, loss);
    TRY(parse_module(&c->ir, &c->arena, str(text), "loss.qir", NULL, &source, &m));
    Graph *g = m->graphs[0], *lowered = graph_copy(g, &c->arena);
    TRY(pipeline_run(pipeline_find("lower"), lowered, NULL));
    for (Node *n = walk_first(lowered); n; n = walk_next(lowered, n))
        *picks += n->op == OP_gather_elements && n->graph != lowered;
    const Tensor *inputs[] = { tensor_new(&c->arena, g->inputs[0]->type), tensor_new(&c->arena, g->inputs[1]->type),
                               tensor_new(&c->arena, g->inputs[2]->type) };
    for (int i = 0; i < SAMPLES * CLASSES; i++)
        tensor_set_f64((Tensor *)(uintptr_t)inputs[0], i, 0.25 * (i % 9) - 1);
    for (int i = 0; i < SAMPLES; i++)
        tensor_set_i64((Tensor *)(uintptr_t)inputs[1], i, i == 3 ? target : i);
    for (int i = 0; i < CLASSES; i++)
        tensor_set_f64((Tensor *)(uintptr_t)inputs[2], i, 0.5 + i);
    const Tensor *want, *got;
    const char *said = outcome(c, g, inputs, &want), *says = outcome(c, lowered, inputs, &got);
    if (strcmp(said, says) != 0 || (want && !tensor_same(want, got)))
        print_error("%s, target %lld: \"%s\", lowered \"%s\"\n", loss, (long long)target, said, says);
    assert_string_equal(said, says);
    assert_true(!want == !got && (!want || tensor_same(want, got)));
    *refused += !want;
    return OK;
}

static Status check_losses(void *context)
{
    int refused = 0, picks = 0;
    for (size_t i = 0; i < COUNT(losses); i++)
        for (size_t k = 0; k < COUNT(targets); k++)
            TRY(check_loss(context, losses[i], targets[k], &refused, &picks));
    printf("%d refused, %d picks in regions\n", refused, picks);
    assert_true(refused > 20 && picks > 40);
    return OK;
}

static void bad_targets(void **state)
{
    (void)state;
    with_context(check_losses);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(bad_targets) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
