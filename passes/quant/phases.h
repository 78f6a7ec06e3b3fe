/* What changes on the way: quantizers that do something for some steps, and something else behind them.
 *
 * Steps are counted by the state that the schedules of rates read (qcc.step): those that were applied. */
#ifndef PASSES_QUANT_PHASES_H
#define PASSES_QUANT_PHASES_H

#include "passes/quant/scales.h"

/* How many steps ranges of data move for; INT64_MAX: for all of them. */
int64_t phase_of_ranges(const QuantScales *s, const QuantNodes *q);

/* How many steps the statistics of a quantizer of stats=N count for. */
int64_t phase_of_statistics(const QuantScales *s, const QuantNodes *q, bool data);

/* Whether fewer steps than `steps` were applied. */
Node *phase_before(Build *b, int64_t steps);

/* `now` for so many steps, then `later`. */
Node *phase_until(Build *b, int64_t steps, Node *now, Node *later);

/* Lets a graph that does not train stand at step `at`: nothing in it counts. */
Status phase_settle(Graph *g, PassRun *run, int64_t at);

#endif
