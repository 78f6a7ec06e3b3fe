/* label: slow */
/* Every policy of scales on its way through a run: where scales come from, how long that holds, and what comes then. Each
 * pass keeps the values of the graph that it is given; 200 steps leave the same bytes on both engines; and what is to
 * stay as it is stays, what is to move moves, on the step that was said. */
#include <math.h>
#include <string.h>

#include "api/make/step.h"
#include "ops/quant/observe.h"
#include "passes/pipelines.h"
#include "passes/recipe/quantizer.h"
#include "support/calls.h"
#include "support/language.h"
#include "support/recipe.h"
#include "support/stored.h"

enum { STEPS = 200, SIDES = 2 };

static int passes_run;

/* Steps after which ranges stay, scales begin to move, and data are codes; 0: never or from the start. */
typedef struct Policy {
    const char *options;
    int ranges_stay, scales_move, data_are_codes;
    bool observes;
} Policy;

static const Policy policies[] = {
    { "--quant w=int8:tensor:const=0.02,a=int8:const=0.05", 0, 0, 0, false },
    { "--quant w8a8,a=uint8:asym:minmax", 0, 0, 0, true },
    { "--quant w8a8", 0, 0, 0, true },
    { "--quant w8a8,a=uint8:asym:pct=99", 0, 0, 0, true },
    { "--quant w8a8,a=uint8:asym:dynamic", 0, 0, 0, false },
    { "--quant w4a4", 0, 0, 0, true },
    { "--quant w4a4,w=int4:channel:stats=30,a=uint4:asym:stats=30", 30, 30, 0, true },
    { "--quant w8a8,a=int8:stats=12", 12, 12, 0, true },
    { "--quant w4a4,w=int4:channel:lsq+,a=uint4:lsq+", 0, 0, 0, true },
    { "--quant w4a4,w=int4:channel:lsq:learned,a=uint4:pact", 0, 0, 0, true },
    { "--quant w4a4,w=int4:channel:tqt,a=uint4:tqt", 0, 0, 0, true },
    { "--quant w4a4,a=uint4:n2uq,first=4,last=4", 0, 0, 0, true },
    { "--quant w4a4,w=ternary:tensor:twn", 0, 0, 0, true },
    { "--quant w8a8,w=int8:channel:lsq:bits=learned,budget=200", 0, 0, 0, true },
    { "--quant w1a1", 0, 0, 0, true },
    { "--quant w=int3:tensor:dorefa,a=uint3:dorefa,b=int32", 0, 0, 0, false },
    { "--quant w8a8 --freeze-ranges 40", 40, 0, 0, true },
    { "--quant w8a8,a=uint8:asym:minmax --freeze-ranges 0", -1, 0, 0, true },
    { "--quant w8a8,phase=weights-first:25", 0, 0, 25, true },
    { "--quant w4a4,phase=weights-first:25 --ema 0.9", 0, 0, 25, true },
    { "--quant w4a8,a=uint8:asym:stats=12,phase=weights-first:25 --clip-norm 1", 25, 25, 25, true },
    { "--quant w8a8,phase=weights-first:25 --amp bf16", 0, 0, 25, true },
    { "--quant w8a8,phase=weights-first:25 --amp fp16 --loss-scale dynamic:init=1024", 0, 0, 25, true },
};

/* ---- passes ---- */

static const char model[] = "graph @m(%x: f32[4,2,6,6]) -> (%y) {\n"
                            "    param %w: f32[4,2,3,3] = kaiming(seed=1)\n"
                            "    param %b: f32[4] = zeros\n"
                            "    param %v: f32[4,3] = kaiming(seed=2)\n"
                            "    const %shape: i64[2] = [4, 4]\n"
                            "    %c: f32[4,4,6,6] = conv(%x, %w, %b, pads=[1,1,1,1])\n"
                            "    %r: f32[4,4,6,6] = relu(%c)\n"
                            "    %p: f32[4,4,1,1] = global_average_pool(%r)\n"
                            "    %f: f32[4,4] = reshape(%p, %shape)\n"
                            "    %y: f32[4,3] = matmul(%f, %v)\n"
                            "}\n";

