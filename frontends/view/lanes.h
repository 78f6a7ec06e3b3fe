/* Where nodes are drawn.
 *
 * The row of a node is the longest path to it; what reads nothing moves down to its first reader, and a full row sends
 * the rest to the next.  A value keeps the lane of its node down to its last near reader, as branches do in a drawing
 * of commits; then the lane is free, and that reader takes it where it can: of several, the one with the longest path
 * behind it, so that the main line of a model stays where it is.  So a line runs down its own lane, and turns only
 * between two rows.  Edges that would be too long are not drawn: they become tags at both ends. */
#ifndef FRONTENDS_VIEW_LANES_H
#define FRONTENDS_VIEW_LANES_H

#include "base/arena.h"

typedef struct LaneRules {
    int32_t most_rows;  /* that an edge may go down */
    int32_t most_lanes; /* that it may go aside */
    int32_t row_width;  /* nodes in a row */
} LaneRules;

/* What is laid out: nodes that read nodes before them. */
typedef struct LaneGraph {
    uint32_t n;
    const uint32_t *edges; /* what node i reads: reads[edges[i]] to reads[edges[i + 1] - 1]; n + 1 numbers */
    const uint32_t *reads;
    const bool *stays; /* reads nothing, but what reads it does not move down with it */
} LaneGraph;

typedef struct Lanes {
    int32_t n_rows, n_lanes;
    int32_t *row, *lane; /* of each node */
    bool *tag;           /* of each edge: not drawn */
    int32_t *reach;      /* of each node: the row of its last reader by an edge that is drawn; 0: none */
} Lanes;

/* Lays a graph out, in `arena`. */
Lanes lanes_of(const LaneGraph *g, LaneRules rules, Arena *arena);

#endif
