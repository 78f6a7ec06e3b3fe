/* Rows that make codes together: rounding, what stands for no number, the zero point and the range. */
#ifndef RUNTIME_CPU_TAPE_CODES_H
#define RUNTIME_CPU_TAPE_CODES_H

#include "runtime/cpu/tape_parts.h"

/* Has such rows run as one, with the same bits, where nobody else reads what lies between them.  The steps that are not needed any
 * more are gone.  For a tape whose steps and registers are open, behind tape_tables. */
void tape_codes(TapeRunner *r);

#endif
