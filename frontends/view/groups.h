/* The nodes of a graph in nested groups: by side of the step, then by module of the program, then by number where a group
 * would still be too large to read.  A group is a sheet of its own; the sheet around it shows it as one box. */
#ifndef FRONTENDS_VIEW_GROUPS_H
#define FRONTENDS_VIEW_GROUPS_H

#include "frontends/view/precision.h"
#include "frontends/view/scene.h"

typedef struct Group {
    const char *name;                   /* in the group around it: "h.0", "backward" */
    uint32_t parent;                    /* its own number for the root */
    uint32_t n_direct;                  /* nodes that are in no group inside */
    uint32_t n_nodes;                   /* those of groups inside counted */
    uint64_t bytes;                     /* of what they give, where it is known */
    uint32_t mix[VIEW_PRECISION_COUNT]; /* nodes by precision */
} Group;

typedef struct Groups {
    Group *list; /* each behind its parent; the root is the whole page */
    uint32_t n;  /* 1: nothing is grouped */
    uint32_t cap;
    uint32_t *of; /* of the page's i-th node: its group */
} Groups;

/* The groups of a page, in `arena`. */
Groups groups_of(const Page *p, Arena *arena);

/* Where a node stands in the sheet of a group: that group itself, the group inside it that holds the node, or UINT32_MAX
 * where it is outside. */
uint32_t groups_place(const Groups *g, uint32_t in, uint32_t of);

/* Whether a node has a box of its own in some sheet. */
bool node_is_drawn(const Node *n);

#endif
