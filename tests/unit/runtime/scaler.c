/* The scale of a loss: its automaton against another one, and what sessions do with it. */
#include "ops/update/scaler.h"

#include <math.h>
#include <string.h>

#include "passes/pipelines.h"
#include "passes/recipe/scale_read.h"
#include "runtime/session/scaler.h"
#include "support/language.h"
#include "support/recipe.h"
#include "unit/check.h"

/* ---- the automaton ---- */

/* The rules of mixed precision once more, as they are written down: in doubles, one case after the other. */
typedef struct Reference {
    double scale;
    int64_t tracker, left, attempted, applied, skipped, in_a_row, flags, first;
} Reference;

static void reference_step(Reference *m, const ScalerRules *r, int64_t first, int64_t found)
{
    const bool frozen = m->flags & 32, moves = r->dynamic && !frozen;
    double fall = r->backoff, least = r->least;
    m->attempted++;
    m->flags = found + (frozen ? 32 : 0);
    m->first = found ? first : -1;
    if (found) {
        m->skipped++;
        m->in_a_row++;
        m->tracker = 0;
        if ((moves && m->scale <= r->least) || m->in_a_row > 16)
            m->flags += 8;
        if (moves && !(found & 4) && m->scale <= fmin(r->least, ldexp(1, -14)))
            m->flags += 16;
        if (r->fast_start && !m->applied && m->in_a_row >= 3)
            fall = fmin(fall, 1.0 / 16);
        if (m->scale <= r->least && !(found & 4))
            least = fmin(r->least, ldexp(1, -14));
        if (--m->left <= 0 && moves)
            m->scale = fmin(m->scale, fmax(least, m->scale * fall));
        return;
    }
    m->applied++;
    m->in_a_row = 0;
    m->left = r->refills ? r->hysteresis : m->left;
    if (++m->tracker < (r->fast_start && m->scale < 1024 && r->interval > 100 ? 100 : r->interval))
        return;
    m->tracker = 0;
    m->left = r->hysteresis;
    if (moves && m->scale * r->growth <= r->most)
        m->scale *= r->growth;
}

static ScalerRules draw_rules(Rng *rng)
{
    return (ScalerRules){ .growth = rng_below(rng, 3) ? 2 : 4,
                          .backoff = rng_below(rng, 3) ? 0.5f : 1.0f / 32,
                          .least = ldexpf(1, (int)rng_below(rng, 20) - 15),
                          .most = ldexpf(1, 8 + (int)rng_below(rng, 17)),
                          .interval = 1 + (int64_t)rng_below(rng, rng_below(rng, 2) ? 5 : 300),
                          .hysteresis = 1 + (int64_t)rng_below(rng, 3),
                          .refills = rng_below(rng, 2),
                          .fast_start = rng_below(rng, 2),
                          .dynamic = rng_below(rng, 8) != 0 };
}

static bool same_state(const ScalerState *s, const Reference *m)
{
    return (double)s->scale == m->scale && s->growth_tracker == m->tracker && s->hysteresis_left == m->left &&
           s->attempted == m->attempted && s->applied == m->applied && s->skipped == m->skipped &&
           s->consecutive_skips == m->in_a_row && s->flags == m->flags && s->first_bad == m->first;
}

/* One stream: steps that are finite or not in runs, a scale that the host sets, an interval that changes, a freeze. */
static void one_stream(Rng *rng, int events)
{
    ScalerRules r = draw_rules(rng);
    const double init = ldexp(1, (int)rng_below(rng, 25));
    ScalerState s = scaler_begin(&r, (float)init);
    Reference m = { .scale = init, .left = r.hysteresis, .first = -1 };
    bool bad = false;
    for (int i = 0; i < events; i++) {
        const uint32_t event = (uint32_t)rng_below(rng, 64);
        if (event == 0)
            m.scale = (double)(s.scale = ldexpf(1, (int)rng_below(rng, 36) - 16));
        if (event == 1)
            r.interval = 1 + (int64_t)rng_below(rng, 9);
        if (event == 2)
            m.flags = s.flags = s.flags ^ SCALER_FROZEN;
        bad = rng_below(rng, 6) ? bad : rng_below(rng, 3) == 0;
        const int64_t first = (int64_t)rng_below(rng, 9), found = bad ? 1 + (int64_t)rng_below(rng, 7) : 0;
        int64_t counters[SCALER_COUNTERS];
        scaler_pack(&s, counters);
        s = scaler_next(&r, scaler_unpack(s.scale, counters), first, found);
        reference_step(&m, &r, first, found);
        check_that(same_state(&s, &m), "event %d: scale %g, not %g; flags %d, not %d", i, (double)s.scale, m.scale,
                   (int)s.flags, (int)m.flags);
        check_that(scaler_is_scale(s.scale), "event %d: %g is no scale", i, (double)s.scale);
    }
}

