/* What calls in a row that move elements do together: reshapes of any kind, and transposes. */
#ifndef PASSES_LOWER_MOVES_H
#define PASSES_LOWER_MOVES_H

#include "ir/build.h"

/* The axes of `base` in pieces, and in which order these lie in what is made of it. */
typedef struct Moves {
    Node *base;
    int n;                  /* pieces, none of length 1 */
    int64_t size[MAX_RANK]; /* as they lie in the base */
    int order[MAX_RANK];    /* the piece at each place of the result */
    int transposes;         /* among the calls, that change an order */
} Moves;

/* Whether a node is a reshape of any kind, of known sizes. */
bool moves_reshapes(const Node *n);

/* Whether a node is a transpose of known sizes. */
bool moves_transposes(const Node *n);

/* What a value is made of by such calls; nothing else is among them, so it may be itself. */
Moves moves_of(Node *n);

/* The same elements with these dimensions, by one transpose at most. */
Node *moves_make(Build *b, const Moves *m, int rank, const int64_t *dims);

#endif
