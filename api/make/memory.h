/* What running a step takes in memory, known before anything is allocated. */
#ifndef API_MAKE_MEMORY_H
#define API_MAKE_MEMORY_H

#include "api/make/step.h"

/* Bytes by kind. */
typedef struct StepMemory {
    uint64_t weights, optimizer, other_state, gradients;
    uint64_t activations; /* what else the arena holds, data, and next values that are made beside their states */
    uint64_t scratch;     /* of the launch that takes most, on one thread */
    uint64_t model;       /* of a model that came as text: the file that was made of it */
    uint64_t total;
    uint64_t validation; /* more, once the graph @eval runs too; 0: nothing is known */
    bool estimated;      /* from types, because the evaluator runs it, node by node; else the plan says so */
    const char *why;     /* it does: what the step has; null: because it was chosen */
} StepMemory;

/* The memory of a step, from its plan where the engine of its context runs a program of it. */
StepMemory step_memory(const qcc_step *s);

/* "616 bytes: weights 124 bytes, optimizer .., scratch ..". */
const char *step_memory_text(Arena *arena, const StepMemory *m);

/* "", or that it is an estimate, and why. */
const char *step_memory_doubt(Arena *arena, const StepMemory *m);

#endif
