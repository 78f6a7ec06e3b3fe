/* Data that come from a stream, record by record. */
#include "testing.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>

#include "support/data_arrays.h"

typedef struct Pipe {
    int fd;
    pid_t child;
} Pipe;

/* A process that writes the bytes in pieces. */
static Pipe pipe_of(const char *bytes, size_t n, size_t piece)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(fds[0]);
        for (size_t i = 0; i < n; i += piece)
            if (write(fds[1], bytes + i, n - i < piece ? n - i : piece) < 0)
                _exit(1);
        _exit(0);
    }
    close(fds[1]);
    return (Pipe){ fds[0], child };
}

static void pipe_end(Pipe p)
{
    close(p.fd);
    waitpid(p.child, NULL, 0);
}

static Status streams(void *arg)
{
    Context *c = arg;
    Text all;
    Batch b;
    DataInput inputs[] = { input_of(c, "x", F32, 2, DIMS(4, 3)), input_of(c, "y", I64, 1, DIMS(4)) };
    inputs[1].target = true;
    static const int64_t rows[] = { 4, 4, 2, 4 };
    text_open(&all, &c->arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const Str x = npy_of(c, F64, 2, DIMS(rows[i], 3), number), y = npy_of(c, I32, 1, DIMS(rows[i]), number);
        text_bytes(&all, x.p, x.n);
        text_bytes(&all, y.p, y.n);
    }
    for (int last = FEED_DROP; last <= FEED_KEEP; last++) {
        Data data = { .limits = LIMITS_DEFAULT, .order = { .last = (FeedLast)last, .threads = 2 } };
        DataSpec specs[2];
        const Pipe p = pipe_of(all.p, all.n, 100);
        data.options.stream = p.fd;
        assert_int_equal(data_spec_read(&c->diag, &c->arena, "--data", "-", &specs[0]), OK);
        assert_int_equal(data_spec_read(&c->diag, &c->arena, "--target", "-", &specs[1]), OK);
        assert_int_equal(data_open_specs(&data, c, inputs, 2, 2, specs, 0, NULL), OK);
        assert_true(feed_batches(data.feed) == -1 && dataset_samples(data.ds) == -1);
        assert_int_equal(feed_batch(data.feed, &c->diag, 0, 1, &b), OK); /* the first is passed over */
        assert_true(b.rows == 4 && b.valid == 4 && b.samples[0] == 4);
        assert_true(tensor_get_f64(b.values[0], 11) == 11 && tensor_get_i64(b.values[1], 3) == 3);
        assert_int_equal(feed_batch(data.feed, &c->diag, 0, 1, &b), USAGE);
        assert_int_equal(feed_batch(data.feed, &c->diag, 0, 2, &b), OK);
        assert_int_equal(b.rows, last == FEED_KEEP ? 2 : 4);
        assert_int_equal(b.valid, last == FEED_DROP ? 4 : 2);
        if (last == FEED_PAD)
            assert_true(tensor_get_i64(b.values[1], 2) == 0 && tensor_get_i64(b.values[1], 3) == 1);
        if (last == FEED_KEEP)
            assert_string_equal(type_text(&c->arena, b.values[0]->type), "f32[2,3]");
        if (last != FEED_DROP)
            assert_int_equal(feed_batch(data.feed, &c->diag, 0, 3, &b), OK);
        assert_true(b.rows == 4);
        assert_int_equal(feed_batch(data.feed, &c->diag, 0, 4, &b), OK);
        assert_int_equal(b.rows, 0);
        assert_int_equal(feed_batch(data.feed, &c->diag, 1, 0, &b), OK);
        assert_int_equal(b.rows, 0);
        data_close(&data);
        pipe_end(p);
    }
    return OK;
}

static Status broken_streams(void *arg)
{
    Context *c = arg;
    Batch b;
    const DataInput input = input_of(c, "x", F32, 2, DIMS(4, 3));
    const Str good = npy_of(c, F32, 2, DIMS(4, 3), number), wide = npy_of(c, F32, 2, DIMS(4, 5), number);
    const Str many = npy_of(c, F32, 2, DIMS(5, 3), number), odd = npy_of(c, F32, 2, DIMS(4, 3), with_nan);
    const struct {
        Str first, second;
        size_t cut;
        const char *says;
    } rows[] = {
        { good, good, 1, "-: record 1: the stream ends inside a record: 47 bytes of 48" },
        { good, good, good.n - 5, "-: record 1: is no .npy record" },
        { good, str("what is this, then?"), 0, "-: record 1: is no .npy record" },
        { good, wide, 0, "-: f32[4,5] does not fit input x f32[batch,3]" },
        { good, many, 0, "-: record 1: has 5 samples: a batch has 4" },
        { good, odd, 0, NULL },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        Data data = { .limits = LIMITS_DEFAULT };
        Text all;
        text_open(&all, &c->arena);
        text_bytes(&all, rows[i].first.p, rows[i].first.n);
        text_bytes(&all, rows[i].second.p, rows[i].second.n - rows[i].cut);
        const Pipe p = pipe_of(all.p, all.n, 1 << 16);
        data.options.stream = p.fd;
        assert_int_equal(data_open_limited(&data, c, &input, 1, "x=-"), OK);
        assert_int_equal(feed_batch(data.feed, &c->diag, 0, 0, &b), OK);
        const Status status = feed_batch(data.feed, &c->diag, 0, 1, &b);
        if (status != (rows[i].says ? INVALID : OK) || (rows[i].says && !strstr(c->last, rows[i].says)))
            data_wrong("row %zu: %d: %s", i, status, c->last);
        data_close(&data);
        pipe_end(p);
    }
    return OK;
}

static bool stopped(void *user)
{
    return ++*(int *)user >= 1;
}

static void ignore(int number_of_signal)
{
    (void)number_of_signal;
}

/* A signal ends the wait for a stream that says nothing. */
static Status a_silent_stream_can_be_left(void *arg)
{
    Context *c = arg;
    int asked = 0, fds[2];
    Batch b;
    const DataInput input = input_of(c, "x", F32, 1, DIMS(4));
    Data data = { .limits = LIMITS_DEFAULT, .order = { .stopped = stopped, .user = &asked } };
    const struct sigaction action = { .sa_handler = ignore };
    struct sigaction was;
    assert_int_equal(pipe(fds), 0);
    data.options.stream = fds[0];
    assert_int_equal(data_open_limited(&data, c, &input, 1, "-"), OK);
    sigaction(SIGALRM, &action, &was);
    ualarm(20000, 20000);
    assert_int_equal(feed_batch(data.feed, &c->diag, 0, 0, &b), INTERRUPTED);
    ualarm(0, 0);
    sigaction(SIGALRM, &was, NULL);
    assert_int_equal(asked, 1);
    data_close(&data);
    close(fds[0]);
    close(fds[1]);
    return OK;
}

#define BODIES(_) _(streams) _(broken_streams) _(a_silent_stream_can_be_left)

#define BODY(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(name);                                                                                            \
    }
BODIES(BODY)

int main(void)
{
#define TEST(name) cmocka_unit_test(test_##name),
    const struct CMUnitTest tests[] = { BODIES(TEST) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
