#include "unit/check.h"

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parallel.h"

enum { MOST = 1000 };

typedef struct Seen {
    int times[MOST]; /* each index is written by one worker only */
    int worker[MOST];
    int calls[16]; /* per worker */
} Seen;

static void note(void *arg, int64_t begin, int64_t end, int worker)
{
    Seen *s = arg;
    s->calls[worker]++;
    for (int64_t i = begin; i < end; i++) {
        s->times[i]++;
        s->worker[i] = worker;
    }
}

static void every_index_once_in_order_of_workers(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 6; threads++) {
        Parallel *pool = parallel_open(threads, NULL);
        assert_non_null(pool);
        assert_int_equal(parallel_threads(pool), threads);
        for (int n = 0; n < MOST; n += n < 20 ? 1 : 61) {
            Seen s = { 0 };
            parallel(pool, n, note, &s);
            for (int i = 0; i < MOST; i++) {
                assert_int_equal(s.times[i], i < n);
                if (i > 0 && i < n)
                    assert_true(s.worker[i] >= s.worker[i - 1]);
            }
            if (n > 1)
                for (int w = 0; w < threads; w++)
                    assert_int_equal(s.calls[w], w < n); /* one range each, none empty */
        }
        parallel_close(pool);
    }
}

static void without_a_pool_the_caller_works(void **state)
{
    (void)state;
    Seen s = { 0 };
    parallel(NULL, 10, note, &s);
    assert_int_equal(s.calls[0], 1);
    assert_int_equal(s.times[9], 1);
    assert_int_equal(parallel_threads(NULL), 1);
    parallel_close(NULL);
    assert_null(parallel_open(0, NULL));
    assert_null(parallel_open(1 << 20, NULL));
    assert_true(parallel_processors() >= 1);
}

typedef struct Who {
    pthread_t thread[8];
    char name[8][16];
    bool blocked[8];
    int rounding[8];
} Who;

static void introduce(void *arg, int64_t begin, int64_t end, int worker)
{
    (void)begin, (void)end;
    Who *w = arg;
    sigset_t mask;
    w->thread[worker] = pthread_self();
    pthread_getname_np(pthread_self(), w->name[worker], sizeof w->name[worker]);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    w->blocked[worker] = sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM) && sigismember(&mask, SIGUSR1);
    w->rounding[worker] = fegetround();
    fesetround(FE_DOWNWARD); /* a thing that misbehaves must not spoil the next region */
}

static void workers_are_threads_of_their_own(void **state)
{
    (void)state;
    fesetround(FE_UPWARD); /* the host's mode when the threads are born and when regions run */
    Parallel *pool = parallel_open(4, NULL);
    Who w = { 0 };
    parallel(pool, 4, introduce, &w);
    parallel(pool, 4, introduce, &w);
    int after = fegetround();
    fesetround(FE_TONEAREST);
    assert_int_equal(after, FE_UPWARD);
    assert_true(pthread_equal(w.thread[0], pthread_self()));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(w.rounding[i], FE_TONEAREST);
        for (int j = 0; j < i; j++)
            assert_false(pthread_equal(w.thread[i], w.thread[j]));
    }
#ifndef QCC_OPENMP
    for (int i = 1; i < 4; i++) {
        assert_true(w.blocked[i]);
        assert_memory_equal(w.name[i], "qcc-worker-", 11);
    }
#endif
    parallel_close(pool);
}

static void one_thread_starts_none(void **state)
{
    (void)state;
    Parallel *pool = parallel_open(1, NULL);
    Who w = { 0 };
    fesetround(FE_TOWARDZERO);
    parallel(pool, 100, introduce, &w);
    int after = fegetround();
    fesetround(FE_TONEAREST);
    assert_true(pthread_equal(w.thread[0], pthread_self()));
    assert_int_equal(w.rounding[0], FE_TONEAREST);
    assert_int_equal(after, FE_TOWARDZERO);
    parallel_close(pool);
}

typedef struct Nest {
    Parallel *pool;
    int inner[8][64];
    int calls[8];
} Nest;

typedef struct NestRow {
    Nest *nest;
    int row;
} NestRow;

static void inner(void *arg, int64_t begin, int64_t end, int worker)
{
    NestRow *r = arg;
    r->nest->calls[r->row] += 1 + worker; /* serial: one call, as worker 0 */
    for (int64_t i = begin; i < end; i++)
        r->nest->inner[r->row][i]++;
}

static void outer(void *arg, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    Nest *nest = arg;
    for (int64_t i = begin; i < end; i++)
        parallel(nest->pool, 64, inner, &(NestRow){ nest, (int)i });
}

