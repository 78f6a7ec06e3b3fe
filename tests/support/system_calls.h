/* Which system calls a piece of work makes, counted by its parent: not timed, and not what a tool of the machine says. */
#ifndef TESTS_SUPPORT_SYSTEM_CALLS_H
#define TESTS_SUPPORT_SYSTEM_CALLS_H

#include <stdbool.h>
#include <stddef.h>

enum { MOST_SYSTEM_CALLS = 1024 };

typedef struct SystemCalls {
    size_t made[MOST_SYSTEM_CALLS]; /* by number, of all threads, between the marks */
    int marks;                      /* that were seen: two */
    int status;                     /* what work() returned, or 128 and the signal that ended it */
} SystemCalls;

/* Runs work(arg) in a child and counts; false, with the reason printed, where nobody may watch a child here. */
bool system_calls_of(int (*work)(void *arg), void *arg, SystemCalls *calls);

/* To be called by the work, before and behind what is counted. */
void system_calls_mark(void);

#endif
