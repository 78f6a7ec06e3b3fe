/* The bins in the state of an observer (ops/quant/observe.h). */
#ifndef OPS_QUANT_HISTOGRAM_H
#define OPS_QUANT_HISTOGRAM_H

#include "ops/quant/observe.h"

/* How many numbers a bin of a state holds. */
u64 histogram_count(const f32 *state, int bin);
void histogram_set(f32 *state, int bin, u64 count);

/* The least width with which a number below infinity has a bin; 0 for 0. */
f32 histogram_width(f32 size);

/* Bins of that width, which is not below what it was. */
void histogram_widen(f32 *state, f32 width);

/* Lets a state that keeps counts tell the range that its kind has of them. */
void histogram_take_range(f32 *state, const ObserveAttr *at, u64 *counts, f64 *room);

#endif
