/* Reverse mode: from the gradients of some values of a graph to those of others.
 *
 * The backward nodes are built from the cards' adjoints.  An adjoint sees its call in one wide type: float operands,
 * results and their gradients are widened to f32 (f64 stays f64).  It may give dx[i] any shape that operand i
 * broadcasts to: broadcasting is undone here, once, and contributions of several readers are added here, in that wide
 * type, in the order of the readers.  A composite without an adjoint of its own is first replaced by its expansion. */
#ifndef OPS_CONTROL_REVERSE_H
#define OPS_CONTROL_REVERSE_H

#include "ir/build.h"

/* A call at which a gradient ends although a wanted value lies behind it. */
typedef struct ReverseStop {
    Node *node;
    int operand;
    bool missing; /* the card promises a gradient and has none; otherwise the op has none */
} ReverseStop;

typedef struct ReverseQuery {
    int n_y;
    Node *const *y;  /* what was computed */
    Node *const *dy; /* what reaches it, of the same shapes; null: nothing */
    int n_x;
    Node *const *x; /* whose gradients are wanted: inputs, states or nodes of the graph */
    bool narrow;    /* round each dx to its x's type; otherwise it stays wide */
} ReverseQuery;

typedef struct ReverseResult {
    Node **dx; /* of x's shape; null: nothing reaches it */
    ReverseStop *stops;
    size_t n_stops;
} ReverseResult;

/* Appends to b's graph what computes the gradients.  Everything y depends on must stand before b's place.  The result
 * lives in `scratch`. */
Status reverse(Build *b, const ReverseQuery *q, Arena *scratch, ReverseResult *result);

/* Tells who asked an adjoint where gradients end inside the bodies of its call. */
void reverse_tell(const Site *s, const ReverseResult *inside);

/* Replaces a call by its expansion, which it returns; null when the card has none, when the expansion waits for values
 * that only a run will tell, or after a failure, which *status then says. */
Node *reverse_inline(Node *n, Status *status);

/* The same by what lowering opens a call with (OpDef.open); null when that is none, or not for this call. */
Node *reverse_open(Node *n, Status *status);

/* x as f32 when it is a narrower float, itself otherwise. */
Node *reverse_wide(Build *b, Node *x);

#endif
