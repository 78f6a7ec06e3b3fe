/* Loops whose turns stand one behind the other. */
#ifndef PASSES_CLEAN_UNROLL_LOOPS_H
#define PASSES_CLEAN_UNROLL_LOOPS_H

#include "passes/engine/pass.h"

/* Unrolls loops whose turns can be counted and do not draw, as long as they add no more than so many nodes: all of them, or those of which one
 * turn by itself is known better than all together. */
Status unroll_counted(Graph *g, PassRun *run, bool all, int64_t most);

#endif
