/* What a folded norm computes, why others stay, and what a step makes of it. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "ops/card/eval.h"
#include "passes/engine/results.h"
#include "passes/engine/trial.h"
#include "passes/pipelines.h"
#include "passes/recipe/choices.h"
#include "support/language.h"
#include "unit/check.h"

static const char residual[] = /* as in ResNet-18: a projection beside two convolutions */
    "graph @f(%x: f32[2,3,6,6]) -> (%z) {\n"
    "    param %c1: f32[8,3,3,3] = uniform(seed=1)\n    param %c2: f32[8,8,3,3] = uniform(seed=2)\n"
    "    param %c3: f32[8,3,1,1] = uniform(seed=3)\n"
    "    param %s1: f32[8] = uniform(seed=4, scale=2)\n    param %b1: f32[8] = normal(seed=5)\n"
    "    param %m1: f32[8] = normal(seed=6)\n    param %v1: f32[8] = ones\n"
    "    param %s2: f32[8] = uniform(seed=7, scale=2)\n    param %b2: f32[8] = normal(seed=8)\n"
    "    param %m2: f32[8] = normal(seed=9)\n    param %v2: f32[8] = [1, 2, 3, 0.5, 0.25, 7, 1e-3, 100]\n"
    "    param %s3: f32[8] = uniform(seed=10, scale=2)\n    param %b3: f32[8] = normal(seed=11)\n"
    "    param %m3: f32[8] = normal(seed=12)\n    param %v3: f32[8] = [1, 2, 3, 0.5, 0.25, 7, 1e-2, 100]\n"
    "    %y1: f32[2,8,3,3] = conv(%x, %c1, pads=[1,1,1,1], strides=[2,2]) !1\n"
    "    %n1: f32[2,8,3,3] = batch_normalization(%y1, %s1, %b1, %m1, %v1) !2\n"
    "    %r1: f32[2,8,3,3] = relu(%n1) !3\n"
    "    %y2: f32[2,8,3,3] = conv(%r1, %c2, pads=[1,1,1,1]) !4\n"
    "    %n2: f32[2,8,3,3] = batch_normalization(%y2, %s2, %b2, %m2, %v2) !5\n"
    "    %y3: f32[2,8,3,3] = conv(%x, %c3, strides=[2,2]) !6\n"
    "    %n3: f32[2,8,3,3] = batch_normalization(%y3, %s3, %b3, %m3, %v3, epsilon=1e-3) !7\n"
    "    %a: f32[2,8,3,3] = add(%n2, %n3) !8\n"
    "    %z: f32[2,8,3,3] = relu(%a) !9\n"
    "}\n";

static const char depthwise[] = /* as in MobileNetV2 */
    "graph @f(%x: f32[2,4,5,5]) -> (%z) {\n"
    "    param %c1: f32[8,4,1,1] = uniform(seed=1)\n    param %c2: f32[8,1,3,3] = uniform(seed=2)\n"
    "    param %c3: f32[4,8,1,1] = uniform(seed=3)\n    param %k3: f32[4] = normal(seed=31)\n"
    "    param %s1: f32[8] = uniform(seed=4, scale=2)\n    param %b1: f32[8] = normal(seed=5)\n"
    "    param %m1: f32[8] = normal(seed=6)\n    param %v1: f32[8] = [1, 2, 3, 0.5, 0.25, 7, 1e-2, 100]\n"
    "    param %s2: f32[8] = uniform(seed=7, scale=2)\n    param %b2: f32[8] = normal(seed=8)\n"
    "    param %m2: f32[8] = normal(seed=9)\n    param %v2: f32[8] = ones\n"
    "    param %s3: f32[4] = uniform(seed=10, scale=2)\n    param %b3: f32[4] = normal(seed=11)\n"
    "    param %m3: f32[4] = normal(seed=12)\n    param %v3: f32[4] = [0.5, 0.25, 3, 9]\n"
    "    param %low: f32[] = 0 !20\n    param %high: f32[] = 6 !21\n"
    "    %y1: f32[2,8,5,5] = conv(%x, %c1) !1\n"
    "    %n1: f32[2,8,5,5] = batch_normalization(%y1, %s1, %b1, %m1, %v1) !2\n"
    "    %r1: f32[2,8,5,5] = clip(%n1, %low, %high) !3\n"
    "    %y2: f32[2,8,5,5] = conv(%r1, %c2, group=8, pads=[1,1,1,1]) !4\n"
    "    %n2: f32[2,8,5,5] = batch_normalization(%y2, %s2, %b2, %m2, %v2) !5\n"
    "    %r2: f32[2,8,5,5] = clip(%n2, %low, %high) !6\n"
    "    %y3: f32[2,4,5,5] = conv(%r2, %c3, %k3) !7\n"
    "    %n3: f32[2,4,5,5] = batch_normalization(%y3, %s3, %b3, %m3, %v3) !8\n"
    "    %z: f32[2,4,5,5] = add(%x, %n3) !9\n"
    "}\n";

