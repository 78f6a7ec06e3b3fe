/* What losses over classes share: their operands, read as columns along the axis of classes. */
#ifndef OPS_LOSS_CLASSES_H
#define OPS_LOSS_CLASSES_H

#include "ops/loss/train_loss.h"

enum { LOGITS, TARGET, CLASS_WEIGHT, SAMPLE_WEIGHT };

/* A call in terms of columns: the shape of the logits with one element along the axis of classes. */
typedef struct Classes {
    DType t;
    int rank, axis;
    int64_t n, positions; /* classes, and columns */
    double smoothing;
    int reduction;
    int64_t column[MAX_RANK];
    Node *class_weight;  /* along the axis of classes; null: 1 */
    Node *sample_weight; /* of a column; null: 1 */
    /* of targets that are classes */
    Node *index;      /* a column, 0 for those to ignore; null: targets are probabilities */
    Node *ignored;    /* a column of bool */
    Node *own_weight; /* a column: the weight of the target's class; null: 1 */
    Node *weight;     /* what the mean divides by the sum of; null: 1 */
} Classes;

/* The type of such a loss, the targets being classes or, where they may be, probabilities; null after a complaint. */
const Type *infer_class_loss(Infer *q, bool may_be_soft);

/* Reads the operands of a call. */
Classes loss_read_classes(Build *b, const Site *s, double smoothing);

/* A product, null being 1. */
Node *loss_times(Build *b, Node *x, Node *y);

/* A number of the type that the loss is computed in. */
Node *loss_number(Build *b, const Classes *c, double v);

/* The sum over the classes, as columns. */
Node *loss_sum_of_classes(Build *b, const Classes *c, Node *x);

/* 1 at the target's class, 0 elsewhere. */
Node *loss_one_hot(Build *b, const Classes *c);

/* A call for the tests of cards. */
Node *sample_class_loss(Build *b, Rng *rng, int variant, Op op);

#define CLASS_LOSS_CARD                                                                                                \
    .min_in = 2, .max_in = 4, .n_variants = 60, .access.kind = ACCESS_COMPOSITE, .access.refuses = true,               \
    .amp = { AMP_FO, AMP_FO, 1u << CLASS_WEIGHT | 1u << SAMPLE_WEIGHT, REASON_PRECISION, NULL },                       \
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER, QUANT_FLOAT }, .out = { QUANT_FLOAT } }

#endif