/* Pass by pass; one that adds a target leaves nothing to compare. */
static void pass_through(Language *l, const Policy *p, Recipe *r, const char *name, Graph *g)
{
    const Pipeline *all = pipeline_find(name);
    for (size_t i = 0; i < all->n; i++) {
        const Pass *pass = all->passes[i];
        const Pipeline alone = { name, pass->needs, &all->passes[i], 1 };
        const bool adds = strcmp(pass->name, "attach-loss") == 0;
        const PipelineOptions options = { .pass.recipe = r, .verify_each = adds ? VERIFY_GRAPH : VERIFY_VALUES };
        const Status status = pipeline_run(&alone, g, &options);
        require(status == OK, "%s, %s, %s: %s", p->options, name, pass->name, text_get(&l->messages));
        passes_run++;
    }
}

/* The step, and what stands beside it. */
static void pass_all(Language *l, const Policy *p, bool weights_alone)
{
    Recipe r = { .n_groups = 0 };
    Module *m = language_parse(l, model, NULL);
    require(m != NULL, "%s", text_get(&l->messages));
    const char *options = arena_printf(&l->arena, "--loss cross_entropy %s", p->options);
    const Status status = recipe_from_options(&r, &l->ir, &l->arena, str(options), NULL);
    require(status == OK, "%s: %s", options, text_get(&l->messages));
    r.quantization.weights_alone = weights_alone;
    Graph *g = m->graphs[0];
    pass_through(l, p, &r, "quant-model", g);
    Graph *observe = graph_copy(g, &l->arena), *eval = graph_copy(g, &l->arena), *deployed = graph_copy(g, &l->arena);
    pass_through(l, p, &r, "train-step", g);
    pass_through(l, p, &r, "lower", g);
    if (weights_alone)
        return;
    pass_through(l, p, &r, "observe-step", observe);
    pass_through(l, p, &r, "eval-step", eval);
    pass_through(l, p, &r, "lower", eval);
    pass_through(l, p, &r, "deploy-model", deployed);
}

static void passes_keep_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(policies); i++) {
        Language l;
        language_open(&l);
        pass_all(&l, &policies[i], false);
        if (policies[i].data_are_codes)
            pass_all(&l, &policies[i], true);
        language_close(&l);
    }
    assert_true(passes_run > 1000);
}

/* ---- runs ---- */

typedef struct Case {
    Stored *s;
    const Policy *p;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    qcc_session *session[SIDES]; /* of cpu, of the reference */
    Tensor **before;             /* what the states were, of cpu */
} Case;

static void open_case(Case *k)
{
    static const char *const devices[SIDES] = { "cpu", "reference" };
    const qcc_context_options o = { .size = sizeof o, .report = stored_report, .user = k->s, .threads = 2, .exact = 1 };
    const qcc_source source = qcc_bytes(model, sizeof model - 1);
    MUST(k, qcc_open(&o, &k->cx));
    MUST(k, qcc_read(k->cx, &source, NULL, &k->model));
    MUST(k, qcc_compile(k->model,
                        arena_printf(&k->s->c.arena, "--optimizer adam:lr=1e-2 --loss cross_entropy %s", k->p->options),
                        &k->step));
    for (int e = 0; e < SIDES; e++) {
        const qcc_session_options device = { sizeof device, devices[e] };
        MUST(k, qcc_start(k->step, &device, &k->session[e]));
    }
}

/* Another batch each step. */
static void bind(Case *k, int step)
{
    for (size_t i = 0; i < qcc_step_n_inputs(k->step); i++) {
        const Value *v = &k->step->inputs[i];
        const char *as = arena_printf(&k->s->c.arena, "%s%d", v->name, step % 7);
        const qcc_tensor x = stored_draw(k->s, as, v->type, 3);
        for (int e = 0; e < SIDES; e++)
            MUST(k, qcc_bind(k->session[e], v->name, &x));
    }
}

static double run(Case *k, unsigned what)
{
    qcc_result r[SIDES] = { { .size = sizeof(qcc_result) }, { .size = sizeof(qcc_result) } };
    for (int e = 0; e < SIDES; e++)
        MUST(k, qcc_run(k->session[e], what, &r[e]));
    HOLDS(k, r[0].loss == r[1].loss && r[0].applied == r[1].applied, "%s: loss %.9g and %.9g\n", k->p->options,
          r[0].loss, r[1].loss);
    return r[0].loss;
}

