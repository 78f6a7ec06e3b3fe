/* What is around the library: threads and forks, signals, pipes and callbacks, locales, rounding modes, stacks, descriptors. */
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include "embed/models.h"

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

/* The model never ends by itself. */
static void a_run_can_be_interrupted(void **state)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    qcc_model *m;
    pthread_t thread;
    int64_t zero = 0;
    const qcc_tensor x = { sizeof(qcc_tensor), QCC_I64, 0, { 0 }, &zero, sizeof zero };
    qcc_tensor y = { .size = sizeof(qcc_tensor) };
    (void)state;
    assert_int_equal(read_file(cx, MODELS "endless.onnx", &m), QCC_OK);
    assert_int_equal(pthread_create(&thread, NULL, interrupter, cx), 0);
    assert_int_equal(qcc_run_model(m, &x, 1, &y, 1), QCC_INTERRUPTED);
    assert_int_equal(pthread_join(thread, NULL), 0);
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
        const qcc_tensor x = { sizeof(qcc_tensor), QCC_F32, 2, { 3, 4 }, odd, sizeof odd };
        qcc_tensor y = { .size = sizeof(qcc_tensor) };
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_are_independent),
        cmocka_unit_test(a_run_can_be_interrupted),
        cmocka_unit_test(numbers_do_not_follow_the_locale),
        cmocka_unit_test(a_closed_pipe_is_an_error_not_a_signal),
        cmocka_unit_test(callbacks_find_it_busy),
        cmocka_unit_test(a_child_may_only_close),
        cmocka_unit_test(commands_speak_through_the_host),
        cmocka_unit_test(a_small_stack_is_enough),
        cmocka_unit_test(the_rounding_mode_of_the_host_does_not_matter),
        cmocka_unit_test(no_descriptor_is_left_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
