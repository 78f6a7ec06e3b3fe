/* Who reads a weight that is stored, and what is read instead. */
#ifndef PASSES_LOWBIT_STORED_READERS_H
#define PASSES_LOWBIT_STORED_READERS_H

#include "passes/engine/pass.h"

/* A state of codes, or of floats of fewer bits, which have no scale; `number` is what they stand for, on the forward and on
 * the backward side, built when somebody asks there: neither is kept for the other. */
typedef struct Stored {
    Graph *graph;
    PassRun *run;
    Node *state, *scale, *zero;
    int axis; /* each slice along it has a scale; STORED_WHOLE: one for all; STORED_PARTS: otherwise */
    Node *number[2];
} Stored;

enum { STORED_WHOLE = -1, STORED_PARTS = -2 };

/* Lets all calls that read a state of that, which has the type of its codes already, read codes where its scale leaves
 * their sums or follows their rows, and numbers otherwise. */
Status stored_readers(Stored *s);

#endif
