/* Weights of a session in mixed precision: whatever happens to a master, its shadow is the master rounded to nearest
 * even, bit for bit, and no file, list or vector shows it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/session/weights.h"
#include "base/half.h"
#include "ir/own_names.h"
#include "qcc/qcc.h"
#include "testing.h"

enum { BATCH = 4, WIDE = 8, ROOM = 1 << 16 };

#define MODEL   QCC_SOURCE_DIR "/tests/data/torch/mlp.onnx"
#define OPTIONS "--optimizer adam:lr=0.05 --ema 0.5 --amp "

typedef struct Trainee {
    qcc_context *cx;
    qcc_session *s;
    float x[BATCH * WIDE];
    int64_t target[BATCH];
    bool bf16;
} Trainee;

static void report(void *user, const qcc_message *m)
{
    (void)user;
    if (m->severity == QCC_ERROR)
        print_error("%s", m->text);
}

static void begin(Trainee *t, const char *narrow)
{
    char options[256];
    qcc_model *model;
    qcc_step *step;
    const qcc_source source = qcc_file(MODEL);
    const qcc_context_options how = { .size = sizeof how, .report = report, .threads = 1 };
    *t = (Trainee){ .bf16 = strcmp(narrow, "bf16") == 0 };
    snprintf(options, sizeof options, OPTIONS "%s", narrow);
    assert_int_equal(qcc_open(&how, &t->cx), QCC_OK);
    assert_int_equal(qcc_read(t->cx, &source, NULL, &model), QCC_OK);
    assert_int_equal(qcc_compile(model, options, &step), QCC_OK);
    assert_int_equal(qcc_start(step, NULL, &t->s), QCC_OK);
}

static qcc_result step(Trainee *t, unsigned what, float factor)
{
    qcc_result r = { .size = sizeof r };
    const qcc_tensor x = { sizeof(qcc_tensor), QCC_F32, 2, { BATCH, WIDE }, t->x, sizeof t->x },
                     target = { sizeof(qcc_tensor), QCC_I64, 1, { BATCH }, t->target, sizeof t->target };
    for (int i = 0; i < BATCH * WIDE; i++)
        t->x[i] = factor * (float)((i * 37 + 11) % 23 - 11) / 8;
    for (int i = 0; i < BATCH; i++)
        t->target[i] = i % 5;
    assert_int_equal(qcc_bind(t->s, "x", &x), QCC_OK);
    assert_int_equal(qcc_bind(t->s, "target", &target), QCC_OK);
    assert_int_equal(qcc_run(t->s, what, &r), QCC_OK);
    return r;
}

static const char *const weights[] = { "fc1.weight", "fc2.weight", "fc3.weight" };

static void shadows_are_rounded_masters(Trainee *t)
{
    for (size_t i = 0; i < COUNT(weights); i++) {
        char name[64];
        qcc_tensor shadow = { .size = sizeof(qcc_tensor) }, master = { .size = sizeof(qcc_tensor) };
        snprintf(name, sizeof name, SHADOW_PREFIX "%s", weights[i]);
        assert_int_equal(qcc_view(t->s, name, &shadow), QCC_OK);
        assert_int_equal(qcc_view(t->s, weights[i], &master), QCC_OK);
        assert_int_equal(shadow.dtype, t->bf16 ? QCC_BF16 : QCC_F16);
        assert_int_equal(2 * shadow.bytes, master.bytes);
        for (size_t k = 0; k < shadow.bytes / 2; k++) {
            const float x = ((const float *)master.data)[k];
            assert_int_equal(((const uint16_t *)shadow.data)[k], t->bf16 ? bf16_from_f32(x) : f16_from_f32(x));
        }
    }
}

static void copy_view(Trainee *t, const char *name, void *to, size_t n)
{
    qcc_tensor x = { .size = sizeof(qcc_tensor) };
    assert_int_equal(qcc_view(t->s, name, &x), QCC_OK);
    assert_int_equal(x.bytes, n);
    memcpy(to, x.data, n);
}

/* ---- what happens to masters ---- */

static void steps(Trainee *t)
{
    shadows_are_rounded_masters(t);
    for (int i = 0; i < 5; i++) {
        assert_true(step(t, QCC_STEP, 1).applied);
        shadows_are_rounded_masters(t);
    }
}

static void a_skipped_step(Trainee *t)
{
    uint16_t before[24 * 8], after[24 * 8];
    copy_view(t, "qcc.shadow/fc1.weight", before, sizeof before);
    assert_false(step(t, QCC_STEP, INFINITY).applied);
    copy_view(t, "qcc.shadow/fc1.weight", after, sizeof after);
    assert_memory_equal(before, after, sizeof before);
    shadows_are_rounded_masters(t);
}

