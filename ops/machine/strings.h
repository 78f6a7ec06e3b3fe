/* Strings have types and no values here: a model with string tensors is read, typed, printed and written like any
 * other; a call that would need the text of one ends the evaluation as UNSUPPORTED. */
#ifndef OPS_MACHINE_STRINGS_H
#define OPS_MACHINE_STRINGS_H

#include "ops/card/cards.h"

/* OK when neither operands nor results of the call hold strings; UNSUPPORTED, reported, otherwise. */
Status refuse_strings(Eval *e);

#endif
