/* Rewrites that need more than a pattern: a function looks at one node after the other, until none of them changes anything. */
#ifndef PASSES_ENGINE_REWRITE_H
#define PASSES_ENGINE_REWRITE_H

#include "passes/engine/pass.h"

typedef struct Rewriting {
    PassRun *run;
    Status status; /* of what was built */
} Rewriting;

/* Puts what was built, or was there, in the place of a node, and counts that; false where the build failed. */
bool rewrite_with(Rewriting *r, Node *n, Node *by, const Build *b);

/* Shows all nodes that somebody reads, but inputs, to a function that says whether it changed anything, until it never does. */
Status rewrite_all(Graph *g, PassRun *run, bool (*change)(Node *n, Rewriting *r));

#endif
