/* What only shows a value that was made elsewhere: a part, a tuple, a call that looks at it in another way. */
#ifndef PASSES_LOWER_SOURCE_H
#define PASSES_LOWER_SOURCE_H

#include "ir/graph.h"

/* Where a value was made that another node shows as it is; no node: it shows none. */
typedef struct Source {
    const Node *node;
    int result;
} Source;

/* What a result of a node shows, one look back. */
Source source_find(const Node *n, int result, Arena *scratch);

#endif
