/* Any graph as an ONNX model, written anew: the general way out, beside the splice of export.h.
 *
 * A node goes under its ai.onnx name where the schema of that name admits its types, else under domain qcc with the
 * card's own attributes.  Reading the file back gives the same graph. */
#ifndef FRONTENDS_ONNX_WRITE_H
#define FRONTENDS_ONNX_WRITE_H

#include "frontends/onnx/splice.h"
#include "ir/graph.h"

/* Names of the dimensions of an input or output that have no size; null: nameless. */
typedef struct DimNames {
    const char *name[MAX_RANK];
} DimNames;

/* For each input and each output of a graph. */
typedef struct SignatureNames {
    const DimNames *inputs, *outputs;
} SignatureNames;

/* Writes a graph; `names` may be null, and either list of it.  UNSUPPORTED, naming them, when it has operators that are
 * not understood. */
Status onnx_write_named(Graph *g, Diag *d, const SignatureNames *names, const Sink *sink);

/* The same without names.  UNSUPPORTED, naming them, when it has operators that are not understood. */
Status onnx_write(Graph *g, Diag *d, const Sink *sink);

#endif
