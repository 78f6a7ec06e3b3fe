/* Steps that are told of later: each is told with its own number, in the bits of a loop that waits for each, whatever is not finite,
 * refused, saved, stopped or evaluated in between.  The device is an argument: none, those of every machine. */
#include <dlfcn.h>
#include <math.h>

#include "embed/trainee.h"
#include "simcuda/counts.h"

enum {
    SCALED_WAY = 5,
    MANY_SKIPPED = 7 /* of the ways */,
    STEPS = 12,
    NOT_FINITE = 5,
    SAVED = 7,
    LATER = QCC_STEP | QCC_LATER
};

static const char *const anywhere[] = { "cpu", "reference", NULL };
static const char *chosen[] = { NULL, NULL };
static const char *const *devices = anywhere;

/* With statistics, which forward moves. */
static const char normed[] = "graph @net(%x: f32[?,4]) -> (%logits) {\n"
                             "    param %w1: f32[8,4] = kaiming(seed=1)\n"
                             "    param %b1: f32[8] = zeros\n"
                             "    param %scale: f32[8] = ones\n"
                             "    param %mean: f32[8] = zeros\n"
                             "    param %var: f32[8] = ones\n"
                             "    param %w2: f32[4,8] = kaiming(seed=2)\n"
                             "    %h: f32[?,8] = gemm(%x, %w1, transB=true)\n"
                             "    %n: f32[?,8] = batch_normalization(%h, %scale, %b1, %mean, %var)\n"
                             "    %a: f32[?,8] = tanh(%n)\n"
                             "    %logits: f32[?,4] = gemm(%a, %w2, transB=true)\n"
                             "}\n";

/* Where the loss is scaled: more steps than the one that is not finite are skipped, as the scale is too large. */
typedef enum Scaled { UNSCALED, SCALED, OVERFLOWS } Scaled;

static const struct Way {
    const char *text, *options;
    Scaled scaled;
} ways[] = {
    { trainee_text, TRAINEE_OPTIONS, UNSCALED },
    { normed, TRAINEE_OPTIONS " --ema 0.9", UNSCALED },
    { trainee_text, TRAINEE_OPTIONS " --amp bf16", UNSCALED },
    { trainee_text, TRAINEE_OPTIONS " --accumulate 2", UNSCALED },
    { normed, "--loss mse --optimizer sgd:lr=1e-2 --clip-norm 0.5", UNSCALED },
    { trainee_text, TRAINEE_OPTIONS " --amp fp16", SCALED },
    /* several skipped in a row, and the scale grows to where it overflows again */
    { trainee_text, TRAINEE_OPTIONS " --amp fp16 --loss-scale dynamic:init=16777216,interval=2,fast_start=false",
      OVERFLOWS },
    { normed, TRAINEE_OPTIONS " --ema 0.9 --amp fp16 --clip-norm 0.5 --loss-scale dynamic:init=2^24,interval=1",
      OVERFLOWS },
    /* the least scale is too large, too; the steps behind it are skipped by the last scale */
    { trainee_text, TRAINEE_OPTIONS " --amp fp16 --loss-scale dynamic:init=2^22,min=2^21,interval=3", OVERFLOWS },
    { trainee_text, TRAINEE_OPTIONS " --amp fp16 --loss-scale static:1024 --accumulate 2", SCALED },
};

/* A checkpoint: all states. */
typedef struct Saved {
    char bytes[1 << 15];
    size_t n;
} Saved;

/* A batch of its own for each step; one of them is not finite. */
static Trainee batches[STEPS + 1], other;

typedef struct Life {
    Host host;
    qcc_context *cx;
    Trainee t;
    qcc_result told[STEPS];
    double judged;
    Saved last, between; /* in the end, and where it was saved */
} Life;

typedef qcc_status Binder(qcc_session *session, const char *name, const qcc_tensor *tensor);

static qcc_status give(Binder *how, const Trainee *t, Trainee *batch)
{
    const qcc_tensor x = trainee_tensor(batch->x), target = trainee_tensor(batch->target);
    const qcc_status status = how(t->session, "x", &x);
    return status == QCC_OK ? how(t->session, "target", &target) : status;
}

