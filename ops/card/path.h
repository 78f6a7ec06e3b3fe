/* Path names: what a user calls a parameter whose name the exporter replaced.
 *
 * PyTorch folds and renames constants (onnx::Conv_193, 214, val_7).  Its newer exporter says what the module calls each,
 * which is its label then; with the older one the node that reads it still says where it stands:
 * /layer1/layer1.0/conv1/Conv reads layer1.0.conv1.weight. */
#ifndef OPS_CARD_PATH_H
#define OPS_CARD_PATH_H

#include "ir/graph.h"

/* Whether an exporter made the name up. */
bool name_is_made_up(const char *name);

/* Whether an exporter gave the name of an operation that it computed beforehand: mul_9, zeros, view_4, transpose_1. */
bool name_is_computed(const char *name);

/* Gives every param and state node of a graph the name to show: its own, or its path; aliases are unique (#2, #3 ...).
 * The result maps names of the file to shown names. */
Map path_names(Graph *g, Arena *arena);

/* The shown name of a node: from the map, or its own. */
const char *path_name(const Map *paths, const Node *n);

/* What the file calls a parameter; graphs may call it what its module does. */
const char *name_in_file(const Node *n);

#endif
