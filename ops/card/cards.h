/* What the cards' files share. */
#ifndef OPS_CARD_CARDS_H
#define OPS_CARD_CARDS_H

#include <inttypes.h>

#include "ops/card/eval.h"

/* Every word has a card: a word without one does not link. */
#define OP(word) extern const OpDef op_##word;
#include "ir/ops.def"
#undef OP

/* All of them, indexed by word. */
extern const OpTable ops_table;

typedef struct OpaqueAttr {
    const char *op_type, *domain;
} OpaqueAttr;

/* ---- helpers of infer ---- */

/* The tensor type of operand i, or null with a complaint when it is absent or no tensor. */
const Type *infer_tensor(Infer *q, int i);

/* A tensor type in the dtype of operand i. */
const Type *infer_shaped(Infer *q, int i, int rank, const int64_t *dims);

/* numpy broadcasting of all present tensor operands from `first` on, in `dtype`. */
const Type *infer_broadcast(Infer *q, int first, DType dtype);

/* Broadcasts two shapes into `dims`; false when they do not fit.  Unknown dimensions give what is certain. */
bool broadcast_dims(int *rank, int64_t *dims, const Type *with);

/* An axis in [-rank, rank) as [0, rank); false after a complaint. */
bool infer_axis(Infer *q, int64_t axis, int rank, int *out);

/* The integers of operand i when it is a constant, NULL otherwise; *n is their number. */
const int64_t *infer_ints(Infer *q, int i, int64_t *n);

/* Whether operand i is there. */
static inline bool infer_has(const Infer *q, int i)
{
    return i < q->n_in && q->in[i];
}

static inline bool eval_has(const Eval *e, int i)
{
    return i < e->n_in && e->in[i];
}

static inline Node *site_in(const Site *s, int i)
{
    return i < s->n_in ? s->in[i] : NULL;
}

/* ---- helpers of sample ---- */

/* A random constant: floats in [lo, hi], integers in that range too. */
Node *sample_tensor(Build *b, Rng *rng, DType dtype, int rank, const int64_t *dims, double lo, double hi);

/* A random shape of that rank with dimensions 0 (rarely), 1 and up to `most`. */
void sample_dims(Rng *rng, int rank, int64_t most, int64_t *dims);

#endif
