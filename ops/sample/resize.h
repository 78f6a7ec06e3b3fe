/* resize: how large the result is, and what each of its positions reads along each axis. */
#ifndef OPS_SAMPLE_RESIZE_H
#define OPS_SAMPLE_RESIZE_H

#include "ops/card/cards.h"
#include "ops/scalar.h"

typedef enum ResizeMode { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC } ResizeMode;

typedef enum ResizePolicy { POLICY_STRETCH, POLICY_NOT_LARGER, POLICY_NOT_SMALLER } ResizePolicy;

typedef struct ResizeAttr {
    bool antialias, exclude_outside;
    Ints axes;
    int coordinate_transformation_mode, keep_aspect_ratio_policy, mode, nearest_mode;
    float cubic_coeff_a, extrapolation_value;
} ResizeAttr;

extern const char *const resize_modes[], *const resize_coordinates[], *const resize_nearest_modes[],
                                                                          *const resize_policies[];

/* The rows of the attributes. */
#define RESIZE_ATTRS                                                                                                   \
    ATTR(ResizeAttr, antialias, BOOL, false), ATTR_OPTIONAL(ResizeAttr, axes, INTS),                                   \
        ATTR_CHOICE(ResizeAttr, coordinate_transformation_mode, resize_coordinates, COORD_HALF_PIXEL),                 \
        ATTR(ResizeAttr, cubic_coeff_a, FLOAT, -0.75), ATTR(ResizeAttr, exclude_outside, BOOL, false),                 \
        ATTR(ResizeAttr, extrapolation_value, FLOAT, 0),                                                               \
        ATTR_CHOICE(ResizeAttr, keep_aspect_ratio_policy, resize_policies, POLICY_STRETCH),                            \
        ATTR_CHOICE(ResizeAttr, mode, resize_modes, RESIZE_NEAREST),                                                   \
        ATTR_CHOICE(ResizeAttr, nearest_mode, resize_nearest_modes, NEAREST_ROUND_PREFER_FLOOR)

/* Every axis: extents (-1: unknown), result per element of data, and the part of the data that is seen. */
typedef struct ResizePlan {
    int rank;
    int64_t in[MAX_RANK], out[MAX_RANK];
    double scale[MAX_RANK], start[MAX_RANK], end[MAX_RANK];
} ResizePlan;

/* Plans a call; null operands are absent.  Returns null, or what is wrong, in `arena`. */
const char *resize_plan(ResizePlan *p, Arena *arena, const Limits *limits, const ResizeAttr *at, const Type *x,
                        const Tensor *roi, const Tensor *scales, const Tensor *sizes);

/* The axes an attribute names, as [0, rank): their number, or -1 when one is wrong or named twice. */
int resize_axes(const ResizeAttr *at, int rank, int *axes);

/* Whether an axis stays as it is. */
bool resize_keeps(const ResizePlan *p, int axis);

/* The axes that change: those that shrink come first, so that nothing between is larger than data and result. */
int resize_order(const ResizePlan *p, int *axes);

/* Elements before and behind an axis. */
void resize_around(int rank, const int64_t *dims, int axis, int64_t *outer, int64_t *inner);

/* An axis of a plan, as the arithmetic of one element takes it (ops/scalar/resize.h). */
ResizeAxis resize_axis_of(const ResizePlan *p, int axis);

/* How many elements each position of an axis reads, and by how much their filter is stretched (below 1). */
int64_t resize_n_taps(const ResizeAttr *at, const ResizePlan *p, int axis, double *shrink);

/* What each position of an axis reads: `taps` positions of the data with weights.  One tap of weight 1 for nearest. */
typedef struct ResizeTaps {
    int64_t taps;
    int64_t *at;    /* [out][taps], within the data */
    double *weight; /* [out][taps] */
    bool *outside;  /* [out]: the extrapolation value stands there */
} ResizeTaps;

/* The table of one axis, in the call's scratch. */
ResizeTaps resize_taps(Eval *e, const ResizeAttr *at, const ResizePlan *p, int axis);

/* The kernels of resize, and of resize_grad, whose attributes hold these (AccessCard.kernels). */
bool kernels_resize(const Node *n, OwnKernels *to);
bool kernels_resize_grad(const Node *n, const ResizeAttr *at, OwnKernels *to);

/* The adjoint in the data. */
void adjoint_resize(Build *b, const Site *s, Node **dx);

#endif
