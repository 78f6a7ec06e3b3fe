/* Gradients of calls with bodies.
 *
 * The gradient of a loop is a scan over the same slices in the opposite direction.  Its body is a copy of the loop's
 * body, which computes the iteration again, followed by the backward nodes that `reverse` builds; values of an
 * iteration that nobody keeps come from stacks, which the forward loop then gives besides its own results.  Carried
 * gradients, and the sums of those of captured values, are the states of that scan, in f32 for every narrower float.
 * Its iterations are numbered from the last one, so that random operators draw again what they drew. */
#ifndef OPS_CONTROL_UNWIND_H
#define OPS_CONTROL_UNWIND_H

#include "ops/control/control.h"
#include "ops/control/reverse.h"

/* A body that computes gradients, while it is built. */
typedef struct BackBody {
    Build in;
    Graph *graph;
    Node **values; /* of the parameters of the forward body */
} BackBody;

/* An empty body for a call that b will place. */
BackBody back_open(Build *b, Arena *scratch, const Graph *forward);

/* A parameter for what reaches a value of that type: wide. */
Node *back_input(BackBody *k, const Type *type);

/* Copies the forward body and differentiates it: what reaches `x` (among the values) from `dy`, which reaches the
 * results `y`; tells the call where gradients end.  Null after a failure, which b->status then says too. */
Node **back_through_body(BackBody *k, Build *b, const Site *s, Arena *scratch, const Graph *forward, int n_y,
                         const int *y, Node *const *dy, int n_x, Node *const *x);

/* Sets the results, and takes out what none of them needs. */
void back_close(BackBody *k, int n, Node *const *results);

/* The adjoints. */
void adjoint_if(Build *b, const Site *s, Node **dx);
void adjoint_loop(Build *b, const Site *s, Node **dx);
void adjoint_scan(Build *b, const Site *s, Node **dx);

/* What reaches the operands of a call, from a model of it: a graph of calls that have adjoints.  `model` builds it on
 * `s` and gives as many results as the call has. */
void adjoint_by_model(Build *b, const Site *s, Node **dx, void (*model)(Build *b, const Site *s, Node **y));

#endif
