/* Helpers of the upgrade rows. */
#ifndef FRONTENDS_ONNX_READ_UPGRADE_H
#define FRONTENDS_ONNX_READ_UPGRADE_H

#include "frontends/onnx/read/call.h"

/* A constant of ours as an operand. */
Node *upgrade_ints(const Call *c, int n, const int64_t *v);
Node *upgrade_scalar(const Call *c, DType dtype, double value);

/* The rank of operand i; an error when it is unknown. */
Status upgrade_rank(const Call *c, int i, int *rank);

/* Changes of shape arguments, one function a row of upgrade.c (upgrade_shapes.c). */
Status broadcast_by_axis(Call *c);
Status slope_by_channel(Call *c);
Status softmax_of_matrix(Call *c);
Status axes_to_operand(Call *c);
Status slice_operands(Call *c);
Status split_operand(Call *c);
Status split_parts(Call *c);
Status pads_renamed(Call *c);
Status pad_operands(Call *c);
Status shape_operand(Call *c);
Status tile_repeats(Call *c);
Status concat_axis(Call *c);
Status upsample_scales(Call *c);
Status upsample_operand(Call *c);
Status upsample_to_resize(Call *c);
Status resize_roi(Call *c);
Status group_to_channel(Call *c);

#endif
