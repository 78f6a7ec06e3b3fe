/* What a session leaves: checkpoints as bytes and as files, models, steps. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "embed/trainee.h"

static void checkpoints_are_bytes(void **state)
{
    static Bytes file, again;
    Host h = { 0 };
    Trainee a, b;
    qcc_context *cx = open_with(&h);
    float want[FLAT], got[FLAT];
    uint64_t seed = 99;
    const qcc_tensor value = { sizeof(qcc_tensor), QCC_U64, 0, { 0 }, &seed, sizeof seed };
    const char *text;
    (void)state;
    trainee_open(&a, cx, TRAINEE_OPTIONS);
    assert_int_equal(qcc_put(a.session, "seed", &value), QCC_OK);
    trainee_run(&a, 0, 5);
    for (int i = 0; i < 40; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%d", i % 10);
        assert_int_equal(qcc_set_property(a.session, key, i % 10 == 3 ? NULL : "a \"text\", an \xc3\xa9"), QCC_OK);
    }
    const qcc_sink sink = bytes_sink(&file), second = bytes_sink(&again);
    assert_int_equal(qcc_save(a.session, &sink), QCC_OK);
    assert_int_equal(qcc_save(a.session, &second), QCC_OK);
    assert_int_equal(file.n, again.n);
    assert_memory_equal(file.p, again.p, file.n);
    trainee_run(&a, 5, 9);
    trainee_flat(&a, want);
    for (int i = 0; i < 3; i++) { /* by callback, from memory, from a file */
        char path[] = "embed-XXXXXX.safetensors";
        const int fd = i == 2 ? mkstemps(path, 12) : -1;
        const qcc_source sources[] = { bytes_source(&file), qcc_bytes(file.p, file.n), qcc_file(path) };
        trainee_open(&b, cx, TRAINEE_OPTIONS);
        trainee_run(&b, 0, 2);
        assert_int_equal(qcc_run(b.session, QCC_FORWARD | QCC_BACKWARD | QCC_ACCUMULATE, NULL), QCC_OK);
        assert_int_equal(qcc_set_property(b.session, "mine", "goes"), QCC_OK);
        if (fd >= 0) {
            assert_int_equal(write(fd, file.p, file.n), (ssize_t)file.n);
            close(fd);
        }
        assert_int_equal(qcc_load(b.session, &sources[i]), QCC_OK);
        assert_int_equal(qcc_run(b.session, QCC_UPDATE, NULL), QCC_USAGE); /* what was under way is forgotten */
        assert_int_equal(qcc_get_property(b.session, "mine", &text), QCC_OK);
        assert_null(text);
        assert_int_equal(qcc_get_property(b.session, "key3", &text), QCC_OK);
        assert_null(text);
        assert_int_equal(qcc_get_property(b.session, "key9", &text), QCC_OK);
        assert_string_equal(text, "a \"text\", an \xc3\xa9");
        trainee_run(&b, 5, 9);
        trainee_flat(&b, got);
        assert_memory_equal(want, got, sizeof want);
        qcc_end(b.session);
        if (fd >= 0)
            unlink(path);
    }
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void a_checkpoint_of_a_path_is_the_same(void **state)
{
    static Bytes bytes;
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    const qcc_sink to_bytes = bytes_sink(&bytes), to_file = qcc_to_file("embed-session.safetensors");
    static char file[sizeof bytes.p];
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    trainee_run(&t, 0, 2);
    assert_int_equal(qcc_save(t.session, &to_bytes), QCC_OK);
    assert_int_equal(qcc_save(t.session, &to_file), QCC_OK);
    const int fd = open("embed-session.safetensors", O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, file, sizeof file), (ssize_t)bytes.n);
    close(fd);
    unlink("embed-session.safetensors");
    assert_memory_equal(file, bytes.p, bytes.n);
    qcc_close(cx);
}

