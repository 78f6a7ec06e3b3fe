/* One scale of the loss for several sessions, as the two steps of a GAN have it: each finds out by itself whether its
 * gradients are finite and steps or skips, and the scale moves once for all of them. */
#ifndef RUNTIME_SESSION_SCALER_H
#define RUNTIME_SESSION_SCALER_H

#include "runtime/session/session.h"

typedef struct Scaler {
    Diag *diag;
    bool together;  /* a session whose gradients are finite skips too, if another that has gradients has not */
    Session *first; /* the first that joined: its scale and rules are those of all */
} Scaler;

/* Lets a session, which has a scale and no gradients, share that of the sessions before it: USAGE when their rules are
 * not the same.  From now on the scale moves by scaler_update alone. */
Status scaler_join(Scaler *c, Session *s);

/* Gives a session a scale of its own again. */
void scaler_leave(Session *s);

/* Whether a session that shares the scale has gradients that were neither used nor abandoned. */
bool scaler_is_pending(const Scaler *c);

/* Moves the scale by what the sessions found since the last time: bits are joined by or.  USAGE, with nothing changed,
 * while one of them has gradients that were neither used nor abandoned, or none has made a step. */
Status scaler_update(Scaler *c);

#endif
