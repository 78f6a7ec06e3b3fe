/* Who stood in for whom while passes ran: kept where somebody follows nodes through them. */
#ifndef IR_HEIRS_H
#define IR_HEIRS_H

#include "ir/graph.h"

/* A node that went, and the id of the one that is read in its place; that may have gone since. */
typedef struct Heir {
    uint32_t id, src;
    uint32_t by;
} Heir;

typedef struct Heirs {
    Heir *list;
    size_t n, cap;
} Heirs;

/* From now on a graph keeps its heirs; a copy of it keeps its own, from the time when it is made. */
void heirs_keep(Graph *g);

/* Notes that `by` stands for `old`, where the graph keeps heirs. */
void heirs_add(const Node *old, const Node *by);

#endif
