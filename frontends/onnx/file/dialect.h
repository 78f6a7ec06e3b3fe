/* What our own files say beyond the standard, and how the reader knows it again. */
#ifndef FRONTENDS_ONNX_FILE_DIALECT_H
#define FRONTENDS_ONNX_FILE_DIALECT_H

/* The domain of ops without a standard name, and its version. */
#define QCC_DOMAIN   "qcc"
#define ONNX_PREVIEW "ai.onnx.preview" /* operators on trial, of a version of its own */
enum { QCC_DOMAIN_VERSION = 1 };

/* The domain of QONNX, and the version of it that is written. */
#define QONNX_DOMAIN "qonnx.custom_op.general"
enum { QONNX_VERSION = 2 };

/* A value without a name is written as this and a number. */
#define QCC_NAMELESS "qcc%"

/* ---- metadata of a node ---- */

#define QCC_FOR      "qcc.for" /* of a model for others: whose products of codes give numbers where ONNX's are of floats */
#define QCC_FOR_TEXT "qcc.for.text" /* and, where that is a machine of somebody's own, its text */
#define QCC_SRC      "qcc.src"      /* its node in the model, by number; such a node is read as its notes say */
#define QCC_FLAGS    "qcc.flags"    /* NodeFlags */
#define QCC_NAME     "qcc.name"     /* of the value, where the ONNX name does not tell; "": none */
#define QCC_NODE     "qcc.node"     /* the label of the node, where another node has that name */
#define QCC_RESULT   "qcc.result"   /* an Identity that only names a result */
#define QCC_CONST    "qcc.const"    /* a Constant, or an Identity of one: 1 const, 0 param */
#define QCC_INIT     "qcc.init"     /* how values that are not stored are drawn: "kaiming SEED SCALE-BITS" */
#define QCC_SAME     "qcc.same"     /* its bytes are those of the constant of that ONNX name */
#define QCC_OPERANDS "qcc.operands" /* operands, absent ones at the end counted */
#define QCC_OUTPUTS  "qcc.outputs"  /* results, unread ones at the end counted */
#define QCC_OWN      "qcc.own"      /* the attribute `operands` */
#define QCC_STREAM   "qcc.stream"   /* the attribute `stream`, where it is not the node of the spine */
#define QCC_PARTS    "qcc.parts"    /* its results are read by Identity nodes that are parts */
#define QCC_TUPLE    "qcc.tuple"    /* the name of a node with several results, as a value */
#define QCC_PART     "qcc.part"     /* such an Identity: which result */
#define QCC_CAPTURE  "qcc.capture." /* N: the N-th value that its bodies take from outside */
#define QCC_INSIDE   "qcc.inside."  /* R.I: the name of parameter I of body R */
#define QCC_MARKS    "qcc.marks."   /* R.I: its marks, "SRC FLAGS" */
#define QCC_LABEL    "qcc.label."   /* R.I: its label */

/* ---- metadata of a tensor ---- */

/* QCC_FLAGS of a parameter, and QCC_NODE: its label */
#define QCC_BLOB  "qcc.blob"  /* the name of the constant, where the initializer has another */
#define QCC_AT    "qcc.at"    /* how many nodes stand before the parameter */
#define QCC_STATE "qcc.state" /* the initializer is a state; its marks, "SRC FLAGS" */
#define QCC_ROLE  "qcc.role" /* of a state: "ROLE OF", OF being the name of another state, absent where it is of none */
#define QCC_KEPT  "qcc.stored" /* of a state that is written by a quantizer: its words */

/* ---- metadata of a graph ---- */

#define QCC_ORIGIN   "qcc.origins"   /* where nodes of the model come from (read/origins.h) */
#define QCC_ROLE_IN  "qcc.role.in."  /* I: "ROLE OF" of an input, where it is more than data */
#define QCC_ROLE_OUT "qcc.role.out." /* I: "ROLE OF" of a result, where it is more than a value */

/* ---- metadata of the algorithm of a step; K counts graphs ---- */

#define QCC_GRAPHS  "qcc.graphs"   /* how many */
#define QCC_GRAPH   "qcc.graph."   /* K: "NODES INPUTS RESULTS NAME" */
#define QCC_INPUT   "qcc.in."      /* K.I: "KIND SRC FLAGS ONNX-NAME" */
#define QCC_CALLED  "qcc.called."  /* K.I: the name of the input, where the ONNX name does not tell */
#define QCC_BEGINS  "qcc.begins."  /* K.I: how the first value of a state is drawn; "none": it has none */
#define QCC_BEING   "qcc.role."    /* K.I: "ROLE OF" of the state or input, where it is more than a weight or data */
#define QCC_WRITTEN "qcc.stored."  /* K.I: the words of the quantizer that the state is written by */
#define QCC_OUTPUT  "qcc.out."     /* K.I: "KIND ONNX-NAME" */
#define QCC_LEAVING "qcc.mark."    /* K.I: "ROLE OF" of the result, where it is more than a value */
#define QCC_ORIGINS "qcc.origins." /* K: where nodes of the model come from (read/origins.h), where not as in graph 0 */
#define QCC_LEAVES  "qcc.as."      /* K.I: the name under which it leaves, where it is not its value's or a state's */

/* ---- metadata of the file of a step ---- */

#define QCC_FILE_BYTES  "qcc.file.bytes"  /* of the model in front */
#define QCC_FILE_DIGEST "qcc.file.digest" /* of the whole file (step_digest.h) */
#define QCC_FILE_IR     "qcc.file.ir"     /* the model's ir_version; "": it has none */

#endif
