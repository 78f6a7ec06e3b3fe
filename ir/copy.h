/* Copies of bodies, node by node. */
#ifndef IR_COPY_H
#define IR_COPY_H

#include "ir/build.h"

/* Appends a copy of what a body computes at b's place, with `values` for its parameters; results[i] is then its i-th
 * result (null: absent).  The copies keep where they came from, get the flags of b besides their own, and no names. */
void copy_body(Build *b, const Graph *body, Node *const *values, Node **results);

/* A copy of a body, names kept, as a region of `parent`, not yet attached. */
Graph *copy_region(Graph *parent, const Graph *body);

/* Appends a copy of one call at b's place, with other operands; it gets no name. */
Node *copy_call(Build *b, const Node *n, Node *const *ins);

#endif
