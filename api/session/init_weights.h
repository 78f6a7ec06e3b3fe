/* --init: weights that another program, or another run, has saved. */
#ifndef API_SESSION_INIT_WEIGHTS_H
#define API_SESSION_INIT_WEIGHTS_H

#include "api/hall/out.h"
#include "api/make/step.h"

/* Puts the weights of a file into a session and prints what matched; USAGE when parameters are missing in it, or are
 * constants of the step with other values, unless that is `partial` on purpose. */
Status init_weights(qcc_step *step, Session *run, const char *path, bool partial, Out *out);

/* Whether a file is a checkpoint of ours; a folder is one. */
bool is_checkpoint(qcc_context *cx, Types *types, const char *path);

#endif
