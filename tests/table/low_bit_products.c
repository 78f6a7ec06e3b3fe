/* label: slow */
/* Products of few bits in whole steps: the same bits on both engines and with one to three threads (of the GPT with weights and
 * states in few bits, too), gradients and losses near those of f32, as many sums of codes in the plan as explain tells of, and codes kept for the way back, not floats. */
#include <math.h>
#include <string.h>

#include "api/make/launch_nodes.h"
#include "api/make/step.h"
#include "ops/card/cards.h"
#include "passes/quant/ledger.h"
#include "passes/step/footprint.h"
#include "support/stored.h"

enum { SIDES = 4, BATCHES = 3 };

typedef struct Case {
    Stored *s;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    qcc_session *session;
} Case;

static void open_case(Case *k, Stored *s, const char *options, const char *device, int threads)
{
    const qcc_context_options o = {
        .size = sizeof o, .report = stored_report, .user = s, .threads = threads, .exact = 1
    };
    const qcc_source source = qcc_file(s->path);
    const qcc_session_options on = { sizeof on, device };
    *k = (Case){ .s = s };
    MUST(k, qcc_open(&o, &k->cx));
    MUST(k, qcc_read(k->cx, &source, NULL, &k->model));
    MUST(k, qcc_compile(k->model, options, &k->step));
    MUST(k, qcc_start(k->step, &on, &k->session));
}

static void close_case(Case *k)
{
    qcc_end(k->session);
    qcc_close(k->cx);
}

static double run(Case *k, int step, unsigned what)
{
    qcc_result r = { .size = sizeof r };
    for (size_t i = 0; i < qcc_step_n_inputs(k->step); i++) {
        const Value *v = &k->step->inputs[i];
        const char *as = arena_printf(&k->s->c.arena, "%s%d", v->name, step % BATCHES);
        const qcc_tensor x = stored_draw(k->s, as, v->type, 5);
        MUST(k, qcc_bind(k->session, v->name, &x));
    }
    MUST(k, qcc_run(k->session, what, &r));
    return r.loss;
}

/* ---- the same bits ---- */

static void same_states(Case *a, Case *b, const char *options)
{
    size_t n[2];
    const State *x = session_states(a->session->run, &n[0]), *y = session_states(b->session->run, &n[1]);
    assert_int_equal(n[0], n[1]);
    for (size_t i = 0; i < n[0]; i++) {
        const Tensor *v, *w;
        assert_int_equal(session_value(a->session->run, &x[i], &v), OK);
        assert_int_equal(session_value(b->session->run, &y[i], &w), OK);
        HOLDS(a, v->bytes == w->bytes && memcmp(v->data, w->data, v->bytes) == 0, "%s: %s differs\n", options,
              x[i].name);
    }
}

static void same_everywhere(Stored *s, const char *options, int steps)
{
    static const char *const devices[SIDES] = { "reference", "cpu", "cpu", "cpu" };
    static const int threads[SIDES] = { 1, 1, 2, 3 };
    Case k[SIDES];
    for (int e = 0; e < SIDES; e++)
        open_case(&k[e], s, options, devices[e], threads[e]);
    for (int i = 0; i < steps; i++) {
        const double loss = run(&k[0], i, QCC_STEP);
        HOLDS(&k[0], isfinite(loss), "%s: loss %g\n", options, loss);
        for (int e = 1; e < SIDES; e++)
            HOLDS(&k[e], run(&k[e], i, QCC_STEP) == loss, "%s: another loss, side %d\n", options, e);
    }
    for (int e = 1; e < SIDES; e++)
        same_states(&k[0], &k[e], options);
    for (int e = 0; e < SIDES; e++)
        close_case(&k[e]);
}

/* ---- near f32 ---- */