static void nested_regions_run_serially(void **state)
{
    (void)state;
    Nest nest = { .pool = parallel_open(3, NULL) };
    parallel(nest.pool, 8, outer, &nest);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(nest.calls[i], 1);
        for (int j = 0; j < 64; j++)
            assert_int_equal(nest.inner[i][j], 1);
    }
    parallel_close(nest.pool);
}

/* Many short regions one after the other, each reading what the one before wrote elsewhere. */
static void shift_sum(void *arg, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    uint32_t **ends = arg;
    for (int64_t i = begin; i < end; i++)
        ends[1][i] = ends[0][(i + 37) % 64] * 5 + 1;
}

static uint32_t chain_of_regions(Parallel *pool, int regions)
{
    uint32_t a[64] = { 1 }, b[64], *ends[2] = { a, b };
    for (int r = 0; r < regions; r++) {
        parallel(pool, 64, shift_sum, ends);
        uint32_t *t = ends[0];
        ends[0] = ends[1];
        ends[1] = t;
    }
    uint32_t hash = 0;
    for (int i = 0; i < 64; i++)
        hash = hash * 31 + ends[0][i];
    return hash;
}

static void regions_follow_each_other(void **state)
{
    (void)state;
    uint32_t want = chain_of_regions(NULL, 2000);
    for (int threads = 2; threads <= 5; threads++) {
        Parallel *pool = parallel_open(threads, NULL);
        assert_int_equal(chain_of_regions(pool, 2000), want);
        usleep(2000); /* workers asleep, not spinning */
        assert_int_equal(chain_of_regions(pool, 2000), want);
        parallel_close(pool);
    }
}

typedef struct Rival {
    Parallel *pool;
    uint32_t hash;
} Rival;

static void *rival_main(void *arg)
{
    Rival *r = arg;
    r->hash = chain_of_regions(r->pool, 1000);
    return NULL;
}

static void two_callers_may_share_a_pool(void **state)
{
    (void)state;
    Parallel *pool = parallel_open(3, NULL);
    Rival rival = { pool, 0 };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, rival_main, &rival), 0);
    uint32_t mine = chain_of_regions(pool, 1000);
    pthread_join(thread, NULL);
    assert_int_equal(mine, chain_of_regions(NULL, 1000));
    assert_int_equal(rival.hash, mine);
    parallel_close(pool);
}

typedef struct Counted {
    int live, asked;
    size_t bytes;
    bool refuse;
} Counted;

static void *counted_alloc(void *user, size_t size)
{
    Counted *c = user;
    c->asked++;
    if (c->refuse)
        return NULL;
    c->live++;
    c->bytes = size;
    return malloc(size);
}

static void counted_release(void *user, void *block, size_t size)
{
    Counted *c = user;
    c->live--;
    assert_int_equal(size, c->bytes);
    free(block);
}

static void memory_comes_from_the_callbacks(void **state)
{
    (void)state;
    Counted c = { 0 };
    ParallelMemory memory = { counted_alloc, counted_release, &c };
    Parallel *pool = parallel_open(3, &memory);
    assert_non_null(pool);
    int asked = c.asked;
    chain_of_regions(pool, 10);
    assert_int_equal(c.asked, asked); /* a region allocates nothing */
    assert_int_equal(c.live, asked);
    parallel_close(pool);
    assert_int_equal(c.live, 0);
    c.refuse = true;
    assert_null(parallel_open(3, &memory));
    assert_int_equal(c.live, 0);
}

static void a_forked_child_works_alone(void **state)
{
    (void)state;
    Counted c = { 0 };
    ParallelMemory memory = { counted_alloc, counted_release, &c };
    Parallel *pool = parallel_open(3, &memory);
    uint32_t want = chain_of_regions(pool, 10);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20); /* a child that waits for threads it does not have would wait for ever */
        Seen s = { 0 };
        parallel(pool, 10, note, &s);
        bool ok = s.calls[0] == 1 && s.times[9] == 1 && chain_of_regions(pool, 10) == want;
        parallel_close(pool);
        _exit(ok && c.live == 0 ? 0 : 1);
    }
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    assert_int_equal(status, 0);
    assert_int_equal(chain_of_regions(pool, 10), want); /* the parent's pool is as it was */
    parallel_close(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_once_in_order_of_workers), cmocka_unit_test(without_a_pool_the_caller_works),
        cmocka_unit_test(workers_are_threads_of_their_own),     cmocka_unit_test(one_thread_starts_none),
        cmocka_unit_test(nested_regions_run_serially),          cmocka_unit_test(regions_follow_each_other),
        cmocka_unit_test(two_callers_may_share_a_pool),         cmocka_unit_test(memory_comes_from_the_callbacks),
        cmocka_unit_test(a_forked_child_works_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
