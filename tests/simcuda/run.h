/* A launch that runs, as the parts that run it and that check it see it. */
#ifndef TESTS_SIMCUDA_RUN_H
#define TESTS_SIMCUDA_RUN_H

#include "simcuda/fibers.h"
#include "simcuda/world.h"

typedef enum State { READY, AT_BARRIER, AT_EXCHANGE, LEFT } State;

typedef struct Thread {
    void *at; /* where its stack goes on */
    FiberStack *stack;
    State state;
    SimIndex index;
    int line, predicate, sum;
    unsigned barriers, exchanges; /* that it went through in this block */
    unsigned mask;
    char slot[SIM_SLOT], seen[SIM_LANES][SIM_SLOT];
} Thread;

typedef enum Order { ASCENDING, DESCENDING, RANDOM } Order;

/* A launch that runs. */
typedef struct Run {
    const Op *op;
    const SimModule *module;
    const SimKernel *kernel;
    void *arguments[SIM_ARGUMENTS];
    Thread threads[MOST_THREADS];
    int turn[MOST_THREADS];        /* whose turn it is */
    unsigned block_number, serial; /* in the launch; of all blocks that ever ran */
    int n, waiting[LEFT + 1];
    Thread *now; /* null: the scheduler */
    void *scheduler;
    char *dynamic;
    int failed; /* the error that ends it */
    Order order;
    uint64_t random;
} Run;

extern Run run;

/* Says what a thread did, and that the launch ends with an error; line 0: unknown. */
__attribute__((format(printf, 4, 5))) void blame(int code, const Thread *t, int line, const char *format, ...);

/* Ends the thread that runs, of which blame() was called. */
void end_thread(void);

/* ---- checks.c ---- */

void check_touch(const void *at, size_t bytes, int how, int line, const void *from);
void check_misaligned(const void *at, size_t bytes, int line);

/* A launch may have set this flag, as values refused it. */
void check_refused(const unsigned *flag);

/* Shared memory holds nothing when a block begins. */
void check_block(void);

#endif
