/* What a step computes for the next values of its states alone.  Engines run that last: once loss, norm and whatever can
 * fail are known, and only where the step is applied. */
#ifndef PASSES_LOWER_COMMIT_H
#define PASSES_LOWER_COMMIT_H

#include "ir/graph.h"

/* Notes of each node of the list (bool) whether it is of the update and nothing but next values of states come of it. */
Facts commit_find(Graph *g, Arena *arena);

#endif
