#include "base/parallel.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef QCC_OPENMP
#include <omp.h>
#endif

#include "base/checked.h"
#include "base/fp_env.h"
#include "base/own_process.h"

enum {
    MOST_THREADS = 1024,
    STACK = 256 * 1024,
    DEEP_STACK = 8 * 1024 * 1024,
    SPINS =
        4000, /* some hundred microseconds: regions of one evaluation follow each other closely, waking takes tens */
};

typedef struct Worker {
    Parallel *pool;
    pthread_t thread;
    int index; /* 0 is the caller of the region */
} Worker;

struct Parallel {
    ParallelMemory memory;
    size_t size;
    OwnProcess process;
    int threads;
    atomic_bool busy; /* a region is running */

    /* the region: written before `generation` is raised, read by workers that saw it raised */
    ParallelFn fn;
    void *arg;
    int64_t n;
    bool closing;

#ifndef QCC_OPENMP
    int spins, n_started;
    atomic_uint generation;
    atomic_int left;     /* workers still in the region */
    atomic_int asleep;   /* workers that wait for `wake` */
    atomic_bool awaited; /* the caller waits for `done`; where nobody sleeps, nobody touches the lock */
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    Worker workers[];
#endif
};

static void *plain_alloc(void *user, size_t size)
{
    (void)user;
    return malloc(size);
}

static void plain_release(void *user, void *block, size_t size)
{
    (void)user, (void)size;
    free(block);
}

int parallel_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n < INT_MAX ? (int)n : 1;
}

int parallel_threads(const Parallel *pool)
{
    return pool ? pool->threads : 1;
}

static void run_slice(const Parallel *pool, int worker)
{
    int64_t each = pool->n / pool->threads, rest = pool->n % pool->threads;
    int64_t begin = worker * each + (worker < rest ? worker : rest);
    int64_t end = begin + each + (worker < rest);
    if (begin < end)
        pool->fn(pool->arg, begin, end, worker);
}

static Parallel *pool_new(int threads, const ParallelMemory *memory, size_t tail)
{
    ParallelMemory from = { plain_alloc, plain_release, NULL };
    if (memory && memory->alloc && memory->release)
        from = *memory;
    size_t size;
    if (!checked_mul_add_size((size_t)threads, tail, sizeof(Parallel), &size))
        return NULL;
    Parallel *pool = from.alloc(from.user, size);
    if (!pool)
        return NULL;
    memset(pool, 0, size);
    pool->memory = from;
    pool->size = size;
    pool->process = own_process();
    pool->threads = threads;
    atomic_init(&pool->busy, false);
    return pool;
}

static void pool_free(Parallel *pool)
{
    own_process_close(&pool->process);
    pool->memory.release(pool->memory.user, pool, pool->size);
}

static void run_region(Parallel *pool);

void parallel(Parallel *pool, int64_t n, ParallelFn fn, void *arg)
{
    if (n <= 0)
        return;
    FpEnv was = fp_env_enter();
    if (!pool || pool->threads == 1 || n == 1 || !own_process_here(&pool->process) ||
        atomic_exchange(&pool->busy, true)) {
        fn(arg, 0, n, 0);
    } else {
        pool->fn = fn;
        pool->arg = arg;
        pool->n = n;
        run_region(pool);
        atomic_store(&pool->busy, false);
    }
    fp_env_leave(was);
}

#ifdef QCC_OPENMP

/* A team may be smaller than asked for; the slices, and so the results, stay those of the pool. */
static void run_region(Parallel *pool)
{
    int threads = pool->threads;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int w = 0; w < threads; w++) {
        FpEnv was = fp_env_enter();
        run_slice(pool, w);
        fp_env_leave(was);
    }
}

Parallel *parallel_open(int threads, const ParallelMemory *memory)
{
    if (threads < 1 || threads > MOST_THREADS)
        return NULL;
    return pool_new(threads, memory, 0);
}

Parallel *parallel_open_deep(int threads, const ParallelMemory *memory)
{
    return parallel_open(threads, memory);
}

void parallel_close(Parallel *pool)
{
    if (pool)
        pool_free(pool);
}

