/* The outputs of a model, as a loss sees them. */
#ifndef PASSES_RECIPE_LOSS_OUTPUTS_H
#define PASSES_RECIPE_LOSS_OUTPUTS_H

#include "ir/graph.h"

/* A tensor of floats. */
bool output_is_float(const Node *y);

/* One float. */
bool output_is_scalar(const Node *y);

/* The softmax, log_softmax or sigmoid that makes an output, behind what only hands it on; null when none does. */
Node *output_activation(const Node *y);

/* The axis of a softmax or log_softmax, from 0. */
int activation_axis(const Node *activation);

/* What a loss may be made of: a float with a name that is no next state; JUDGED_BEHIND is what an activation among the
 * outputs reads, which is meant instead. */
typedef enum Judgement { JUDGED_NOT, JUDGED_BEHIND, JUDGED } Judgement;

/* Of each result. */
const Judgement *outputs_judged(const Graph *g, Arena *arena);

/* The axis of classes where nobody says it: the last one where the inputs are tokens and the rank is 3, else 1. */
int usual_class_axis(const Graph *g, const Type *scores);

/* Reports that no loss can be guessed, with one to paste for each output: USAGE. */
Status loss_not_guessed(const Graph *g, Arena *arena, Diag *diag);

#endif
