/* What compiling a step decided, as people read it. */
#ifndef API_TOLD_SUMMARY_H
#define API_TOLD_SUMMARY_H

#include "api/make/step.h"

/* Prints the summary of a step. */
Status summary_tell(Out *out, const qcc_step *s);

/* Prints what a step needs in memory, a kind a line. */
Status summary_memory(Out *out, const qcc_step *s);

#endif
