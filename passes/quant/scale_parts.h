/* What the sources of scales share: scales.c, learned_scales.c. */
#ifndef PASSES_QUANT_SCALE_PARTS_H
#define PASSES_QUANT_SCALE_PARTS_H

#include "passes/quant/scales.h"

/* Builds before all else, and behind a value, for whoever quantizes it. */
Build scale_at_start(Graph *g, const Node *of);
Build scale_behind(Node *value);

/* The scale of what is at hand. */
Status scale_of_values(QuantNodes *q, Build *b, Node *value);

/* The scale of the range of data that a state remembers. */
Status scale_observed(QuantScales *s, QuantNodes *q, Node *value);

/* A scale that is learned from its first value on: 2 E|x| / sqrt(largest code) of the values that are seen. */
Status scale_learned(QuantScales *s, QuantNodes *q, Node *value, bool data);

/* The scale of what is seen for some steps, which is learned from there on. */
Status scale_of_data_seen(QuantScales *s, QuantNodes *q, Node *value);
Status scale_of_weight_seen(QuantScales *s, QuantNodes *q, Build *b, Node *weight);

#endif
