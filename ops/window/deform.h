/* Deformable windows: each tap reads at its position plus an offset.  What deform_conv and its gradients share. */
#ifndef OPS_WINDOW_DEFORM_H
#define OPS_WINDOW_DEFORM_H

#include "ops/window/window.h"

/* Of deform_columns and the ways back from it. */
typedef struct ColumnsAttr {
    DeformConvAttr deform;
    Ints extents; /* of the data, where it is no operand */
} ColumnsAttr;

/* Checks operand i, an offset or a mask: [N, groups * taps * each, out..] over data x; false after a complaint. */
bool infer_steering(Infer *q, int i, const Type *x, const Window *w, int64_t groups, int64_t each);

typedef struct Steering {
    Window w;
    int64_t channels, groups, per_group; /* channels of the data; offset groups, and channels of each */
    int64_t taps, in, out;               /* of a kernel; spatial elements of data and result */
    const void *x, *offset;
} Steering;

/* The numbers of a placed window; x and offset are left to the caller. */
Steering steering_of(const Window *w, int64_t groups, int64_t channels);

/* The row of a mask (and, times the rank, of an offset) that steers tap number k of channel c. */
int64_t steering_row(const Steering *s, int64_t image, int64_t c, int64_t k);

/* One row of the window matrix: what tap number k of channel c sees at every position, linear between the elements, zero
 * outside. */
void steering_look_f32(const Steering *s, int64_t image, int64_t c, int64_t k, f32 *to);
void steering_look_f64(const Steering *s, int64_t image, int64_t c, int64_t k, f64 *to);

void adjoint_deform_conv(Build *b, const Site *s, Node **dx);

#endif
