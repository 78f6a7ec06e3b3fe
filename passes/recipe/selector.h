/* Selectors: patterns (base/pattern.h), unanchored, over names of nodes and parameters, and modules that nodes come
 * from; op:NAME selects by operator.
 *
 * A parameter is known by its names, its path name and the names of the nodes that read it, also behind what only moves
 * it; op:Conv are the parameters that a Conv reads. */
#ifndef PASSES_RECIPE_SELECTOR_H
#define PASSES_RECIPE_SELECTOR_H

#include "base/pattern.h"
#include "ir/graph.h"

typedef struct Selector {
    const char *option; /* for messages: "--freeze" */
    const char *text;
    const char *op; /* of op:NAME; null: the pattern */
    Diag *diag;
    Arena *arena;     /* for what is made on the way */
    const Map *paths; /* of the graph (ops/card/path.h) */
    Arena own;        /* of the pattern */
    TextPattern *pattern;
} Selector;

/* The operator that a selector names: what follows op:; null: it is a pattern. */
const char *selector_op(const char *text);

/* The selector that takes a call by its name, and nothing that is named otherwise; null: it has no name. */
const char *selector_of(Arena *arena, const Node *call);

/* Takes a selector apart; USAGE when it is no pattern.  Until selector_close it holds memory of its own. */
Status selector_open(Selector *s, Graph *g, Arena *arena, const Map *paths, const char *option, const char *text);
void selector_close(Selector *s);

/* Whether it means a node (a parameter is one, too). */
bool selector_takes(const Selector *s, const Node *n);

/* Whether the expression matches a parameter's own name or path name, whoever reads it. */
bool selector_names(const Selector *s, const Node *n);

/* Whether it means a parameter (param or state). */
bool selector_takes_parameter(const Selector *s, const Node *n);

/* Reports that it matches nothing, with the nearest names: USAGE.  `parameters`: of those alone. */
Status selector_missed(const Selector *s, Graph *g, bool parameters);

#endif