static void a_write(Trainee *t)
{
    float w[24 * 8];
    const qcc_tensor value = { sizeof(qcc_tensor), QCC_F32, 2, { 24, 8 }, w, sizeof w };
    for (int i = 0; i < 24 * 8; i++)
        w[i] = 0.1f + (float)i * 0.001f;
    assert_int_equal(qcc_put(t->s, "fc1.weight", &value), QCC_OK);
    shadows_are_rounded_masters(t);
    step(t, QCC_FORWARD, 1);
    w[0] = 1.00390625f; /* in the middle of a step */
    assert_int_equal(qcc_put(t->s, "fc1.weight", &value), QCC_OK);
    shadows_are_rounded_masters(t);
    assert_int_equal(qcc_run(t->s, QCC_BACKWARD | QCC_UPDATE, NULL), QCC_OK);
    shadows_are_rounded_masters(t);
}

static void a_flat_write(Trainee *t)
{
    const size_t n = qcc_flat_size(t->s);
    float *all = test_calloc(n, sizeof *all);
    assert_int_equal(n, 24 * 8 + 24 + 16 * 24 + 16 + 5 * 16 + 5); /* masters alone */
    assert_int_equal(qcc_get_flat(t->s, all, n), QCC_OK);
    for (size_t i = 0; i < n; i++)
        all[i] *= 1.0123f;
    assert_int_equal(qcc_set_flat(t->s, all, n), QCC_OK);
    shadows_are_rounded_masters(t);
    step(t, QCC_FORWARD, 1);
    for (size_t i = 0; i < n; i++)
        all[i] *= 0.987f;
    assert_int_equal(qcc_set_flat(t->s, all, n), QCC_OK); /* in the middle of a step */
    shadows_are_rounded_masters(t);
    assert_int_equal(qcc_run(t->s, QCC_BACKWARD | QCC_UPDATE, NULL), QCC_OK);
    shadows_are_rounded_masters(t);
    test_free(all);
}

typedef struct Bytes {
    char data[ROOM];
    size_t n;
} Bytes;

static qcc_status append(void *user, const void *bytes, size_t n)
{
    Bytes *b = user;
    if (b->n + n > ROOM)
        return QCC_IO;
    memcpy(b->data + b->n, bytes, n);
    b->n += n;
    return QCC_OK;
}

static bool has_text(const Bytes *b, const char *text)
{
    for (size_t i = 0; i + strlen(text) <= b->n; i++)
        if (memcmp(b->data + i, text, strlen(text)) == 0)
            return true;
    return false;
}

/* Saved, trained on, and put back: into this session and into another one, which goes on alike. */
static void a_load(Trainee *t)
{
    static Bytes file;
    Trainee other;
    float here[24 * 8], there[24 * 8];
    const qcc_sink sink = { .write = append, .user = &file };
    file.n = 0;
    assert_int_equal(qcc_save(t->s, &sink), QCC_OK);
    assert_true(has_text(&file, "\"fc1.weight\"") && !has_text(&file, "qcc.shadow"));
    const qcc_source source = qcc_bytes(file.data, file.n);
    for (int i = 0; i < 3; i++)
        step(t, QCC_STEP, 1);
    assert_int_equal(qcc_load(t->s, &source), QCC_OK);
    shadows_are_rounded_masters(t);
    begin(&other, t->bf16 ? "bf16" : "fp16");
    step(&other, QCC_FORWARD, 1);
    assert_int_equal(qcc_load(other.s, &source), QCC_OK);
    shadows_are_rounded_masters(&other);
    for (int i = 0; i < 3; i++) {
        step(t, QCC_STEP, 1);
        step(&other, QCC_STEP, 1);
    }
    copy_view(t, "fc1.weight", here, sizeof here);
    copy_view(&other, "fc1.weight", there, sizeof there);
    assert_memory_equal(here, there, sizeof here);
    shadows_are_rounded_masters(&other);
    qcc_close(other.cx);
}

static Status swap_in(void *session)
{
    return session_deploy(session);
}

/* Averaged weights in place of the last ones. */
static void a_swap(Trainee *t)
{
    float last[24 * 8], now[24 * 8];
    copy_view(t, "fc1.weight", last, sizeof last);
    assert_int_equal(context_call(t->cx, swap_in, t->s), QCC_OK);
    copy_view(t, "fc1.weight", now, sizeof now);
    assert_memory_not_equal(last, now, sizeof last);
    shadows_are_rounded_masters(t);
    step(t, QCC_STEP, 1);
    shadows_are_rounded_masters(t);
}

static void a_refused_write(Trainee *t)
{
    uint16_t w[24 * 8] = { 0 };
    const qcc_tensor value = { sizeof(qcc_tensor), t->bf16 ? QCC_BF16 : QCC_F16, 2, { 24, 8 }, w, sizeof w };
    t->cx->options.report = NULL;
    assert_int_equal(qcc_put(t->s, "qcc.shadow/fc1.weight", &value), QCC_USAGE);
    shadows_are_rounded_masters(t);
}

static void shadows_follow(void **state)
{
    static void (*const events[])(Trainee *) = { steps,  a_skipped_step, a_write,        a_flat_write,
                                                 a_load, a_swap,         a_skipped_step, a_refused_write };
    static const char *const widths[] = { "bf16", "fp16" };
    (void)state;
    for (size_t k = 0; k < COUNT(widths); k++) {
        Trainee t;
        begin(&t, widths[k]);
        for (size_t i = 0; i < COUNT(events); i++)
            events[i](&t);
        qcc_close(t.cx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(shadows_follow) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
