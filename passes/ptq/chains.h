/* Layers of which one reads what the other gives channel by channel, so that factors may move from one to the other. */
#ifndef PASSES_PTQ_CHAINS_H
#define PASSES_PTQ_CHAINS_H

#include "ir/graph.h"

typedef struct Chain {
    Node *first, *second; /* the layers */
    Node *between;        /* what the second one reads, in floats */
    double most;          /* nothing beyond that comes through, by a Clip; infinite: anything may */
    int64_t channels;
    Node *weight, *bias, *next; /* states: of the first layer (bias null: it has none), and the second one's weight */
    int axis, next_axis;        /* the channels of both weights: */
    int64_t repeat;             /* this many indices of the second one are a channel */
} Chain;

/* The chains of a graph with quantizers, in its order; they live in `arena`. */
Chain *chains_of(Graph *g, Arena *arena, size_t *n);

/* The state behind a quantizer, or itself; null: it is none, or is moved before. */
Node *chain_state(Node *operand);

/* What is quantized, where a value is the number of a code that was placed; else the value itself. */
Node *chain_number(Node *n);

/* The operand of a layer that is its weight, and the one that is its bias; -1: it has none. */
int chain_weight(const Node *call);
int chain_bias(const Node *call);

#endif
