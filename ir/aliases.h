/* Other names of one parameter: a module that is reached by several paths has its tensors under each of them.
 *
 * The parameter is labelled with the first of its names in the module's own order. */
#ifndef IR_ALIASES_H
#define IR_ALIASES_H

#include "ir/graph.h"

/* Notes `alias` as another name of the parameter that is labelled `label`; both are copied. */
void alias_add(Graph *g, const char *label, const char *alias);

/* The other names of a parameter or state, up to a null; an empty list where there are none. */
const char *const *aliases_of(const Node *n);

/* The other names of what is labelled `label`, up to a null. */
const char *const *aliases_of_label(const Graph *g, const char *label);

/* Gives a graph the aliases of another one, copied. */
void aliases_copy(Graph *to, const Graph *from);

#endif
