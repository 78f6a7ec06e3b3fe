/* Attributes of calls that others read or write: rules of passes, importers. */
#ifndef OPS_CARD_ATTRS_H
#define OPS_CARD_ATTRS_H

#include "ir/attr.h"

typedef struct AlphaAttr { /* leaky_relu, elu, celu, swish, swiglu, thresholded_relu */
    float alpha;
} AlphaAttr;

enum { GELU_ERF, GELU_TANH };

typedef struct GeluAttr {
    int approximate;
} GeluAttr;

typedef struct LevelsAttr { /* nearest_level, level */
    int levels;             /* ops/scalar/levels.h */
} LevelsAttr;

typedef struct AxisAttr { /* concat, softmax, hardmax */
    int64_t axis;
} AxisAttr;

typedef struct SlopeAttr { /* hard_sigmoid */
    float alpha, beta;
} SlopeAttr;

typedef struct TransposeAttr {
    Ints perm; /* not given: the axes reversed */
} TransposeAttr;

typedef struct ShapeAttr { /* shape: dimensions start .. end - 1, clamped */
    int64_t start, end;
} ShapeAttr;

typedef struct ReshapeAttr {
    bool allowzero;
} ReshapeAttr;

enum { LOSS_MEAN, LOSS_SUM };

typedef struct ClassLossAttr { /* cross_entropy, nll, focal */
    int reduction;
    int64_t axis; /* of the classes */
    int64_t ignore_index;
    float label_smoothing;
    float gamma; /* of focal */
} ClassLossAttr;

typedef struct LossSumAttr { /* mse, l1, huber, bce_logits */
    int reduction;
    float delta; /* of huber */
    float gamma; /* of bce_logits */
} LossSumAttr;

typedef struct SplitItemsAttr { /* split_to_sequence */
    int64_t axis;
    bool keepdims;
} SplitItemsAttr;

typedef struct SequenceConcatAttr { /* concat_from_sequence */
    int64_t axis;
    bool new_axis;
} SequenceConcatAttr;

typedef struct TopKAttr {
    int64_t axis;
    bool largest, sorted;
} TopKAttr;

typedef enum Scatter { SCATTER_NONE, SCATTER_ADD, SCATTER_MUL, SCATTER_MAX, SCATTER_MIN } Scatter;

/* What is at a place, x, once an update y came to it; NaN wins in max and min. */
#define SCATTER_ROWS(_)                                                                                                \
    _(SCATTER_ADD, x + y)                                                                                              \
    _(SCATTER_MUL, x *y)                                                                                               \
    _(SCATTER_MAX, y > x || y != y ? y : x)                                                                            \
    _(SCATTER_MIN, y < x || y != y ? y : x)

typedef struct ScatterAttr {
    int reduction;
    int64_t axis; /* of scatter_elements */
} ScatterAttr;

#endif
