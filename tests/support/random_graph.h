/* Random graphs of elementwise calls, casts and reductions over one space; with moves and products, too. */
#ifndef TESTS_SUPPORT_RANDOM_GRAPH_H
#define TESTS_SUPPORT_RANDOM_GRAPH_H

#include "testing.h"

/* The graph of a seed; null where the draw does not fit together. */
Graph *random_graph(Context *c, uint64_t seed, bool moves);

/* Values of the inputs of a graph, drawn from a seed; whole numbers are 0 and 1. */
const Tensor **random_inputs(const Graph *g, uint64_t seed, Arena *arena);

#endif
