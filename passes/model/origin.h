/* Where values come from, as far as the choice of what is trained asks. */
#ifndef PASSES_MODEL_ORIGIN_H
#define PASSES_MODEL_ORIGIN_H

#include "ir/graph.h"

enum Origin {
    ORIGIN_VARIES = 1,   /* depends on an input of the graph, or is drawn */
    ORIGIN_FLOATS = 2,   /* is data: from floats of the inputs, or through weights */
    ORIGIN_INTEGERS = 4, /* from integers, shapes or ranges */
    ORIGIN_RAW = 8,      /* an input of the graph, moved, converted, or scaled by constants at most */
};

typedef struct Origins {
    Facts facts; /* uint8_t */
} Origins;

/* The origins of every value of a graph and the bodies in it. */
Origins origins_of(Graph *g, Arena *scratch);

/* The origins of a value: a set of enum Origin. */
unsigned origin_of(Origins *o, const Node *n);

/* Those of the operands of a call but one (-1: of all); what steers it (a condition, indices) is no data. */
unsigned origin_of_others(Origins *o, const Node *n, int but);

/* Dimensions that are not 1. */
int long_axes(const Type *t);

/* Whether a call only moves operand 0 about, or converts it. */
bool moves_operand(const Node *n);

/* Whether operand i is met element by element: by a pointwise call, or side by side with others by what joins them. */
bool meets_pointwise(const Node *n);

/* Whether the card says that operand i may be a parameter. */
static inline bool may_be_weight(const Node *n, int i)
{
    return op_trains(op_of(n), i);
}

/* A contraction whose operands 0 and 1 are alike: either of them may be the weight. */
static inline bool is_symmetric(const Node *n)
{
    return may_be_weight(n, 0) && op_of(n)->access.kind == ACCESS_CONTRACT;
}

#endif
