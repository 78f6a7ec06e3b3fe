/* Results of a graph while a pass adds some and takes some away. */
#ifndef PASSES_ENGINE_RESULTS_H
#define PASSES_ENGINE_RESULTS_H

#include "ir/graph.h"

typedef struct Results {
    Graph *g;
    Arena *arena;
    Node **node;
    const char **name; /* null: the value's own */
    size_t n, cap, cap_names;
    struct ResultsIndex *index;
} Results;

/* What results are named with: a gradient is `grad.NAME`, our own states are `qcc.m/NAME` ..; a result qcc.latched is
 * the scale that all gradients have. */
#define GRADIENT_PREFIX "grad."
#define CLIPPED_PREFIX  "qcc.clipped/"
#define GRADIENT_SCALE  "qcc.grad_scale"
#define LR_FACTOR       "qcc.lr_factor" /* of all rates; with /SELECTOR behind it, of a group's */
#define LATCHED_SCALE   "qcc.latched"

/* The results of `g`; lists grow in `arena`.  A value that is among them keeps its name. */
Results results_of(Graph *g, Arena *arena);

/* The name under which result i leaves; null when it has none. */
const char *results_name(const Results *r, size_t i);

/* The place of a result by name; -1 when there is none. */
int results_find(const Results *r, const char *name);

/* Adds one at the end. */
void results_add(Results *r, const char *name, Node *value);

/* Takes a result out by name and gives its value; null when there is none. */
Node *results_take(Results *r, const char *name);

/* Takes out those of the first n that are `gone`. */
void results_drop(Results *r, const bool *gone, size_t n);

/* Makes the list the results of the graph. */
void results_set(const Results *r);

/* The input or state by name, of a pass that takes none away; null when there is none. */
Node *results_input(const Results *r, const char *name);

/* The trained state whose gradient result i is; null when it is none. */
Node *results_trained(const Results *r, size_t i);

/* The input or state of a graph by name; null when there is none. */
Node *input_named(const Graph *g, const char *name);

/* A name put together of a prefix and a name, kept. */
const char *name_with(Graph *g, const char *prefix, const char *name);

#endif
