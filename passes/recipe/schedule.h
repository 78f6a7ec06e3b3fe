/* The rate over the steps, as graph. */
#ifndef PASSES_RECIPE_SCHEDULE_H
#define PASSES_RECIPE_SCHEDULE_H

#include "passes/recipe/recipe.h"

/* The part of the rate `lr` (f32, 1 at its peak) at step `step` (i64, 1 for the first); null where it is always all of
 * it.  Schedules with an end add the state qcc.total_steps; as long as that is 0 there is no end. */
Node *schedule_part(Build *b, const Schedule *s, double lr, Node *step);

/* Whether a schedule ends with the run. */
bool schedule_has_end(const Schedule *s);

#endif
