/* Words for what cards say. */
#ifndef OPS_CARD_WORDS_H
#define OPS_CARD_WORDS_H

#include "ir/graph.h"

/* "pointwise": what people call a kind of access. */
const char *access_word(AccessKind kind);

/* "T": the name of a class in tables; and what it says. */
const char *amp_word(AmpClass c);
const char *amp_meaning(AmpClass c);

/* Whether a class keeps something f32, for which there is a reason. */
bool amp_keeps_wide(AmpClass c);

/* "precision": why a class keeps values wide. */
const char *amp_reason(AmpReason r);

/* "weight": the name of a role in tables; and what it says. */
const char *quant_word(QuantRole r);
const char *quant_meaning(QuantRole r);

/* The role of an operand: the last one that a card sets serves those beyond. */
QuantRole quant_role(const QuantCard *card, int operand);

/* The dimension of an operand of a call along which each slice may have a scale of its own, or QUANT_WHOLE. */
int quant_weight_axis(const Node *n, int operand);

/* What an operator is called by people: its ONNX name where it has one (with its domain unless that is ai.onnx). */
const char *op_title(Arena *arena, const Node *n);

#endif
