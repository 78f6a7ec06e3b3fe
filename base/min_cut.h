/* The cheapest way to part a network in two: a minimum cut between a source and a sink.
 *
 * Each node ends on the source's side or on the sink's.  A cut costs what its edges carry across: an edge a -> b counts
 * where a is on the source's side and b on the sink's, a terminal where the node is on the other side.  Capacities are
 * not negative; INFINITY forbids.  Of all minimum cuts the answer is the one with the fewest nodes on the sink's side:
 * it is unique, hence it does not depend on the order of nodes and edges.
 *
 * Exact for whole numbers whose sum stays below 2^53. */
#ifndef BASE_MIN_CUT_H
#define BASE_MIN_CUT_H

#include "base/arena.h"

typedef struct MinCut MinCut;

/* A network of `n` nodes and no edges; it lives in the arena. */
MinCut *min_cut_open(Arena *a, size_t n);

/* Adds an edge that carries `forward` from a to b and `backward` from b to a; edges between the same nodes add up. */
void min_cut_edge(MinCut *c, size_t a, size_t b, double forward, double backward);

/* Adds an edge from the source to `node` and one from it to the sink. */
void min_cut_terminal(MinCut *c, size_t node, double source, double sink);

/* What the minimum cut costs; INFINITY where infinite edges join source and sink: then exactly the nodes that such edges
 * join to the sink are on its side. */
double min_cut_run(MinCut *c);

/* After min_cut_run(): whether the node is on the sink's side. */
bool min_cut_sinks(const MinCut *c, size_t node);

#endif
