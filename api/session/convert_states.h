/* States of a checkpoint in the forms of another step: codes become what they stand for, and that other codes. */
#ifndef API_SESSION_CONVERT_STATES_H
#define API_SESSION_CONVERT_STATES_H

#include "api/make/step.h"

enum { MOST_WIDTHS = 24 };

/* How many went from one width to another. */
typedef struct WidthChange {
    const char *what, *from, *to; /* "states", "8bit", "f32" */
    size_t n;
} WidthChange;

typedef struct Conversion {
    const qcc_step *from, *to;
    const StateSlot *have, *want; /* of both steps */
    size_t n_have, n_want;
    Tensor **old;         /* one for each that the file has, in the heap; those that are used are taken out */
    Tensor **made;        /* one for each that is wanted; null: the file has no scale of the loss */
    bool states, weights; /* what may change */
    Heap *heap;
    const char *file;
    WidthChange changes[MOST_WIDTHS];
    size_t n_changes;
} Conversion;

/* Fills `made`: USAGE where a state has nothing to come from, a state of the file goes nowhere, or what would change
 * may not. */
Status convert_states(Conversion *c);

/* "4 states from 8bit to f32"; empty: none. */
const char *convert_text(Arena *arena, const Conversion *c);

#endif
