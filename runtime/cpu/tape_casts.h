/* Whole numbers that are read to become f32. */
#ifndef RUNTIME_CPU_TAPE_CASTS_H
#define RUNTIME_CPU_TAPE_CASTS_H

#include "runtime/cpu/tape_parts.h"

/* Has arguments of up to 32 bits that become f32 and are nothing else read as f32, which rounds them once, too.  The steps that are
 * not needed any more are gone.  For a tape whose steps and registers are open. */
void tape_casts(TapeRunner *r);

#endif
