/* Arrays by name in one .npz file: a zip of .npy files, stored as they are, the same bytes on every day. */
#ifndef RUNTIME_WRITE_NPZ_H
#define RUNTIME_WRITE_NPZ_H

#include "base/sink.h"
#include "ir/tensor.h"

/* Puts all of them in the order given, as NAME.npy each. */
Status npz_write(Arena *scratch, Sink to, const NamedTensor *arrays, size_t n);

#endif
