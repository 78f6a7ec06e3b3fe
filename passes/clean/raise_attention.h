/* Attention from what it is written as. */
#ifndef PASSES_CLEAN_RAISE_ATTENTION_H
#define PASSES_CLEAN_RAISE_ATTENTION_H

#include "passes/engine/pass.h"

/* Makes one call of each attention that is found: with `seen` of those alone in which every query surely sees a key, or was
 * to give 0 where it sees none. */
Status raise_attentions(Graph *g, PassRun *run, bool seen);

#endif
