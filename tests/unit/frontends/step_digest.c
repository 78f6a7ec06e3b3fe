/* A step is used as it was written, or not at all: each byte of a STEP.onnx changed, and the file is refused or trains
 * to the same bits. */
#include "testing.h"

#include <stdlib.h>

#include "frontends/onnx/file/step_digest.h"
#include "qcc/qcc.h"

enum { MOST = 1 << 16, STATES = 1 << 12 };

#define MLP QCC_SOURCE_DIR "/tests/command/models/mlp.onnx"

typedef struct Bytes {
    unsigned char p[MOST];
    size_t n;
} Bytes;

typedef struct Outcome {
    qcc_status status; /* of reading and compiling */
    double loss;
    unsigned char states[STATES];
    size_t n;
} Outcome;

static char said[1 << 12];

static void hear(void *user, const qcc_message *m)
{
    (void)user;
    snprintf(said, sizeof said, "%s", m->text);
}

static qcc_status gather(void *user, const void *bytes, size_t n)
{
    Bytes *b = user;
    if (n > sizeof b->p - b->n)
        return QCC_IO;
    memcpy(b->p + b->n, bytes, n);
    b->n += n;
    return QCC_OK;
}

static qcc_context *open_context(void)
{
    qcc_context *cx;
    const qcc_context_options options = { .size = sizeof options, .report = hear, .threads = 1 };
    assert_int_equal(qcc_open(&options, &cx), QCC_OK);
    return cx;
}

static void write_step(Bytes *step)
{
    qcc_context *cx = open_context();
    const qcc_source file = qcc_file(MLP);
    const qcc_sink sink = { .write = gather, .user = step };
    qcc_model *m;
    qcc_step *s;
    step->n = 0;
    assert_int_equal(qcc_read(cx, &file, NULL, &m), QCC_OK);
    assert_int_equal(qcc_compile(m, "--batch 3 --loss mse --optimizer adamw:lr=0.01", &s), QCC_OK);
    assert_int_equal(qcc_write_step(s, &sink), QCC_OK);
    qcc_close(cx);
}

/* What a step does with one batch. */
static void train(const Bytes *step, const char *options, Outcome *o)
{
    static const float x[12] = { 0, .25f, .5f, .75f, 1, 1.25f, 1.5f, 1.75f, 2, 2.25f, 2.5f, 2.75f }, y[6] = { 1, 2, 3 };
    qcc_context *cx = open_context();
    const qcc_source source = qcc_bytes(step->p, step->n);
    const qcc_tensor in = { sizeof(qcc_tensor), QCC_F32, 2, { 3, 4 }, (void *)(uintptr_t)x, sizeof x },
                     out = { sizeof(qcc_tensor), QCC_F32, 2, { 3, 2 }, (void *)(uintptr_t)y, sizeof y };
    qcc_result result = { .size = sizeof result };
    qcc_model *m;
    qcc_step *s;
    qcc_session *run;
    memset(o, 0, sizeof *o);
    said[0] = 0;
    o->status = qcc_read(cx, &source, options, &m);
    if (o->status == QCC_OK)
        o->status = qcc_compile(m, NULL, &s);
    if (o->status == QCC_OK) {
        assert_int_equal(qcc_start(s, NULL, &run), QCC_OK);
        assert_int_equal(qcc_bind(run, "x", &in), QCC_OK);
        assert_int_equal(qcc_bind(run, "target", &out), QCC_OK);
        assert_int_equal(qcc_run(run, QCC_STEP, &result), QCC_OK);
        o->loss = result.loss;
        Bytes *saved = calloc(1, sizeof *saved);
        const qcc_sink sink = { .write = gather, .user = saved };
        assert_non_null(saved);
        assert_int_equal(qcc_save(run, &sink), QCC_OK);
        assert_in_range(saved->n, 1, STATES);
        memcpy(o->states, saved->p, saved->n);
        o->n = saved->n;
        free(saved);
    }
    qcc_close(cx);
}

static void every_changed_byte_is_refused_or_means_nothing(void **state)
{
    static Bytes step;
    static Outcome good, now;
    size_t refused = 0, same = 0;
    (void)state;
    write_step(&step);
    train(&step, NULL, &good);
    assert_int_equal(good.status, QCC_OK);
    assert_true(good.loss > 0);
    for (size_t i = 0; i < step.n; i++) {
        const unsigned char was = step.p[i];
        step.p[i] ^= i % 9 == 8 ? 0xff : 1u << i % 9;
        train(&step, NULL, &now);
        const bool equal = now.status == QCC_OK && now.loss == good.loss && now.n == good.n &&
                           memcmp(now.states, good.states, good.n) == 0;
        if (now.status == QCC_OK && (!equal || i < step.n - STEP_DIGEST_BYTES)) {
            print_error("byte %zu of %zu: %02x is now %02x, and taken\n", i, step.n, was, step.p[i]);
            assert_true(false);
        }
        refused += now.status != QCC_OK;
        same += equal;
        step.p[i] = was;
    }
    print_message("%zu bytes: %zu refused, %zu mean nothing\n", step.n, refused, same);
    assert_int_equal(refused + same, step.n);
    assert_in_range(same, 0, STEP_DIGEST_BYTES - STEP_DIGEST_DIGITS);
}

/* A step that somebody edited is taken when that is asked for, and said. */
static void a_change_can_be_accepted(void **state)
{
    static Bytes step;
    static Outcome o;
    (void)state;
    write_step(&step);
    step.p[step.n - 1] ^= 1;
    train(&step, NULL, &o);
    assert_int_equal(o.status, QCC_INVALID);
    assert_non_null(strstr(said, "has changed since it was written"));
    assert_non_null(strstr(said, "--accept-changed-step"));
    train(&step, "--accept-changed-step", &o);
    assert_int_equal(o.status, QCC_OK);
    assert_non_null(strstr(said, "warning: has changed since it was written: taken as it is now"));
}

/* Steps of before the digest, and what another program wrote behind it. */
static void a_step_may_lack_a_digest(void **state)
{
    static Bytes step;
    static Outcome o;
    (void)state;
    write_step(&step);
    step.n -= STEP_DIGEST_BYTES;
    train(&step, NULL, &o);
    assert_int_equal(o.status, QCC_OK);
    assert_non_null(strstr(said, "has no digest"));
    write_step(&step);
    static const unsigned char doc[] = { 0x32, 1, 'x' }; /* doc_string */
    memcpy(step.p + step.n, doc, sizeof doc);
    step.n += sizeof doc;
    train(&step, NULL, &o);
    assert_int_equal(o.status, QCC_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_changed_byte_is_refused_or_means_nothing),
        cmocka_unit_test(a_change_can_be_accepted),
        cmocka_unit_test(a_step_may_lack_a_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
