/* The library as a host sees it: through libqcc.so and qcc.h alone. */
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "embed/host.h"

#define MODELS QCC_SOURCE_DIR "/tests/command/models/"
#define MLP    MODELS "mlp.onnx"

static qcc_status read_file(qcc_context *cx, const char *path, qcc_model **model)
{
    const qcc_source source = qcc_file(path);
    return qcc_read(cx, &source, NULL, model);
}

static qcc_tensor x_tensor(void)
{
    static float x[12] = { 0, .25f, .5f, .75f, 1, 1.25f, 1.5f, 1.75f, 2, 2.25f, 2.5f, 2.75f };
    return (qcc_tensor){ QCC_F32, 2, { 3, 4 }, x, sizeof x };
}

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
    qcc_value_info info;
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
        qcc_tensor y;
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

typedef struct Buffer {
    char p[4096];
    size_t n;
} Buffer;

static qcc_status to_buffer(void *user, const void *bytes, size_t n)
{
    Buffer *b = user;
    if (n > sizeof b->p - b->n)
        return QCC_IO;
    memcpy(b->p + b->n, bytes, n);
    b->n += n;
    return QCC_OK;
}

static size_t whole_file(const char *path, char *out, size_t most)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    const ssize_t n = read(fd, out, most);
    close(fd);
    assert_true(n > 0);
    return (size_t)n;
}

