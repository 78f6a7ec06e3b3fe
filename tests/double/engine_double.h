/* An engine that is none: it hands every call to `reference`, counts them, lets one fail or a run end late, and gives
 * tensors of the host as short a life as its contract allows, so that whoever keeps one is found out by a sanitizer. */
#ifndef TESTS_DOUBLE_ENGINE_DOUBLE_H
#define TESTS_DOUBLE_ENGINE_DOUBLE_H

#include "runtime/engine.h"

typedef struct DoublePlan {
    int calls;   /* that may fail, so far */
    int fail_at; /* this one does, counted from 1; 0: none */
    int runs;    /* of graphs that may be stopped, so far */
    int late_at; /* this one is stopped, and ends late: all of it was done; 0: none */
} DoublePlan;

extern DoublePlan double_plan;
extern const Engine engine_double;

#endif
