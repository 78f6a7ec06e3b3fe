/* Rows of a piece of a step that are computed chunk by chunk: which calls these are, and the loop that they become. */
#ifndef PASSES_LOWER_CHUNK_ROWS_H
#define PASSES_LOWER_CHUNK_ROWS_H

#include "passes/engine/pass.h"

/* How a call stands to the piece. */
typedef enum ChunkPlace {
    CHUNK_OUTSIDE,
    CHUNK_APART,  /* outside, and rows that the piece could make itself */
    CHUNK_BEHIND, /* outside, and made of what the piece makes */
    CHUNK_ROW,    /* of each row, a row: in the piece */
    CHUNK_COPIED, /* the same, of what the outside knows: it stays there, too, for who reads it */
    CHUNK_FLAT,   /* another look at rows, for who sums over them */
    CHUNK_SUM,    /* a product that sums over rows: each chunk goes on with what the chunks before it came to */
} ChunkPlace;

typedef struct Chunks {
    Graph *g;
    Arena *scratch;
    Node *scores; /* the product that the piece begins with */
    int rank;     /* of values of the piece; all dimensions but the last count rows */
    int64_t rows, chunk;
    Facts places; /* int: ChunkPlace */
    Facts order;  /* int: of calls, from 1; 0: an input */
    Node **calls; /* of the piece, in their order, looks and what is copied among them */
    size_t n_calls;
    Node *last; /* of those that the forward side has: the loop stands behind it */
} Chunks;

/* Puts loops in the place of all losses, there and back, over so many classes that they are worth it; a remark says why others that
 * are large stay whole. */
Status chunk_losses(Graph *g, PassRun *run);

/* How a call stands to the piece. */
ChunkPlace chunk_place(Chunks *c, const Node *n);

/* Whether a value is rows, as many as the piece has, of any length. */
bool chunk_is_rows(const Chunks *c, const Node *n);

/* Whether a value of the outside is the same for each row, by the rule of broadcasting. */
bool chunk_is_shared(const Chunks *c, const Node *n);

/* The operand of a sum over rows: as the piece has it, or rows of the outside, another look aside. */
Node *chunk_summed(Chunks *c, const Node *product, int i);

/* Whether anybody outside reads a value of the piece. */
bool chunk_leaves(Chunks *c, const Node *n);

/* Puts a loop over chunks in the place of the piece. */
Status chunk_loop(Chunks *c);

#endif
