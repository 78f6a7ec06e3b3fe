/* Steps of a small model built by the passes, run, and held to the same steps written out as a loop. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "passes/pipelines.h"
#include "runtime/session/session.h"
#include "support/language.h"
#include "support/recipe.h"
#include "unit/check.h"

enum { ROWS = 8, WIDTH = 3, STEPS = 20, NUMBERS = WIDTH + 1 };

static const char model[] =
    "graph @step(%%x: f32[%d,3], %%t: f32[%d], state %%w: f32[3] = [0.5, -1, 2] trained, state %%b: f32[] = 0.25 "
    "trained, state %%seen: f32[]) -> (%%loss, %%seen = %%more) {\n"
    "    %%h: f32[%d] = matmul(%%x, %%w)\n"
    "    %%y: f32[%d] = add(%%h, %%b)\n"
    "    %%loss: f32[] = mse(%%y, %%t)\n"
    "    %%mean: f32[] = reduce_mean(%%x, keepdims=false)\n"
    "    %%half: f32[] = add(%%seen, %%mean)\n"
    "    const %%k: f32[] = 0.5\n"
    "    %%more: f32[] = mul(%%half, %%k)\n"
    "}\n";

/* What the loop does, besides what the options say. */
typedef struct Trial {
    const char *options;
    int turns;
    double lr, lr_b; /* of w, of b */
    double momentum; /* of the gradient; 0: none */
    bool adam;
    double decay, decay_b; /* decoupled */
    double clip_norm, clip_value, ema;
    int warmup;   /* then a cosine over all steps; 0: a constant rate */
    bool apart_b; /* b has no adam, whatever w has */
} Trial;

static const Trial trials[] = {
    { "--optimizer sgd:lr=0.1", 1, 0.1, 0.1, 0, false, 0, 0, 0, 0, 0, 0, false },
    { "--optimizer momentum:lr=0.05 --group ^b$:lr=0.1x", 1, 0.05, 0.005, 0.9, false, 0, 0, 0, 0, 0, 0, false },
    { "--optimizer sgd:lr=0.1,momentum=0.5 --clip-norm 0.75", 1, 0.1, 0.1, 0.5, false, 0, 0, 0.75, 0, 0, 0, false },
    { "--optimizer sgd:lr=0.1 --clip-value 0.4 --clip-norm 0.6", 1, 0.1, 0.1, 0, false, 0, 0, 0.6, 0.4, 0, 0, false },
    { "--lr 0.05 --schedule cosine:warmup=5,total=20 --ema 0.8", 1, 0.05, 0.05, 0, true, 0, 0, 0, 0, 0.8, 5, false },
    { "--optimizer adamw:lr=0.05,weight_decay=0.3 --ema 0.9", 1, 0.05, 0.05, 0, true, 0.3, 0.3, 0, 0, 0.9, 0, false },
    { "--optimizer momentum:lr=0.05 --accumulate 4 --clip-norm 0.5", 4, 0.05, 0.05, 0.9, false, 0, 0, 0.5, 0, 0, 0,
      false },
    { "--optimizer adam:lr=0.05 --accumulate 2 --ema 0.5", 2, 0.05, 0.05, 0, true, 0, 0, 0, 0, 0.5, 0, false },
    { "--optimizer adamw:lr=0.05,weight_decay=0.3 --group ^b$:lr=0.2,momentum=0.9,optimizer=sgd --clip-norm 0.5 --ema 0.9 "
      "--schedule cosine:warmup=5,total=20",
      1, 0.05, 0.2, 0.9, true, 0.3, 0, 0.5, 0, 0.9, 5, true },
};

/* ---- data ---- */

static double sample(int step, int i)
{
    return (double)(float)sin(0.37 * (i + 1) * (step + 1) + 0.11 * i);
}

static double target(int step, int i)
{
    return (double)(float)cos(0.9 * (i + 1) + step);
}

/* ---- the loop ---- */

typedef struct Loop {
    double x[NUMBERS], m[NUMBERS], v[NUMBERS], ema[NUMBERS]; /* w and then b */
    double loss, norm, rate, seen;
} Loop;

