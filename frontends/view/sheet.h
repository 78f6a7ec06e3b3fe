/* A page laid out: boxes for its inputs, nodes and results. */
#ifndef FRONTENDS_VIEW_SHEET_H
#define FRONTENDS_VIEW_SHEET_H

#include "frontends/view/groups.h"
#include "frontends/view/lanes.h"
#include "frontends/view/scene.h"

typedef struct Box {
    const Node *node; /* of a result: what leaves; may be null */
    int result;       /* which result; -1: a node or a group */
    uint32_t group;   /* a group, by its number; 0: none */
} Box;

typedef struct Sheet {
    const Page *page;
    const Groups *groups;
    uint32_t group; /* what is shown */
    Box *boxes;
    LaneGraph graph;
    Lanes lanes;
    uint32_t *box_of; /* of the page's i-th node, from 1; 0: it has none */
    uint32_t *box_of_group;
    uint32_t *readers; /* of each box: those that tags point to, in order; far[readers[b]] to far[readers[b + 1] - 1] */
    uint32_t *far;
} Sheet;

/* Lays a group of a page out, in `arena`. */
Sheet sheet_of(const Page *p, const Groups *groups, uint32_t group, Arena *arena);

/* The box of a node, or of the group that holds it, from 1; 0: it has none. */
uint32_t sheet_box(const Sheet *s, const Node *n);

#endif
