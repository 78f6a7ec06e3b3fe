/* What the codes of each quantized call gain in time. */
#ifndef API_VERBS_BENCH_GAINS_H
#define API_VERBS_BENCH_GAINS_H

#include "api/bench/bench_runs.h"

/* USAGE where options of gains ask for what a step that is open does not have. */
Status gains_allowed(const Bench *all);

/* Measures the step that `all` is once more without the quantizers of each call that asked for some, tells what each gains, and
 * writes the file of --gains. */
Status gains_measure(Bench *all);

#endif
