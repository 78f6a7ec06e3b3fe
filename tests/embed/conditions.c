/* Training under conditions that a host may have: stops, no memory, odd arithmetic and locales, few descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "embed/everything.h"

/* ---- stops ---- */

/* A model that keeps a step busy for a while: two matrices of 512 x 512. */
static const char slow_text[] = "graph @slow(%x: f32[?,512]) -> (%y) {\n"
                                "    param %w: f32[512,512] = kaiming(seed=1)\n"
                                "    param %v: f32[512,512] = kaiming(seed=2)\n"
                                "    %h: f32[?,512] = matmul(%x, %w)\n"
                                "    %a: f32[?,512] = tanh(%h)\n"
                                "    %y: f32[?,512] = matmul(%a, %v)\n"
                                "}\n";

typedef struct Slow {
    qcc_session *session;
    qcc_context *context;
    float x[256][512], target[256][512];
} Slow;

static void slow_open(Slow *s, qcc_context *cx)
{
    qcc_source source = qcc_bytes(slow_text, sizeof slow_text - 1);
    qcc_model *m;
    qcc_step *step;
    source.name = "slow.qir";
    s->context = cx;
    assert_int_equal(qcc_read(cx, &source, "--batch 256", &m), QCC_OK);
    assert_int_equal(qcc_compile(m, "--loss mse --optimizer adam", &step), QCC_OK);
    assert_int_equal(qcc_start(step, NULL, &s->session), QCC_OK);
    for (int i = 0; i < 256 * 512; i++)
        s->x[i / 512][i % 512] = (float)(i % 97) / 97;
    const qcc_tensor x = { sizeof(qcc_tensor), QCC_F32, 2, { 256, 512 }, s->x, sizeof s->x };
    const qcc_tensor target = { sizeof(qcc_tensor), QCC_F32, 2, { 256, 512 }, s->target, sizeof s->target };
    assert_int_equal(qcc_bind(s->session, "x", &x), QCC_OK);
    assert_int_equal(qcc_bind(s->session, "target", &target), QCC_OK);
}

static void a_while(long milliseconds)
{
    const struct timespec t = { .tv_nsec = milliseconds * 1000 * 1000 };
    nanosleep(&t, NULL);
}

static void *stop_session(void *arg)
{
    a_while(3);
    qcc_request_stop(((Slow *)arg)->session);
    return NULL;
}

static void *stop_context(void *arg)
{
    a_while(30);
    qcc_interrupt(((Slow *)arg)->context);
    return NULL;
}

static qcc_session *signalled;

static void on_alarm(int number)
{
    (void)number;
    qcc_request_stop(signalled);
}

static uint64_t sum_of(qcc_session *session)
{
    static float flat[2 * 512 * 512];
    uint64_t sum = 0;
    assert_int_equal(qcc_get_flat(session, flat, 2 * 512 * 512), QCC_OK);
    for (size_t i = 0; i < 2 * 512 * 512; i++) {
        uint32_t bits;
        memcpy(&bits, &flat[i], sizeof bits);
        sum = sum * 31 + bits;
    }
    return sum;
}

/* Steps until one is stopped; what the states were before that one is what they are after it. */
static uint64_t run_until_stopped(Slow *s)
{
    qcc_result r = { .size = sizeof r };
    for (int i = 0; i < 10000; i++) {
        const uint64_t before = sum_of(s->session);
        const qcc_result last = r;
        const qcc_status status = qcc_run(s->session, QCC_STEP, &r);
        if (status == QCC_OK)
            continue;
        assert_int_equal(status, QCC_INTERRUPTED);
        assert_true(sum_of(s->session) == before);
        assert_memory_equal(&r, &last, sizeof r);
        return (uint64_t)i;
    }
    fail();
    return 0;
}

