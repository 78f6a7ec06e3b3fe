/* What the readers of a constant take it for: a weight, or something that training must leave alone.
 *
 * Readers are looked for through what only moves the value, and through what is computed from constants alone. */
#ifndef PASSES_MODEL_WEIGHT_USE_H
#define PASSES_MODEL_WEIGHT_USE_H

#include "passes/model/origin.h"

typedef enum UseKind {
    USE_WEIGHT,        /* an operand that the card calls a parameter, met by data */
    USE_SCALE,         /* the same, element by element: bias, scale, embedding of positions */
    USE_STATISTIC,     /* running statistics of a BatchNormalization */
    USE_NORMALIZATION, /* of the model's inputs */
    USE_POSITIONS,     /* met only by what is computed from integers */
    USE_GUARD,         /* keeps a root or quotient off zero */
    USE_OPERAND,       /* bounds, sizes, exponents */
    USE_KINDS
} UseKind;

typedef struct WeightUse {
    const Node *reader[USE_KINDS]; /* the first of each kind; null: none */
    int n_statistics;              /* readers that take it for their statistics */
    bool multiplied;               /* by one that takes it for a scale */
    bool divides;                  /* one that takes it for a scale is divided by it */
    bool added;                    /* one that takes it for a scale is no product */
    bool computed;                 /* before it gets there it goes through more than moves: exp(w) */
} WeightUse;

/* The uses of every constant value of a graph; slots are WeightUse. */
Facts weight_uses(Graph *g, Arena *scratch, Origins *origins);

/* Why a constant that is used like this is no weight: "normalizes the input: node 1 Sub". */
const char *use_reason(Arena *arena, const WeightUse *use, UseKind kind);

#endif
