/* The number of an optimizer's word that is not ours. */
#ifndef TESTS_OUTSIDE_ROW_WORDS_H
#define TESTS_OUTSIDE_ROW_WORDS_H

#include "ops/card/cards.h"

enum { OP_update_signum = OP_COUNT };
extern const OpDef op_update_signum;

#endif
