/* Where the values of a lowered graph lie. */
#ifndef PASSES_LOWER_PLAN_MEMORY_H
#define PASSES_LOWER_PLAN_MEMORY_H

#include "ir/plan.h"

/* The plan of a graph as it is ordered, in `arena`: results of the graph stay to its end.  False where a type that is not
 * known, or no tensor, leaves a size open; *where (may be null) is the node. */
bool plan_memory(Graph *g, Arena *arena, Plan *plan, const Node **where);

#endif
