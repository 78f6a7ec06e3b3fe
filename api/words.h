/* Words for quantities and operators. */
#ifndef API_WORDS_H
#define API_WORDS_H

#include "ir/graph.h"
#include "ops/words.h"

/* "25.5 MB", "25.5 M". */
const char *bytes_text(Arena *arena, uint64_t bytes);
const char *count_text(Arena *arena, uint64_t n);

/* What an operator is called by people: its ONNX name where it has one (with its domain unless that is ai.onnx). */
const char *op_title(Arena *arena, const Node *n);

#endif
