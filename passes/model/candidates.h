/* The parameters of a model while choose-trainable makes up its mind. */
#ifndef PASSES_MODEL_CANDIDATES_H
#define PASSES_MODEL_CANDIDATES_H

#include "passes/engine/pass.h"
#include "passes/model/weight_use.h"
#include "passes/recipe/choices.h"

typedef struct Candidate {
    Node *node;
    WeightUse use;
    Choice choice;
    bool stated;   /* by a Constant node, not an initializer */
    bool selected; /* by --train */
    const Node *tied_to;
} Candidate;

typedef struct Choosing {
    Graph *graph;
    PassRun *run;
    const Recipe *recipe;
    Arena *scratch;
    Map paths;
    Candidate *list;
    size_t n, cap;
    bool evidence; /* the exporter says who is who */
} Choosing;

/* What becomes of a candidate, and why. */
void choose(Candidate *k, ChoiceKind kind, const char *reason);

/* Neither a parameter nor a buffer of the module, as the exporter says. */
bool is_computed(const Candidate *k);

/* Makes one state of parameters that are one: those that the exporter calls by one name, copies of one that it computed, those that --tie
 * names, and where nobody says anything a table of a Gather and a weight of a product that are equal. */
Status find_ties(Choosing *c);

/* Warns of values that the exporter computed with parameters that are trained, and that stay what they were. */
Status tell_computed(const Choosing *c);

#endif