static void open_life(Life *l, const struct Way *way, const char *device)
{
    qcc_source source = qcc_bytes(way->text, strlen(way->text));
    *l = (Life){ .cx = NULL };
    source.name = "net.qir";
    l->cx = open_with(&l->host);
    assert_int_equal(qcc_read(l->cx, &source, "--batch 8", &l->t.model), QCC_OK);
    assert_int_equal(qcc_compile(l->t.model, way->options, &l->t.step), QCC_OK);
    assert_int_equal(qcc_start(l->t.step, &(qcc_session_options){ sizeof(qcc_session_options), device }, &l->t.session),
                     QCC_OK);
    for (unsigned i = 0; i <= STEPS; i++)
        trainee_fill(&batches[i], i);
    trainee_fill(&other, 99);
    batches[NOT_FINITE].x[1][2] = INFINITY;
}

static void close_life(Life *l)
{
    qcc_close(l->cx);
    assert_int_equal(l->host.blocks, 0);
}

static double evaluate(Life *l)
{
    qcc_result r = { .size = sizeof r };
    assert_int_equal(give(qcc_bind, &l->t, &other), QCC_OK);
    assert_int_equal(qcc_run(l->t.session, QCC_EVAL, &r), QCC_OK);
    return r.loss;
}

static qcc_status keep(void *user, const void *bytes, size_t n)
{
    Saved *saved = user;
    assert_true(n <= sizeof saved->bytes - saved->n);
    memcpy(saved->bytes + saved->n, bytes, n);
    saved->n += n;
    return QCC_OK;
}

static void save(Life *l, Saved *to)
{
    const qcc_sink sink = { .write = keep, .user = to };
    to->n = 0;
    assert_int_equal(qcc_save(l->t.session, &sink), QCC_OK);
}

static void same_states(const Saved *a, const Saved *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->bytes, b->bytes, a->n);
}

/* A parameter's name that outlives its session; null stays so. */
static const char *kept_name(const char *name)
{
    static const char *const names[] = { "w1", "b1", "w2", "b2", "scale" };
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return names[i];
    assert_null(name);
    return NULL;
}

/* What a loop that waits for each step comes to. */
static void in_time(Life *l, const struct Way *way, const char *device)
{
    open_life(l, way, device);
    for (unsigned i = 0; i < STEPS; i++) {
        assert_int_equal(give(qcc_bind, &l->t, &batches[i]), QCC_OK);
        l->told[i].size = sizeof l->told[i];
        assert_int_equal(qcc_run(l->t.session, QCC_STEP, &l->told[i]), QCC_OK);
        l->told[i].first_bad = kept_name(l->told[i].first_bad);
        assert_true(l->told[i].applied ? i != NOT_FINITE : i == NOT_FINITE || way->scaled == OVERFLOWS);
        if (i + 1 == SAVED)
            save(l, &l->between);
    }
    save(l, &l->last);
    l->judged = evaluate(l);
    close_life(l);
}

static void same_number(double a, double b)
{
    assert_true(a == b || (a != a && b != b));
}

static void same_step(const qcc_result *a, const qcc_result *b)
{
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->applied, b->applied);
    assert_int_equal(a->finite, b->finite);
    assert_int_equal(a->finite_loss, b->finite_loss);
    same_number(a->loss, b->loss);
    same_number(a->grad_norm, b->grad_norm);
    same_number(a->lr, b->lr);
    same_number(a->loss_scale, b->loss_scale);
    same_number(a->next_loss_scale, b->next_loss_scale);
    assert_int_equal(a->applied_steps, b->applied_steps);
    assert_int_equal(a->skipped_steps, b->skipped_steps);
    assert_true(!a->first_bad == !b->first_bad && (!a->first_bad || strcmp(a->first_bad, b->first_bad) == 0));
}

/* What each step counts of a scaled loss is itself and those before it. */
static void counted(const Life *l, const struct Way *way)
{
    uint64_t applied = 0, skipped = 0, in_a_row = 0, most = 0, grown = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        const qcc_result *r = &l->told[i];
        applied += way->scaled && r->applied;
        skipped += way->scaled && !r->applied;
        in_a_row = r->applied ? 0 : in_a_row + 1;
        most = in_a_row > most ? in_a_row : most;
        grown += r->next_loss_scale > r->loss_scale;
        assert_int_equal(r->applied_steps, applied);
        assert_int_equal(r->skipped_steps, skipped);
        assert_true(i == 0 || !way->scaled || r->loss_scale == l->told[i - 1].next_loss_scale);
    }
    if (way->scaled == OVERFLOWS)
        assert_true(most > 1 && grown && applied);
}

