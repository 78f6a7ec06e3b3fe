/* What making codes of a value that is at hand consists of: what has none, and how it is turned. */
#ifndef PASSES_LOWBIT_DYNAMIC_PARTS_H
#define PASSES_LOWBIT_DYNAMIC_PARTS_H

#include "passes/codes/at_hand.h"
#include "passes/lowbit/dynamic_codes.h"

/* "has no codes ..: wanted are ..", and what to write instead. */
Status dynamic_refuse(const AtHand *h, const char *wanted, const char *instead);

/* The elements of a value that is turned along its axis by a Hadamard matrix of 16 with signs that a state holds, and where
 * there are 16 draws with those of these, too. */
Node *dynamic_turned(AtHand *h, Node *x, Node *draws);

#endif
