/* The texts that kernels begin with, made from the headers that the host compiles (cmake/prelude.cmake). */
#ifndef QCC_OPS_TEXT_H
#define QCC_OPS_TEXT_H

/* ops/scalar.h with all its parts, zero-terminated. */
extern const char ops_scalar_text[];

/* The part of ops/reduce.h that kernels use; it follows ops_scalar_text. */
extern const char ops_reduce_text[];

/* ops/warp.h, which follows both. */
extern const char ops_warp_text[];

/* ops/update/scaler.h, which follows the first. */
extern const char ops_scaler_text[];

/* ops/sample/grid_look.h, which follows the first, too. */
extern const char ops_grid_text[];

#endif
