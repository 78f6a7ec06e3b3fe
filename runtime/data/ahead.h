/* One piece of work done ahead, on a thread of its own: named, all signals blocked, joined at the end. */
#ifndef RUNTIME_DATA_AHEAD_H
#define RUNTIME_DATA_AHEAD_H

#include <pthread.h>
#include <stdbool.h>

typedef struct Ahead {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*work)(void *arg);
    void *arg;
    long pid;
    bool busy, closing, started;
} Ahead;

/* Starts the thread; false when there is none to be had. */
bool ahead_open(Ahead *a, void (*work)(void *arg), void *arg);

/* Begins the work; the one before must have been waited for. */
void ahead_start(Ahead *a);

/* Returns when no work is under way. */
void ahead_wait(Ahead *a);

/* Joins the thread; in a forked child, where there is none, does nothing. */
void ahead_close(Ahead *a);

#endif
