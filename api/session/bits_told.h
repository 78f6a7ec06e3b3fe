/* Bits that weights have learned. */
#ifndef API_SESSION_BITS_TOLD_H
#define API_SESSION_BITS_TOLD_H

#include "api/make/step.h"
#include "passes/quant/ledger.h"

/* A line of the bits of each weight that learned them and of what all codes of weights take of the budget, by the states of a graph
 * that is about to be deployed, and what was decided of it; a warning where that is too much.  Null where none learned. */
const char *bits_told(Arena *arena, const qcc_step *s, const QuantLedger *l, const Graph *g);

#endif