static const char others[] = /* what grows, in groups, and products with a sum behind them or none */
    "graph @f(%x: f32[3,4,2,2], %m: f32[5,4]) -> (%z, %q) {\n"
    "    param %up: f32[4,3,2,2] = uniform(seed=1)\n    param %w1: f32[6,4] = uniform(seed=2)\n"
    "    param %k1: f32[6] = normal(seed=3)\n    param %w2: f32[6,3] = uniform(seed=4)\n"
    "    param %k2: f32[1,3] = normal(seed=5)\n    param %w3: f32[3,2] = uniform(seed=6)\n"
    "    param %s1: f32[6] = normal(seed=11)\n    param %b1: f32[6] = normal(seed=12)\n"
    "    param %m1: f32[6] = normal(seed=13)\n    param %v1: f32[6] = [1, 2, 0.5, 0.25, 3, 5]\n"
    "    param %s2: f32[6] = normal(seed=21)\n    param %b2: f32[6] = normal(seed=22)\n"
    "    param %m2: f32[6] = normal(seed=23)\n    param %v2: f32[6] = [1, 2, 0.5, 0.25, 3, 5]\n"
    "    param %s3: f32[3] = normal(seed=31)\n    param %b3: f32[3] = normal(seed=32)\n"
    "    param %m3: f32[3] = normal(seed=33)\n    param %v3: f32[3] = [1, 2, 0.5]\n"
    "    param %s4: f32[2] = normal(seed=41)\n    param %b4: f32[2] = normal(seed=42)\n"
    "    param %m4: f32[2] = normal(seed=43)\n    param %v4: f32[2] = [1, 2]\n"
    "    %y: f32[3,6,4,4] = conv_transpose(%x, %up, group=2, strides=[2,2]) !1\n"
    "    %z: f32[3,6,4,4] = batch_normalization(%y, %s1, %b1, %m1, %v1) !2\n"
    "    %g: f32[5,6] = gemm(%m, %w1, %k1, transB=true, alpha=0.5) !3\n"
    "    %n: f32[5,6] = batch_normalization(%g, %s2, %b2, %m2, %v2) !4\n"
    "    %h: f32[5,3] = matmul(%n, %w2) !5\n"
    "    %a: f32[5,3] = add(%h, %k2) !6\n"
    "    %o: f32[5,3] = batch_normalization(%a, %s3, %b3, %m3, %v3) !7\n"
    "    %p: f32[5,2] = matmul(%o, %w3) !8\n"
    "    %q: f32[5,2] = batch_normalization(%p, %s4, %b4, %m4, %v4) !9\n"
    "}\n";

/* ---- helpers ---- */

static Graph *parsed(Language *l, const char *text)
{
    Module *m = language_parse(l, text, NULL);
    check_that(m != NULL, "%s", text_get(&l->messages));
    return m->graphs[0];
}

static void run_pass(Language *l, Graph *g, const char *name, const Recipe *recipe)
{
    const PassOptions options = { .recipe = recipe };
    PassRun run = { .options = &options, .allowed = -1 };
    check_that(pass_run(pass_find(name), g, &run) == OK, "%s", text_get(&l->messages));
}

static Graph *chosen(Language *l, const char *text, const Recipe *recipe)
{
    Graph *g = parsed(l, text);
    run_pass(l, g, "choose-trainable", recipe);
    return g;
}

static size_t count_norms(Graph *g)
{
    size_t n = 0;
    for (Node *x = walk_first(g); x; x = walk_next(g, x))
        n += op_of(x)->statistics != 0;
    return n;
}

static const Tensor *value_of_input(const Node *n, Arena *arena)
{
    if (n->op == OP_state)
        return trial_initial(n, arena);
    Tensor *t = tensor_new(arena, n->type);
    Rng rng = { 7 };
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, 2 * rng_unit(&rng) - 1);
    return t;
}

