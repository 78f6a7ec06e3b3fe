/* What an optimizer remembers of a parameter, as hosts call it: NAME.m, NAME.v .. for numbers, NAME.m.codes and NAME.m.scale
 * for what is stored. */
#ifndef API_SESSION_MOMENTS_H
#define API_SESSION_MOMENTS_H

#include "api/make/step.h"
#include "ops/update/update.h"
#include "runtime/session/session.h"

/* A state of an optimizer that is codes, and how they are read. */
typedef struct Moment {
    const char *name; /* what the optimizer calls it */
    const Node *codes, *scale;
    int64_t block;
} Moment;

/* The state `kind` ("m") of the parameter of that name, a state's; null: it has none.  Where that is codes `as` says of
 * what, else as->codes is null. */
const Node *moment_of(const qcc_step *s, const char *parameter, const char *kind, Moment *as);

/* What an optimizer calls the states that it keeps of a parameter; how many there are. */
int moments_of(const qcc_step *s, const char *parameter, const char *kinds[UPDATE_STATES]);

/* The numbers of codes, into an f32 of their shape. */
Status moment_get(const qcc_step *s, Session *run, const Moment *m, Tensor *numbers);

/* The codes of numbers and their scales, as the update of the optimizer makes them, into tensors of their types. */
Status moment_round(const qcc_step *s, const Moment *m, const Tensor *numbers, Tensor *codes, Tensor *scale);

#endif
