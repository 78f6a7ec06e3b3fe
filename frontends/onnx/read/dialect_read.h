/* What our own files say beyond the standard (file/dialect.h), read. */
#ifndef FRONTENDS_ONNX_READ_DIALECT_READ_H
#define FRONTENDS_ONNX_READ_DIALECT_READ_H

#include "frontends/onnx/read/importer.h"
#include "ir/role.h"

/* The value of a key of metadata, in the arena of the import; null: it is not there. */
const char *note_of(Importer *im, Onnx__StringStringEntryProto *const *list, size_t n, const char *key);
const char *node_note(Importer *im, const Onnx__NodeProto *o, const char *key);

/* A number from 0 to `most` at the head of a note, which then stands behind it and a blank; INVALID when none is
 * there. */
Status note_number(Importer *im, const char **at, uint64_t most, uint64_t *value);

/* The marks of a node (number of its node in the model, flags, label), and the name of its value where that is
 * noted. */
Status dialect_marks(Importer *im, const Onnx__NodeProto *o, Build *b);

/* Flags and label of a parameter or state, from the metadata of its tensor. */
Status dialect_tensor_marks(Importer *im, const Onnx__TensorProto *t, Node *n);

/* Reads a note "SRC FLAGS" (number of the node in the model, flags) into a node. */
Status dialect_set_marks(Importer *im, const char *text, Node *n);

/* What a note "ROLE OF" says of a state, input or result; null: what its name says. */
Status dialect_role(Importer *im, RoleKind kind, const char *text, const char *name, RoleMark *mark);

/* The same into an input or state. */
Status dialect_node_role(Importer *im, const char *text, Node *n);

/* The roles of inputs and results of a graph that has states. */
Status dialect_roles(Importer *im, const Onnx__GraphProto *proto, Scope *s);

/* Restores absent operands and unread results at the end of a call, whose numbers are noted. */
Status dialect_counts(Importer *im, Call *c);

/* A node that is a constant, a part of a tuple or a second name; `*done` says whether it was one of these. */
Status dialect_simple(Importer *im, Scope *s, const Onnx__NodeProto *o, Build *b, bool *done);

/* Gives a node the types that the file states for its results; INVALID where they do not agree with it. */
Status dialect_settle(Importer *im, Scope *s, Node *y, const Onnx__NodeProto *o);

/* The type that a graph states for a value; null: none. */
Status dialect_stated(Importer *im, Scope *s, ProtobufCBinaryData name, const Type **type);

/* What its metadata say of the payload of an initializer. */
Status dialect_payload(Importer *im, const Onnx__TensorProto *t, Payload **payload);

/* Notes an initializer that the text has between nodes; moves there those that stand behind `nodes` nodes. */
Status dialect_late(Importer *im, Scope *s, const Onnx__TensorProto *t, Node *param);
void dialect_place(Scope *s, size_t *next, uint64_t nodes);

/* A payload whose values are not stored, but named by how they are drawn: "kaiming SEED SCALE-BITS". */
Status dialect_init(Importer *im, const char *text, const Type *type, Payload **p);

/* Values that a region takes from outside, in the order of its node. */
Status dialect_captures(Importer *im, Scope *outer, Scope *region, const Call *c, int r);

#endif
