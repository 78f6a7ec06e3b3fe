/* Attributes of the normalizations and losses, and what their files share. */
#ifndef OPS_NORM_NORM_H
#define OPS_NORM_NORM_H

#include "ops/card/cards.h"

typedef struct BatchNormAttr {
    float epsilon, momentum;
    bool training_mode;
    bool unbiased; /* the variance that is remembered is divided by n - 1, which PyTorch does and ONNX does not */
} BatchNormAttr;

/* Results of batch_normalization in training, behind the running statistics: the mean of the batch, 1 / its deviation. */
enum { BATCH_NORM_MEAN = 3, BATCH_NORM_INVERSE, BATCH_NORM_RESULTS };

/* fold_norm: a product's weight, its norm's operands, the product's own bias. */
enum {
    FOLD_NORM_W,
    FOLD_NORM_SCALE,
    FOLD_NORM_SHIFT,
    FOLD_NORM_MEAN,
    FOLD_NORM_VAR,
    FOLD_NORM_BIAS,
    FOLD_NORM_OPERANDS,
};

typedef struct FoldNormAttr {
    float epsilon, momentum; /* as the norm has them */
    int64_t axis;            /* of the weight: its channels */
} FoldNormAttr;

typedef struct NormAttr {
    float epsilon;
    int64_t axis;       /* of layer and rms normalization */
    int64_t num_groups; /* of group normalization */
    int stash_type;     /* DType + 1: of the statistics */
} NormAttr;

typedef struct MvnAttr {
    Ints axes;
} MvnAttr;

typedef struct LpNormAttr {
    int64_t axis, p;
} LpNormAttr;

typedef struct LrnAttr {
    float alpha, beta, bias;
    int64_t size;
} LrnAttr;

typedef enum Reduction { REDUCTION_NONE, REDUCTION_SUM, REDUCTION_MEAN } Reduction;

/* No index is to be ignored: a value that no target can have. */
#define IGNORE_NONE INT64_MIN

typedef struct LossAttr {
    int64_t ignore_index;
    int reduction;
} LossAttr;

/* What the variance of that many rows is multiplied with before it is remembered: rows / (rows - 1), or 1. */
double batch_norm_correction(const BatchNormAttr *at, double rows);

/* What a mean is over: axes at once, or from the last to the first, each step a mean of the means before. */
typedef struct Over {
    int n;
    const int64_t *axes;
    bool in_steps;
} Over;
Node *build_mean(Build *b, Node *x, Over over);

/* The dimensions [batch, groups, channels of a group, space], over the last two of which groups have means: those of
 * channels first. */
Over group_dims(const Type *x, int64_t groups, int64_t *dims);

/* x - mean over the axes, with the mean and 1 / sqrt(variance + epsilon). */
typedef struct Standard {
    Node *centered, *mean, *scale;
} Standard;
Standard build_standard(Build *b, DType width, Node *x, Over over, float epsilon);

/* What goes back through them (ops/norm/norm_adjoint.c). */
void adjoint_layer_normalization(Build *b, const Site *s, Node **dx);
void adjoint_rms_normalization(Build *b, const Site *s, Node **dx);
void adjoint_instance_normalization(Build *b, const Site *s, Node **dx);
void adjoint_group_normalization(Build *b, const Site *s, Node **dx);
void adjoint_batch_normalization(Build *b, const Site *s, Node **dx);

/* The scale, moved away from 0; scale / sqrt(var + epsilon) for each channel, of the operands of fold_norm; and a list of channels along an axis of
 * what has the type `w`. */
Node *fold_norm_scale(Build *b, Node *scale, DType t);
Node *fold_norm_gain(Build *b, Node *const *in, DType t, double epsilon);
Node *fold_norm_spread(Build *b, Node *x, const Type *w, int64_t axis);

#endif
