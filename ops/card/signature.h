/* Signatures: what operands must be, and what results are, where dimensions stand for themselves.
 *
 *     .in = { "F[*nn]", "F[*]" }, .out = { "F[*nn]" }          det_grad
 *     .in = { "F[nchw]", "G[r5]" }, .out = { "F[rcpq]" }       max_roi_pool
 *
 * A text is an element type and, in brackets, one character for each dimension: a letter is an extent, the same wherever
 * it stands; a digit is an extent itself; `*`, once, is any number of dimensions, the same ones wherever it stands.  Without
 * brackets the shape is free.  A `?` at the end: the operand may be absent.
 *
 * The element type is the name of one (f32, i64, ..) or a capital letter, the same type wherever it stands: F, G, H for
 * floats, A for f32, f16 and bf16, I and J for integers, T and U for all.
 *
 * The texts are read as they stand; there is nothing to prepare. */
#ifndef OPS_CARD_SIGNATURE_H
#define OPS_CARD_SIGNATURE_H

#include "ops/card/shapes.h"

enum { SIGNATURE_LETTERS = 26 };

/* What the letters of a call stand for. */
typedef struct Bound {
    int64_t extent[SIGNATURE_LETTERS];
    int dtype[SIGNATURE_LETTERS]; /* DType + 1; 0: not known yet */
    int n_rest;                   /* of `*`; -1: not known yet */
    int64_t rest[MAX_RANK];
} Bound;

/* Nothing known yet. */
Bound signature_open(void);

/* An extent that an attribute says. */
void signature_set(Bound *k, char letter, int64_t extent);

/* An element type that an attribute says. */
void signature_set_dtype(Bound *k, char letter, DType dtype);

/* An extent, DIM_UNKNOWN where nothing says it. */
int64_t signature_extent(const Bound *k, char letter);

/* Whether the operands are what the card's signature says; false after a complaint. */
bool signature_match(Infer *q, Bound *k);

/* The results by what was found; null after a complaint. */
const Type *signature_results(Infer *q, const Bound *k);

/* `infer` of a card whose attributes say nothing about types. */
const Type *infer_by_signature(Infer *q);

/* A random call of an op by its signature, with as many results as it may have: floats in [-2, 2], integers in [0, 3]. */
Node *sample_by_signature(Build *b, Rng *rng, int variant, Op op, const void *attr);

#endif
