/* What a training step needs in memory, told from its types alone. */
#ifndef PASSES_STEP_FOOTPRINT_H
#define PASSES_STEP_FOOTPRINT_H

#include "ir/graph.h"

/* Bytes by kind. */
typedef struct Footprint {
    uint64_t weights;     /* trained states, shadows and constants */
    uint64_t optimizer;   /* states of ours */
    uint64_t other_state; /* statistics, and what is not trained */
    uint64_t gradients;   /* of trained states */
    uint64_t activations; /* the most that is alive at once of everything else */
    uint64_t total;
} Footprint;

/* The footprint of a graph whose values are computed in list order, each one kept until its last reader has run.
 * Values of unknown shape count as nothing. */
Footprint footprint_of(Graph *g, Arena *scratch);

/* Bytes of what the forward side makes of data and the backward side reads: what has to be there all the time between,
 * on any device.  Weights in another form, codes or narrow shadows, are not among them. */
uint64_t footprint_kept(Graph *g, Arena *scratch);

#endif
