/* Steps in which weights are quantized and data are floats (phase=weights-first:N): a graph of its own beside @step. */
#ifndef API_MAKE_PHASE_STEP_H
#define API_MAKE_PHASE_STEP_H

#include "api/make/step.h"

/* How many steps those are; 0: none. */
int64_t phase_steps(const qcc_step *s);

/* Places the quantizers of such steps in a copy of the model, which are told of nowhere. */
Status phase_place(qcc_step *s, Graph *g);

/* Makes @weights_first of it: its inputs and results are those of @step, one for one, and what does not move in these
 * steps stays as it is.  One more result says how many steps it is for. */
Status phase_finish(qcc_step *s, Graph *g, const Graph *step);

#endif
