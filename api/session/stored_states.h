/* States that are codes, as the numbers that hosts and other programs know them by. */
#ifndef API_SESSION_STORED_STATES_H
#define API_SESSION_STORED_STATES_H

#include "api/make/step.h"
#include "runtime/session/session.h"

/* The state by name, where codes or floats of fewer bits are stored in place of its numbers; null: any other. */
const Node *stored_node(const qcc_step *s, const char *name);

/* How such a state is kept: two that are alike hold the same bytes for the same numbers. */
typedef struct StoredKind {
    const Type *codes, *scale, *zero; /* null: none */
    int64_t least, largest;           /* codes */
} StoredKind;

Status stored_kind(const qcc_step *s, const Node *state, StoredKind *kind);
bool stored_alike(const StoredKind *a, const StoredKind *b);

/* The type of its numbers. */
const Type *stored_type(const qcc_step *s, const Node *state);

/* Its numbers, into a tensor of that type. */
Status stored_get(const qcc_step *s, Session *run, const Node *state, Tensor *numbers);

/* Puts a value; numbers of such a state are rounded to the nearest first, and give it its scale. */
Status stored_put(const qcc_step *s, Session *run, const char *name, const Tensor *value);

/* The same of numbers that a run begins with, which are rounded by chance where the words of the state say from=sr. */
Status stored_init(const qcc_step *s, Session *run, const char *name, const Tensor *value);

#endif
