/* Any graph as an ONNX model, written anew: the general way out, beside the splice of export.h.
 *
 * A node goes under its ai.onnx name where the schema of that name admits its types, else under domain qcc with the
 * card's own attributes.  Reading the file back gives the same graph. */
#ifndef FRONTENDS_ONNX_WRITE_H
#define FRONTENDS_ONNX_WRITE_H

#include "frontends/onnx/splice.h"
#include "ir/graph.h"

/* Writes a graph.  UNSUPPORTED, naming them, when it has operators that are not understood. */
Status onnx_write(Graph *g, Diag *d, const Sink *sink);

#endif
