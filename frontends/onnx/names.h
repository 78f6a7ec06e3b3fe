/* What our own files say beyond the standard, and how the reader knows it again. */
#ifndef FRONTENDS_ONNX_NAMES_H
#define FRONTENDS_ONNX_NAMES_H

/* The domain of ops without a standard name, and its version. */
#define QCC_DOMAIN   "qcc"
#define ONNX_PREVIEW "ai.onnx.preview" /* operators on trial, of a version of its own */
enum { QCC_DOMAIN_VERSION = 1 };

/* Keys of a node's metadata. */
#define QCC_SRC    "qcc.src"    /* node of the spine */
#define QCC_FLAGS  "qcc.flags"  /* NODE_OURS, NODE_BACKWARD */
#define QCC_RESULT "qcc.result" /* an Identity that only names a result */

#define QCC_CONST "qcc.const" /* a Constant that is no parameter */

/* A value without a name is written as this and a number. */
#define QCC_NAMELESS "qcc%"

#endif