static void automata_agree(void **state)
{
    (void)state;
    Rng rng = { 7 };
    for (int i = 0; i < 20000; i++)
        one_stream(&rng, 50);
}

static void automata_agree_for_long(void **state)
{
    (void)state;
    Rng rng = { 8 };
    for (int i = 0; i < 1000000; i++)
        one_stream(&rng, 50);
}

/* Overflow halves; the floor and the cap hold; an interval that falls below the counter lets the scale grow. */
static void rules_by_hand(void **state)
{
    (void)state;
    ScalerRules r = {
        .growth = 2, .backoff = 0.5f, .least = 1, .most = 4, .interval = 100, .hysteresis = 2, .dynamic = true
    };
    ScalerState s = scaler_begin(&r, 4);
    s = scaler_next(&r, s, 3, SCALER_GRADIENT);
    assert_true(s.scale == 4 && s.hysteresis_left == 1 && s.first_bad == 3 && s.consecutive_skips == 1);
    s = scaler_next(&r, s, 3, SCALER_GRADIENT);
    assert_true(s.scale == 2);
    for (int i = 0; i < 50; i++)
        s = scaler_next(&r, s, -1, 0);
    assert_true(s.scale == 2 && s.growth_tracker == 50 && s.first_bad == -1 && s.hysteresis_left == 0);
    r.interval = 10;
    s = scaler_next(&r, s, -1, 0);
    assert_true(s.scale == 4 && s.hysteresis_left == 2);
    for (int i = 0; i < 20; i++)
        s = scaler_next(&r, s, -1, 0);
    assert_true(s.scale == 4);  /* the cap */
    for (int i = 0; i < 8; i++) /* forwards that are not finite do not go below the floor, and are said to be stuck */
        s = scaler_next(&r, s, -1, SCALER_FORWARD);
    assert_true(s.scale == 1 && s.flags == (SCALER_FORWARD | SCALER_STUCK));
    s = scaler_next(&r, s, 0, SCALER_GRADIENT);
    assert_true(s.scale == 0.5f && s.flags == (SCALER_GRADIENT | SCALER_STUCK));
    for (int i = 0; i < 30; i++)
        s = scaler_next(&r, s, 0, SCALER_GRADIENT);
    assert_true(s.scale == SCALER_LAST && s.flags == (SCALER_GRADIENT | SCALER_STUCK | SCALER_EXHAUSTED));
}

/* Flags of ranks join by or: 0, 1 or 2 ranks that found something are one skip. */
static void ranks(void **state)
{
    (void)state;
    const ScalerRules r = {
        .growth = 2, .backoff = 0.5f, .least = 1, .most = 64, .interval = 9, .hysteresis = 1, .dynamic = true
    };
    for (int bad = 0; bad <= 2; bad++) {
        int64_t flags = 0;
        for (int rank = 0; rank < 3; rank++)
            flags |= rank < bad ? SCALER_GRADIENT : 0;
        const ScalerState s = scaler_next(&r, scaler_begin(&r, 64), 0, flags);
        assert_true(s.scale == (bad ? 32 : 64) && s.skipped == (bad > 0) && s.applied == (bad == 0));
    }
}

/* ---- words ---- */

static Status read_scale(Language *l, const char *text, LossScale *s)
{
    return loss_scale_read(s, text, &l->arena, &l->diag);
}

