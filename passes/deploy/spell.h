/* Calls that become others, each on its own: what the passes that spell words of codes have in common. */
#ifndef PASSES_DEPLOY_SPELL_H
#define PASSES_DEPLOY_SPELL_H

#include "ir/build.h"
#include "passes/engine/pass.h"

/* Puts in the place of each call of one tensor what `spelled` builds for it; null: it stays. */
Status spell_calls(Graph *g, PassRun *run, Node *(*spelled)(Build *b, Node *n));

#endif
