/* Values of the forward side that are made again, block by block, when the backward side comes to them. */
#ifndef PASSES_LOWER_MAKE_AGAIN_H
#define PASSES_LOWER_MAKE_AGAIN_H

#include "passes/engine/pass.h"
#include "passes/lower/borders.h"

/* Keeps nothing of the forward side but what is alive at borders; the backward side makes the rest again, each block before
 * it first reads of it, and before that what is alive at borders that are not kept, where it first reads of what is
 * behind.  What is behind the last border stays as it is. */
Status make_blocks_again(PassRun *run, const Timeline *t, const Borders *borders);

/* The same with borders that are found: of several ways to look for them, the one with which the arena is the smallest;
 * none where nearly as little does without.  `twice`: some of them are not kept. */
Status make_again_at_best(Graph *g, PassRun *run, bool twice);

#endif
