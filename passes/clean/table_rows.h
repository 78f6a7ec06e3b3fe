/* Tables that are too short for the sizes that a model is bound to. */
#ifndef PASSES_CLEAN_TABLE_ROWS_H
#define PASSES_CLEAN_TABLE_ROWS_H

#include "ir/graph.h"

/* What a graph computes the ends of its slices from, found before it is folded. */
typedef struct Tables {
    Map *slices; /* nodes whose end is computed */
} Tables;

Tables tables_open(Graph *g, Arena *arena);

/* Complains (USAGE) where a call reads rows that a table of the model does not have: a gather at indices that are known,
 * a slice up to a place that is computed from sizes.  To be asked while its operands are as far as they can be folded. */
Status tables_check(const Tables *t, const Node *n);

#endif
