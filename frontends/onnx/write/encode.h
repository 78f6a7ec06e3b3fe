/* Pieces of our languages as ONNX messages. */
#ifndef FRONTENDS_ONNX_WRITE_ENCODE_H
#define FRONTENDS_ONNX_WRITE_ENCODE_H

#include "frontends/onnx/file/onnx.pb-c.h"
#include "ir/graph.h"
#include "ops/card/schema.h"

/* A string as a bytes field, not copied. */
ProtobufCBinaryData encode_text(const char *text);

/* A named value with its type; null: none. */
Onnx__ValueInfoProto *encode_value(Arena *arena, const char *name, const Type *type);

/* A type; null for what has no ONNX form. */
Onnx__TypeProto *encode_type(Arena *arena, const Type *type);

/* A tensor with raw bytes that are not copied. */
Onnx__TensorProto *encode_tensor(Arena *arena, const Tensor *t);

/* An attribute that holds a tensor. */
Onnx__AttributeProto *encode_tensor_attribute(Arena *arena, const char *name, Onnx__TensorProto *t);

/* The same of a whole number, and of a word. */
Onnx__AttributeProto *encode_int_attribute(Arena *arena, const char *name, int64_t value);
Onnx__AttributeProto *encode_string_attribute(Arena *arena, const char *name, const char *value);

/* Whether a node may go under its ONNX name: the schema of that opset admits its types and knows its attributes. */
bool encode_is_standard(const Node *n, int opset);

/* Results that a node must name under its ONNX name; 0 under one of ours. */
int encode_least_outputs(const Node *n, int opset);

/* Whether a value of that type may stand where a schema has this parameter. */
bool encode_takes(const OnnxSchema *s, const OnnxParam *p, const Type *type);

/* Whether the first result of an operator may have that type in an opset. */
bool encode_admits(const char *op, int opset, const Type *type);

/* The attributes of a node that are not at their default. */
Status encode_attributes(Arena *arena, Diag *d, const Node *n, bool standard, Onnx__NodeProto *o);

#endif