/* Whatever is wrong with a checkpoint, the session goes on as if it had not been asked. */
static void a_load_that_fails_changes_nothing(void **state)
{
    static Bytes file, bad;
    Host h = { 0 };
    Trainee a, b;
    qcc_context *cx = open_with(&h);
    float want[FLAT], got[FLAT];
    const char *text;
    (void)state;
    trainee_after(6, want);
    trainee_open(&a, cx, TRAINEE_OPTIONS);
    trainee_run(&a, 0, 2);
    const qcc_sink sink = bytes_sink(&file);
    assert_int_equal(qcc_save(a.session, &sink), QCC_OK);
    trainee_open(&b, cx, TRAINEE_OPTIONS);
    trainee_run(&b, 0, 3);
    assert_int_equal(qcc_set_property(b.session, "mine", "stays"), QCC_OK);
    unsigned refused = 0;
    for (size_t cut = 0; cut < file.n; cut += 97) { /* cut short, and with one bit turned */
        bad = file;
        bad.n = cut;
        qcc_source source = qcc_bytes(bad.p, bad.n);
        refused += qcc_load(b.session, &source) != QCC_OK;
        bad = file;
        bad.p[cut] ^= 4;
        source = bytes_source(&bad);
        refused += qcc_load(b.session, &source) != QCC_OK;
        bad = file;
        bad.fail_at = cut + 1; /* the host fails */
        source = bytes_source(&bad);
        refused += qcc_load(b.session, &source) != QCC_OK;
    }
    assert_int_equal(refused, 3 * ((file.n + 96) / 97));
    const qcc_source none[] = { { 0 }, qcc_file("no-such.safetensors"), qcc_file("/") };
    for (size_t i = 0; i < 3; i++)
        assert_int_not_equal(qcc_load(b.session, &none[i]), QCC_OK);
    assert_int_equal(qcc_get_property(b.session, "mine", &text), QCC_OK);
    assert_string_equal(text, "stays");
    trainee_run(&b, 3, 6);
    trainee_flat(&b, got);
    assert_memory_equal(want, got, sizeof want);

    /* So does one of another step. */
    Trainee other;
    trainee_open(&other, cx, "--loss mse --optimizer sgd:lr=1e-2");
    const qcc_source source = qcc_bytes(file.p, file.n);
    assert_int_equal(qcc_load(other.session, &source), QCC_USAGE);
    bad.n = 0;
    bad.fail_at = 100;
    const qcc_sink full = { .write = bytes_put, .user = &bad };
    assert_int_equal(qcc_save(b.session, &full), QCC_IO);
    const qcc_sink nowhere = { .path = "/no/such/folder/x.safetensors" }, nothing = { .path = NULL };
    assert_int_equal(qcc_save(b.session, &nowhere), QCC_IO);
    assert_int_equal(qcc_save(b.session, &nothing), QCC_USAGE);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* In fp16 with the signature of f32: the results are close to those of @eval. */
static void exports_narrow(qcc_context *cx, Trainee *t)
{
    static Bytes model;
    const qcc_sink sink = bytes_sink(&model);
    qcc_model *m;
    qcc_tensor narrow = { .size = sizeof(qcc_tensor) }, ours = { .size = sizeof(qcc_tensor) }, x = trainee_tensor(t->x);
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    assert_int_equal(qcc_export_session(t->session, "--dtype fp16", &sink), QCC_OK);
    qcc_source source = qcc_bytes(model.p, model.n);
    assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
    assert_int_equal(qcc_input(m, 0, &v), QCC_OK);
    assert_int_equal(v.shape.dtype, QCC_F16);
    qcc_model_free(m);
    model.n = 0;
    assert_int_equal(qcc_export_session(t->session, "--dtype fp16 --keep-io '*' --max-casts 2", &sink), QCC_OK);
    source = qcc_bytes(model.p, model.n);
    assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
    assert_int_equal(qcc_run_model(m, &x, 1, &narrow, 1), QCC_OK);
    assert_int_equal(qcc_run(t->session, QCC_EVAL, NULL), QCC_OK);
    assert_int_equal(qcc_view(t->session, "logits", &ours), QCC_OK);
    assert_int_equal(narrow.bytes, ours.bytes);
    for (size_t i = 0; i < ours.bytes / sizeof(float); i++)
        assert_true(fabsf(((const float *)narrow.data)[i] - ((const float *)ours.data)[i]) < 0.02F);
    assert_memory_not_equal(narrow.data, ours.data, ours.bytes);
    qcc_model_free(m);
}

static void models_and_steps_come_out(void **state)
{
    static Bytes model, step, twice;
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    trainee_run(&t, 0, 3);
    qcc_sink sink = bytes_sink(&model);
    assert_int_equal(qcc_export_session(t.session, "--for trt", &sink), QCC_USAGE);
    assert_int_equal(qcc_export_session(t.session, "--batch 3", &sink), QCC_USAGE);
    assert_int_equal(qcc_export_session(t.session, "--nonsense", &sink), QCC_USAGE);
    assert_int_equal(qcc_export_session(t.session, "--keep-io '*'", &sink), QCC_USAGE);
    assert_int_equal(qcc_export_session(t.session, "--dtype fp16 --keep-io '*' --max-casts 1", &sink), QCC_MISMATCH);
    assert_int_equal(model.n, 0);
    exports_narrow(cx, &t);
    assert_int_equal(qcc_export_session(t.session, "--for float --max-casts 0", &sink), QCC_OK);

    /* The exported model says what @eval said. */
    qcc_source source = qcc_bytes(model.p, model.n);
    qcc_model *m;
    qcc_tensor deployed = { .size = sizeof(qcc_tensor) }, ours = { .size = sizeof(qcc_tensor) },
               x = trainee_tensor(t.x);
    source.name = "net.onnx";
    assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
    assert_int_equal(qcc_run_model(m, &x, 1, &deployed, 1), QCC_OK);
    assert_int_equal(qcc_run(t.session, QCC_EVAL, NULL), QCC_OK);
    assert_int_equal(qcc_view(t.session, "logits", &ours), QCC_OK);
    assert_int_equal(deployed.bytes, ours.bytes);
    assert_memory_equal(deployed.data, ours.data, ours.bytes);

    /* A step that was written and read again is the same step. */
    sink = bytes_sink(&step);
    assert_int_equal(qcc_write_step(t.step, &sink), QCC_OK);
    source = qcc_bytes(step.p, step.n);
    source.name = "step.onnx";
    Trainee u = { .model = NULL };
    assert_int_equal(qcc_read(cx, &source, NULL, &u.model), QCC_OK);
    assert_int_equal(qcc_compile(u.model, "--optimizer sgd", &u.step), QCC_USAGE);
    assert_non_null(strstr(h.text, "was decided when the step was compiled"));
    assert_int_equal(qcc_compile(u.model, NULL, &u.step), QCC_OK);
    assert_int_equal(qcc_start(u.step, NULL, &u.session), QCC_OK);
    assert_int_equal(trainee_bind(&u), QCC_OK);
    trainee_run(&u, 0, 8);
    float want[FLAT], got[FLAT];
    trainee_after(8, want);
    trainee_flat(&u, got);
    assert_memory_equal(want, got, sizeof want);
    sink = bytes_sink(&twice);
    assert_int_equal(qcc_write_step(u.step, &sink), QCC_OK);
    assert_int_equal(twice.n, step.n);
    assert_memory_equal(twice.p, step.p, step.n);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_are_bytes),
        cmocka_unit_test(a_checkpoint_of_a_path_is_the_same),
        cmocka_unit_test(a_load_that_fails_changes_nothing),
        cmocka_unit_test(models_and_steps_come_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