#else

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Waits for the next region; the number of the one seen last is passed and returned. */
static unsigned next_generation(Parallel *pool, unsigned seen)
{
    for (int i = 0; i < pool->spins; i++) {
        unsigned now = atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (now != seen)
            return now;
        relax();
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->asleep, 1); /* before it looks again, as announce() looks at it after the new number */
    unsigned now;
    while ((now = atomic_load(&pool->generation)) == seen)
        pthread_cond_wait(&pool->wake, &pool->lock);
    atomic_fetch_sub(&pool->asleep, 1);
    pthread_mutex_unlock(&pool->lock);
    return now;
}

static void *worker_main(void *arg)
{
    Worker *w = arg;
    Parallel *pool = w->pool;
    for (unsigned seen = 0;;) {
        seen = next_generation(pool, seen);
        if (pool->closing)
            return NULL;
        FpEnv was = fp_env_enter();
        run_slice(pool, w->index);
        fp_env_leave(was);
        if (atomic_fetch_sub(&pool->left, 1) == 1 && atomic_load(&pool->awaited)) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->lock);
        }
    }
}

static void announce(Parallel *pool)
{
    atomic_fetch_add(&pool->generation, 1);
    if (atomic_load(&pool->asleep) == 0)
        return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

static void run_region(Parallel *pool)
{
    atomic_store(&pool->left, pool->n_started);
    announce(pool);
    run_slice(pool, 0);
    for (int i = 0; i < pool->spins && atomic_load(&pool->left) > 0; i++)
        relax();
    if (atomic_load(&pool->left) == 0)
        return;
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->awaited, true);
    while (atomic_load(&pool->left) > 0)
        pthread_cond_wait(&pool->done, &pool->lock);
    atomic_store(&pool->awaited, false);
    pthread_mutex_unlock(&pool->lock);
}

static void stop_workers(Parallel *pool)
{
    pool->closing = true;
    announce(pool);
    for (int i = 1; i <= pool->n_started; i++)
        pthread_join(pool->workers[i].thread, NULL);
}

static int start_worker(Parallel *pool, int index, const pthread_attr_t *attr)
{
    Worker *w = &pool->workers[index];
    w->pool = pool;
    w->index = index;
    int failed = pthread_create(&w->thread, attr, worker_main, w);
    if (failed)
        return failed;
    pool->n_started++;
    char name[16];
    snprintf(name, sizeof name, "qcc-worker-%d", index % 10000);
    pthread_setname_np(w->thread, name);
    return 0;
}

/* Workers inherit a mask with every signal blocked: the host's handlers run on the host's threads. */
static bool start_workers(Parallel *pool, long stack)
{
    pthread_attr_t attr;
    sigset_t all, old;
    if (pthread_attr_init(&attr))
        return false;
    long least = sysconf(_SC_THREAD_STACK_MIN);
    bool ok = pthread_attr_setstacksize(&attr, (size_t)(least > stack ? least : stack)) == 0;
    sigfillset(&all);
    ok = ok && pthread_sigmask(SIG_SETMASK, &all, &old) == 0;
    if (ok) {
        for (int i = 1; i < pool->threads && ok; i++)
            ok = start_worker(pool, i, &attr) == 0;
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    pthread_attr_destroy(&attr);
    return ok;
}

static void destroy(Parallel *pool)
{
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    pool_free(pool);
}

static Parallel *open_pool(int threads, long stack, const ParallelMemory *memory)
{
    if (threads < 1 || threads > MOST_THREADS)
        return NULL;
    Parallel *pool = pool_new(threads, memory, sizeof(Worker));
    if (!pool)
        return NULL;
    pool->spins = threads <= parallel_processors() ? SPINS : 0; /* a spinning thread must not keep a working one out */
    atomic_init(&pool->generation, 0);
    atomic_init(&pool->left, 0);
    atomic_init(&pool->asleep, 0);
    atomic_init(&pool->awaited, false);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    if (threads > 1 && !start_workers(pool, stack)) {
        stop_workers(pool);
        destroy(pool);
        return NULL;
    }
    return pool;
}

Parallel *parallel_open(int threads, const ParallelMemory *memory)
{
    return open_pool(threads, STACK, memory);
}

Parallel *parallel_open_deep(int threads, const ParallelMemory *memory)
{
    return open_pool(threads, DEEP_STACK, memory);
}

void parallel_close(Parallel *pool)
{
    if (!pool)
        return;
    if (!own_process_here(&pool->process)) {
        pool_free(pool);
        return;
    }
    if (pool->n_started)
        stop_workers(pool);
    destroy(pool);
}

#endif
