/* Which way each weight of a layer is rounded, as something that is trained: a graph whose loss says how far the layer
 * is from what it gives in floats. */
#ifndef PASSES_PTQ_ROUNDING_H
#define PASSES_PTQ_ROUNDING_H

#include "ir/build.h"

/* Names of its inputs and of its state. */
#define ROUNDING_DATA   "x"
#define ROUNDING_WANTED "y"
#define ROUNDING_BETA   "beta"
#define ROUNDING_WEIGHT "lambda"
#define ROUNDING_STATE  "p"

typedef struct RoundingLayer {
    const Node *call; /* the layer */
    int weight, data; /* its operands that are rounded, and that differ from batch to batch */
    const Type *x, *y;
    const Tensor *const *others; /* values of the other operands; null: absent */
    const Tensor *floors;        /* codes of the weight, rounded down, without the zero point */
    const Tensor *scales;        /* of each element */
    const Tensor *start;         /* what is trained, as it begins */
    double least, largest;       /* codes without the zero point, of all scales */
    double share;                /* what a squared difference counts: 1 over the mean one at the start */
} RoundingLayer;

/* h in [0, 1] is what is added to a floor: clip(1.2 sigmoid(p) - 0.1, 0, 1); this is the p that gives it. */
double rounding_of(double h);

/* What h is, of a p. */
double rounding_part(double p);

/* Fills an empty graph with result `loss`: the mean squared difference times `share`, and lambda times the mean of
 * 1 - |2h - 1|^beta, which is 0 where every weight has gone one way or the other. */
Status rounding_graph(Graph *g, const RoundingLayer *l);

#endif
