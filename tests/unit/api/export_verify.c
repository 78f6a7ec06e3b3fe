/* --verify can fail: on a file with other weights than those that were trained. */
#include <stdlib.h>
#include <unistd.h>

#include "api/verbs/export.h"
#include "testing.h"

typedef struct Trial {
    qcc_context *cx;
    const char *model; /* what is trained */
    const char *file;  /* what is taken for its export */
    Text said;
    bool passed, equal; /* what the table says */
    char messages[2048];
} Trial;

static void report(void *user, const qcc_message *m)
{
    Trial *t = user;
    const size_t n = strlen(t->messages);
    snprintf(t->messages + n, sizeof t->messages - n, "%s", m->text);
}

static qcc_status append(void *user, const void *p, size_t n)
{
    text_bytes(user, p, n);
    return QCC_OK;
}

static Status compare(void *arg)
{
    Trial *t = arg;
    Command c = { .cx = t->cx };
    Exported e = { .path = t->file };
    Out out;
    qcc_model *m;
    char csv[] = "/tmp/qcc.verify.XXXXXX.csv", verify[64];
    const int fd = mkstemps(csv, 4);
    assert_int_equal(write(fd, "1,0,2,1\n0,1,1,3\n-1,2,0,1\n", 25), 25);
    close(fd);
    snprintf(verify, sizeof verify, "x=%s", csv);
    const char *words[] = { "--export", t->model, "--batch", "2", "--verify", verify };
    text_open(&t->said, &t->cx->scratch);
    TRY(options_read(&t->cx->diag, &t->cx->scratch, (int)COUNT(words), words, &c.line));
    TRY(out_open(&out, t->cx, &(qcc_sink){ .write = append, .user = &t->said }));
    c.out = &out;
    TRY(command_model(&c, 0, &m));
    TRY(step_compile(m, &c.line, &e.step));
    TRY(session_start(e.step, 0, NULL, &e.session));
    TRY(export_verify_data(&c, &e));
    const Status status = export_verify(&c, &e);
    unlink(csv);
    t->passed = strstr(text_get(&t->said), "PASSED") != NULL;
    t->equal = strstr(text_get(&t->said), "graph   100 %") != NULL;
    return out_close(&out, status);
}

static void begin(Trial *t)
{
    const qcc_context_options o = { .size = sizeof o, .report = report, .user = t, .threads = 1 };
    *t = (Trial){ .model = QCC_SOURCE_DIR "/tests/command/models/mlp.onnx" };
    assert_int_equal(qcc_open(&o, &t->cx), QCC_OK);
}

static void the_model_itself_passes(void **state)
{
    Trial t = { 0 };
    (void)state;
    begin(&t);
    t.file = t.model;
    assert_int_equal(context_call(t.cx, compare, &t), QCC_OK);
    assert_true(t.passed && t.equal);
    qcc_close(t.cx);
}

/* The same nodes, with one weight changed. */
static void other_weights_fail(void **state)
{
    Trial t = { 0 };
    char other[] = "/tmp/qcc.verify.XXXXXX.onnx";
    static const float weight[] = { 1, 2, 3, 4, 5, 6 };
    (void)state;
    begin(&t);
    const int fd = mkstemps(other, 5);
    close(fd);
    qcc_model *m;
    qcc_step *s;
    qcc_session *run;
    const qcc_source from = qcc_file(t.model);
    const qcc_sink to = qcc_to_file(other);
    const qcc_tensor w = { sizeof(qcc_tensor), QCC_F32, 2, { 3, 2 }, (void *)(uintptr_t)weight, sizeof weight };
    assert_int_equal(qcc_read(t.cx, &from, "", &m), QCC_OK);
    assert_int_equal(qcc_compile(m, "", &s), QCC_OK);
    assert_int_equal(qcc_start(s, NULL, &run), QCC_OK);
    assert_int_equal(qcc_put(run, "onnx::MatMul_9", &w), QCC_OK);
    assert_int_equal(qcc_export_session(run, "", &to), QCC_OK);
    t.file = other;
    assert_int_equal(context_call(t.cx, compare, &t), QCC_MISMATCH);
    assert_false(t.passed || t.equal);
    assert_true(strstr(t.messages, "is not the state that was trained") != NULL);
    unlink(other);
    qcc_close(t.cx);
}

/* A weight of more bytes than any that is shown to infer: it is read when it is compared, and again when the file runs. */
static void weights_that_are_read_late_are_read_again(void **state)
{
    Trial t = { 0 };
    char large[] = "/tmp/qcc.verify.XXXXXX.onnx";
    static const char text[] = "graph @net(%x: f32[?,4]) -> (%y) {\n"
                               "    param %v: f32[4,700] = kaiming(seed=1)\n"
                               "    param %w: f32[700,700] = kaiming(seed=2)\n"
                               "    %h: f32[?,700] = matmul(%x, %v)\n"
                               "    %y: f32[?,700] = matmul(%h, %w)\n"
                               "}\n";
    (void)state;
    begin(&t);
    const int fd = mkstemps(large, 5);
    close(fd);
    static float values[700 * 700];
    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = (float)(i % 7) - 3;
    qcc_model *m;
    qcc_step *s;
    qcc_session *run;
    const qcc_tensor v = { sizeof(qcc_tensor), QCC_F32, 2, { 4, 700 }, values, 4 * 700 * sizeof(float) };
    const qcc_tensor w = { sizeof(qcc_tensor), QCC_F32, 2, { 700, 700 }, values, sizeof values };
    qcc_source from = qcc_bytes(text, sizeof text - 1);
    const qcc_sink to = qcc_to_file(large);
    from.name = "net.qir";
    assert_int_equal(qcc_read(t.cx, &from, "", &m), QCC_OK);
    assert_int_equal(qcc_compile(m, "--batch 2", &s), QCC_OK);
    assert_int_equal(qcc_start(s, NULL, &run), QCC_OK);
    assert_int_equal(qcc_put(run, "v", &v), QCC_OK);
    assert_int_equal(qcc_put(run, "w", &w), QCC_OK);
    assert_int_equal(qcc_export_session(run, "", &to), QCC_OK);
    t.model = t.file = large;
    assert_int_equal(context_call(t.cx, compare, &t), QCC_OK);
    assert_true(t.passed && t.equal);
    unlink(large);
    qcc_close(t.cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_itself_passes),
        cmocka_unit_test(other_weights_fail),
        cmocka_unit_test(weights_that_are_read_late_are_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
