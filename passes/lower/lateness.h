/* Calls of the backward side that could run at any time, run when they are wanted. */
#ifndef PASSES_LOWER_LATENESS_H
#define PASSES_LOWER_LATENESS_H

#include "ir/graph.h"

/* Calls of the backward side in their order; those of one unit, by number from 0, stand together and stay so. */
typedef struct BackwardCalls {
    Node **calls;
    int *unit;
    int n;
} BackwardCalls;

/* Puts units that rows, reductions and moves make of the forward side's values right before the first of the backward side
 * that reads them; returns how many calls stand elsewhere then. */
int backward_calls_late(BackwardCalls *b, Arena *scratch);

#endif