static Status words(void *arg)
{
    Language *l = arg;
    LossScale s;
    assert_int_equal(read_scale(l, "dynamic", &s), OK);
    assert_true(s.kind == SCALE_DYNAMIC && s.init == 65536 && s.growth == 2 && s.backoff == 0.5 && s.interval == 2000 &&
                s.hysteresis == 1 && s.least == 1 && s.most == 0x1p24 && s.fast_start && !s.refills);
    assert_int_equal(read_scale(l, "dynamic:init_scale=1024,growth_factor=4,backoff_factor=0.25,growth_interval=5", &s),
                     OK);
    assert_true(s.init == 1024 && s.growth == 4 && s.backoff == 0.25 && s.interval == 5);
    assert_int_equal(read_scale(l,
                                "dynamic:initial_scale_power=12,loss_scale_window=7,hysteresis=2,min_loss_scale=2,"
                                "consecutive_hysteresis=true",
                                &s),
                     OK);
    assert_true(s.init == 4096 && s.interval == 7 && s.hysteresis == 2 && s.least == 2 && s.refills);
    assert_int_equal(read_scale(l, "128", &s), OK);
    assert_true(s.kind == SCALE_STATIC && s.init == 128);
    assert_int_equal(read_scale(l, "static:2^10", &s), OK);
    assert_true(s.kind == SCALE_STATIC && s.init == 1024);
    assert_int_equal(read_scale(l, "off", &s), OK);
    assert_true(s.kind == SCALE_OFF);
    static const char *const wrong[] = { "static:1000",          "static",           "dynamic:init=3",
                                         "dynamic:grow=2",       "dynamc",           "off:init=2",
                                         "dynamic:init=1,min=2", "dynamic:growth=1", "dynamic:interval=0" };
    for (size_t i = 0; i < COUNT(wrong); i++)
        check_that(read_scale(l, wrong[i], &s) == USAGE, "%s is read", wrong[i]);
    assert_non_null(strstr(text_get(&l->messages), "dynamic has no setting grow"));
    assert_non_null(strstr(text_get(&l->messages), "a power of two from"));
    return OK;
}

static void words_are_read(void **state)
{
    (void)state;
    Language l;
    language_open(&l);
    assert_int_equal(guarded(&l.memory, words, &l), OK);
    language_close(&l);
}

/* ---- sessions ---- */

enum { ROWS = 4, WIDE = 3 };

/* A state of the forward side stands for running statistics. */
static const char model[] =
    "graph @step(%x: f32[4,3], %t: f32[4], state %w: f32[3] = [0.5, -1, 2] trained, state %b: f32[] = 0.25 trained, "
    "state %seen: f32[]) -> (%loss, %seen = %more) {\n"
    "    %h: f32[4] = matmul(%x, %w)\n"
    "    %y: f32[4] = add(%h, %b)\n"
    "    %loss: f32[] = mse(%y, %t)\n"
    "    %mean: f32[] = reduce_mean(%x, keepdims=false)\n"
    "    %more: f32[] = add(%seen, %mean)\n"
    "}\n";

typedef struct Case {
    Language *l;
    Session *s;
    float x[ROWS * WIDE * 2], t[ROWS * 2];
} Case;

static Status compile(Case *c, const char *options, const char *text)
{
    static const char *const names[] = { "differentiate", "scale-loss", "accumulate", "clip", "update", "ema" };
    static const SessionOptions none = { 0 };
    Recipe recipe = { .n_groups = 0 };
    Module *m = language_parse(c->l, text, NULL);
    assert_non_null(m);
    TRY(recipe_from_options(&recipe, &c->l->ir, &c->l->arena, str(options), NULL));
    const PassOptions pass_options = { .recipe = &recipe };
    for (size_t i = 0; i < COUNT(names); i++) {
        const Pass *pass = pass_find(names[i]);
        PassRun run = {
            .pass = pass, .options = &pass_options, .diag = &c->l->diag, .scratch = &c->l->arena, .allowed = -1
        };
        TRY(pass_run(pass, m->graphs[0], &run));
    }
    return session_open(m, &none, &c->l->arena, &c->s);
}

