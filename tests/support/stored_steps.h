/* Steps of the stored models and of the examples by ways to store weights. */
#ifndef TESTS_SUPPORT_STORED_STEPS_H
#define TESTS_SUPPORT_STORED_STEPS_H

#include "api/make/step.h"
#include "support/stored.h"

/* One of them, in a context of one thread. */
typedef struct StoredStep {
    Stored *s;
    const char *options;
    qcc_context *cx;
    qcc_step *step;
} StoredStep;

/* What was visited. */
typedef struct StoredSteps {
    const char *const *records; /* options beside a loss and batches of two, ended by null */
    void (*visit)(StoredStep *k);
    size_t models, steps, refused; /* records that a model has no room for are refused */
} StoredSteps;

/* Compiles all models by all records and visits what compiles. */
void stored_steps(StoredSteps *all);

#endif