/* Of all gradients as one vector: how far it is from another's, over the other's length. */
static double apart(Case *a, Case *b)
{
    size_t n;
    double far = 0, all = 0;
    const State *states = session_states(a->session->run, &n);
    for (size_t i = 0; i < n; i++) {
        const char *name = session_gradient_name(a->session->run, &states[i]);
        qcc_tensor x = { .size = sizeof x }, y = { .size = sizeof y };
        if (!name)
            continue;
        MUST(a, qcc_view(a->session, name, &x));
        MUST(b, qcc_view(b->session, name, &y));
        const Tensor *v = stored_tensor(a->s, &x), *w = stored_tensor(b->s, &y);
        for (int64_t j = 0; j < tensor_elements(v); j++) {
            const double d = tensor_get_f64(v, j) - tensor_get_f64(w, j);
            far += d * d;
            all += tensor_get_f64(w, j) * tensor_get_f64(w, j);
        }
    }
    return sqrt(far / all);
}

/* The mean of the last losses. */
static double train(Case *k, int steps)
{
    double sum = 0;
    for (int i = 0; i < steps; i++) {
        const double loss = run(k, i, QCC_STEP);
        sum += i >= steps - BATCHES ? loss : 0;
    }
    return sum / BATCHES;
}

typedef struct Bounds {
    int steps;
    double gradients, loss; /* how far they may be from f32's, over those */
} Bounds;

static void near_f32(Stored *s, const char *rest, const char *quant, Bounds most)
{
    Case codes, floats;
    const char *options = arena_printf(&s->c.arena, "%s --quant %s", rest, quant);
    open_case(&codes, s, options, "cpu", 1);
    open_case(&floats, s, rest, "cpu", 1);
    const double first = run(&floats, 0, QCC_FORWARD | QCC_BACKWARD);
    (void)run(&codes, 0, QCC_FORWARD | QCC_BACKWARD);
    const double far = apart(&codes, &floats);
    const double a = train(&codes, most.steps), b = train(&floats, most.steps);
    printf("%s %s: gradients %.4f apart; loss %.5f, %.5f of f32, %.5f at first\n", s->name, quant, far, a, b, first);
    HOLDS(&codes, far > 0 && far < most.gradients, "%s: gradients %g apart\n", options, far);
    HOLDS(&codes, b < 0.95 * first, "%s: f32 does not learn\n", options);
    HOLDS(&codes, fabs(a - b) < most.loss * b, "%s: loss %g, %g of f32\n", options, a, b);
    close_case(&codes);
    close_case(&floats);
}

/* ---- what is planned ---- */

typedef struct Count {
    qcc_step *step;
    Arena *arena;
    int64_t told, sums;
    uint64_t kept;
} Count;

static Status count(void *thing)
{
    Count *c = thing;
    Graph *g = module_graph(c->step->module, "step");
    const QuantLedger *l = c->step->recipe.quantization.ledger;
    for (size_t i = 0; l && i < l->n; i++)
        c->told += l->list[i].kind == QUANT_PRODUCT;
    c->kept = footprint_kept(g, c->arena);
    const LaunchMap m = launch_map(g, NULL, c->arena);
    if (!m.low.program)
        return MISMATCH;
    for (int i = 0; i < m.low.program->n_launches; i++) {
        const Launch *n = &m.low.program->launches[i];
        c->sums += n->kind == LAUNCH_CALL && (n->node->op == OP_matmul_integer || n->node->op == OP_conv_integer ||
                                              n->node->op == OP_conv_integer_weight_grad);
    }
    return OK;
}

static Count counted(Stored *s, const char *options)
{
    Case k;
    open_case(&k, s, options, "cpu", 1);
    Count c = { .step = k.step, .arena = &s->c.arena };
    assert_int_equal(guarded(k.step->module->ir->memory, count, &c), OK);
    close_case(&k);
    return c;
}

