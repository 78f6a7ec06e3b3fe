/* What is shown of a module: its graphs and their regions as pages, its nodes under numbers. */
#ifndef FRONTENDS_VIEW_SCENE_H
#define FRONTENDS_VIEW_SCENE_H

#include "ir/text/print.h"

/* A graph with everything inside it. */
typedef struct PageRoot {
    Facts marks;
    Numbering numbering;
    Map paths;
} PageRoot;

/* A graph or a region. */
typedef struct Page {
    const Graph *graph;
    PageRoot *root;
    size_t id;    /* its place among the pages */
    size_t owner; /* page of the node that it is a region of; its own index for a graph */
    int region;   /* which of its owner's */
    uint32_t first;
    uint32_t n; /* inputs, then nodes: their numbers run from `first` */
} Page;

typedef struct Scene {
    Arena *arena;
    const Module *module;
    const struct ViewFacts *facts; /* null: nothing is known beside the graphs */
    Page *pages;                   /* each behind its owner's */
    size_t n_pages, cap_pages;
    uint32_t n_nodes;
} Scene;

/* The scene of a module, in `arena`. */
Scene scene_of(const Module *m, Arena *arena);

/* The number of a node, unique in the module. */
uint32_t scene_id(const Page *p, const Node *n);

/* The page of the first region of a node; those of the others follow it. */
size_t scene_region(const Page *p, const Node *n);

/* The first node of a page, inputs before others; and the one behind. */
const Node *page_first(const Page *p);
const Node *page_next(const Page *p, const Node *n);

/* A constant, parameter or state: shown where it is read, not as a node of its own. */
bool node_is_held(const Node *n);

/* The node whose result a value is: `part` looks through to what it is a part of. */
const Node *node_behind(const Node *n);

/* What a value is called: its path, its name, or its number as %17. */
const char *scene_title(const Page *p, const Node *n, Arena *arena);

#endif
