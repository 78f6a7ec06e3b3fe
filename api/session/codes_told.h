/* What is told of the codes in a file that was written. */
#ifndef API_SESSION_CODES_TOLD_H
#define API_SESSION_CODES_TOLD_H

#include "api/make/step.h"

/* Lines, each with its end: the bytes of weights that are codes, which of them could be packed, and which products
 * others compute with fewer bits than the file says; null where no weight is codes.  `g`: the graph that was written.
 * */
const char *codes_told(Arena *arena, const qcc_step *s, Graph *g);

#endif
