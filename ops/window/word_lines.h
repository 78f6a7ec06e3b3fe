/* Correlations of bf16 (ops/window/correlate.h) in tiles along lines: what the taps of a column of the kernel see lies line behind
 * line in one plane, so that words are made once for each column of taps and not for each tap. */
#ifndef OPS_WINDOW_WORD_LINES_H
#define OPS_WINDOW_WORD_LINES_H

#include "ops/window/correlate.h"

/* Whether a call over c->w is multiplied so: the level has tiles, and what a tap brings fills whole blocks of words. */
bool lines_suit(const Correlation *c);

/* Plans it, and says what room a worker needs. */
void lines_plan(Correlation *c, int64_t threads);

/* Blocks of it, as base/parallel.h counts them. */
int64_t lines_blocks(const Correlation *c);
void lines_run(void *arg, int64_t begin, int64_t end, int worker);

#endif
