/* Stacks of threads that take turns on one thread of the host. */
#ifndef TESTS_SIMCUDA_FIBERS_H
#define TESTS_SIMCUDA_FIBERS_H

typedef struct FiberStack FiberStack;

/* A stack, and whose entry is to run on it; the next switch to *at enters it. */
FiberStack *fiber_take(void (*entry)(void), void **at);

/* Gives a stack back that nothing runs on any more. */
void fiber_give(FiberStack *);

/* Leaves what runs, so that a switch to *from goes on here, and goes on at `to`. */
void fiber_switch(void **from, void *to);

/* Whether an address is in a stack. */
int fiber_holds(const FiberStack *, const void *at);

/* Whether it is in the page below one. */
int fiber_is_guard(const FiberStack *, const void *at);

#endif