/* What comes back is the step before, if there is one that nobody was told of. */
static void ask(Life *l, const Life *want, unsigned i, bool fresh)
{
    qcc_result r = { .size = sizeof r };
    assert_int_equal(qcc_run(l->t.session, LATER, &r), QCC_OK);
    if (fresh)
        assert_true(!r.step && !r.applied && r.loss != r.loss);
    else
        same_step(&r, &want->told[i - 1]);
}

static void wait_for(Life *l, const Life *want, unsigned i)
{
    qcc_result r = { .size = sizeof r };
    assert_int_equal(qcc_wait_step(l->t.session, &r), QCC_OK);
    same_step(&r, &want->told[i]);
    assert_int_equal(qcc_wait_step(l->t.session, &r), QCC_OK);
    assert_true(!r.step && r.loss != r.loss);
}

static void ends_the_same(Life *l, const Life *want)
{
    static Saved now;
    save(l, &now);
    same_states(&now, &want->last);
    assert_true(evaluate(l) == want->judged);
    close_life(l);
}

/* Who waits for a device that decides is told, and comes to, what is so where the host does. */
static void as_the_reference(const Life *l, const struct Way *way)
{
    static Life want;
    if (!way->scaled)
        return;
    in_time(&want, way, "reference");
    for (unsigned i = 0; i < STEPS; i++)
        same_step(&l->told[i], &want.told[i]);
    same_states(&l->between, &want.between);
    same_states(&l->last, &want.last);
}

static void each_is_told_with_its_number(void **state)
{
    (void)state;
    for (size_t d = 0; devices[d]; d++)
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            static Life want, l;
            in_time(&want, &ways[w], devices[d]);
            counted(&want, &ways[w]);
            as_the_reference(&want, &ways[w]);
            open_life(&l, &ways[w], devices[d]);
            for (unsigned i = 0; i < STEPS; i++) {
                assert_int_equal(give(qcc_bind, &l.t, &batches[i]), QCC_OK);
                ask(&l, &want, i, !i);
            }
            wait_for(&l, &want, STEPS - 1);
            ends_the_same(&l, &want);
        }
}

/* Batches that travel, looks at states, evaluations, steps that are waited for, steps that are stopped. */
static void in_between(const struct Way *way, const char *device)
{
    static Life want, l;
    static Saved now;
    qcc_result r = { .size = sizeof r };
    in_time(&want, way, device);
    open_life(&l, way, device);
    assert_int_equal(give(qcc_bind, &l.t, &batches[0]), QCC_OK);
    for (unsigned i = 0; i < STEPS; i++) {
        assert_int_equal(give(qcc_bind_next, &l.t, &batches[i + 1]), QCC_OK);
        if (i == 2) {
            qcc_request_stop(l.t.session);
            assert_int_equal(qcc_run(l.t.session, LATER, NULL), QCC_INTERRUPTED);
        }
        if (i == 4 || i == 9) { /* its own result; that of the one before goes */
            assert_int_equal(qcc_run(l.t.session, QCC_STEP, &r), QCC_OK);
            same_step(&r, &want.told[i]);
            continue;
        }
        ask(&l, &want, i, !i || i == 5 || i == 10);
        if (i + 1 == SAVED) {
            save(&l, &now);
            same_states(&now, &want.between);
            (void)evaluate(&l);
        }
    }
    wait_for(&l, &want, STEPS - 1);
    ends_the_same(&l, &want);
}

static void whatever_is_in_between(void **state)
{
    (void)state;
    for (size_t d = 0; devices[d]; d++)
        for (size_t w = 0; w < 2; w++)
            in_between(&ways[w ? MANY_SKIPPED : 1], devices[d]);
}

/* What is saved while steps are under way is what all that were asked for come to. */
static void waits(const struct Way *way, const char *device)
{
    static Life want, l;
    static Saved now;
    in_time(&want, way, device);
    open_life(&l, way, device);
    for (unsigned i = 0; i < SAVED; i++) {
        assert_int_equal(give(qcc_bind, &l.t, &batches[i]), QCC_OK);
        ask(&l, &want, i, !i);
    }
    save(&l, &now);
    same_states(&now, &want.between);
    wait_for(&l, &want, SAVED - 1);
    close_life(&l);
    open_life(&l, way, device);
    const qcc_source back = qcc_bytes(now.bytes, now.n);
    assert_int_equal(qcc_load(l.t.session, &back), QCC_OK);
    for (unsigned i = SAVED; i < STEPS; i++) {
        assert_int_equal(give(qcc_bind, &l.t, &batches[i]), QCC_OK);
        ask(&l, &want, i, i == SAVED);
    }
    wait_for(&l, &want, STEPS - 1);
    ends_the_same(&l, &want);
}

