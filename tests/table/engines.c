/* An engine, cpu, against the reference: every stored model that trains, by several recipes, with one to three threads, and
 * with each way of making values again, whole, in parts, with an eval in between and a gradient of the host's, accumulated, and skipped.  Every state, every
 * gradient and every output has the same bits. */
#include <math.h>
#include <string.h>

#include "api/hall/lower.h"
#include "api/make/step.h"
#include "support/seed.h"
#include "support/stored.h"

#ifdef SWEEP /* engines_sweep.c: each recipe lowered in all ways */
enum { WAYS = REMATS };
#else
enum { WAYS = 1 };
#endif

#ifndef OTHER /* simcuda/engines.c: another one, by some recipes of some models, whose kernels are compiled first */
#define OTHER "cpu"
enum { EVERY = 1, EVERY_RECIPE = 1 };
#endif

enum { CLASSES = 5, SIDES = 2 };

typedef struct Case {
    Stored *s;
    const char *recipe;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    qcc_session *session[SIDES]; /* of the reference, of cpu */
    qcc_tensor *data;
} Case;

static const char *const recipes[] = {
    "--optimizer adamw --lr 1e-3",
    "--optimizer sgd:momentum=0.9 --lr 1e-2 --clip-norm 0.5 --ema 0.9",
    "--optimizer adamw --lr 1e-3 --amp bf16",
    "--optimizer adam --lr 1e-3 --amp fp16 --loss-scale dynamic --clip-norm 1",
    "--optimizer lion --lr 1e-4 --clip-value 0.01",
    "--optimizer sgd --lr 1e-2 --accumulate 2 --batch 4",
};

static int64_t seen, compared, programs, skipped, trained;

static void draw_data(Case *k)
{
    k->data = NEWS(&k->s->c.arena, qcc_tensor, qcc_step_n_inputs(k->step) + 1);
    for (size_t i = 0; i < qcc_step_n_inputs(k->step); i++) {
        const Value *v = &k->step->inputs[i];
        k->data[i] = stored_draw(k->s, v->name, v->type, CLASSES);
    }
}

/* ---- the same bits ---- */

static void same(Case *k, const char *what, const char *name, const Tensor *a, const Tensor *b)
{
    HOLDS(k, !a == !b, "%s: %s %s is there on one engine alone\n", k->recipe, what, name);
    if (!a)
        return;
    compared++;
    HOLDS(k, tensor_same(a, b), "%s: %s %s differs\n", k->recipe, what, name);
}

static void same_states(Case *k)
{
    size_t n[SIDES];
    State *states[SIDES];
    for (int i = 0; i < SIDES; i++)
        states[i] = session_states(k->session[i]->run, &n[i]);
    assert_int_equal(n[0], n[1]);
    for (size_t i = 0; i < n[0]; i++) {
        const Tensor *value[SIDES];
        for (int e = 0; e < SIDES; e++)
            assert_int_equal(session_value(k->session[e]->run, &states[e][i], &value[e]), OK);
        same(k, "state", states[0][i].name, value[0], value[1]);
    }
}

static void same_named(Case *k, const char *name)
{
    qcc_tensor value[SIDES] = { { .size = sizeof(qcc_tensor) }, { .size = sizeof(qcc_tensor) } };
    for (int e = 0; e < SIDES; e++)
        MUST(k, qcc_view(k->session[e], name, &value[e]));
    same(k, "value", name, stored_tensor(k->s, &value[0]), stored_tensor(k->s, &value[1]));
}

static void same_gradients(Case *k)
{
    size_t n;
    const State *states = session_states(k->session[0]->run, &n);
    for (size_t i = 0; i < n; i++) {
        const char *name = session_gradient_name(k->session[0]->run, &states[i]);
        if (name)
            same_named(k, name);
    }
}

