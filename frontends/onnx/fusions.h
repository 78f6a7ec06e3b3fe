/* What ONNX Runtime makes of a file with Q/DQ pairs: its operators after it has fused, and what becomes of each Q and
 * DQ.
 *
 * The rules are those of docs/quantization.md, "What ONNX Runtime fuses": measured on one version on one kind of
 * machine. */
#ifndef FRONTENDS_ONNX_FUSIONS_H
#define FRONTENDS_ONNX_FUSIONS_H

#include "frontends/onnx/file/spine.h"
#include "ir/graph.h"

#define ORT_VERSION "1.31"
#define ORT_LEVEL   "extended" /* what is above it changes layouts, not which Q and DQ go */

/* What becomes of one Q or DQ of a file. */
typedef struct FusionFate {
    const char *node, *value; /* its name, or its result's; what it reads */
    bool is_q;
    const char *by;  /* the operator that it goes into, or in words what else takes it away; null: nothing does */
    const char *at;  /* the node that becomes that operator; null: none */
    const char *why; /* where it stays: why */
    int stays;       /* calls that are left of it: one for each reader that is not fused */
} FusionFate;

/* What became of operators of one kind. */
typedef struct FusionChange {
    const char *op, *into; /* null: they are gone, taken in by others */
    int n;
    int weights, biases; /* of products: ONNX's numbers of the types of their codes; 0: they have none */
} FusionChange;

typedef struct Fusions {
    const char *engine, *how; /* who fuses: "ONNX Runtime 1.31", and at which level, or by which rules */
    bool ops_after;           /* `ops` and `changes` are those of the optimized graph; else of the file, and none */
    Map ops;                  /* operator -> how many of it the optimized graph has, by title in order of appearance */
    FusionFate *fates;
    size_t n;       /* in the order of the file */
    size_t orphans; /* fates that stay */
    FusionChange *changes;
    size_t n_changes, cap; /* without Q and DQ */
    const char *refused;   /* why ONNX Runtime refuses it, or what it makes of it by its own rules; null: it does not */
} Fusions;

/* Says it of the model of a spine; `typed` is what onnx_import made of it, whose types are those of the file's values
 * (null: nothing is known of them).  Bodies of conditions and loops are taken as they are. */
Status onnx_fusions(Spine *spine, Graph *typed, Arena *arena, Diag *d, Fusions *f);

/* The same of TensorRT, by the rules that it publishes; operators are those of the file. */
Status onnx_fusions_trt(Spine *spine, Graph *typed, Arena *arena, Diag *d, Fusions *f);

#endif
