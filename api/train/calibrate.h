/* Ranges of a quantized step from data, before its first step. */
#ifndef API_TRAIN_CALIBRATE_H
#define API_TRAIN_CALIBRATE_H

#include "api/train/train.h"

/* Lets the quantizers of a step that was compiled see the data of --calibrate: what they remember becomes the first
 * value of its states.  `told` is what was done, in words; null where no option names data. */
Status calibrate_step(Command *c, qcc_step *s, const char **told);

/* The same for a session of it; `ptq` is what --ptq did, in lines (null: nothing). */
Status calibrate_session(Command *c, qcc_session *session, const char **ptq);

/* Lets scales that are learned of weights alone, for which nobody needs data, begin with what the weights are. */
Status calibrate_by_weights(qcc_session *session);

#endif
