/* Calls that compute the same: by word, type, attributes and operands, wherever they stand. */
#ifndef PASSES_ENGINE_EQUALS_H
#define PASSES_ENGINE_EQUALS_H

#include "ir/graph.h"

typedef struct Equals {
    Map seen;
    Arena *arena;
    bool across_sides; /* marks do not tell calls apart, and operands that compute the same are the same */
    Facts same;        /* Node *, by node, across sides: the first that computes the same; null: itself */
} Equals;

/* Nothing was seen yet. */
void equals_open(Equals *e, Arena *arena, bool across_sides);

/* The first call seen that computes the same; null: this is the first, or it is one that never merges, as what draws and
 * params. */
Node *equals_find(Equals *e, Node *n);

#endif
