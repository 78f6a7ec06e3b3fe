/* Where the buffers of a plan lie in its arena. */
#ifndef PASSES_LOWER_PLAN_PLACES_H
#define PASSES_LOWER_PLAN_PLACES_H

#include "ir/plan.h"

/* Gives each buffer, whose bytes and calls are known, its offset, and the plan its bytes; `arena` is for what is noted meanwhile. */
void plan_place(Plan *plan, Arena *arena);

#endif
