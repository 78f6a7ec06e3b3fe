/* Runners of a graph that leaves types of its inputs open: each is made for operands of some types, and the last few stay. */
#ifndef RUNTIME_HOST_RUNNERS_H
#define RUNTIME_HOST_RUNNERS_H

#include "runtime/host/host.h"

enum { RUNNERS_KEPT = 4 }; /* so many lists of types; which was not wanted for longest goes */

typedef struct Runners Runners;

/* None yet, in `arena`; `x` and what `options` name outlive it. */
Runners *runners_open(const Executable *x, const EngineOptions *options, RunnerMaker *maker, RunnerRoom *room,
                      Arena *arena);

/* Past guarded(), what is made later too; null is allowed. */
void runners_keep(Runners *r);

/* Gives all of them back; null is allowed.  It wants no memory. */
void runners_close(Runners *r);

/* The runner for operands of these types (null: absent), made where it is not there; null: the graph has no program for
 * them.  No runner from before may run any more: it may go. */
GraphRunner *runners_for(Runners *r, const Tensor *const *operands);

/* How many were made so far; null: none. */
uint64_t runners_made(const Runners *r);

#endif
