/* From the body of a `fused` node to the tape that runs it. */
#ifndef CODEGEN_TAPE_H
#define CODEGEN_TAPE_H

#include "ir/tape.h"

/* The tape of a body that region_read_body() accepts, in `arena`. */
Tape *tape_make(const Graph *body, Arena *arena);

#endif