/* Gradients of the mean over all rows. */
static void loop_gradients(Loop *l, int step, double g[NUMBERS])
{
    memset(g, 0, NUMBERS * sizeof *g);
    l->loss = 0;
    for (int r = 0; r < ROWS; r++) {
        double e = l->x[WIDTH] - target(step, r);
        for (int k = 0; k < WIDTH; k++)
            e += sample(step, r * WIDTH + k) * l->x[k];
        l->loss += e * e / ROWS;
        for (int k = 0; k < WIDTH; k++)
            g[k] += 2 * e * sample(step, r * WIDTH + k) / ROWS;
        g[WIDTH] += 2 * e / ROWS;
    }
}

static void loop_clip(Loop *l, const Trial *t, double g[NUMBERS])
{
    double sum = 0;
    for (int k = 0; k < NUMBERS; k++) {
        if (t->clip_value > 0)
            g[k] = fmax(-t->clip_value, fmin(t->clip_value, g[k]));
        sum += g[k] * g[k];
    }
    l->norm = sqrt(sum);
    for (int k = 0; k < NUMBERS && t->clip_norm > 0; k++)
        g[k] *= fmin(1, t->clip_norm / (l->norm + 1e-6));
}

static double loop_part(const Trial *t, int step)
{
    if (!t->warmup)
        return 1;
    if (step <= t->warmup)
        return (double)step / t->warmup;
    return 0.5 * (1 + cos(acos(-1) * (step - 1 - t->warmup) / (STEPS - t->warmup)));
}

static void loop_step(Loop *l, const Trial *t, int step)
{
    double g[NUMBERS];
    loop_gradients(l, step, g);
    loop_clip(l, t, g);
    l->rate = loop_part(t, step) * t->lr;
    for (int k = 0; k < NUMBERS; k++) {
        const double lr = loop_part(t, step) * (k < WIDTH ? t->lr : t->lr_b);
        l->x[k] -= lr * (k < WIDTH ? t->decay : t->decay_b) * l->x[k];
        if (t->adam && !(t->apart_b && k == WIDTH)) {
            l->m[k] = 0.9 * l->m[k] + 0.1 * g[k];
            l->v[k] = 0.999 * l->v[k] + 0.001 * g[k] * g[k];
            const double v = l->v[k] / (1 - pow(0.999, step));
            l->x[k] -= lr * l->m[k] / (1 - pow(0.9, step)) / (sqrt(v) + 1e-8);
        } else {
            l->m[k] = t->momentum * l->m[k] + g[k];
            l->x[k] -= lr * l->m[k];
        }
        l->ema[k] = step == 1 ? l->x[k] : t->ema * l->ema[k] + (1 - t->ema) * l->x[k];
    }
    for (int turn = 0; turn < t->turns; turn++) {
        double sum = 0;
        const int n = ROWS * WIDTH / t->turns;
        for (int k = 0; k < n; k++)
            sum += sample(step, turn * n + k);
        l->seen = 0.5 * (l->seen + sum / n);
    }
}

/* ---- the graph ---- */

static Status build_text(Language *l, const char *text, const char *options, Module **m)
{
    static const char *const names[] = { "differentiate", "scale-loss", "accumulate", "clip", "update", "ema" };
    const Pass *passes[COUNT(names)];
    Recipe *recipe = NEW(&l->arena, Recipe);
    for (size_t i = 0; i < COUNT(names); i++)
        passes[i] = pass_find(names[i]);
    const Pipeline p = { "step", TYPED | SHAPED, passes, COUNT(passes) };
    const PipelineOptions how = { .pass.recipe = recipe, .verify_each = VERIFY_VALUES };
    *m = language_parse(l, text, NULL);
    if (!*m)
        return INVALID;
    TRY(recipe_from_options(recipe, &l->ir, &l->arena, str(options), NULL));
    return pipeline_run(&p, (*m)->graphs[0], &how);
}

static Status build_step(Language *l, const char *options, int rows, Module **m)
{
    return build_text(l, arena_printf(&l->arena, model, rows, rows, rows, rows), options, m);
}

static void bind_step(Language *l, Session *s, int step)
{
    const int64_t dims[] = { ROWS, WIDTH };
    Tensor *x = tensor_new(&l->arena, type_tensor(&l->ir.types, F32, 2, dims));
    Tensor *t = tensor_new(&l->arena, type_tensor(&l->ir.types, F32, 1, dims));
    for (int i = 0; i < ROWS * WIDTH; i++)
        tensor_set_f64(x, i, sample(step, i));
    for (int i = 0; i < ROWS; i++)
        tensor_set_f64(t, i, target(step, i));
    check_that(session_bind(s, "x", x) == OK && session_bind(s, "t", t) == OK, "%s", text_get(&l->messages));
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 2e-5 * (1 + fabs(b));
}