static void a_stop_changes_nothing(void **state)
{
    static Slow s, free_running;
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    pthread_t thread;
    qcc_result r = { .size = sizeof r };
    (void)state;
    slow_open(&s, cx);
    assert_int_equal(pthread_create(&thread, NULL, stop_session, &s), 0);
    uint64_t steps = run_until_stopped(&s);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, stop_context, &s), 0);
    for (int i = 0; i < 100 && qcc_run(s.session, QCC_STEP, &r) == QCC_OK; i++)
        steps++;
    assert_int_equal(pthread_join(thread, NULL), 0);

    signalled = s.session;
    const struct sigaction act = { .sa_handler = on_alarm };
    struct sigaction old;
    assert_int_equal(sigaction(SIGALRM, &act, &old), 0);
    const struct itimerval once = { .it_value = { .tv_usec = 20 * 1000 } };
    assert_int_equal(setitimer(ITIMER_REAL, &once, NULL), 0);
    steps += run_until_stopped(&s);
    sigaction(SIGALRM, &old, NULL);

    qcc_request_stop(s.session); /* asked between two runs: the next one */
    assert_int_equal(qcc_run(s.session, QCC_FORWARD, NULL), QCC_INTERRUPTED);
    assert_int_equal(qcc_run(s.session, QCC_FORWARD, NULL), QCC_OK);
    qcc_request_stop(s.session);
    assert_int_equal(qcc_run(s.session, QCC_BACKWARD, NULL), QCC_INTERRUPTED); /* and may be asked again */
    assert_int_equal(qcc_run(s.session, QCC_BACKWARD, NULL), QCC_OK);
    qcc_request_stop(s.session);
    assert_int_equal(qcc_run(s.session, QCC_UPDATE, NULL), QCC_INTERRUPTED);
    assert_int_equal(qcc_run(s.session, QCC_UPDATE, &r), QCC_OK);
    assert_int_equal(r.step, ++steps);

    slow_open(&free_running, cx);
    for (uint64_t i = 0; i < steps; i++)
        assert_int_equal(qcc_run(free_running.session, QCC_STEP, NULL), QCC_OK);
    assert_true(sum_of(s.session) == sum_of(free_running.session));
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* ---- memory ---- */

static void memory_may_run_out_anywhere(void **state)
{
    enum { EACH = 60, STRIDE = 23 };
    size_t failures = 0;
    (void)state;
    for (size_t n = 1;; n += n < EACH ? 1 : STRIDE) {
        Host h = { .fail_at = n };
        float flat[FLAT];
        const qcc_status status = everything(&h, flat);
        assert_int_equal(h.blocks, 0);
        assert_int_equal(h.bytes, 0);
        if (h.requests < n) {
            assert_int_equal(status, QCC_OK);
            break;
        }
        assert_true(status == QCC_OK || status == QCC_NO_MEMORY);
        failures += status == QCC_NO_MEMORY;
    }
    assert_true(failures > 50);
}

/* What fails for memory without having run leaves a session that goes on. */
static void a_call_without_memory_changes_nothing(void **state)
{
    static Bytes file;
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    float want[FLAT], got[FLAT], other[FLAT] = { 1, 2, 3 };
    const char *text;
    (void)state;
    trainee_after(5, want);
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    trainee_run(&t, 0, 1);
    const qcc_sink sink = bytes_sink(&file);
    assert_int_equal(qcc_set_property(t.session, "was", "there"), QCC_OK);
    assert_int_equal(qcc_save(t.session, &sink), QCC_OK);
    trainee_run(&t, 1, 3);
    assert_int_equal(qcc_set_property(t.session, "was", "then"), QCC_OK);
    const qcc_source source = qcc_bytes(file.p, file.n);
    unsigned refused = 0;
    for (size_t n = 1; n < 400; n++) {
        h.fail_at = h.requests + n;
        qcc_status status = qcc_load(t.session, &source);
        if (status == QCC_OK)
            break;
        assert_int_equal(status, QCC_NO_MEMORY);
        h.fail_at = h.requests + 1;
        status = qcc_set_flat(t.session, other, FLAT);
        assert_int_equal(status, QCC_NO_MEMORY);
        h.fail_at = 0;
        assert_int_equal(qcc_get_property(t.session, "was", &text), QCC_OK);
        assert_string_equal(text, "then");
        refused++;
    }
    assert_true(refused > 5);
    h.fail_at = 0; /* the last one was loaded after all */
    trainee_run(&t, 1, 5);
    trainee_flat(&t, got);
    assert_memory_equal(want, got, sizeof want);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void nothing_grows(void **state)
{
    static Bytes file;
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    const qcc_sink sink = { .write = bytes_put, .user = &file };
    size_t bytes = 0, blocks = 0;
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    for (unsigned i = 0; i < 600; i++) {
        char text[32];
        qcc_tensor v = { .size = sizeof(qcc_tensor) };
        trainee_run(&t, i, i + 1);
        snprintf(text, sizeof text, "%0*u", 1 + (int)(i % 20), i);
        file.n = 0;
        assert_int_equal(qcc_set_property(t.session, "count", text), QCC_OK);
        assert_int_equal(qcc_view(t.session, "grad.w1", &v), QCC_OK);
        assert_int_equal(qcc_save(t.session, &sink), QCC_OK);
        const qcc_source source = qcc_bytes(file.p, file.n);
        assert_int_equal(qcc_load(t.session, &source), QCC_OK);
        if (i == 100) {
            bytes = h.bytes;
            blocks = h.blocks;
        }
    }
    assert_int_equal(h.blocks, blocks);
    assert_true(h.bytes <= bytes + 64); /* the text of a property is longer or shorter */
    qcc_close(cx);
}

/* ---- odd hosts ---- */

static void arithmetic_of_the_host_does_not_matter(void **state)
{
    static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_TOWARDZERO };
    float first[FLAT], flat[FLAT];
    (void)state;
    for (size_t k = 0; k < 2 * sizeof modes / sizeof *modes; k++) {
        const int mode = modes[k / 2];
        Host h = { 0 };
        fesetround(mode);
#if defined(__x86_64__)
        const unsigned before = _mm_getcsr();
        const unsigned odd = before | (k % 2 ? 0x8040u : 0); /* results and operands that are subnormal become 0 */
        _mm_setcsr(odd);
#endif
        const qcc_status status = everything(&h, flat);
        assert_int_equal(fegetround(), mode);
#if defined(__x86_64__)
        assert_int_equal(_mm_getcsr() & 0xffc0u, odd & 0xffc0u);
        _mm_setcsr(before);
#endif
        fesetround(FE_TONEAREST);
        assert_int_equal(status, QCC_OK);
        if (!k)
            memcpy(first, flat, sizeof first);
        assert_memory_equal(first, flat, sizeof first);
    }
}

