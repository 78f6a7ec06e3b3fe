/* Which weights of a step are kept in few bits, as people and programs read it. */
#ifndef API_TOLD_STORED_TOLD_H
#define API_TOLD_STORED_TOLD_H

#include "api/make/step.h"
#include "base/text.h"

/* Appends which weights of a step are kept in few bits, and what a run tells of them, as text or as records; nothing where
 * there are none. */
Status step_stored_told(Text *t, const qcc_step *s, bool as_records);

#endif
