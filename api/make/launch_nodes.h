/* Which nodes of a graph run in which launch of the program that is made of it. */
#ifndef API_MAKE_LAUNCH_NODES_H
#define API_MAKE_LAUNCH_NODES_H

#include "api/hall/lower.h"

/* What becomes of a node on the way from a graph to its program. */
typedef enum NodeRun {
    RUN_NOTHING, /* it computes nothing: an input, a constant, what holds other values, nodes of a graph without a program */
    RUN_LAUNCHED, /* launches compute it, or what it was opened into */
    RUN_SHOWN,    /* what is left of it shows elements that lie elsewhere */
    RUN_FOLDED,   /* nothing is left of it: its readers read what it is made of */
    RUN_UNREAD,   /* nor of who read it: those became one with others */
} NodeRun;

typedef struct NodeLaunches {
    NodeRun run;
    int n;               /* of RUN_LAUNCHED: in so many launches, */
    const int *launches; /* in their order; more than one where it was opened, or is made again */
    int main;            /* of them the one that makes its result: the last on the side of the first */
    const Node *one;     /* the node that it became one with, and is computed as; null: it is there itself */
} NodeLaunches;

/* The nodes of a launch in the order of their graph; none: passes made it. */
typedef struct LaunchNodes {
    const Node *const *nodes;
    int n;
} LaunchNodes;

typedef struct LaunchMap {
    const Graph *graph;
    Lowered low; /* of a copy in which Node.src is the number of a node here, from 1: its places mean nothing */
    const LaunchNodes *list; /* by launch; null: there is no program */
    Facts nodes;             /* NodeLaunches, by node; those of bodies run where their owner does */
} LaunchMap;

/* Lowers a graph as lower_graph_for does, to the same program, and follows its nodes; all of it in `arena`. */
LaunchMap launch_map(const Graph *g, const Lowering *how, Arena *arena);

/* What becomes of a node of the graph or of a body in it. */
const NodeLaunches *launch_map_node(const LaunchMap *m, const Node *n);

/* The same in words where no launch computes a node that is there to compute; else null. */
const char *node_run_text(NodeRun run);

#endif