static void bind(Case *c, int step)
{
    for (int i = 0; i < ROWS * WIDE * 2; i++)
        c->x[i] = (float)sin(0.37 * (i + 1) * (step + 1));
    for (int i = 0; i < ROWS * 2; i++)
        c->t[i] = (float)cos(0.9 * (i + 1) + step);
    const Type *x = session_input(c->s, "x")->type, *t = session_input(c->s, "t")->type;
    Tensor tx = { .type = x, .data = c->x, .bytes = (size_t)type_elements(x) * 4, .refs = 1 },
           tt = { .type = t, .data = c->t, .bytes = (size_t)type_elements(t) * 4, .refs = 1 };
    assert_int_equal(session_bind(c->s, "x", &tx), OK);
    assert_int_equal(session_bind(c->s, "t", &tt), OK);
}

static RunResult go(Case *c, unsigned what, int step)
{
    RunResult r;
    bind(c, step);
    assert_int_equal(session_run(c->s, what, &r), OK);
    return r;
}

static Tensor *copy_of(Case *c, const char *name)
{
    const Tensor *t = session_view(c->s, name);
    assert_non_null(t);
    Tensor *copy = tensor_new(&c->l->arena, t->type);
    memcpy(copy->data, t->data, t->bytes);
    return copy;
}

static void set_scale(Session *s, Language *l, double v, Status want)
{
    assert_int_equal(session_put(s, "qcc.scale", tensor_scalar(&l->arena, &l->ir.types, F32, v)), want);
}

/* All states, those of the scale apart, as bytes. */
static size_t bytes_of(Session *s, char *to)
{
    size_t n, at = 0;
    const State *states = session_states(s, &n);
    for (size_t i = 0; i < n; i++) {
        if (strncmp(states[i].name, "qcc.scale", 9) == 0)
            continue;
        const Tensor *value;
        assert_int_equal(session_value(s, &states[i], &value), OK);
        memcpy(to + at, value->data, value->bytes);
        at += value->bytes;
    }
    return at;
}

static void same_bytes(Session *a, Session *b, const char *what)
{
    char x[1024], y[1024];
    const size_t n = bytes_of(a, x);
    assert_int_equal(n, bytes_of(b, y));
    check_that(memcmp(x, y, n) == 0, "%s: states differ", what);
}

/* Ten steps at a power of two are those without a scale, to the bit, whatever clips; so are gradients that are seen. */
static Status scale_changes_nothing(void *arg)
{
    static const char *const trials[] = {
        "--optimizer adamw:lr=0.05",
        "--optimizer momentum:lr=0.05 --clip-norm 0.75 --ema 0.5",
        "--optimizer sgd:lr=0.05 --clip-value 0.3",
        "--optimizer lion:lr=0.05 --clip-value 0.3 --clip-norm 0.4",
        "--optimizer adam:lr=0.05 --accumulate 2 --clip-norm 0.4",
    };
    static const char *const scales[] = { "static:1024", "static:2^-10", "dynamic:interval=3", "dynamic:init=2^24" };
    for (size_t i = 0; i < COUNT(trials); i++)
        for (size_t k = 0; k < COUNT(scales); k++) {
            Case plain = { .l = arg }, scaled = { .l = arg };
            TRY(compile(&plain, trials[i], model));
            TRY(compile(&scaled, arena_printf(&plain.l->arena, "%s --loss-scale %s", trials[i], scales[k]), model));
            for (int step = 0; step < 10; step++) {
                const RunResult a = go(&plain, RUN_STEP, step);
                if (step % 3 == 1) { /* views in between change nothing */
                    go(&scaled, RUN_FORWARD | RUN_BACKWARD, step);
                    session_view(scaled.s, "grad.w");
                }
                const RunResult b = go(&scaled, step % 3 == 1 ? RUN_UPDATE : RUN_STEP, step);
                check_that(a.norm == b.norm && a.loss == b.loss && b.applied && b.has_scale && !b.found, "%s, %s",
                           trials[i], scales[k]);
                same_bytes(plain.s, scaled.s, trials[i]);
                const Tensor *g = session_view(plain.s, "grad.w"), *h = session_view(scaled.s, "grad.w");
                assert_memory_equal(g->data, h->data, g->bytes);
            }
            session_close(plain.s);
            session_close(scaled.s);
        }
    return OK;
}

