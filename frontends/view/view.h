/* Graphs for people and their programs: a page to look at, a drawing for graphviz, JSON (docs/view.md).
 *
 * All three put the text of a whole module into a sink.  Equal modules give equal bytes.  Nothing is changed; values of
 * constants are read where they are small, and left out where they cannot be read. */
#ifndef FRONTENDS_VIEW_VIEW_H
#define FRONTENDS_VIEW_VIEW_H

#include "base/sink.h"
#include "ir/graph.h"

/* What became of a node when precisions were chosen. */
typedef struct ViewNote {
    const char *stored, *computes; /* "bf16", "f32"; "-": it gives no floats */
    const char *why;               /* the reason, in words */
    int64_t saved;                 /* bytes, against f32 */
} ViewNote;

/* A launch of the program that engines run of a graph. */
typedef struct ViewLaunch {
    const char *kind, *part;    /* "region", or the operator of a call; "forward" */
    const char *name;           /* as programs are printed; may be null */
    const char *what;           /* in words */
    const Node *const *nodes;   /* of the graph that run in it, in their order; */
    int n_nodes;                /* none: passes made it */
    double reads, writes;       /* bytes */
    size_t alive;               /* bytes of the arena that are taken meanwhile */
    int first_beside, n_beside; /* the launches that run side by side, it among them */
} ViewLaunch;

typedef struct ViewProgram {
    const Graph *graph;
    const char *why; /* there is none; null: there is */
    size_t arena;    /* bytes */
    int n;
    const ViewLaunch *launches;
} ViewProgram;

/* Where a node runs. */
typedef struct ViewRun {
    int n;
    const int *launches; /* of the program of its graph, in their order */
    int main;            /* of them the one that makes its result */
    const char *none;    /* why there are none; null: it computes nothing */
    const Node *one;     /* the node that it became one with, and is computed as; may be null */
} ViewRun;

enum { VIEW_BINS = 64 };

/* The quantizer of a value; numbers that are not known are NaN. */
typedef struct ViewQuant {
    const char *value;
    const char *spec, *asked, *state; /* in words; null: not known */
    const char *what;                 /* "data", "weight" */
    int bits;
    double least, largest, zero; /* codes, and the code of 0 */
    double scale_least, scale_most;
    int64_t n_scales;
    double sqnr, clipped, used; /* dB; shares of the numbers and of the codes */
    int64_t numbers;            /* that were seen */
    double from, width;         /* of the bins; width 0: there are none */
    bool absolute;              /* they are of absolute values */
    const int64_t *bins;        /* VIEW_BINS of them */
} ViewQuant;

/* What is known of a module beside its graphs. */
typedef struct ViewFacts {
    const char *title;                                  /* of the page; null: the name of the file */
    const char *line;                                   /* below it; may be null */
    const ViewNote *(*note)(void *user, const Node *n); /* null: nothing is known of a node; the function may be null */
    void *user;
    const ViewProgram *programs; /* of graphs that engines run */
    int n_programs;
    ViewRun (*run)(void *user, const Node *n); /* of nodes of those graphs and of bodies in them; may be null */
    void *runs;                                /* its user */
    const ViewQuant *(*quant)(void *user, const Node *n); /* of what is quantized, and of its codes; may be null */
    void *quants;
} ViewFacts;

/* One self-contained page.  Here and below `facts` may be null. */
Status view_page(const Module *m, const ViewFacts *facts, Diag *d, const Sink *sink);

/* Text for graphviz, a cluster a region. */
Status view_dot(const Module *m, const ViewFacts *facts, Diag *d, const Sink *sink);

/* JSON, one node a line. */
Status view_json(const Module *m, const ViewFacts *facts, Diag *d, const Sink *sink);

/* What is known of the program of a graph; null: nothing. */
const ViewProgram *view_program(const ViewFacts *facts, const Graph *g);

#endif
