/* Steps whose states and results are called by nonsense: they are the same steps. */
#ifndef TESTS_SUPPORT_RENAMED_H
#define TESTS_SUPPORT_RENAMED_H

#include "ir/role.h"

typedef struct Renamer {
    Arena *arena;
    const char *word; /* how its names begin */
    Map names;        /* of states: what they were called, what they are called */
    Map made;         /* names that it gave */
    int n;
} Renamer;

/* A renamer that has renamed nothing yet. */
void renamer_open(Renamer *r, Arena *arena, const char *word);

/* Calls every state of a graph, what is of it, its next value, and every result with a role by other names; what has
 * such a name stays as it is.  Outputs of the model, loss, grad_norm and rates are what a host reads: they stay too. */
void rename_graph(Renamer *r, Graph *g);

#endif