/* A poisoned batch, and a gradient that overflows: nothing moves but the counters and the scale. */
static Status skips(void *arg)
{
    Case c = { .l = arg };
    ScalerState state;
    char before[1024], after[1024];
    TRY(compile(&c, "--optimizer adam:lr=0.05 --ema 0.5 --loss-scale dynamic:init=64", model));
    go(&c, RUN_STEP, 0);
    const size_t n = bytes_of(c.s, before);
    bind(&c, 1);
    c.x[5] = INFINITY;
    RunResult r;
    assert_int_equal(session_run(c.s, RUN_STEP, &r), OK);
    assert_true(!r.applied && !r.finite && r.step == 2 && r.found & SCALER_FORWARD && r.scale == 64 &&
                r.next_scale == 32);
    assert_int_equal(bytes_of(c.s, after), n);
    assert_memory_equal(before, after, n);
    r = go(&c, RUN_FORWARD | RUN_BACKWARD, 2);
    Tensor *g = copy_of(&c, "grad.b");
    tensor_set_f64(g, 0, INFINITY);
    assert_int_equal(session_put(c.s, "grad.b", g), OK);
    r = go(&c, RUN_UPDATE, 2);
    assert_true(!r.applied && r.found == SCALER_GRADIENT && r.scale == 32 && r.next_scale == 16 && r.step == 3);
    assert_string_equal(r.first_bad, "b");
    bytes_of(c.s, after);
    assert_memory_equal(before, after, n);
    assert_true(session_scaler(c.s, &state) && state.attempted == 3 && state.applied == 1 && state.skipped == 2 &&
                state.consecutive_skips == 2 && state.first_bad == 1);
    session_close(c.s);
    return OK;
}

/* READY, gradients, unscaled, stepped: who asks twice gets told so, who asks too early is refused. */
static Status stages(void *arg)
{
    Case c = { .l = arg }, plain = { .l = arg };
    bool already = true;
    TRY(compile(&plain, "--optimizer sgd:lr=0.05 --clip-norm 0.4", model));
    TRY(compile(&c, "--optimizer sgd:lr=0.05 --clip-norm 0.4 --loss-scale static:256", model));
    assert_true(session_stage(c.s) == SESSION_READY && session_unscale(c.s, NULL) == USAGE &&
                session_abandon(c.s) == USAGE);
    go(&c, RUN_FORWARD | RUN_BACKWARD, 0);
    assert_int_equal(session_stage(c.s), SESSION_HAS_GRADIENTS);
    assert_true(session_unscale(c.s, &already) == OK && !already);
    const Tensor *g = copy_of(&c, "grad.w");
    assert_true(session_unscale(c.s, &already) == OK && already && session_stage(c.s) == SESSION_UNSCALED);
    assert_memory_equal(g->data, session_view(c.s, "grad.w")->data, g->bytes);
    set_scale(c.s, c.l, 2, OK); /* too late for these gradients */
    set_scale(c.s, c.l, 3, USAGE);
    set_scale(c.s, c.l, -2, USAGE);
    RunResult r = go(&c, RUN_UPDATE, 0);
    go(&plain, RUN_STEP, 0);
    assert_true(r.scale == 256 && r.next_scale == 2 && session_stage(c.s) == SESSION_READY);
    same_bytes(c.s, plain.s, "unscaled twice");
    go(&c, RUN_FORWARD | RUN_BACKWARD, 1);
    set_scale(c.s, c.l, 64, OK);
    assert_int_equal(session_abandon(c.s), OK);
    assert_int_equal(session_run(c.s, RUN_UPDATE, NULL), USAGE);
    same_bytes(c.s, plain.s, "abandoned");
    r = go(&c, RUN_STEP, 1);
    go(&plain, RUN_STEP, 1);
    assert_true(r.scale == 64);
    same_bytes(c.s, plain.s, "after it");
    session_close(c.s);
    session_close(plain.s);
    return OK;
}

