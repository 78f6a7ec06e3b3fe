/* A model in one narrower float type, without casts: what `export --dtype` writes.
 *
 * Every f32 becomes f16 or bf16, the signature included, and is rounded once.  What stays f32: operands that the ONNX
 * schema has in no other type (scales of Resize), with what they are computed from; arithmetic on shapes and indices that
 * meets neither the signature nor a weight; kept inputs and outputs. */
#ifndef FRONTENDS_ONNX_NARROW_H
#define FRONTENDS_ONNX_NARROW_H

#include "ir/graph.h"

typedef struct NarrowOptions {
    DType to;                /* F16 or BF16 */
    const char *const *keep; /* inputs and outputs that stay f32, with a Cast each */
    size_t n_keep;
    bool keep_all;
    bool rounds; /* constants that the type does not hold are a warning */
} NarrowOptions;

/* Makes a graph that was imported narrow, in place.  UNSUPPORTED, naming all of them, when operators have no form with
 * the type, or constants would overflow or vanish; USAGE when something is to be kept that the signature lacks. */
Status onnx_narrow(Graph *g, Diag *d, const NarrowOptions *o);

#endif
