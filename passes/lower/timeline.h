/* A step as time goes by: in which order its calls will run, what each leaves in memory, and until when that is read. */
#ifndef PASSES_LOWER_TIMELINE_H
#define PASSES_LOWER_TIMELINE_H

#include "ir/step_part.h"

enum { NEVER = -1 };

/* A call and what becomes of its value.  Who looks at a value in another way and who reads that reads the value. */
typedef struct Moment {
    Node *call;
    StepPart part;
    bool alone;       /* no region holds the call: what it makes is there when it ran */
    bool stored;      /* what it makes leaves the region that it will be of */
    bool outlives;    /* it is read behind the backward side */
    bool stays;       /* it is there on the backward side anyway: it outlives it, cannot be made again, or is small */
    size_t bytes;     /* of what it makes itself; 0 of what it only shows */
    int last_forward; /* the last call of the forward side that reads it; its own place: none does */
    int first_back;   /* the first of the backward side; NEVER: none does */
    int last;         /* the last of all; the number of calls: it leaves the graph */
} Moment;

typedef struct Timeline {
    Graph *graph;
    Arena *arena;
    Moment *at; /* by place, without constants: part after part, and in each what will be one region together */
    int n, n_forward;
    Facts places; /* int, by node: its place + 1; 0: it is a constant, an input, or new */
} Timeline;

/* Looks at a graph as it is before calls are fused; nothing of it changes. */
void timeline_open(Timeline *t, Graph *g, Arena *arena);

/* The place of a node; NEVER: it has none. */
int timeline_place(const Timeline *t, const Node *n);

/* Puts the calls of the graph into the order of their places. */
void timeline_apply(const Timeline *t);

#endif
