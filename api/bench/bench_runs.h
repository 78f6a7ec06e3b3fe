/* What bench measures: a step or a model that is open, and the numbers it is fed. */
#ifndef API_VERBS_BENCH_RUNS_H
#define API_VERBS_BENCH_RUNS_H

#include "api/make/step.h"
#include "api/model/command.h"
#include "api/bench/bench_launches.h"
#include "base/rng.h"

typedef struct Bench {
    Command *c;
    qcc_model *m;
    qcc_step *step; /* null: the model itself runs */
    qcc_session *session;
    const Tensor **inputs; /* of the model */
    Heap *heap;            /* of the values that are fed */
    Rng rng;
    LaunchTimes times; /* of its own runs alone */
    size_t skipped;    /* steps that changed nothing */
    Text data;         /* what was fed, a line each */
} Bench;

/* Opens a model, or the step that the line makes of it, fed and ready to run. */
Status bench_open(Bench *b, Command *c, qcc_model *m);

/* Runs it once: of a step what `what` says (RunKind); and how many seconds that took. */
Status bench_run(Bench *b, unsigned what, double *took);

/* Gives the step and its session back. */
void bench_close(Bench *b);

#endif
