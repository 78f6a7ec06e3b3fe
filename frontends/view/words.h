/* Words for what cards say. */
#ifndef FRONTENDS_VIEW_WORDS_H
#define FRONTENDS_VIEW_WORDS_H

#include "ir/op.h"

/* "pointwise". */
const char *fuse_word(FuseClass c);

/* "T" and the like: a class of mixed precision. */
const char *amp_class_word(AmpClass c);

/* "weight": a role in a quantized graph. */
const char *quant_role_word(QuantRole r);

#endif
