/* What running a step takes in memory, known before anything is allocated. */
#ifndef API_MAKE_MEMORY_H
#define API_MAKE_MEMORY_H

#include "api/make/step.h"
#include "ir/step_part.h"
#include "passes/step/footprint.h"

/* What lies in the arena. */
typedef enum ArenaKind { ARENA_KEPT, ARENA_GRADIENTS, ARENA_TRANSIENT, ARENA_KINDS } ArenaKind;

/* The arena at two moments, by type.  At the peak not all that forward left is there any more, nor all gradients yet. */
typedef struct ArenaBytes {
    uint64_t kept[DTYPE_COUNT];              /* that forward leaves for backward, where backward begins */
    uint64_t peak[ARENA_KINDS][DTYPE_COUNT]; /* where most is taken */
    StepPart part;                           /* where that is */
} ArenaBytes;

/* Bytes by kind. */
typedef struct StepMemory {
    FootprintBytes parts; /* by what they are for and by type: all but the arena, which gradients are part of */
    ArenaBytes arena;     /* of a step that has a plan */
    uint64_t values;      /* of the arena, gradients left out, and of what bodies of a call make */
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

/* The same if that were made again which `how` says, and there were as much memory as that wants. */
StepMemory step_memory_if(const qcc_step *s, const Lowering *how);

#endif
