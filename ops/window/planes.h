/* Correlations of small groups (ops/window/correlate.h) along flat planes: the data between its padding, parted by the steps
 * of the window, so that what a tap sees of all positions lies in one run. */
#ifndef OPS_WINDOW_PLANES_H
#define OPS_WINDOW_PLANES_H

#include "ops/window/correlate.h"

/* Plans it instead of a product and says what room a worker needs, or does nothing: then c->planes.lines is 0. */
void planes_plan(Correlation *c);

/* Blocks of it, as base/parallel.h counts them. */
int64_t planes_blocks(const Correlation *c);
void planes_run(void *arg, int64_t begin, int64_t end, int worker);

/* Runs several that are planned so and write between each other, plane by plane: what they write stays in cache.  They have
 * the images, the groups and the rooms in common. */
void planes_run_together(Eval *e, const Correlation *each, size_t n);

/* Of four that are planned so and are what steps of two part results of two dimensions into, the last dimension fastest: lets
 * them see one plane, and make whole lines of results.  False: they stay as they are. */
bool planes_meet(Correlation *each);

/* Runs four that meet. */
void planes_run_meeting(Eval *e, Correlation *each);

#endif
