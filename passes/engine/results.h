/* Results of a graph while a pass adds some and takes some away. */
#ifndef PASSES_ENGINE_RESULTS_H
#define PASSES_ENGINE_RESULTS_H

#include "ir/own_names.h"
#include "ir/role.h"

typedef struct Results {
    Graph *g;
    Arena *arena;
    Node **node;
    const char **name; /* null: the value's own */
    RoleMark *mark;
    size_t n, cap, cap_names, cap_marks;
    struct ResultsIndex *index;
} Results;

/* The results of `g`; lists grow in `arena`.  A value that is among them keeps its name. */
Results results_of(Graph *g, Arena *arena);

/* The name under which result i leaves; null when it has none. */
const char *results_name(const Results *r, size_t i);

/* The place of a result by name; -1 when there is none. */
int results_find(const Results *r, const char *name);

/* The place of the first result of a role; -1 when there is none. */
int results_of_role(const Results *r, ResultRole role);

/* Adds one at the end. */
void results_add(Results *r, const char *name, Node *value);

/* The same with a role, of a state by name (null: of none). */
void results_add_as(Results *r, const char *name, Node *value, ResultRole role, const char *of);

/* Takes the result of a role out and gives its value; null when there is none. */
Node *results_take(Results *r, ResultRole role);

/* Takes out those of the first n that are `gone`. */
void results_drop(Results *r, const bool *gone, size_t n);

/* Makes the list the results of the graph. */
void results_set(const Results *r);

/* The input or state by name, of a pass that takes none away; null when there is none. */
Node *results_input(const Results *r, const char *name);

/* The trained state whose gradient result i is; null when it is none. */
Node *results_trained(const Results *r, size_t i);

/* The same of a clipped gradient. */
Node *results_clipped(const Results *r, size_t i);

/* The input or state of a graph by name; null when there is none. */
Node *input_named(const Graph *g, const char *name);

/* The place of the result that is the next value of a state; -1 when it has none. */
int results_next(const Results *r, const Node *state);

/* A name put together of a prefix and a name, kept. */
const char *name_with(Graph *g, const char *prefix, const char *name);

#endif
