/* Parts of the verb diff. */
#ifndef API_VERBS_DIFF_H
#define API_VERBS_DIFF_H

#include "api/model/command.h"

typedef struct Diff {
    Command *c;
    Arena *arena;
    Heap heap;
    qcc_model *model[2];
    Text text;
} Diff;

/* Evaluates both models on the same inputs and compares what comes out; MISMATCH when tolerances were given and are
 * exceeded. */
Status diff_numbers(Diff *d);

#endif
