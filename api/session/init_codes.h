/* Weights that a checkpoint holds as codes, for runs that keep them otherwise. */
#ifndef API_SESSION_INIT_CODES_H
#define API_SESSION_INIT_CODES_H

#include "api/make/step.h"
#include "passes/recipe/stored.h"
#include "runtime/checkpoint/checkpoint.h"

/* One of them: places among the slots, 0 of `scale` and `zero` being none. */
typedef struct CodedSlot {
    size_t weight, scale, zero;
    const Type *wanted; /* what the slot of the weight was */
    StoredForm form;
} CodedSlot;

typedef struct InitCodes {
    const qcc_step *step;
    CodedSlot *list;
    size_t n;
} InitCodes;

/* What a checkpoint notes of the states of a step that are codes, in the scratch of the call; null: none are. */
const char *codes_note(const qcc_step *step);

/* Lets slots of weights, of which a checkpoint says that it holds codes, take these, and appends slots of scales and
 * zero points, for which there is room for two of each.  Of other files nothing is changed. */
Status init_codes_find(InitCodes *c, const qcc_step *step, const char *path, StateSlot *slots, size_t *n);

/* Makes of what was read what the slots were before: numbers; codes stay where the step keeps the same. */
void init_codes_settle(const InitCodes *c, StateSlot *slots, Tensor **values, Heap *heap, StateReport *report);

/* Puts the scales and zero points of codes that stayed. */
Status init_codes_put(const InitCodes *c, Session *run, const StateSlot *slots, Tensor *const *values);

#endif
