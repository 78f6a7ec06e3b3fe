/* Any graph as an ONNX model, written anew: the general way out, beside the splice of export.h.
 *
 * A node goes under its ai.onnx name where the schema of that name admits its types, else under domain qcc with the
 * card's own attributes.  States are initializers, and the next value of state NAME is the output NAME.next.  Reading
 * the file back gives the same graph. */
#ifndef FRONTENDS_ONNX_WRITE_H
#define FRONTENDS_ONNX_WRITE_H

#include "frontends/onnx/file/weight_file.h"
#include "ir/graph.h"

/* Names of the dimensions of an input or output that have no size; null: nameless. */
typedef struct DimNames {
    const char *name[MAX_RANK];
} DimNames;

/* For each input and each output of a graph. */
typedef struct SignatureNames {
    const DimNames *inputs, *outputs;
} SignatureNames;

/* Writes a graph; `names` may be null, and either list of it.  Weights that are too large for
 * one file go to `beside`, what lies beside the file that the sink fills; null: there is no such place.  UNSUPPORTED, naming them, when it has operators
 * that are not understood. */
Status onnx_write_named(Graph *g, Diag *d, const SignatureNames *names, const Sink *sink, WeightFile *weights);

/* What a file for others is to be. */
typedef struct DeployedFor {
    const char *datapath; /* the text of a machine of somebody's own, which is noted; null: it is none */
    const char *made_for; /* whom it has to be computed for, which is noted; null: nothing is */
    bool quants;          /* quantizers are QONNX's operators, not Q/DQ pairs */
} DeployedFor;

/* Writes a graph for others: nothing of ours is noted but what `to` says, the rest of the file and the shapes of the
 * signature are those of the spine it was imported from, whose opset is raised where it has to be.  UNSUPPORTED, naming them, when nodes have no standard name. */
Status onnx_write_deployed(Graph *g, Diag *d, const Spine *from, const Sink *sink, WeightFile *weights,
                           const DeployedFor *to);

/* The same without names, and without a place.  */
Status onnx_write(Graph *g, Diag *d, const Sink *sink);

#endif