static void numbers_do_not_follow_the_locale(void **state)
{
    Host h = { 0 };
    float want[FLAT], got[FLAT];
    (void)state;
    if (!comma_locale("locales-conditions")) {
        print_message("skipped: no locale with a comma can be made here; package locales\n");
        skip();
    }
    const qcc_status status = everything(&h, got);
    setlocale(LC_ALL, "C");
    assert_int_equal(status, QCC_OK);
    assert_int_equal(everything(&h, want), QCC_OK);
    assert_memory_equal(want, got, sizeof want);
}

static size_t open_descriptors(void)
{
    size_t n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Sixteen descriptors, no streams, a signal every millisecond, an errno that stays. */
static void a_hard_place(void **state)
{
    Host h = { 0 };
    Trainee t;
    float want[FLAT], got[FLAT];
    const size_t before = open_descriptors();
    const struct sigaction act = { .sa_handler = on_alarm };
    const struct itimerval every = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction old;
    struct rlimit all, few;
    int fds[2];
    char leaked[16];
    (void)state;
    trainee_after(6, want);
    assert_int_equal(pipe(fds), 0);
    const int saved[2] = { dup(1), dup(2) };
    dup2(fds[1], 1);
    dup2(fds[1], 2);
    getrlimit(RLIMIT_NOFILE, &all);
    few = all;
    few.rlim_cur = 16;
    setrlimit(RLIMIT_NOFILE, &few);
    signalled = NULL;
    sigaction(SIGALRM, &act, &old);
    setitimer(ITIMER_REAL, &every, NULL);
    qcc_context *cx = open_with(&h);
    errno = EDOM;
    const qcc_sink file = qcc_to_file("embed-conditions.safetensors");
    const qcc_source source = qcc_file(file.path);
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    trainee_run(&t, 0, 3);
    const qcc_status saved_well = qcc_save(t.session, &file);
    trainee_run(&t, 3, 4);
    const qcc_status loaded = qcc_load(t.session, &source);
    const int error = errno;
    trainee_run(&t, 3, 6);
    trainee_flat(&t, got);
    qcc_close(cx);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    setrlimit(RLIMIT_NOFILE, &all);
    dup2(saved[0], 1);
    dup2(saved[1], 2);
    close(saved[0]);
    close(saved[1]);
    close(fds[1]);
    assert_int_equal(read(fds[0], leaked, sizeof leaked), 0);
    close(fds[0]);
    unlink(file.path);
    assert_int_equal(saved_well, QCC_OK);
    assert_int_equal(loaded, QCC_OK);
    assert_int_equal(error, EDOM);
    assert_memory_equal(want, got, sizeof want);
    assert_int_equal(open_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_changes_nothing),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(a_call_without_memory_changes_nothing),
        cmocka_unit_test(nothing_grows),
        cmocka_unit_test(arithmetic_of_the_host_does_not_matter),
        cmocka_unit_test(numbers_do_not_follow_the_locale),
        cmocka_unit_test(a_hard_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