/* Gradients that add up over several runs keep the scale of the first, and may be seen on the way. */
static Status windows(void *arg)
{
    Case c = { .l = arg }, plain = { .l = arg };
    TRY(compile(&plain, "--optimizer sgd:lr=0.05 --clip-norm 0.4", model));
    TRY(compile(&c, "--optimizer sgd:lr=0.05 --clip-norm 0.4 --loss-scale dynamic:init=256", model));
    for (int window = 0; window < 3; window++) {
        for (int turn = 0; turn < 3; turn++) {
            go(&plain, RUN_FORWARD | RUN_BACKWARD | RUN_ACCUMULATE, 3 * window + turn);
            const RunResult r = go(&c, RUN_FORWARD | RUN_BACKWARD | RUN_ACCUMULATE, 3 * window + turn);
            assert_true(r.scale == (window ? 8 : 256));
            if (turn == 0)
                set_scale(c.s, c.l, 8, OK);
            if (window == turn)
                assert_memory_equal(session_view(c.s, "grad.w")->data, session_view(plain.s, "grad.w")->data, 12);
        }
        RunResult r = go(&c, RUN_UPDATE, 0);
        go(&plain, RUN_UPDATE, 0);
        assert_true(r.applied && r.next_scale == 8);
        same_bytes(c.s, plain.s, "window");
    }
    bind(&c, 0); /* a loss that was not finite in the first run of a window is not forgotten */
    c.x[0] = NAN;
    assert_int_equal(session_run(c.s, RUN_FORWARD | RUN_BACKWARD | RUN_ACCUMULATE, NULL), OK);
    go(&c, RUN_FORWARD | RUN_BACKWARD | RUN_ACCUMULATE, 1);
    const RunResult r = go(&c, RUN_UPDATE, 0);
    assert_true(!r.applied && r.found & SCALER_FORWARD);
    same_bytes(c.s, plain.s, "a bad window");
    session_close(c.s);
    session_close(plain.s);
    return OK;
}

/* Two sessions, one scale. */
static Status shared(void *arg)
{
    static const char options[] = "--optimizer sgd:lr=0.05 --loss-scale dynamic:init=256,interval=2";
    Case a = { .l = arg }, b = { .l = arg }, other = { .l = arg }, plain = { .l = arg };
    Scaler scaler = { .diag = &a.l->diag };
    ScalerState state;
    TRY(compile(&a, options, model));
    TRY(compile(&b, options, model));
    TRY(compile(&plain, "--optimizer sgd:lr=0.05", model));
    TRY(compile(&other, "--loss-scale static:2", model));
    TRY(scaler_join(&scaler, a.s));
    TRY(scaler_join(&scaler, b.s));
    assert_true(scaler_join(&scaler, other.s) == USAGE && scaler_join(&scaler, plain.s) == USAGE);
    assert_int_equal(scaler_update(&scaler), USAGE); /* nobody made a step */
    go(&a, RUN_FORWARD | RUN_BACKWARD, 0);
    go(&b, RUN_FORWARD | RUN_BACKWARD, 0);
    RunResult r = go(&a, RUN_UPDATE, 0);
    assert_true(r.applied && session_stage(a.s) == SESSION_STEPPED);
    assert_int_equal(scaler_update(&scaler), USAGE); /* b has gradients */
    set_scale(a.s, a.l, 4, OK);
    r = go(&b, RUN_UPDATE, 0);
    assert_true(r.applied && r.scale == 256);
    go(&plain, RUN_STEP, 0);
    same_bytes(a.s, plain.s, "a");
    same_bytes(b.s, plain.s, "b");
    go(&a, RUN_FORWARD | RUN_BACKWARD, 0);
    assert_int_equal(session_run(a.s, RUN_UPDATE, NULL), USAGE); /* twice */
    assert_int_equal(session_abandon(a.s), OK);
    assert_int_equal(scaler_update(&scaler), OK);
    assert_true(session_scaler(b.s, &state) && state.scale == 4 && state.attempted == 1 && state.applied == 1);

    bind(&a, 1); /* one is bad: it skips, the other applies, the scale falls for both */
    a.x[0] = INFINITY;
    assert_int_equal(session_run(a.s, RUN_STEP, &r), OK);
    assert_true(!r.applied && r.scale == 4);
    r = go(&b, RUN_STEP, 1);
    assert_true(r.applied && r.finite);
    assert_int_equal(scaler_update(&scaler), OK);
    assert_true(session_scaler(a.s, &state) && state.scale == 2 && state.skipped == 1);
    assert_true(session_scaler(b.s, &state) && state.scale == 2 && state.skipped == 1);

    scaler.together = true; /* one is bad: neither applies */
    go(&a, RUN_FORWARD | RUN_BACKWARD, 1);
    bind(&b, 1);
    b.x[0] = NAN;
    assert_int_equal(session_run(b.s, RUN_FORWARD | RUN_BACKWARD, NULL), OK);
    assert_true(!go(&a, RUN_UPDATE, 1).applied && !go(&b, RUN_UPDATE, 1).applied);
    assert_int_equal(scaler_update(&scaler), OK);
    scaler_leave(a.s);
    r = go(&a, RUN_STEP, 1);
    assert_true(r.applied && r.scale == 1 && session_stage(a.s) == SESSION_READY);
    session_close(a.s);
    session_close(b.s);
    session_close(other.s);
    session_close(plain.s);
    return OK;
}

