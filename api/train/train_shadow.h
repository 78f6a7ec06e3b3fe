/* --shadow N: steps that run on the reference evaluator, too. */
#ifndef API_TRAIN_TRAIN_SHADOW_H
#define API_TRAIN_TRAIN_SHADOW_H

#include "api/train/train.h"

/* What two sessions of one step, which ran it from the same states, have not in common: the first value that differs in any
 * bit, in words in `arena`; null: nothing. */
Status sessions_differ(Session *a, Session *b, const Graph *step, Arena *arena, const char **differs);

/* Before a step that is to be shadowed: the states, the batch and the draws that it begins with. */
Status train_shadow_begin(Trainer *t);

/* Behind it: MISMATCH where the reference comes to other bits. */
Status train_shadow_end(Trainer *t);

#endif
