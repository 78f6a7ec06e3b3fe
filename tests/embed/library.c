/* The library as a host sees it: through libqcc.so and qcc.h alone. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "embed/models.h"

/* ---- files ---- */

static void copy_file(const char *from, const char *to)
{
    char block[4096];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    const size_t n = fread(block, 1, sizeof block, in);
    assert_in_range(n, 1, sizeof block - 1);
    assert_int_equal(fwrite(block, 1, n, out), n);
    fclose(in);
    fclose(out);
}

static void same_bytes(const char *path, const void *bytes, size_t n)
{
    char now[4096];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(now, 1, sizeof now, f), n);
    assert_memory_equal(now, bytes, n);
    fclose(f);
}

/* Whatever a model is written as, the files that it was read from stay, until it is freed. */
static void a_sink_spares_what_its_model_was_read_from(void **state)
{
    static const char *const others[] = { "spare.onnx", "w.bin", "./w.bin", "link.bin" };
    static const float w[6] = { 1, 2, 3, 4, 5, 6 };
    char folder[] = "/tmp/qcc-spare-XXXXXX", before[4096];
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    qcc_model *m, *other;
    (void)state;
    assert_non_null(mkdtemp(folder));
    const int here = open(".", O_RDONLY | O_DIRECTORY);
    assert_int_equal(chdir(folder), 0);
    copy_file(MODELS "external.onnx", "spare.onnx");
    FILE *f = fopen("w.bin", "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(w, 1, sizeof w, f), sizeof w);
    fclose(f);
    f = fopen("spare.onnx", "rb");
    assert_non_null(f);
    const size_t n = fread(before, 1, sizeof before, f);
    fclose(f);
    assert_int_equal(symlink("w.bin", "link.bin"), 0);
    assert_int_equal(read_file(cx, "spare.onnx", &m), QCC_OK);
    assert_int_equal(read_file(cx, MLP, &other), QCC_OK);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const qcc_sink sink = qcc_to_file(others[i]);
        h.text[0] = 0;
        assert_int_equal(qcc_export(m, NULL, &sink), QCC_USAGE);
        assert_non_null(strstr(h.text, i ? "is also external data of the model: it is not replaced"
                                         : "is also the model: it is not replaced"));
        assert_int_equal(qcc_emit(m, "dot", NULL, &sink), QCC_USAGE);
        same_bytes("w.bin", w, sizeof w);
        same_bytes("spare.onnx", before, n);
    }
    const qcc_sink copy = qcc_to_file("copy.onnx"), place = qcc_to_file("spare.onnx");
    assert_int_equal(qcc_export(m, NULL, &copy), QCC_OK);
    qcc_model_free(m);
    assert_int_equal(qcc_export(other, NULL, &place), QCC_OK);
    assert_int_equal(qcc_export(other, NULL, &place), QCC_OK); /* it was read elsewhere */
    qcc_close(cx);
    static const char *const all[] = { "copy.onnx", "spare.onnx", "w.bin", "link.bin" };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(remove(all[i]), 0);
    assert_int_equal(fchdir(here), 0);
    close(here);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- what it does ---- */

static void the_signature_has_names(void **state)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    qcc_model *m;
    qcc_value_info info = { .size = sizeof(qcc_value_info) };
    (void)state;
    assert_int_equal(read_file(cx, MLP, &m), QCC_OK);
    assert_int_equal(qcc_n_inputs(m), 1);
    assert_int_equal(qcc_n_outputs(m), 1);
    assert_int_equal(qcc_input(m, 0, &info), QCC_OK);
    assert_string_equal(info.name, "x");
    assert_string_equal(info.type, "f32[batch,4]");
    assert_int_equal(info.shape.rank, 2);
    assert_int_equal(info.shape.dims[0], -1);
    assert_int_equal(qcc_output(m, 0, &info), QCC_OK);
    assert_string_equal(info.type, "f32[batch,2]");
    assert_int_equal(qcc_output(m, 1, &info), QCC_USAGE);
    qcc_model_free(m);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
    assert_int_equal(h.bytes, 0);
}

static void a_model_runs_again_and_again(void **state)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    qcc_model *m;
    (void)state;
    assert_int_equal(read_file(cx, MLP, &m), QCC_OK);
    const qcc_tensor x = x_tensor();
    size_t after_first = 0;
    for (int i = 0; i < 20; i++) {
        qcc_tensor y = { .size = sizeof(qcc_tensor) };
        assert_int_equal(qcc_run_model(m, &x, 1, &y, 1), QCC_OK);
        assert_int_equal(y.rank, 2);
        assert_int_equal(y.dims[0], 3);
        assert_int_equal(y.bytes, 24);
        assert_true(((float *)y.data)[5] == 0.50390625f);
        if (i == 2)
            after_first = h.bytes;
        if (i > 2)
            assert_true(h.bytes <= after_first + (64u << 10)); /* nothing grows without end */
    }
    qcc_close(cx); /* the model goes with it */
    assert_int_equal(h.blocks, 0);
}

