/* What the losses of training share: weights of samples, and the sum or mean at the end.
 *
 * A mean with weights is the weighted one: the sum of weighted terms over the sum of the weights, so a sample of weight
 * 0 is as if it were not there. */
#ifndef OPS_LOSS_TRAIN_LOSS_H
#define OPS_LOSS_TRAIN_LOSS_H

#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"

extern const char *const loss_reductions[];

/* Operand i, when it is there, must be floats: one for each sample (dimension 0), or one for each of `dims`; false
 * after a complaint. */
bool infer_sample_weight(Infer *q, int i, int rank, const int64_t *dims);

/* The type of a loss over operand 0: a scalar, f64 for f64, f32 for every narrower float. */
const Type *infer_loss_scalar(Infer *q);

/* Operand i as weights in t that broadcast over dims; null when it is absent. */
Node *loss_weight(Build *b, const Site *s, int i, DType t, int rank, const int64_t *dims);

/* The sum or weighted mean of what is there for each of dims: `each` is already weighted, `weight` (null: 1) only
 * divides. */
Node *loss_total(Build *b, Node *each, Node *weight, int reduction, int64_t n);

/* What the loss passes to each of its n terms before their weights: dy over what the mean divides by. */
Node *loss_share(Build *b, Node *dy, Node *weight, int reduction, int64_t n);

/* ---- helpers of sample ---- */

/* No weights, one for each sample, or one for each of dims. */
Node *sample_loss_weight(Build *b, Rng *rng, DType dtype, int rank, const int64_t *dims);

#endif
