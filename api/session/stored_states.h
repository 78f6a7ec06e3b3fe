/* States that are codes, as the numbers that hosts and other programs know them by. */
#ifndef API_SESSION_STORED_STATES_H
#define API_SESSION_STORED_STATES_H

#include "api/make/step.h"
#include "runtime/session/session.h"

/* The state by name, where codes or floats of fewer bits are stored in place of its numbers; null: any other. */
const Node *stored_node(const qcc_step *s, const char *name);

/* The type of its numbers. */
const Type *stored_type(const qcc_step *s, const Node *state);

/* Its numbers, into a tensor of that type. */
Status stored_get(const qcc_step *s, Session *run, const Node *state, Tensor *numbers);

/* Puts a value; numbers of such a state are rounded to the nearest first, and give it its scale. */
Status stored_put(const qcc_step *s, Session *run, const char *name, const Tensor *value);

#endif
