/* Folding, apart from the pass: shapes that a file states, computed. */
#ifndef PASSES_CLEAN_FOLD_H
#define PASSES_CLEAN_FOLD_H

#include "passes/engine/pass.h"

typedef struct Fold {
    PassRun *run;
    Ir *ir;
    Heap heap;
    Arena arena; /* of one call */
    int64_t bytes, work;
    bool stated; /* only integers, those of Constant nodes and initializers included */
} Fold;

/* Begins to fold in a graph's context; `stated`: only what is computed from stated integers and known shapes, and is
 * integers again, or is cut out of a repeated value. */
void fold_open(Fold *f, Ir *ir, PassRun *run, bool stated);
void fold_close(Fold *f);

/* Types a call again by what is known of its operands, and lets a constant stand for it where it can be computed; true
 * then, `n` is still there. */
Status fold_node(Fold *f, Node *n, bool *folded);

/* Folds all calls of a graph. */
Status fold_graph(Fold *f, Graph *g);

/* Types as far as the shapes that a file states and asks for tell them; a copy in the arena is folded to find them. */
Status fold_types(Graph *g, Arena *arena);

#endif