/* The results of a graph whose states are at their first values. */
static Tensor **results_at_start(Language *l, Graph *g, Heap *heap)
{
    const Tensor **in = NEWS(&l->arena, const Tensor *, g->n_inputs);
    Tensor **out = NEWS(&l->arena, Tensor *, (size_t)graph_n_results(g));
    for (size_t i = 0; i < g->n_inputs; i++)
        in[i] = value_of_input(g->inputs[i], &l->arena);
    check_that(evaluate(g, NULL, heap, in, out) == OK, "%s", text_get(&l->messages));
    return out;
}

/* The largest difference of two results, in parts of the largest value. */
static double difference(const Tensor *a, const Tensor *b)
{
    double largest = 0, most = 0;
    assert_ptr_equal(a->type, b->type);
    for (int64_t i = 0; i < tensor_elements(a); i++) {
        largest = fmax(largest, fabs(tensor_get_f64(a, i)));
        most = fmax(most, fabs(tensor_get_f64(a, i) - tensor_get_f64(b, i)));
    }
    assert_true(largest > 0);
    return most / largest;
}

/* ---- values ---- */

static void compare(const char *text, const Recipe *recipe)
{
    Language l;
    Heap heap;
    language_open(&l);
    heap_open(&heap, &l.memory);
    Graph *before = chosen(&l, text, recipe), *after = chosen(&l, text, recipe);
    run_pass(&l, after, "fold-norms", recipe);
    assert_true(count_norms(before) > 0);
    assert_int_equal(count_norms(after), 0);
    Tensor **was = results_at_start(&l, before, &heap), **is = results_at_start(&l, after, &heap);
    for (int i = 0; i < graph_n_results(before); i++)
        check_that(difference(was[i], is[i]) < 2e-6, "result %d is off by %g", i, difference(was[i], is[i]));
    heap_close(&heap);
    language_close(&l);
}

static void values_stay(void **state)
{
    static const char *const texts[] = { residual, depthwise, others };
    static const char *const everything[] = { ".*" };
    const Recipe frozen = { .freeze = everything, .n_freeze = 1 };
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        compare(texts[i], NULL);
        compare(texts[i], &frozen);
    }
}

/* Computed in f64 and rounded once: in f32 the quotient alone would be another number. */
static void rounded_once(void **state)
{
    static const char text[] = "graph @f(%x: f32[1,1,1,1]) -> (%z) {\n"
                               "    param %w: f32[1,1,1,1] = 0.7\n    param %s: f32[1] = 0.1\n"
                               "    param %b: f32[1] = 0.3\n    param %m: f32[1] = 1.7\n    param %v: f32[1] = 3.3\n"
                               "    %y: f32[1,1,1,1] = conv(%x, %w) !1\n"
                               "    %z: f32[1,1,1,1] = batch_normalization(%y, %s, %b, %m, %v) !2\n"
                               "}\n";
    Language l;
    (void)state;
    language_open(&l);
    Graph *g = chosen(&l, text, NULL);
    run_pass(&l, g, "fold-norms", NULL);
    assert_int_equal(g->n_inputs, 3);
    const double k = (double)0.1f / sqrt((double)3.3f + (double)1e-5f);
    assert_true(tensor_get_f64(trial_initial(g->inputs[1], &l.arena), 0) == (double)(float)((double)0.7f * k));
    assert_true(tensor_get_f64(trial_initial(g->inputs[2], &l.arena), 0) ==
                (double)(float)((double)0.3f + (0 - (double)1.7f) * k));
    assert_string_equal(g->inputs[1]->name, "w");
    assert_string_equal(g->inputs[2]->name, "b");
    language_close(&l);
}

/* ---- what stays ---- */

typedef struct Left {
    const char *lines, *results, *why;
} Left;

