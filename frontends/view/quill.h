/* Text on its way into a sink: kept until a piece is large enough, escaped for where it will stand. */
#ifndef FRONTENDS_VIEW_QUILL_H
#define FRONTENDS_VIEW_QUILL_H

#include "base/sink.h"
#include "base/text.h"

typedef struct Quill {
    Text text; /* what the sink has not got yet */
    const Sink *sink;
    Status status; /* the sink's first failure; nothing is put after it */
} Quill;

/* Begins to write; ended by quill_end. */
void quill_open(Quill *q, Arena *arena, const Sink *sink);

/* Gives the sink what is left; the status of the whole. */
Status quill_end(Quill *q);

/* Gives the sink what is there once it is worth a call: to be called between nodes. */
void quill_rest(Quill *q);

/* Appends a string of JSON with its quotes; it may stand inside a script of a page.  Ill-formed bytes become U+FFFD. */
void quill_json(Quill *q, const char *text);

/* Appends a string of graphviz with its quotes; a line end becomes \l, which also ends the last line. */
void quill_dot(Quill *q, const char *text);

/* Appends at most `most` columns of a text for HTML or SVG, comments included.  A longer one loses its end, or its
 * beginning where `tail` is wanted, to an ellipsis. */
void quill_html(Quill *q, const char *text, int most, bool tail);

#endif
