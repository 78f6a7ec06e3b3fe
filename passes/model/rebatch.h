/* Another batch for a model that was exported with a fixed one. */
#ifndef PASSES_MODEL_REBATCH_H
#define PASSES_MODEL_REBATCH_H

#include "ir/build.h"

/* Makes dimension 0 of every input that has the file's batch `batch`, and with it whatever carries it: results by
 * inference, constants of Reshape, Expand, ConstantOfShape and Slice where they state the old batch on its axis.
 * UNSUPPORTED, naming all nodes, when the old batch is part of the computation; `*old` gets it. */
Status rebatch(Graph *g, int64_t batch, int64_t *old);

/* Proves a rebatched graph on seeded data: rows of its results equal, bit for bit, what `original` gives for them. */
Status rebatch_prove(Graph *g, Graph *original, uint64_t seed);

#endif