static void check_left(const Left *x)
{
    static const char *const frozen[] = { "still" };
    Language l;
    Text text;
    language_open(&l);
    text_open(&text, &l.arena);
    const Recipe recipe = { .freeze = frozen, .n_freeze = strstr(x->lines, "%still") != NULL };
    text_printf(&text,
                "graph @f(%%x: f32[2,2,3,3], %%q: f32[4,2], %%r: f32[4,2,2]) -> (%s) {\n"
                "    param %%w: f32[2,2,1,1] = uniform(seed=1)\n    param %%u: f32[2,2] = uniform(seed=2)\n"
                "    param %%k: f32[2] = ones\n    param %%s: f32[2] = ones\n    param %%t: f32[2] = ones\n"
                "    param %%still: f32[2,2,1,1] = uniform(seed=3)\n    param %%k3: f32[3,1] = uniform(seed=4)\n"
                "    param %%m: f32[2] = zeros\n    param %%v: f32[2] = ones\n%s}\n",
                x->results, x->lines);
    Graph *g = chosen(&l, text_get(&text), &recipe);
    const size_t norms = count_norms(g);
    run_pass(&l, g, "fold-norms", &recipe);
    check_that(count_norms(g) == norms, "folded, although %s", x->why);
    check_that(strstr(text_get(&l.messages), x->why) != NULL, "not '%s', but:\n%s", x->why, text_get(&l.messages));
    language_close(&l);
}

#define CONV   "    %y: f32[2,2,3,3] = conv(%x, %w) !1\n"
#define NORMED "    %z: f32[2,2,3,3] = batch_normalization(%y, %s, %t, %m, %v) !9\n"

