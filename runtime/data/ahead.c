#include "runtime/data/ahead.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "base/fp_env.h"

enum { STACK = 256 * 1024 };

static void *run(void *arg)
{
    Ahead *a = arg;
    const FpEnv was = fp_env_enter();
    pthread_mutex_lock(&a->lock);
    while (!a->closing) {
        if (!a->busy) {
            pthread_cond_wait(&a->changed, &a->lock);
            continue;
        }
        pthread_mutex_unlock(&a->lock);
        a->work(a->arg);
        pthread_mutex_lock(&a->lock);
        a->busy = false;
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->lock);
    fp_env_leave(was);
    return NULL;
}

/* The thread inherits a mask with every signal blocked: handlers run on the threads of whoever set them. */
static bool start(Ahead *a)
{
    pthread_attr_t attr;
    sigset_t all, old;
    if (pthread_attr_init(&attr))
        return false;
    const long least = sysconf(_SC_THREAD_STACK_MIN);
    bool ok = pthread_attr_setstacksize(&attr, least > STACK ? (size_t)least : STACK) == 0;
    sigfillset(&all);
    ok = ok && pthread_sigmask(SIG_SETMASK, &all, &old) == 0;
    if (ok) {
        ok = pthread_create(&a->thread, &attr, run, a) == 0;
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    pthread_attr_destroy(&attr);
    if (ok)
        pthread_setname_np(a->thread, "qcc-data");
    return ok;
}

bool ahead_open(Ahead *a, void (*work)(void *arg), void *arg)
{
    *a = (Ahead){ .work = work, .arg = arg, .pid = (long)getpid() };
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    a->started = start(a);
    if (!a->started) {
        pthread_cond_destroy(&a->changed);
        pthread_mutex_destroy(&a->lock);
    }
    return a->started;
}

void ahead_start(Ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->busy = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

void ahead_wait(Ahead *a)
{
    pthread_mutex_lock(&a->lock);
    while (a->busy)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

void ahead_close(Ahead *a)
{
    if (!a->started || (long)getpid() != a->pid)
        return;
    pthread_mutex_lock(&a->lock);
    a->closing = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    a->started = false;
}
