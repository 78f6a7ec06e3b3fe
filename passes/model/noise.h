/* Dropout that an exporter took apart: of channels, of whole samples (stochastic depth). */
#ifndef PASSES_MODEL_NOISE_H
#define PASSES_MODEL_NOISE_H

#include "ir/graph.h"

/* What a product is in inference when one factor keeps elements with a probability and the other side makes up for it:
 * x, in x * (draw < p) / p and its like.  Null for every other product. */
Node *noise_free(const Node *mul);

#endif
