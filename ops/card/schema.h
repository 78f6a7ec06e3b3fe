/* What ONNX itself says about its operators: every version of every operator as data (ops/onnx_schema.def).
 *
 * Element types carry ONNX's own numbers (TensorProto.DataType) here; bit n of a mask stands for number n. */
#ifndef QCC_OPS_CARD_SCHEMA_H
#define QCC_OPS_CARD_SCHEMA_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ONNX_UNDEFINED,
    ONNX_FLOAT,
    ONNX_UINT8,
    ONNX_INT8,
    ONNX_UINT16,
    ONNX_INT16,
    ONNX_INT32,
    ONNX_INT64,
    ONNX_STRING,
    ONNX_BOOL,
    ONNX_FLOAT16,
    ONNX_DOUBLE,
    ONNX_UINT32,
    ONNX_UINT64,
    ONNX_COMPLEX64,
    ONNX_COMPLEX128,
    ONNX_BFLOAT16,
    ONNX_FLOAT8E4M3FN,
    ONNX_FLOAT8E4M3FNUZ,
    ONNX_FLOAT8E5M2,
    ONNX_FLOAT8E5M2FNUZ,
    ONNX_UINT4,
    ONNX_INT4,
    ONNX_FLOAT4E2M1,
    ONNX_FLOAT8E8M0,
    ONNX_UINT2,
    ONNX_INT2,
    ONNX_FLOAT6E2M3,
    ONNX_FLOAT6E3M2,
    ONNX_TYPES
};

/* AttributeProto.AttributeType. */
enum {
    ONNX_ATTR_UNDEFINED,
    ONNX_ATTR_FLOAT,
    ONNX_ATTR_INT,
    ONNX_ATTR_STRING,
    ONNX_ATTR_TENSOR,
    ONNX_ATTR_GRAPH,
    ONNX_ATTR_FLOATS,
    ONNX_ATTR_INTS,
    ONNX_ATTR_STRINGS,
    ONNX_ATTR_TENSORS,
    ONNX_ATTR_GRAPHS,
    ONNX_ATTR_SPARSE_TENSOR,
    ONNX_ATTR_SPARSE_TENSORS,
    ONNX_ATTR_TYPE_PROTO,
    ONNX_ATTR_TYPE_PROTOS,
    ONNX_ATTRS
};

#define ONNX_MANY INT_MAX /* the upper arity of a variadic list */

/* The release of ONNX whose table the data is, and the IR version that it writes: every file is read by this one. */
#define ONNX_RELEASE "1.23"
enum { ONNX_IR_NEWEST = 14 };

/* The newest opset of each domain that the data describes. */
enum { ONNX_OPSET_NEWEST = 28, ONNX_ML_NEWEST = 5, ONNX_TRAINING_NEWEST = 1, ONNX_PREVIEW_NEWEST = 1 };

typedef struct OnnxAttr {
    const char *name;
    uint8_t type;         /* ONNX_ATTR_... */
    bool required;        /* absent is an error */
    const char *fallback; /* the default as text, lists joined by commas; NULL: there is none */
    union {
        int64_t i; /* the default of an INT */
        float f;   /* the default of a FLOAT */
    };
} OnnxAttr;

enum { ONNX_PARAM_OPTIONAL = 1, ONNX_PARAM_VARIADIC = 2, ONNX_PARAM_MIXED = 4, ONNX_PARAM_DIFFERENTIABLE = 8 };

typedef struct OnnxParam {
    const char *name;
    uint8_t types; /* index into the operator's types */
    uint8_t flags; /* ONNX_PARAM_...; MIXED: the values of a variadic list may differ in type */
} OnnxParam;

/* The values that a type variable may take, one mask of element types for each kind of container. */
typedef struct OnnxTypes {
    const char *var; /* "T"; for a parameter of one fixed type, that type: "tensor(int64)" */
    uint32_t tensor;
    uint32_t seq;     /* seq(tensor(..)) */
    uint32_t opt;     /* optional(tensor(..)) */
    uint32_t opt_seq; /* optional(seq(tensor(..))) */
    uint32_t map;     /* map(.., value) by value type */
    uint32_t seq_map; /* seq(map(.., value)) by value type */
} OnnxTypes;

typedef struct OnnxSchema {
    const char *domain; /* "ai.onnx" where models write "" */
    const char *op;
    int since;
    bool deprecated; /* gone since this version: nothing below is filled in */
    int min_in, max_in, min_out, max_out;
    int n_attr, n_in, n_out, n_types;
    const OnnxAttr *attr; /* by name */
    const OnnxParam *in;  /* formal parameters; only the last may be variadic */
    const OnnxParam *out;
    const OnnxTypes *types;
} OnnxSchema;

/* The schema that binds in a model which imports `version` of the domain: the newest that is not newer than that,
 * or NULL.  The domain "" is "ai.onnx". */
const OnnxSchema *schema_find(const char *domain, const char *op, int version);

/* What a release added at a version that older releases had published without it: back-dated.  They read a model of that
 * version by another schema. */
typedef struct OnnxBackdated {
    const char *op;
    int since;
    const char *release;
    int opset; /* that came with the release: whoever knows it knows the row */
} OnnxBackdated;

/* How a row is back-dated; null: it came with its version. */
const OnnxBackdated *schema_backdated(const OnnxSchema *row);

/* As schema_find, but as every release does that knows the version: back-dated rows count from the opset of their release
 * on.  What is written goes by this. */
const OnnxSchema *schema_settled(const char *domain, const char *op, int version);

/* All rows, ordered by domain, operator and version; `*n` gets their number. */
const OnnxSchema *schema_all(size_t *n);

/* The next newer version of the same operator, or NULL. */
const OnnxSchema *schema_next(const OnnxSchema *row);

/* The attribute of that name, or NULL. */
const OnnxAttr *schema_attr(const OnnxSchema *row, const char *name);

/* The formal parameter behind input or output slot `i` (the last one repeats if variadic), or NULL past the end. */
const OnnxParam *schema_input(const OnnxSchema *row, int i);
const OnnxParam *schema_output(const OnnxSchema *row, int i);

/* The types of a variable ("T", or "tensor(int64)" for fixed ones), or NULL. */
const OnnxTypes *schema_types(const OnnxSchema *row, const char *var);

/* The element types that tensors of a variable may have, as a mask; 0 for an unknown variable. */
uint32_t schema_tensor_mask(const OnnxSchema *row, const char *var);

/* The version of row's domain from which tensors of `dtype` (ONNX's number) are legal, up to row's own version, where
 * row says `var`; 0 if row itself does not allow them.  Older versions may call the variable differently: the first
 * parameter that has it is what is compared. */
int schema_type_since(const OnnxSchema *row, const char *var, int dtype);

/* The lowest IR version whose models can hold tensors of `dtype`; 0 if there is no such type. */
int schema_type_ir(int dtype);

#endif