static void same_outputs(Case *k)
{
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    for (size_t i = 0; i < qcc_n_outputs(k->model); i++) {
        MUST(k, qcc_output(k->model, i, &v));
        same_named(k, v.name);
    }
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Both engines run the same; returns whether the states changed. */
static bool run(Case *k, unsigned what)
{
    qcc_result r[SIDES] = { { .size = sizeof(qcc_result) }, { .size = sizeof(qcc_result) } };
    for (int e = 0; e < SIDES; e++)
        MUST(k, qcc_run(k->session[e], what, &r[e]));
    HOLDS(k,
          same_number(r[0].loss, r[1].loss) && same_number(r[0].grad_norm, r[1].grad_norm) &&
              same_number(r[0].lr, r[1].lr) && r[0].applied == r[1].applied,
          "%s: loss %g and %g, norm %g and %g\n", k->recipe, r[0].loss, r[1].loss, r[0].grad_norm, r[1].grad_norm);
    HOLDS(k, r[0].finite == r[1].finite && same_number(r[0].next_loss_scale, r[1].next_loss_scale),
          "%s: scale %g, %g\n", k->recipe, r[0].next_loss_scale, r[1].next_loss_scale);
    return r[0].applied;
}

/* ---- what is run ---- */

static void whole(Case *k)
{
    trained += run(k, QCC_STEP);
    same_states(k);
    same_gradients(k);
    same_outputs(k);
}

/* The host halves a gradient, and looks at @eval while the step is under way. */
static void in_parts(Case *k)
{
    const char *name = NULL;
    size_t n;
    run(k, QCC_FORWARD);
    if (!strstr(k->recipe, "--accumulate")) { /* whose @eval takes a part of the batch */
        run(k, QCC_EVAL);
        same_outputs(k);
    }
    run(k, QCC_BACKWARD);
    same_gradients(k);
    const State *states = session_states(k->session[0]->run, &n);
    for (size_t i = 0; i < n && !name; i++)
        name = session_gradient_name(k->session[0]->run, &states[i]);
    for (int e = 0; e < SIDES && name; e++) {
        qcc_tensor q = { .size = sizeof(qcc_tensor) };
        MUST(k, qcc_view(k->session[e], name, &q));
        const Tensor *t = stored_tensor(k->s, &q);
        Tensor *half = tensor_new(&k->s->c.arena, t->type);
        for (int64_t i = 0; i < tensor_elements(t); i++)
            tensor_set_f64(half, i, 0.5 * tensor_get_f64(t, i));
        q.data = half->data;
        MUST(k, qcc_put(k->session[e], name, &q));
    }
    trained += run(k, QCC_UPDATE);
    same_states(k);
}

static void in_sums(Case *k)
{
    for (int i = 0; i < 3; i++)
        run(k, QCC_FORWARD | QCC_BACKWARD | QCC_ACCUMULATE);
    same_gradients(k);
    trained += run(k, QCC_UPDATE);
    same_states(k);
}

/* What is whole on the reference is in parts on cpu. */
static void whole_and_in_parts(Case *k)
{
    qcc_result r[SIDES] = { { .size = sizeof(qcc_result) }, { .size = sizeof(qcc_result) } };
    MUST(k, qcc_run(k->session[0], QCC_STEP, &r[0]));
    MUST(k, qcc_run(k->session[1], QCC_FORWARD, NULL));
    MUST(k, qcc_run(k->session[1], QCC_BACKWARD, NULL));
    MUST(k, qcc_run(k->session[1], QCC_UPDATE, &r[1]));
    HOLDS(k, same_number(r[0].loss, r[1].loss), "%s: in parts the loss is %g, not %g\n", k->recipe, r[1].loss,
          r[0].loss);
    same_states(k);
}

/* Gradients overflow: nothing changes but the scale. */
static void overflow(Case *k)
{
    float huge = 0x1p100f;
    const qcc_tensor scale = { sizeof(qcc_tensor), QCC_F32, 0, { 0 }, &huge, sizeof huge };
    for (int e = 0; e < SIDES; e++)
        MUST(k, qcc_put(k->session[e], "loss_scale", &scale));
    skipped += !run(k, QCC_STEP);
    same_states(k);
}

/* ---- programs ---- */

static void check_programs(Case *k)
{
    for (size_t i = 0; i < k->step->module->n_graphs; i++) {
        const Graph *g = k->step->module->graphs[i];
        const Lowered l = lower_graph_for(g, NULL, &k->cx->lowering, &k->s->c.arena);
        HOLDS(k, l.program, "%s: @%s has no program: %s\n", k->recipe, g->name, l.why);
        const char *wrong = program_check(l.program, &k->s->c.arena);
        HOLDS(k, !wrong, "%s: @%s: %s\n", k->recipe, g->name, wrong);
        programs++;
    }
}

static Status check_guarded(void *thing)
{
    check_programs(thing);
    return OK;
}

static void go_through(Case *k, int threads, Remat remat)
{
    static const char *const devices[SIDES] = { "reference", OTHER };
    const qcc_context_options options = {
        .size = sizeof options, .report = stored_report, .user = k->s, .threads = threads, .exact = 1
    };
    const qcc_source source = qcc_file(k->s->path);
    MUST(k, qcc_open(&options, &k->cx));
    k->cx->lowering.remat = remat; /* what is made again has the same bits */
    MUST(k, qcc_read(k->cx, &source, NULL, &k->model));
    MUST(k, qcc_compile(k->model, k->recipe, &k->step));
    assert_int_equal(guarded(k->step->module->ir->memory, check_guarded, k), OK);
    draw_data(k);
    for (int e = 0; e < SIDES; e++) {
        const qcc_session_options o = { sizeof o, devices[e] };
        MUST(k, qcc_start(k->step, &o, &k->session[e]));
        for (size_t i = 0; i < qcc_step_n_inputs(k->step); i++)
            MUST(k, qcc_bind(k->session[e], k->step->inputs[i].name, &k->data[i]));
    }
    whole(k);
    in_parts(k);
    in_sums(k);
    if (strstr(k->recipe, "dynamic"))
        overflow(k);
    whole_and_in_parts(k);
    whole(k);
    qcc_close(k->cx);
}

static Status visit(void *stored)
{
    if (seen++ % EVERY)
        return OK;
    for (size_t i = (size_t)(seen / EVERY) % EVERY_RECIPE; i < COUNT(recipes); i += EVERY_RECIPE) {
        Case k = { .s = stored, .recipe = recipes[i] };
        const uint64_t turn = seed_of(k.s->name, i);
        for (uint64_t r = 0; r < WAYS; r++) /* ways to lower it, each with its number of threads */
            go_through(&k, 1 + (int)((turn + r) % 3), (Remat)((turn + 2 * r) % REMATS));
    }
    return OK;
}

static void stored_models(void **state)
{
    size_t models = 0;
    (void)state;
    assert_int_equal(stored_each("/tests/data/exports/*-*.onnx", NULL, NULL, visit, &models), 0);
    print_message("%zu models, %d programs, %d values compared, %d updates, %d skipped\n", models, (int)programs,
                  (int)compared, (int)trained, (int)skipped);
    const int64_t share = EVERY * EVERY_RECIPE;
    assert_true(models >= 57 && programs > WAYS * 600 / share && compared > WAYS * 50000 / share &&
                trained > WAYS * 1000 / share && skipped >= WAYS * 20 / share / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(stored_models) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