static void check_numbers(const Trial *t, int step, Session *s, const char *prefix, const double want[NUMBERS])
{
    for (int k = 0; k < NUMBERS; k++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", prefix, k < WIDTH ? "w" : "b");
        const Tensor *have = session_view(s, name);
        check_that(have != NULL, "%s: no %s", t->options, name);
        const double v = tensor_get_f64(have, k < WIDTH ? k : 0);
        check_that(near(v, want[k]), "%s, step %d: %s[%d] is %.9g, not %.9g", t->options, step, name, k, v, want[k]);
    }
}

static void check_trial(Language *l, const Trial *t, Parallel *pool, double last[NUMBERS])
{
    const SessionOptions options = { .pool = pool };
    Loop loop = { .x = { 0.5, -1, 2, 0.25 } };
    Module *m;
    Session *s;
    check_that(build_step(l, t->options, ROWS / t->turns, &m) == OK, "%s: %s", t->options, text_get(&l->messages));
    check_that(session_open(m, &options, &l->arena, &s) == OK, "%s", text_get(&l->messages));
    for (int step = 1; step <= STEPS; step++) {
        RunResult r;
        loop_step(&loop, t, step);
        bind_step(l, s, step);
        check_that(session_run(s, RUN_STEP, &r) == OK && r.applied, "%s", text_get(&l->messages));
        check_that(near(r.loss, loop.loss) && near(r.norm, loop.norm) && near(r.rate, loop.rate),
                   "%s, step %d: loss %g, norm %g, rate %g; not %g, %g, %g", t->options, step, r.loss, r.norm, r.rate,
                   loop.loss, loop.norm, loop.rate);
        check_numbers(t, step, s, "", loop.x);
        if (t->ema > 0)
            check_numbers(t, step, s, "qcc.ema/", loop.ema);
        assert_true(near(tensor_get_f64(session_view(s, "seen"), 0), loop.seen));
        assert_int_equal(tensor_get_i64(session_view(s, "qcc.step"), 0), step);
    }
    for (int k = 0; k < NUMBERS; k++)
        last[k] = tensor_get_f64(session_view(s, k < WIDTH ? "w" : "b"), k < WIDTH ? k : 0);
    session_close(s);
}

static void steps_are_the_loop(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(trials); i++) {
        Language l;
        double last[NUMBERS];
        language_open(&l);
        check_trial(&l, &trials[i], NULL, last);
        language_close(&l);
    }
}

static void threads_change_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(trials); i++) {
        Language l;
        double alone[NUMBERS], together[NUMBERS];
        language_open(&l);
        Parallel *pool = parallel_open(3, NULL);
        check_trial(&l, &trials[i], NULL, alone);
        check_trial(&l, &trials[i], pool, together);
        assert_memory_equal(alone, together, sizeof alone);
        parallel_close(pool);
        language_close(&l);
    }
}

/* ---- groups ---- */

static const char *const beside[] = {
    "",
    "--clip-norm 0.5",
    "--clip-value 0.3 --ema 0.9",
    "--accumulate 2",
    "--schedule cosine:warmup=3,total=9",
    "--loss-scale static:1024",
};

/* Runs a session from where another stands with one of the parameters, and compares what becomes of the other one. */
static void same_update(Language *l, Session *both, Session *one, const char *follows, const char *own,
                        const char *const *states, int step, const Tensor *before)
{
    RunResult r;
    assert_int_equal(session_put(one, follows, before), OK);
    bind_step(l, one, step);
    assert_int_equal(session_run(one, RUN_STEP, &r), OK);
    for (; *states; states++) {
        const char *name = arena_printf(&l->arena, "%s%s", *states, own);
        const Tensor *a = session_view(both, name), *b = session_view(one, name);
        check_that(a && b, "no %s", name);
        check_that(memcmp(a->data, b->data, a->bytes) == 0, "%s, step %d: other bits", name, step);
    }
    check_that(!session_view(both, arena_printf(&l->arena, "%s%s", states[1], own)), "%s: %s", own, states[1]);
}

