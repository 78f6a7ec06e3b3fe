/* What rules make of sequences that nobody has to build. */
#ifndef PASSES_OPEN_SEQUENCES_H
#define PASSES_OPEN_SEQUENCES_H

#include "passes/pass.h"

/* Item `at` of a sequence_construct; null when that does not say it. */
Node *item_of_construct(const Node *construct, const Node *at);

/* Item `at` of a split_to_sequence, as a slice of what is split; null when the call does not say it. */
Node *item_of_split(Build *b, const Node *split, const Node *at);

#endif
