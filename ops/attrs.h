/* Attributes of calls that others read or write: rules of passes, importers. */
#ifndef OPS_ATTRS_H
#define OPS_ATTRS_H

#include "ir/attr.h"

typedef struct AlphaAttr { /* leaky_relu, elu, celu, swish, thresholded_relu */
    float alpha;
} AlphaAttr;

enum { GELU_ERF, GELU_TANH };

typedef struct GeluAttr {
    int approximate;
} GeluAttr;

typedef struct AxisAttr { /* concat */
    int64_t axis;
} AxisAttr;

typedef struct TransposeAttr {
    Ints perm; /* not given: the axes reversed */
} TransposeAttr;

typedef struct ReshapeAttr {
    bool allowzero;
} ReshapeAttr;

#endif