static void planned(Stored *s, const char *rest, int64_t products, double most)
{
    Arena *arena = &s->c.arena;
    const Count codes = counted(s, arena_printf(arena, "%s --quant int8-matmul", rest)), floats = counted(s, rest);
    const double share = (double)codes.kept / (double)floats.kept;
    printf("%s: %d products told, %d planned; %.0f of %.0f bytes kept: %.3f\n", s->name, (int)codes.told,
           (int)codes.sums, (double)codes.kept, (double)floats.kept, share);
    assert_int_equal(codes.told, products);
    assert_int_equal(codes.sums, codes.told);
    assert_int_equal(floats.sums, 0);
    assert_true(share < most);
}

/* ---- models ---- */

static void each_way(Stored *s, const char *rest)
{
    static const char *const more[] = {
        "",
        "--amp bf16",
        "--amp fp16 --loss-scale dynamic:init=256 --clip-norm 1 --ema 0.9",
        "--accumulate 2",
    };
    for (size_t i = 0; i < COUNT(more); i++)
        same_everywhere(s, arena_printf(&s->c.arena, "%s --quant int8-matmul %s", rest, more[i]), 2);
}

static Status perceptron(void *stored)
{
    static const char rest[] = "--optimizer adamw --lr 1e-3 --loss cross_entropy --batch 16";
    each_way(stored, rest);
    near_f32(stored, rest, "int8-matmul", (Bounds){ 30, 0.05, 0.01 });
    near_f32(stored, rest, "int8-matmul,last=8", (Bounds){ 30, 0.05, 0.01 });
    near_f32(stored, rest, "int8-matmul:output+grad_input,g=int8:row:rne:narrow", (Bounds){ 30, 0.05, 0.01 });
    planned(stored, rest, 2, 0.48);
    return OK;
}

static Status convolutions(void *stored)
{
    static const char rest[] = "--optimizer adamw --lr 3e-4 --loss cross_entropy --batch 16";
    each_way(stored, rest);
    near_f32(stored, rest, "int8-matmul,first=8,last=8", (Bounds){ 30, 0.08, 0.01 });
    planned(stored, rest, 3, 0.91); /* the pools read what they choose from */
    return OK;
}

static Status separable(void *stored)
{
    same_everywhere(stored, "--optimizer sgd --lr 1e-3 --loss cross_entropy --batch 4 --quant int8-matmul,first=8", 1);
    near_f32(stored, "--optimizer sgd --lr 1e-2 --loss cross_entropy --batch 4", "int8-matmul,first=8",
             (Bounds){ 12, 0.5, 0.03 });
    return OK;
}

static Status transformer(void *stored)
{
    static const char rest[] = "--optimizer adamw --lr 1e-3 --loss cross_entropy --batch 8";
    static const char *const more[] = {
        "--quant int8-matmul",
        "--quant int8-matmul --optimizer adamw:states=8bit",
        "--quant int8-weights --optimizer adamw:states=8bit",
        "--quant int8-weights --quant-op op:Gather=w=int8:row:sr:stored --optimizer adamw:states=4bit --amp bf16 --accumulate 2",
    };
    Stored *s = stored;
    for (size_t i = 0; i < COUNT(more); i++)
        same_everywhere(s, arena_printf(&s->c.arena, "--lr 1e-3 --loss cross_entropy --batch 8 %s", more[i]),
                        i ? 3 : 1);
    near_f32(stored, rest, "int8-matmul", (Bounds){ 12, 0.05, 0.01 });
    planned(stored, rest, 36, 0.8);
    return OK;
}

static void steps_of_codes(void **state)
{
    size_t seen = 0;
    (void)state;
    assert_int_equal(stored_each("/examples/models/mlp.qir", NULL, NULL, perceptron, &seen), 0);
    assert_int_equal(stored_each("/examples/models/cnn.qir", NULL, NULL, convolutions, &seen), 0);
    assert_int_equal(stored_each("/examples/models/depthwise.qir", NULL, NULL, separable, &seen), 0);
    assert_int_equal(stored_each("/examples/models/gpt.qir", NULL, NULL, transformer, &seen), 0);
    assert_int_equal(seen, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(steps_of_codes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
