/* The first-order change by each quantizer against what happens when it is taken out, one at a time. */
#include <math.h>
#include <string.h>

#include "ir/role.h"
#include "ops/card/eval.h"
#include "passes/pipelines.h"
#include "passes/ptq/weigh.h"
#include "support/language.h"
#include "unit/check.h"

enum { QUANTIZERS = 3 };

/* Two layers on codes: fine ones of the data, coarse ones of the first weight, middling ones of the second. */
static const char model[] =
    "graph @f(%x: f32[4,3], state %w: f32[3,3] trained, state %v: f32[3,2] trained) -> (%loss) {\n"
    "    const %fine: f32[] = 0.01\n    const %coarse: f32[] = 0.25\n    const %middle: f32[] = 0.05\n"
    "    %x.codes: i8[4,3] = quantize_linear(%x, %fine, output_dtype=i8) ours\n"
    "    %xh: f32[4,3] = dequantize_linear(%x.codes, %fine) ours\n"
    "    %w.codes: i8[3,3] = quantize_linear(%w, %coarse, output_dtype=i8) ours\n"
    "    %wh: f32[3,3] = dequantize_linear(%w.codes, %coarse) ours\n"
    "    %v.codes: i8[3,2] = quantize_linear(%v, %middle, output_dtype=i8) ours\n"
    "    %vh: f32[3,2] = dequantize_linear(%v.codes, %middle) ours\n"
    "    %a: f32[4,3] = matmul(%xh, %wh)\n    %r: f32[4,3] = relu(%a)\n    %y: f32[4,2] = matmul(%r, %vh)\n"
    "    %z: f32[4,2] = mul(%y, %y)\n    %loss: f32[] = reduce_mean(%z, keepdims=false)\n"
    "}\n";

typedef struct Trial {
    Language l;
    Graph *g;
    Heap heap;
    Tensor *of[8]; /* values of the inputs */
} Trial;

static bool is_factor(const Node *n)
{
    return strncmp(n->name, WEIGH_PREFIX, strlen(WEIGH_PREFIX)) == 0;
}

static void open_trial(Trial *t)
{
    static const char *const outputs[] = { "loss" };
    const LossSpec loss = { .kind = LOSS_OUTPUT, .outputs = outputs, .n_outputs = 1, .factor = 1 };
    const Recipe recipe = { .losses = &loss, .n_losses = 1 };
    const PipelineOptions options = { .pass = { .recipe = &recipe } };
    language_open(&t->l);
    heap_open(&t->heap, &t->l.memory);
    t->g = language_parse(&t->l, model, NULL)->graphs[0];
    check_that(pipeline_run(pipeline_find("sensitivity"), t->g, &options) == OK, "%s", text_get(&t->l.messages));
    assert_true(t->g->n_inputs <= COUNT(t->of));
    for (size_t i = 0; i < t->g->n_inputs; i++) {
        t->of[i] = tensor_new(&t->l.arena, t->g->inputs[i]->type);
        for (int64_t k = 0; k < tensor_elements(t->of[i]); k++)
            tensor_set_f64(t->of[i], k, is_factor(t->g->inputs[i]) ? 1 : 0.4 + 0.31 * sin(5.0 * (double)k + (double)i));
    }
}

/* The loss, and of each factor its gradient. */
static double run(Trial *t, double *gradient)
{
    Tensor *results[8];
    assert_true(graph_n_results(t->g) <= 8);
    const EvalOptions how = { .seed = 0 };
    assert_int_equal(evaluate(t->g, &how, &t->heap, (const Tensor *const *)t->of, results), OK);
    double loss = NAN;
    for (int i = 0; i < graph_n_results(t->g); i++) {
        const RoleMark mark = graph_result_mark(t->g, i);
        if (strcmp(graph_result_name(t->g, i), "loss") == 0)
            loss = tensor_get_f64(results[i], 0);
        for (size_t k = 0; gradient && mark.role == RESULT_gradient && k < t->g->n_inputs; k++)
            if (strcmp(t->g->inputs[k]->name, mark.of) == 0)
                gradient[k] = tensor_get_f64(results[i], 0);
        tensor_drop(&t->heap, results[i]);
    }
    return loss;
}

static void ranks_as_one_off_at_a_time(void **state)
{
    Trial t;
    double gradient[8] = { 0 }, change[8] = { 0 };
    size_t n = 0, factors[8];
    (void)state;
    open_trial(&t);
    const double loss = run(&t, gradient);
    for (size_t i = 0; i < t.g->n_inputs; i++) {
        if (!is_factor(t.g->inputs[i]))
            continue;
        tensor_set_f64(t.of[i], 0, 0);
        change[i] = loss - run(&t, NULL);
        tensor_set_f64(t.of[i], 0, 1);
        factors[n++] = i;
        check_that(fabs(change[i] - gradient[i]) < 0.1 * fabs(change[i]), "%s: %g to first order, in truth %g",
                   t.g->inputs[i]->name, gradient[i], change[i]);
    }
    assert_int_equal(n, QUANTIZERS);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            assert_true((fabs(gradient[factors[i]]) < fabs(gradient[factors[k]])) ==
                        (fabs(change[factors[i]]) < fabs(change[factors[k]])));
    heap_close(&t.heap);
    language_close(&t.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_as_one_off_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
