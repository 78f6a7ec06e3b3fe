/* Parts of the verb diff. */
#ifndef API_VERBS_DIFF_H
#define API_VERBS_DIFF_H

#include "api/model/command.h"

typedef struct Diff {
    Command *c;
    Arena *arena;
    Heap heap;
    qcc_model *model[2];
    Text text;    /* the page */
    Text records; /* the same as objects, a line each, where these are asked for */
    size_t n_differences;
} Diff;

/* Notes a difference for who reads objects: of what kind of thing, its name, and what it was and is; null: absent. */
void diff_record(Diff *d, const char *of, const char *name, const char *before, const char *after, const char *change);

/* Evaluates both models on the same inputs and compares what comes out; MISMATCH when tolerances were given and are
 * exceeded. */
Status diff_numbers(Diff *d);

#endif
