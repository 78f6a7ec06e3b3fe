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

/* What lies in the arena while a graph runs. */
typedef struct ViewMemory {
    const char *graph;
    size_t arena;            /* bytes */
    int n;                   /* launches */
    const size_t *alive;     /* bytes at each launch */
    const char *const *what; /* each is, in words */
} ViewMemory;

/* What is known of a module beside its graphs. */
typedef struct ViewFacts {
    const char *title;                                  /* of the page; null: the name of the file */
    const char *line;                                   /* below it; may be null */
    const ViewNote *(*note)(void *user, const Node *n); /* null: nothing is known of a node; the function may be null */
    void *user;
    const ViewMemory *memory; /* of graphs that engines run as programs */
    int n_memory;
} ViewFacts;

/* One self-contained page; `facts` may be null. */
Status view_page(const Module *m, const ViewFacts *facts, Diag *d, const Sink *sink);
Status view_html(const Module *m, Diag *d, const Sink *sink);

/* Text for graphviz, a cluster a region. */
Status view_dot(const Module *m, Diag *d, const Sink *sink);

/* JSON, one node a line. */
Status view_json(const Module *m, Diag *d, const Sink *sink);

#endif
