/* Graphs as text: canonical, so that equal graphs print equal bytes (docs/qir.md). */
#ifndef IR_TEXT_PRINT_H
#define IR_TEXT_PRINT_H

#include "ir/graph.h"
#include "ir/store/blob.h"

/* Constants up to this many elements are written out, larger ones as blob or hex. */
enum { PRINT_INLINE_ELEMENTS = 64 };

/* Appends a graph.  Larger constants are added to `blobs` and referred to by name; when that is null they are
 * printed as hex.  Fails when a payload that has to be printed cannot be read. */
Status print_graph(Text *out, const Graph *g, Blobs *blobs);

/* Appends every graph of a module, an empty line between them. */
Status print_module(Text *out, const Module *m, Blobs *blobs);

/* The numbers that values without a name print under. */
typedef struct Numbering {
    Facts numbers;
} Numbering;

/* Numbers the nameless values of a graph and its regions, in `scratch`. */
Numbering numbering_of(const Graph *g, Arena *scratch);

/* Appends %name or %17; _ for null. */
void print_value(Text *out, Numbering *numbers, const Node *n);

/* Appends one node as it stands in the text, on one line: marks and regions left out, large payloads as "...". */
void print_line(Text *out, Numbering *numbers, const Node *n);

/* Appends the value of one attribute as it stands in the text; of a tensor its type. */
void print_attr_value(Text *out, const AttrSpec *spec, const void *attr);

#endif
