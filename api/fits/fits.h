/* Whether a step fits into the memory that a command may hold, before anything of it is there; and what would make it. */
#ifndef API_FITS_FITS_H
#define API_FITS_FITS_H

#include "api/make/memory.h"
#include "api/model/command.h"

/* INTERNAL, reported with the options that would make it fit, where the step takes more than what --memory-limit leaves;
 * `m`: what it takes, null: not known yet. */
Status step_fits(const Command *c, qcc_step *s, const StepMemory *m);

#endif
