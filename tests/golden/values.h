/* Values for golden files: the same inputs for both sides, and whether what comes out is the same. */
#ifndef TESTS_GOLDEN_VALUES_H
#define TESTS_GOLDEN_VALUES_H

#include "passes/engine/pass.h"

/* Evaluates a graph on inputs drawn from their names; the results, null where absent.  Null after a failure. */
Tensor **golden_evaluate(Graph *g, Heap *heap, Arena *arena);

/* Whether two graphs, the second perhaps with more states and results, give the same: bit for bit, within roundings of
 * their types (ROUNDS), or of a narrower one (PRECISION).  Null, or what differs. */
const char *golden_compare(Graph *a, Graph *b, Exactness may, Arena *arena);

/* A module of graphs without inputs, whose constants are what the graphs of `m` give. */
Module *golden_values(const Module *m, Arena *arena);

#endif