/* A host that judges outputs itself sends and sees gradients without a scale. */
static Status external(void *arg)
{
    static const char text[] = "graph @step(%x: f32[4,3], %t: f32[4], %grad.y: f32[4], state %w: f32[3] = [0.5, -1, 2] "
                               "trained) -> (%y) {\n"
                               "    %y: f32[4] = matmul(%x, %w)\n"
                               "}\n";
    Case c[2] = { { .l = arg }, { .l = arg } };
    TRY(compile(&c[0], "--optimizer adam:lr=0.1 --clip-norm 0.5", text));
    TRY(compile(&c[1], "--optimizer adam:lr=0.1 --clip-norm 0.5 --loss-scale static:4096", text));
    float g[ROWS] = { 1, -0.5f, 3, 0.1f };
    for (int step = 0; step < 6; step++) {
        g[0] = step == 4 ? INFINITY : 1;
        for (int k = 0; k < 2; k++) {
            RunResult r;
            Tensor t = { .type = session_input(c[k].s, "grad.y")->type, .data = g, .bytes = sizeof g, .refs = 1 };
            go(&c[k], RUN_FORWARD, step);
            assert_int_equal(session_bind(c[k].s, "grad.y", &t), OK);
            assert_int_equal(session_run(c[k].s, RUN_BACKWARD | RUN_UPDATE, &r), OK);
            assert_true(r.applied == (step != 4));
        }
        same_bytes(c[0].s, c[1].s, "external");
    }
    session_close(c[0].s);
    session_close(c[1].s);
    return OK;
}

static void guarded_case(Status (*fn)(void *arg))
{
    Language l;
    language_open(&l);
    const Status status = guarded(&l.memory, fn, &l);
    check_that(status == OK, "%s", text_get(&l.messages));
    language_close(&l);
}

#define CASE(fn)                                                                                                       \
    static void test_##fn(void **state)                                                                                \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        guarded_case(fn);                                                                                              \
    }
CASE(scale_changes_nothing)
CASE(skips)
CASE(stages)
CASE(windows)
CASE(shared)
CASE(external)

int main(int argc, char **argv)
{
    const struct CMUnitTest all[] = { cmocka_unit_test(automata_agree_for_long) };
    if (argc > 1 && strcmp(argv[1], "all") == 0)
        return cmocka_run_group_tests(all, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(automata_agree),
        cmocka_unit_test(rules_by_hand),
        cmocka_unit_test(ranks),
        cmocka_unit_test(words_are_read),
        cmocka_unit_test(test_scale_changes_nothing),
        cmocka_unit_test(test_skips),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_external),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
