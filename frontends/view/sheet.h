/* A page laid out: boxes for its inputs, nodes and results. */
#ifndef FRONTENDS_VIEW_SHEET_H
#define FRONTENDS_VIEW_SHEET_H

#include "frontends/view/lanes.h"
#include "frontends/view/scene.h"

typedef struct Box {
    const Node *node; /* of a result: what leaves; may be null */
    int result;       /* which result; -1: a node */
} Box;

typedef struct Sheet {
    const Page *page;
    Box *boxes;
    LaneGraph graph;
    Lanes lanes;
    uint32_t *box_of;  /* of the page's i-th node, from 1; 0: it has none */
    uint32_t *readers; /* of each box: those that tags point to, in order; far[readers[b]] to far[readers[b + 1] - 1] */
    uint32_t *far;
} Sheet;

/* Lays a page out, in `arena`. */
Sheet sheet_of(const Page *p, Arena *arena);

/* The box of a node, from 1; 0: it has none. */
uint32_t sheet_box(const Sheet *s, const Node *n);

#endif