static const Tensor *value_on(Case *k, int side, const State *state)
{
    const Tensor *value = NULL;
    assert_int_equal(session_value(k->session[side]->run, state, &value), OK);
    return value;
}

static void same_states(Case *k)
{
    size_t n[SIDES];
    const State *a = session_states(k->session[0]->run, &n[0]), *b = session_states(k->session[1]->run, &n[1]);
    assert_int_equal(n[0], n[1]);
    for (size_t i = 0; i < n[0]; i++)
        HOLDS(k, tensor_same(value_on(k, 0, &a[i]), value_on(k, 1, &b[i])), "%s: %s differs\n", k->p->options,
              a[i].name);
}

/* ---- what moves ---- */

static void keep_states(Case *k)
{
    size_t n;
    const State *all = session_states(k->session[0]->run, &n);
    k->before = NEWS(&k->s->c.arena, Tensor *, n + 1);
    for (size_t i = 0; i < n; i++) {
        const Tensor *now = value_on(k, 0, &all[i]);
        k->before[i] = tensor_new(&k->s->c.arena, now->type);
        memcpy(k->before[i]->data, now->data, now->bytes);
    }
}

/* Of states whose names begin so (all of one kind): how many moved in this step, and how many there are. */
static int moved(Case *k, const char *prefix, int *of)
{
    size_t n;
    int moves = 0;
    const State *all = session_states(k->session[0]->run, &n);
    *of = 0;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(all[i].name, prefix, strlen(prefix)) != 0)
            continue;
        ++*of;
        moves += !tensor_same(value_on(k, 0, &all[i]), k->before[i]);
    }
    return moves;
}

static void check_moves(Case *k, int step)
{
    const Policy *p = k->p;
    int of;
    const int ranges = moved(k, "qcc.range/", &of);
    if (p->ranges_stay)
        HOLDS(k, of && ranges == (step < p->ranges_stay ? of : 0), "%s: %d of %d ranges moved in step %d\n", p->options,
              ranges, of, step);
    const int seen = moved(k, "qcc.observed/", &of);
    if (of)
        HOLDS(k, seen == 0 || step < p->scales_move, "%s: a scale that is to stay moved in step %d\n", p->options,
              step);
    const int scales = moved(k, "qcc.step_size/", &of);
    if (p->scales_move && !strstr(p->options, "w4a8"))
        HOLDS(k, step < p->scales_move ? scales == 0 : scales > 0, "%s: %d of %d scales moved in step %d\n", p->options,
              scales, of, step);
}

/* Where data are codes, what is trained is what is judged, bit for bit. */
static void check_meaning(Case *k, int step, double judged, double loss)
{
    const bool floats = step < k->p->data_are_codes;
    if (strstr(k->p->options, "amp"))
        return;
    HOLDS(k, floats == (judged != loss), "%s: step %d trains on %.9g and is judged by %.9g\n", k->p->options, step,
          loss, judged);
}

static bool is_looked_at(int step)
{
    return step < 45 || step >= STEPS - 2;
}

static Status train(void *stored)
{
    for (size_t i = 0; i < COUNT(policies); i++) {
        Case k = { .s = stored, .p = &policies[i] };
        open_case(&k);
        for (int step = 0; step < 3 && k.p->observes; step++) {
            bind(&k, step);
            for (int e = 0; e < SIDES; e++)
                MUST(&k, qcc_run(k.session[e], QCC_OBSERVE, NULL));
        }
        for (int step = 0; step < STEPS; step++) {
            const bool looks = is_looked_at(step);
            bind(&k, step);
            const double judged = looks ? run(&k, QCC_EVAL) : 0;
            if (looks)
                keep_states(&k);
            const double loss = run(&k, QCC_STEP);
            HOLDS(&k, isfinite(loss), "%s: loss %g in step %d\n", k.p->options, loss, step);
            if (!looks)
                continue;
            same_states(&k);
            check_moves(&k, step);
            check_meaning(&k, step, judged, loss);
        }
        qcc_close(k.cx);
    }
    return OK;
}

static void engines_agree_over_the_phases(void **state)
{
    size_t seen = 0;
    (void)state;
    assert_int_equal(stored_each("/tests/data/exports/cnn-eval-13-static.onnx", NULL, NULL, train, &seen), 0);
    assert_int_equal(seen, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_keep_values),
        cmocka_unit_test(engines_agree_over_the_phases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
