#include "ops/card/cards.h"

static const OpDef *const cards[] = {
#define OP(word) [OP_##word] = &op_##word,
#include "ir/ops.def"
#undef OP
};

const OpTable ops_table = { cards, COUNT(cards) };
