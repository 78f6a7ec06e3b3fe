/* Graphs for people and their programs: a page to look at, a drawing for graphviz, JSON (docs/view.md).
 *
 * All three put the text of a whole module into a sink.  Equal modules give equal bytes.  Nothing is changed; values of
 * constants are read where they are small, and left out where they cannot be read. */
#ifndef FRONTENDS_VIEW_VIEW_H
#define FRONTENDS_VIEW_VIEW_H

#include "base/sink.h"
#include "ir/graph.h"

/* One self-contained page. */
Status view_html(const Module *m, Diag *d, const Sink *sink);

/* Text for graphviz, a cluster a region. */
Status view_dot(const Module *m, Diag *d, const Sink *sink);

/* JSON, one node a line. */
Status view_json(const Module *m, Diag *d, const Sink *sink);

#endif
