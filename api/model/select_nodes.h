/* Selectors: extended regular expressions over names of nodes and parameters; op:NAME selects by operator. */
#ifndef API_MODEL_SELECT_NODES_H
#define API_MODEL_SELECT_NODES_H

#include "api/model/model.h"

typedef struct Selection {
    Node **nodes; /* in graph order */
    size_t n, cap;
} Selection;

/* The nodes of a model that a selector matches, in the scratch arena; a remark says how many.  `option` is for
 * messages.  A selector that matches nothing is USAGE, with the nearest names. */
Status select_nodes(qcc_model *m, const Map *paths, const char *option, const char *selector, Selection *selection);

#endif