static Session *start_beside(Language *l, const char *options, const char *more)
{
    Module *m;
    Session *s;
    const int rows = strstr(more, "accumulate") ? ROWS / 2 : ROWS;
    check_that(build_step(l, arena_printf(&l->arena, "%s %s", options, more), rows, &m) == OK, "%s",
               text_get(&l->messages));
    assert_int_equal(session_open(m, &(SessionOptions){ 0 }, &l->arena, &s), OK);
    return s;
}

static Tensor *copy_of(Language *l, const Tensor *t)
{
    Tensor *copy = tensor_new(&l->arena, t->type);
    memcpy(copy->data, t->data, t->bytes);
    return copy;
}

/* A step of two optimizers does to each parameter what a step of its optimizer alone does, to the bit. */
static void groups_are_steps_apart(void **state)
{
    /* what each has, and behind the null what it has not */
    static const char *const of_adam[] = { "", "qcc.m/", "qcc.v/", NULL, "qcc.mean/" };
    static const char *const of_sgd[] = { "", "qcc.m/", NULL, "qcc.v/" };
    (void)state;
    for (size_t i = 0; i < COUNT(beside); i++) {
        Language l;
        language_open(&l);
        Session *both = start_beside(
            &l, "--optimizer adamw:lr=0.05 --group ^b$:optimizer=sgd,lr=0.1,momentum=0.9,weight_decay=0.2", beside[i]);
        Session *adam = start_beside(&l, "--optimizer adamw:lr=0.05", beside[i]);
        Session *sgd = start_beside(&l, "--optimizer sgd:lr=0.1,momentum=0.9,weight_decay=0.2", beside[i]);
        for (int step = 1; step <= 9; step++) {
            RunResult r;
            const Tensor *w = copy_of(&l, session_view(both, "w")), *b = copy_of(&l, session_view(both, "b"));
            bind_step(&l, both, step);
            assert_int_equal(session_run(both, RUN_STEP, &r), OK);
            same_update(&l, both, adam, "b", "w", of_adam, step, b);
            same_update(&l, both, sgd, "w", "b", of_sgd, step, w);
        }
        session_close(both);
        session_close(adam);
        session_close(sgd);
        language_close(&l);
    }
}

/* A group's rate has a factor of its own beside that of all. */
static void groups_have_factors(void **state)
{
    Language l;
    Module *m;
    Session *s;
    (void)state;
    language_open(&l);
    assert_int_equal(build_step(&l, "--optimizer adam:lr=0.5 --group ^b$:optimizer=sgd,lr=8", ROWS, &m), OK);
    assert_int_equal(session_open(m, &(SessionOptions){ 0 }, &l.arena, &s), OK);
    assert_int_equal(session_put(s, "qcc.lr_factor", tensor_scalar(&l.arena, &l.ir.types, F32, 0.25)), OK);
    assert_int_equal(session_put(s, "qcc.lr_factor/^b$", tensor_scalar(&l.arena, &l.ir.types, F32, 0.5)), OK);
    bind_step(&l, s, 1);
    assert_int_equal(session_run(s, RUN_STEP, NULL), OK);
    assert_true(tensor_get_f64(session_view(s, "lr"), 0) == 0.125);
    assert_true(tensor_get_f64(session_view(s, "lr/^b$"), 0) == 1);
    const double g = tensor_get_f64(session_view(s, "grad.b"), 0), b = tensor_get_f64(session_view(s, "b"), 0);
    assert_true((float)b == (float)(0.25 - g));
    session_close(s);
    language_close(&l);
}

/* The host may change the rate between steps. */
static void the_factor_scales_the_rate(void **state)
{
    Language l;
    Module *m;
    Session *s;
    RunResult r;
    (void)state;
    language_open(&l);
    assert_int_equal(build_step(&l, "--optimizer sgd:lr=0.5", ROWS, &m), OK);
    assert_int_equal(session_open(m, &(SessionOptions){ 0 }, &l.arena, &s), OK);
    assert_int_equal(session_put(s, "qcc.lr_factor", tensor_scalar(&l.arena, &l.ir.types, F32, 0.25)), OK);
    bind_step(&l, s, 1);
    assert_int_equal(session_run(s, RUN_STEP, &r), OK);
    assert_true(r.rate == 0.125);
    session_close(s);
    language_close(&l);
}

