/* What the sources of scales share: scales.c, checks.c, learned_scales.c. */
#ifndef PASSES_QUANT_SCALE_PARTS_H
#define PASSES_QUANT_SCALE_PARTS_H

#include "passes/quant/scales.h"

/* Where a scale comes from. */
static inline QuantValue scale_source(const QuantNodes *q)
{
    return q->by->part[QUANT_SOURCE].value;
}

/* Whether 0 has code 0. */
static inline bool scale_zero_is_0(const QuantNodes *q)
{
    return q->by->part[QUANT_ZERO].value == ZERO_SYM;
}

/* Whether a scale is a code itself, or one of two that are tried: made of what is at hand. */
static inline bool scale_is_at_hand(const QuantNodes *q)
{
    return quantizer_has_coded_scale(q->by) || quantizer_says(q->by, QUANT_CHOICE, CHOICE_4OR6);
}

/* Weights of dorefa. */
static inline bool scale_is_tanh(const QuantNodes *q)
{
    return scale_source(q) == SOURCE_DOREFA && q->by->format == FORMAT_INT;
}

/* Whether a scale can be made as it is said: UNSUPPORTED otherwise. */
Status scale_check(const QuantScales *s, const QuantNodes *q, const Node *value, bool data);

/* Refuses a quantizer: what is wanted, and the nearest one that is. */
Status scale_refused(const QuantScales *s, const QuantNodes *q, const Node *value, bool data, const char *wanted);

/* Builds before all else, and behind a value, for whoever quantizes it. */
Build scale_at_start(Graph *g, const Node *of);
Build scale_behind(Node *value);

/* The scale of what is at hand. */
Status scale_of_values(QuantNodes *q, Build *b, Node *value);

/* The scale of the range of data that a state remembers. */
Status scale_observed(QuantScales *s, QuantNodes *q, Node *value);

/* A scale that is learned from its first value on: 2 E|x| / sqrt(largest code) of the values that are seen. */
Status scale_learned(QuantScales *s, QuantNodes *q, Node *value, bool data);

/* A state of what a quantizer learns, and its first value. */
Node *scale_state(const QuantScales *s, const QuantNodes *q, const char *prefix, const Tensor *first, bool data);

/* Learned bits: whether they can be, and the scale of codes that reach up to an end. */
Status scale_check_bits(const QuantScales *s, const QuantNodes *q, const Node *value, bool data);
Status scale_of_bits(QuantScales *s, QuantNodes *q, Build *b, Node *value, Node *end);

/* The scale of what is seen for some steps, which is learned from there on. */
Status scale_of_data_seen(QuantScales *s, QuantNodes *q, Node *value);
Status scale_of_weight_seen(QuantScales *s, QuantNodes *q, Build *b, Node *weight);

#endif