static void bytes_go_in_and_come_out(void **state)
{
    char file[2048];
    const size_t n = whole_file(MLP, file, sizeof file);
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    qcc_source sources[2] = { qcc_bytes(file, n), { .read = from_memory, .user = file, .size = n, .name = "host" } };
    (void)state;
    for (int i = 0; i < 2; i++) {
        Buffer out = { .n = 0 };
        const qcc_sink sink = { .write = to_buffer, .user = &out };
        qcc_model *m;
        assert_int_equal(qcc_read(cx, &sources[i], "--batch 3", &m), QCC_OK);
        assert_int_equal(qcc_export(m, NULL, &sink), QCC_OK);
        assert_int_equal(out.n, n);
        assert_memory_equal(out.p, file, n);
        out.n = 0;
        assert_int_equal(qcc_emit(m, "ir", NULL, &sink), QCC_OK);
        out.p[out.n] = 0;
        assert_non_null(strstr(out.p, "graph @mlp(%x: f32[3,4]) -> (%y)"));
        qcc_model_free(m);
    }
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* ---- what it does not ---- */

static void results_stay_untouched_on_errors(void **state)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    qcc_model *m = (qcc_model *)&h;
    (void)state;
    assert_int_equal(read_file(cx, MODELS "none.onnx", &m), QCC_IO);
    assert_int_equal(read_file(cx, MODELS "cut.onnx", &m), QCC_INVALID);
    assert_int_equal(read_file(cx, MODELS "dangling.onnx", &m), QCC_INVALID);
    assert_ptr_equal(m, &h);
    assert_int_equal(h.messages, 3);
    assert_string_equal(h.text,
                        MODELS "dangling.onnx: node 1 /Relu (Relu): reads nowhere, which nothing before it defines\n");

    const qcc_source source = qcc_file(MLP);
    assert_int_equal(qcc_read(cx, &source, "--bacth 3", &m), QCC_USAGE);
    assert_int_equal(qcc_read(cx, &source, "--emit ir", &m), QCC_USAGE);
    assert_ptr_equal(m, &h);
    assert_int_equal(read_file(cx, MLP, &m), QCC_OK);

    qcc_tensor x = x_tensor(), y;
    memset(&y, 0x5a, sizeof y);
    y.size = sizeof y;
    const qcc_tensor canary = y;
    x.dims[1] = 5;
    x.bytes = 60;
    assert_int_equal(qcc_run_model(m, &x, 1, &y, 1), QCC_INVALID);
    x.bytes = 59;
    assert_int_equal(qcc_run_model(m, &x, 1, &y, 1), QCC_USAGE);
    assert_int_equal(qcc_run_model(m, NULL, 0, &y, 1), QCC_USAGE);
    assert_memory_equal(&y, &canary, sizeof y);

    const qcc_context_options bad = { .size = sizeof bad, .report = host_report, .user = &h, .limits = "nods=3" };
    qcc_context *other = (qcc_context *)&h;
    assert_int_equal(qcc_open(&bad, &other), QCC_USAGE);
    assert_ptr_equal(other, &h);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void limits_hold(void **state)
{
    Host h = { 0 };
    qcc_context_options o = options_of(&h);
    qcc_context *cx;
    qcc_model *m;
    (void)state;
    o.limits = "nodes=3, name_bytes=100";
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    assert_int_equal(read_file(cx, MLP, &m), QCC_INVALID);
    assert_non_null(strstr(h.text, "limit nodes (3)"));
    qcc_close(cx);
    o.limits = NULL;
    o.memory = 16 << 10;
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    assert_int_equal(read_file(cx, MLP, &m), QCC_NO_MEMORY);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* Every request for memory is refused once: the call fails or does not notice, and nothing is lost. */
static void memory_may_run_out_anywhere(void **state)
{
    size_t failures = 0;
    (void)state;
    for (size_t n = 1; n < 10000; n++) {
        Host h = { .fail_at = n };
        const qcc_context_options o = options_of(&h);
        qcc_context *cx = NULL;
        qcc_model *m = NULL;
        const qcc_tensor x = x_tensor();
        qcc_tensor y = { .size = sizeof(qcc_tensor) };
        Buffer out = { .n = 0 };
        qcc_status status = qcc_open(&o, &cx);
        if (status == QCC_OK)
            status = work(cx, &m, &out);
        const size_t requests = h.requests;
        if (m && status == QCC_NO_MEMORY) { /* once there is memory again, it works */
            assert_int_equal(qcc_run_model(m, &x, 1, &y, 1), QCC_OK);
            assert_true(((float *)y.data)[5] == 0.50390625f);
        }
        qcc_close(cx);
        assert_int_equal(h.blocks, 0);
        assert_int_equal(h.bytes, 0);
        assert_true(status == QCC_OK || status == QCC_NO_MEMORY);
        failures += status == QCC_NO_MEMORY;
        if (requests < n)
            break;
    }
    assert_true(failures > 10);
}

static void older_and_odd_options_are_taken(void **state)
{
    qcc_context *cx = NULL;
    const qcc_context_options half = { .size = sizeof half, .alloc = host_alloc };
    const qcc_context_options tiny = { .size = 4 };
    (void)state;
    assert_int_equal(qcc_open(&half, &cx), QCC_USAGE);
    assert_int_equal(qcc_open(&tiny, &cx), QCC_USAGE);
    assert_int_equal(qcc_open(NULL, NULL), QCC_USAGE);
    assert_null(cx);
    const qcc_context_options old = { .size = offsetof(qcc_context_options, alloc), .alloc = host_alloc };
    assert_int_equal(qcc_open(&old, &cx), QCC_OK); /* what lies beyond its size is not looked at */
    qcc_close(cx);
    assert_int_equal(qcc_open(NULL, &cx), QCC_OK);
    qcc_close(cx);
    qcc_close(NULL);
    assert_string_equal(qcc_status_name(QCC_IO), "io");
    assert_string_equal(qcc_dtype_name(QCC_BF16), "bf16");
    assert_null(qcc_dtype_name((qcc_dtype)999));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_signature_has_names),
        cmocka_unit_test(a_model_runs_again_and_again),
        cmocka_unit_test(bytes_go_in_and_come_out),
        cmocka_unit_test(results_stay_untouched_on_errors),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(a_sink_spares_what_its_model_was_read_from),
        cmocka_unit_test(older_and_odd_options_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