static qcc_status from_memory(void *user, uint64_t offset, void *buffer, size_t n)
{
    memcpy(buffer, (const char *)user + offset, n);
    return QCC_OK;
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

/* What the sweep below does with one context. */
static qcc_status work(qcc_context *cx, qcc_model **m, Buffer *out)
{
    const qcc_tensor x = x_tensor();
    const qcc_sink sink = { .write = to_buffer, .user = out };
    const char *const lines[][5] = {
        { "qcc", "explain", MLP, "--node", "fc1" },
        { "qcc", "diff", MLP, MODELS "other.onnx", "--seed=3" },
        { "qcc", "run", MODELS "two.onnx", "--input", "a=" MODELS "a.npy" },
        { "qcc", MODELS "fixed.onnx", "--batch=3", "--emit", "ir" },
    };
    static const qcc_status want[] = { QCC_OK, QCC_OK, QCC_USAGE, QCC_OK };
    qcc_tensor y;
    qcc_status status = read_file(cx, MLP, m);
    if (status == QCC_OK)
        status = qcc_run_model(*m, &x, 1, &y, 1);
    if (status == QCC_OK)
        status = qcc_emit(*m, "ir", NULL, &sink);
    for (size_t i = 0; status == QCC_OK && i < sizeof want / sizeof *want; i++) {
        out->n = 0;
        status = qcc_command(cx, 5, lines[i], &sink);
        if (status == want[i])
            status = QCC_OK;
    }
    return status;
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
        qcc_tensor y;
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

static void *one_of_many(void *arg)
{
    Host h = { 0 };
    qcc_status *status = arg;
    for (int i = 0; i < 20; i++) {
        qcc_context *cx = open_with(&h);
        qcc_model *m = NULL;
        Buffer out = { .n = 0 };
        *status = work(cx, &m, &out);
        qcc_close(cx);
        if (*status != QCC_OK || h.blocks)
            break;
    }
    return NULL;
}

static void contexts_are_independent(void **state)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    qcc_status status[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, one_of_many, &status[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(status[i], QCC_OK);
    }
}

/* Stops the context after a while. */
static void *interrupter(void *arg)
{
    const struct timespec while_ = { .tv_nsec = 50 * 1000 * 1000 };
    nanosleep(&while_, NULL);
    qcc_interrupt(arg);
    return NULL;
}

static void a_run_can_be_interrupted(void **state)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    qcc_model *m;
    pthread_t thread;
    struct timespec before, after;
    int64_t zero = 0;
    const qcc_tensor x = { QCC_I64, 0, { 0 }, &zero, sizeof zero };
    qcc_tensor y;
    (void)state;
    assert_int_equal(read_file(cx, MODELS "endless.onnx", &m), QCC_OK);
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_int_equal(pthread_create(&thread, NULL, interrupter, cx), 0);
    assert_int_equal(qcc_run_model(m, &x, 1, &y, 1), QCC_INTERRUPTED);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true((double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) * 1e-9 < 2);
    assert_int_equal(read_file(cx, MLP, &m), QCC_OK); /* it goes on afterwards */
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void numbers_do_not_follow_the_locale(void **state)
{
    Host h = { 0 };
    Buffer out = { .n = 0 };
    const qcc_sink sink = { .write = to_buffer, .user = &out };
    const char *const argv[] = { "qcc", "run", MLP, "--input", "x=" MODELS "x.npy" };
    (void)state;
    if (!comma_locale("locales")) {
        print_message("skipped: no locale with a comma can be made here; package locales\n");
        skip();
    }
    qcc_context *cx = open_with(&h);
    assert_int_equal(qcc_command(cx, 5, argv, &sink), QCC_OK);
    qcc_close(cx);
    char half[8];
    snprintf(half, sizeof half, "%.1f", 0.5);
    setlocale(LC_ALL, "C");
    assert_string_equal(half, "0,5"); /* the host's own stays */
    out.p[out.n] = 0;
    assert_non_null(strstr(out.p, "max 0.503906"));
}

static void a_closed_pipe_is_an_error_not_a_signal(void **state)
{
    Host h = { 0 };
    int fds[2];
    const char *const argv[] = { "qcc", "explain", MLP };
    const qcc_sink sink = qcc_to_file("-");
    (void)state;
    assert_int_equal(pipe(fds), 0);
    close(fds[0]);
    qcc_context *cx = open_with(&h);
    const int saved = dup(1);
    dup2(fds[1], 1);
    const qcc_status status = qcc_command(cx, 3, argv, &sink);
    dup2(saved, 1);
    close(saved);
    close(fds[1]);
    assert_int_equal(status, QCC_IO);
    assert_string_equal(h.text, "standard output: cannot be written: Broken pipe\n");
    qcc_close(cx);
}

static qcc_status drop(void *user, const void *bytes, size_t n)
{
    (void)user;
    (void)bytes;
    (void)n;
    return QCC_OK;
}

static qcc_status reenter(void *user, const void *bytes, size_t n)
{
    Host *h = user;
    qcc_model *m = NULL;
    (void)bytes;
    (void)n;
    h->reentered = read_file(h->context, MLP, &m);
    qcc_close(h->context); /* ignored */
    return QCC_OK;
}

static void callbacks_find_it_busy(void **state)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    qcc_model *m;
    const qcc_sink sink = { .write = reenter, .user = &h };
    (void)state;
    h.context = cx;
    assert_int_equal(read_file(cx, MLP, &m), QCC_OK);
    assert_int_equal(qcc_emit(m, "ir", NULL, &sink), QCC_OK);
    assert_int_equal(h.reentered, QCC_BUSY);
    qcc_close(cx);
}

static void a_child_may_only_close(void **state)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        qcc_model *m;
        const qcc_status status = read_file(cx, MLP, &m);
        qcc_close(cx);
        _exit(status == QCC_FORKED && h.blocks == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    qcc_close(cx);
}

static void commands_speak_through_the_host(void **state)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    Buffer out = { .n = 0 };
    const qcc_sink sink = { .write = to_buffer, .user = &out };
    const char *const explain[] = { "qcc", "explain", MLP }, *const wrong[] = { "qcc", "run", MLP };
    int fds[2];
    (void)state;
    assert_int_equal(pipe(fds), 0);
    const int saved[2] = { dup(1), dup(2) };
    dup2(fds[1], 1);
    dup2(fds[1], 2);
    const qcc_status first = qcc_command(cx, 3, explain, &sink);
    close(1); /* works without them, too */
    close(2);
    const qcc_status second = qcc_command(cx, 3, wrong, &sink);
    dup2(saved[0], 1);
    dup2(saved[1], 2);
    close(saved[0]);
    close(saved[1]);
    close(fds[1]);
    char leaked[16];
    assert_int_equal(read(fds[0], leaked, sizeof leaked), 0); /* nothing was printed */
    close(fds[0]);
    assert_int_equal(first, QCC_OK);
    assert_int_equal(second, QCC_USAGE);
    out.p[out.n < sizeof out.p ? out.n : sizeof out.p - 1] = 0;
    assert_non_null(strstr(out.p, "MatMul 2"));
    assert_non_null(strstr(h.text, "--input x=x.npy"));
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* Everything a host may do, on a stack of 64 KiB; arg is where the status goes. */
static void *small_stack(void *arg)
{
    qcc_status *status = arg;
    qcc_context *cx = NULL;
    qcc_model *m = NULL;
    const qcc_context_options o = { .size = sizeof o, .threads = 1 };
    const qcc_sink sink = { .write = drop };
    const char *const argv[] = { "qcc", "diff", MLP, MODELS "other.onnx" };
    *status = qcc_open(&o, &cx);
    if (*status == QCC_OK)
        *status = read_file(cx, MODELS "mlp.qir", &m);
    if (*status == QCC_OK)
        *status = qcc_emit(m, "ir", NULL, &sink);
    if (*status == QCC_OK)
        *status = qcc_command(cx, 4, argv, &sink);
    qcc_close(cx);
    return NULL;
}

static void a_small_stack_is_enough(void **state)
{
    pthread_attr_t attr;
    pthread_t thread;
    qcc_status status = QCC_INTERNAL;
    (void)state;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 64 << 10), 0);
    assert_int_equal(pthread_create(&thread, &attr, small_stack, &status), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, QCC_OK);
    pthread_attr_destroy(&attr);
}

