/* Where the nodes of a model come from in the program behind it: the module and the line of source.
 *
 * A graph has one table, by the node of the model (Node.src).  So whatever was made from such a node, its gradient
 * included, comes from the same place, and no pass has to carry anything. */
#ifndef IR_CODE_PLACE_H
#define IR_CODE_PLACE_H

#include "base/arena.h"

typedef struct Graph Graph;
typedef struct Node Node;

/* Of nodes first to last of the model.  Both texts are interned; null: it is not known. */
typedef struct CodePlace {
    uint32_t first, last;
    const char *module; /* path of the module: "h.0.attn"; "": the model itself */
    const char *line;   /* "model.py:53 in attend: x = x + self.drop(x)" */
} CodePlace;

/* Ascending, neighbours differ. */
typedef struct CodePlaces {
    CodePlace *list;
    size_t n, cap;
} CodePlaces;

/* Adds an origin, whose texts are copied; false: its nodes do not stand behind those that are there already. */
bool code_places_add(Graph *g, const CodePlace *o);

/* The origins of a graph become a copy of those of another. */
void code_places_copy(Graph *to, const Graph *from);

/* Where a node comes from; null: it is not known. */
const CodePlace *node_code(const Node *n);

/* The module of a node of PyTorch's older exporter, by its name: layer1.0.conv1 of /layer1/layer1.0/conv1/Conv; null: it
 * is the model itself. */
const char *module_of_label(Arena *arena, const char *label);

/* Path of the module that a node comes from, by the table or by a name of that form; null: it is not known. */
const char *node_module(const Node *n);

/* Whether two graphs have the same origins. */
bool code_places_equal(const Graph *a, const Graph *b);

#endif
