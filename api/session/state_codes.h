/* Codes of states that a file holds as such. */
#ifndef API_SESSION_STATE_CODES_H
#define API_SESSION_STATE_CODES_H

#include "api/make/step.h"

/* What the quantizer of the model that reads a state makes of a value, in the scratch of the call; *codes is null where
 * none does. */
Status state_codes(const qcc_step *s, const char *name, const Tensor *value, const Tensor **codes);

#endif
