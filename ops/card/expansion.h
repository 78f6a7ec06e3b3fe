/* What a call is made of, as a graph of its own. */
#ifndef OPS_CARD_EXPANSION_H
#define OPS_CARD_EXPANSION_H

#include "ir/graph.h"

/* The expansion of a call over inputs that stand for its operands, those that are there; small constants that steer it
 * stay constants.  Null where the word has none, and where it asks for values that are not known. */
Graph *expansion_of(const Node *n, Arena *arena);

#endif