static void others_stay(void **state)
{
    static const Left list[] = {
        { "    %z: f32[2,2,3,3] = batch_normalization(%x, %s, %t, %m, %v) !9\n", "%z",
          "what it normalizes is no product with a weight" },
        { CONV NORMED, "%z, %y", "what it normalizes is read elsewhere too" },
        { CONV NORMED "    %a: f32[2,2,3,3] = conv(%x, %w) !3\n", "%z, %a", "the weight before it is read elsewhere" },
        { CONV NORMED "    %a: f32[2,2,3,3] = batch_normalization(%z, %s, %t, %m, %v) !9\n", "%a",
          "its scale is read elsewhere too" },
        { CONV NORMED "    %a: f32[2] = exp(%t) !3\n", "%z, %a", "its shift is read elsewhere too" },
        { "    %y: f32[2,2,3,3] = conv(%x, %still) !1\n" NORMED, "%z", "its scale is trained, and the weight" },
        { "    %c: f32[2,2,1,1] = exp(%w) !1\n    %y: f32[2,2,3,3] = conv(%x, %c) !1\n" NORMED, "%z",
          "the weight before it is computed" },
        { "    %c: f32[2] = exp(%k) !1\n    %y: f32[2,2,3,3] = conv(%x, %w, %c) !1\n" NORMED, "%z",
          "the bias before it is computed" },
        { "    %y: f32[2,2,3,3] = conv(%x, %w, %k) !1\n" NORMED "    %a: f32[2] = exp(%k) !3\n", "%z, %a",
          "the bias before it is read elsewhere too" },
        { "    %c: f32[2] = exp(%s) !1\n" CONV "    %z: f32[2,2,3,3] = batch_normalization(%y, %c, %t, %m, %v) !9\n",
          "%z", "its own operands are computed" },
        { "    %p: f32[2,2,3,3] = conv(%x, %w) !1\n    %y: f32[2,2,3,3] = add(%p, %k3) !2\n" NORMED, "%z",
          "the bias before it is not one number for each channel" },
        { "    %c: f32[2,2,3,3] = conv(%x, %w, %k) !1\n    %y: f32[2,2,3,3] = add(%c, %k3) !2\n" NORMED, "%z",
          "two biases are added before it" },
        { "    %y: f32[4,2,2] = matmul(%r, %u) !1\n"
          "    %z: f32[4,2,2] = batch_normalization(%y, %s, %t, %m, %v) !9\n",
          "%z", "what it normalizes is no product with a weight" },
        { "    %y: f32[4,2] = gemm(%q, %u, %k, beta=0.5) !1\n"
          "    %z: f32[4,2] = batch_normalization(%y, %s, %t, %m, %v) !9\n",
          "%z", "the bias before it is multiplied by beta" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(list); i++)
        check_left(&list[i]);
}

/* In whatever form a file has them: their running statistics are what is folded. */
static void training_form_too(void **state)
{
    Language l;
    (void)state;
    language_open(&l);
    Graph *g = chosen(&l, residual, NULL), *plain = chosen(&l, residual, NULL);
    run_pass(&l, g, "enter-training", NULL);
    run_pass(&l, g, "fold-norms", NULL);
    run_pass(&l, plain, "fold-norms", NULL);
    assert_int_equal(count_norms(g), 0);
    for (size_t i = 0; i < plain->n_inputs; i++) {
        const Node *n = input_named(g, plain->inputs[i]->name);
        assert_non_null(n);
        if (n->op == OP_state)
            assert_true(tensor_same(trial_initial(n, &l.arena), trial_initial(plain->inputs[i], &l.arena)));
    }
    language_close(&l);
}

/* ---- what is said, and the step ---- */

static void choices_follow(void **state)
{
    Language l;
    Choices choices = { 0 };
    const Recipe recipe = { .choices = &choices };
    (void)state;
    language_open(&l);
    Graph *g = chosen(&l, others, &recipe);
    run_pass(&l, g, "fold-norms", &recipe);
    assert_int_equal(choice_find(&choices, "up")->kind, CHOICE_TRAINED);
    assert_int_equal(choice_find(&choices, "b1")->kind, CHOICE_TRAINED); /* the bias of the convolution now */
    assert_int_equal(choice_find(&choices, "k1")->kind, CHOICE_TRAINED);
    static const char *const gone[] = { "s1", "m1", "v1", "s2", "b2", "m2", "v2", "b3" };
    for (size_t i = 0; i < COUNT(gone); i++)
        assert_int_equal(choice_find(&choices, gone[i])->kind, CHOICE_FOLDED);
    assert_string_equal(choice_find(&choices, "b2")->reason, "part of w1");
    language_close(&l);
}

static int result_named(const Graph *g, const char *name)
{
    for (int i = 0; i < graph_n_results(g); i++) {
        const char *other = graph_result_name(g, i) ? graph_result_name(g, i) : graph_result(g, i)->name;
        if (other && strcmp(other, name) == 0)
            return i;
    }
    return -1;
}

/* The loss of one step; states become what they are behind it. */
static double one_step(Language *l, Graph *g, Heap *heap, const Tensor **in)
{
    Tensor **out = NEWS(&l->arena, Tensor *, (size_t)graph_n_results(g));
    check_that(evaluate(g, NULL, heap, in, out) == OK, "%s", text_get(&l->messages));
    for (size_t i = 0; i < g->n_inputs; i++) {
        const int k = g->inputs[i]->op == OP_state ? result_named(g, g->inputs[i]->name) : -1;
        if (k >= 0)
            in[i] = out[k];
    }
    return tensor_get_f64(out[result_named(g, "loss")], 0);
}

/* Steps lower the loss, and what was folded is what they move. */
static void steps_work(void **state)
{
    enum { STEPS = 20 };
    static const LossSpec loss = { .kind = LOSS_MSE, .factor = 1 };
    Language l;
    Heap heap;
    Choices choices = { 0 };
    const Recipe recipe = { .choices = &choices, .frozen_norms = true, .losses = &loss, .n_losses = 1 };
    const PipelineOptions options = { .pass = { .recipe = &recipe } };
    double losses[STEPS];
    (void)state;
    language_open(&l);
    heap_open(&heap, &l.memory);
    Graph *g = parsed(&l, depthwise);
    check_that(pipeline_run(pipeline_find("train-model"), g, &options) == OK, "%s", text_get(&l.messages));
    run_pass(&l, g, "fold-norms", &recipe);
    assert_int_equal(count_norms(g), 0);
    check_that(pipeline_run(pipeline_find("train-step"), g, &options) == OK, "%s", text_get(&l.messages));
    const Tensor **in = NEWS(&l.arena, const Tensor *, g->n_inputs), *first = NULL;
    for (size_t i = 0; i < g->n_inputs; i++) {
        in[i] = value_of_input(g->inputs[i], &l.arena);
        first = strcmp(g->inputs[i]->name, "b1") == 0 ? in[i] : first;
    }
    for (int i = 0; i < STEPS; i++)
        losses[i] = one_step(&l, g, &heap, in);
    check_that(losses[STEPS - 1] < losses[0], "%g is not below %g", losses[STEPS - 1], losses[0]);
    assert_non_null(first);
    for (size_t i = 0; i < g->n_inputs; i++)
        assert_false(strcmp(g->inputs[i]->name, "b1") == 0 && tensor_same(in[i], first));
    heap_close(&heap);
    language_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_stay),       cmocka_unit_test(rounded_once),   cmocka_unit_test(others_stay),
        cmocka_unit_test(training_form_too), cmocka_unit_test(choices_follow), cmocka_unit_test(steps_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