/* Each micro-batch and each step draws anew, and the same again when run again. */
static void turns_draw_their_own(void **state)
{
    enum { TURNS = 3, PART = 64, DRAWN = 2 };
    static const char text[] = "graph @step(%x: f32[64], state %w: f32[] = 1 trained) -> (%loss, %y) {\n"
                               "    const %ratio: f32[] = 0.5\n"
                               "    const %yes: bool[] = true\n"
                               "    %h: f32[64] = mul(%x, %w)\n"
                               "    %y: f32[64] = dropout(%h, %ratio, %yes, stream=3)\n"
                               "    %loss: f32[] = reduce_mean(%y, keepdims=false)\n"
                               "}\n";
    Language l;
    Module *m;
    uint64_t seen[2][DRAWN * TURNS] = { 0 };
    (void)state;
    language_open(&l);
    assert_int_equal(build_text(&l, text, "--optimizer sgd:lr=0 --accumulate 3", &m), OK);
    Tensor *x = tensor_new(&l.arena, m->graphs[0]->inputs[0]->type);
    for (int i = 0; i < TURNS * PART; i++)
        tensor_set_f64(x, i, 1);
    for (int run = 0; run < 2; run++) {
        Session *s;
        RunResult r;
        assert_int_equal(session_open(m, &(SessionOptions){ .seed = 5 }, &l.arena, &s), OK);
        for (int step = 0; step < DRAWN; step++) {
            assert_int_equal(session_bind(s, "x", x), OK);
            assert_int_equal(session_run(s, RUN_STEP, &r), OK);
            for (int i = 0; i < TURNS * PART; i++)
                if (tensor_get_f64(session_view(s, "y"), i) != 0)
                    seen[run][step * TURNS + i / PART] |= (uint64_t)1 << i % PART;
        }
        session_close(s);
    }
    assert_memory_equal(seen[0], seen[1], sizeof seen[0]);
    for (int i = 0; i < DRAWN * TURNS; i++)
        for (int k = 0; k < i; k++)
            assert_true(seen[0][i] != seen[0][k]);
    language_close(&l);
}

/* ---- schedules ---- */

typedef struct StoredRates {
    const char *schedule;
    double rate[STEPS];
} StoredRates;

#include "data/schedules.h"

static void check_rates(const char *schedule, const double rate[STEPS], double total)
{
    Language l;
    Module *m;
    Session *s;
    RunResult r;
    language_open(&l);
    const char *options = arena_printf(&l.arena, "--optimizer sgd:lr=0.1 --schedule %s", schedule);
    check_that(build_step(&l, options, ROWS, &m) == OK, "%s", text_get(&l.messages));
    assert_int_equal(session_open(m, &(SessionOptions){ 0 }, &l.arena, &s), OK);
    if (total > 0)
        assert_int_equal(session_put(s, "qcc.total_steps", tensor_scalar(&l.arena, &l.ir.types, I64, total)), OK);
    for (int step = 1; step <= STEPS; step++) {
        bind_step(&l, s, step);
        assert_int_equal(session_run(s, RUN_STEP, &r), OK);
        check_that(fabs(r.rate - rate[step - 1]) < 2e-8, "%s, step %d: %.9g, not %.9g", schedule, step, r.rate,
                   rate[step - 1]);
    }
    session_close(s);
    language_close(&l);
}

static void rates_are_those_of_pytorch(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(stored); i++)
        check_rates(stored[i].schedule, stored[i].rate, 0);
}

static void rates_rise_fall_and_stay(void **state)
{
    double constant[STEPS], linear[STEPS], endless[STEPS];
    (void)state;
    for (int k = 0; k < STEPS; k++) {
        const double rising = 0.1 * (k + 1) / 4;
        constant[k] = k < 4 ? rising : 0.1;
        endless[k] = constant[k];
        linear[k] = k < 4 ? rising : 0.1 * fmax(0, 1 - (k - 4) / 12.0);
    }
    check_rates("constant:warmup=4", constant, 0);
    check_rates("linear:warmup=4", endless, 0);
    check_rates("linear:warmup=4", linear, 16);
    check_rates("linear:warmup_ratio=0.25,total=3", linear, 16);
    check_rates("cosine:warmup=4", endless, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_the_loop),         cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(the_factor_scales_the_rate), cmocka_unit_test(turns_draw_their_own),
        cmocka_unit_test(rates_are_those_of_pytorch), cmocka_unit_test(rates_rise_fall_and_stay),
        cmocka_unit_test(groups_are_steps_apart),     cmocka_unit_test(groups_have_factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