static void a_checkpoint_waits(void **state)
{
    (void)state;
    for (size_t d = 0; devices[d]; d++)
        for (size_t w = 0; w < 2; w++)
            waits(&ways[w ? MANY_SKIPPED : 1], devices[d]);
}

/* Gradients that the host looks at are without the scale that their step had, whoever committed it. */
static void gradients_have_no_scale(void **state)
{
    enum { EACH = 8 * FEATURES };
    static float want[STEPS][EACH];
    const char *const reference = "reference";
    (void)state;
    for (size_t d = 0; devices[d]; d++)
        for (int later = -1; later < 2; later++) { /* below 0: what it is to be */
            static Life l;
            open_life(&l, &ways[MANY_SKIPPED], later < 0 ? reference : devices[d]);
            for (unsigned i = 0; i < STEPS; i++) {
                qcc_tensor t = { .size = sizeof t };
                assert_int_equal(give(qcc_bind, &l.t, &batches[i]), QCC_OK);
                assert_int_equal(qcc_run(l.t.session, later > 0 ? LATER : QCC_STEP, NULL), QCC_OK);
                assert_int_equal(qcc_view(l.t.session, "grad.w1", &t), QCC_OK);
                assert_int_equal(t.bytes, sizeof want[i]);
                if (later < 0)
                    memcpy(want[i], t.data, t.bytes);
                assert_memory_equal(want[i], t.data, t.bytes);
            }
            close_life(&l);
        }
}

/* From the second recorded step on nobody waits until the device has nothing to do. */
static void is_never_idle(const struct Way *way, SimCountsFn *counts)
{
    static Life l;
    SimCounts before, now;
    open_life(&l, way, devices[0]);
    trainee_fill(&batches[NOT_FINITE], NOT_FINITE);
    assert_int_equal(give(qcc_bind, &l.t, &batches[0]), QCC_OK);
    for (unsigned i = 0; i < STEPS; i++) {
        assert_int_equal(give(qcc_bind_next, &l.t, &batches[i + 1]), QCC_OK);
        assert_int_equal(qcc_run(l.t.session, LATER, NULL), QCC_OK);
        if (i == 3)
            counts(&before);
    }
    counts(&now);
    assert_int_equal(now.drains, before.drains);
    assert_int_equal(now.graphs - before.graphs, STEPS - 4); /* a step is one graph */
    close_life(&l);
}

static void a_device_is_never_idle(void **state)
{
    (void)state;
    void *library = devices == anywhere ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
    SimCountsFn *counts = library ? (SimCountsFn *)(uintptr_t)dlsym(library, "simcuda_counts") : NULL;
    if (!counts)
        return;
    is_never_idle(&ways[1], counts);
    is_never_idle(&ways[SCALED_WAY], counts);
}

static const char words[] = "graph @f(%i: i64[?,2]) -> (%y) {\n"
                            "    param %table: f32[5,3] = kaiming(seed=1)\n"
                            "    %y: f32[?,2,3] = gather(%table, %i, axis=0)\n"
                            "}\n";

static void give_words(qcc_session *s, Binder *how, int64_t *i, float *target)
{
    const qcc_tensor in = { sizeof in, QCC_I64, 2, { 2, 2 }, i, 4 * sizeof *i },
                     out = { sizeof out, QCC_F32, 3, { 2, 2, 3 }, target, 12 * sizeof *target };
    assert_int_equal(how(s, "i", &in) | how(s, "target", &out), QCC_OK);
}

static int64_t good[4][4] = { { 0, 1, 2, 3 }, { 4, 4, 1, 0 }, { 1, 1, 2, 2 }, { 3, 0, 4, 2 } }, bad[4] = { 0, 5, 2, 3 };
static float target[12] = { 1, 2, 3 };

static void open_words(Life *l, const char *device)
{
    qcc_source source = qcc_bytes(words, sizeof words - 1);
    source.name = "words.qir";
    *l = (Life){ .cx = NULL };
    l->cx = open_with(&l->host);
    assert_int_equal(qcc_read(l->cx, &source, "--batch 2", &l->t.model), QCC_OK);
    assert_int_equal(qcc_compile(l->t.model, "--loss mse --optimizer adamw:lr=1e-1", &l->t.step), QCC_OK);
    assert_int_equal(qcc_start(l->t.step, &(qcc_session_options){ sizeof(qcc_session_options), device }, &l->t.session),
                     QCC_OK);
}