static void the_rounding_mode_of_the_host_does_not_matter(void **state)
{
    static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    float odd[12], first[6];
    (void)state;
    for (int i = 0; i < 12; i++)
        odd[i] = (float)(i + 1) / 7;
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
        Host h = { 0 };
        qcc_context *cx = open_with(&h);
        qcc_model *m;
        const qcc_tensor x = { QCC_F32, 2, { 3, 4 }, odd, sizeof odd };
        qcc_tensor y;
        fesetround(modes[k]);
        assert_int_equal(read_file(cx, MLP, &m), QCC_OK);
        assert_int_equal(qcc_run_model(m, &x, 1, &y, 1), QCC_OK);
        assert_int_equal(fegetround(), modes[k]);
        fesetround(FE_TONEAREST);
        if (!k)
            memcpy(first, y.data, sizeof first);
        assert_memory_equal(first, y.data, sizeof first);
        qcc_close(cx);
    }
}

static size_t open_descriptors(void)
{
    size_t n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void no_descriptor_is_left_open(void **state)
{
    Host h = { 0 };
    const size_t before = open_descriptors();
    qcc_context *cx = open_with(&h);
    qcc_model *m;
    static const char *const files[] = { "mlp.onnx", "cut.onnx", "mlp.qir", "bad.qir", "external.onnx", "model.pt" };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512] = MODELS;
        strcat(path, files[i]);
        if (read_file(cx, path, &m) == QCC_OK)
            qcc_model_free(m);
        assert_int_equal(open_descriptors(), before);
    }
    qcc_close(cx);
    assert_int_equal(open_descriptors(), before);
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
        cmocka_unit_test(callbacks_find_it_busy),
        cmocka_unit_test(a_child_may_only_close),
        cmocka_unit_test(commands_speak_through_the_host),
        cmocka_unit_test(contexts_are_independent),
        cmocka_unit_test(a_run_can_be_interrupted),
        cmocka_unit_test(numbers_do_not_follow_the_locale),
        cmocka_unit_test(a_closed_pipe_is_an_error_not_a_signal),
        cmocka_unit_test(a_small_stack_is_enough),
        cmocka_unit_test(the_rounding_mode_of_the_host_does_not_matter),
        cmocka_unit_test(no_descriptor_is_left_open),
        cmocka_unit_test(a_sink_spares_what_its_model_was_read_from),
        cmocka_unit_test(older_and_odd_options_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