/* Without a device the error is told at once, and what was bound stays; `looks`: somebody looks before the next is asked for. */
static void refuse(Life *l, const qcc_result *first, bool looks)
{
    qcc_result r = { .size = sizeof r };
    qcc_tensor t = { .size = sizeof t };
    give_words(l->t.session, qcc_bind, bad, target);
    qcc_status status = qcc_run(l->t.session, LATER, &r);
    if (devices == anywhere) {
        assert_int_not_equal(status, QCC_OK);
        assert_int_equal(qcc_wait_step(l->t.session, &r), QCC_OK);
        same_step(&r, first);
        return;
    }
    assert_int_equal(status, QCC_OK);
    same_step(&r, first);
    give_words(l->t.session, qcc_bind, good[3], target); /* which is never run */
    status = looks ? qcc_view(l->t.session, "table", &t) : qcc_run(l->t.session, LATER, &r);
    assert_int_equal(status, QCC_INVALID);
    assert_non_null(strstr(l->host.text, "gather: an index leads out of what it is an index of"));
    assert_non_null(strstr(l->host.text, "step 2"));
    assert_int_equal(qcc_run(l->t.session, LATER, &r), QCC_USAGE);
    assert_non_null(strstr(l->host.text, "inputs without a value"));
}

/* A refused step never was, nor was the one behind it. */
static void a_refused_step_never_was(void **state)
{
    (void)state;
    for (size_t d = 0; devices[d]; d++)
        for (int looks = 0; looks < 2; looks++) {
            qcc_result want[3], r = { .size = sizeof r };
            static Life l;
            static float now[2][15];
            open_words(&l, devices[d]);
            for (int i = 0; i < 3; i++) {
                want[i].size = sizeof want[i];
                give_words(l.t.session, qcc_bind, good[i], target);
                assert_int_equal(qcc_run(l.t.session, QCC_STEP, &want[i]), QCC_OK);
            }
            assert_int_equal(qcc_get_flat(l.t.session, now[0], 15), QCC_OK);
            close_life(&l);
            open_words(&l, devices[d]);
            give_words(l.t.session, qcc_bind, good[0], target);
            assert_int_equal(qcc_run(l.t.session, LATER, NULL), QCC_OK);
            refuse(&l, &want[0], looks);
            for (int i = 1; i < 3; i++) {
                give_words(l.t.session, qcc_bind, good[i], target);
                assert_int_equal(qcc_run(l.t.session, LATER, &r), QCC_OK);
            }
            same_step(&r, &want[1]);
            assert_int_equal(qcc_wait_step(l.t.session, &r), QCC_OK);
            same_step(&r, &want[2]);
            assert_int_equal(qcc_get_flat(l.t.session, now[1], 15), QCC_OK);
            assert_memory_equal(now[0], now[1], sizeof now[0]);
            close_life(&l);
        }
}

static void what_cannot_be_later_is_refused(void **state)
{
    (void)state;
    for (size_t d = 0; devices[d]; d++) {
        static Life l;
        open_life(&l, &ways[1], devices[d]);
        assert_int_equal(give(qcc_bind, &l.t, &batches[0]), QCC_OK);
        assert_int_equal(qcc_run(l.t.session, QCC_FORWARD | QCC_LATER, NULL), QCC_USAGE);
        assert_non_null(strstr(l.host.text, "whole steps alone are told of later"));
        assert_int_equal(qcc_run(l.t.session, QCC_EVAL | QCC_LATER, NULL), QCC_USAGE);
        assert_int_equal(qcc_run(l.t.session, LATER | 128, NULL), QCC_USAGE);
        assert_int_equal(qcc_wait_step(NULL, NULL), QCC_USAGE);
        close_life(&l);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_told_with_its_number),
        cmocka_unit_test(whatever_is_in_between),
        cmocka_unit_test(a_checkpoint_waits),
        cmocka_unit_test(gradients_have_no_scale),
        cmocka_unit_test(a_device_is_never_idle),
        cmocka_unit_test(a_refused_step_never_was),
        cmocka_unit_test(what_cannot_be_later_is_refused),
    };
    if (argc > 1) {
        chosen[0] = argv[1];
        devices = chosen;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
