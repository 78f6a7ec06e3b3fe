/* The one walk over the bytes of an ONNX file.
 *
 * It is driven by protobuf-c's descriptors, keeps its own stack, reads through a window and steps over payloads.  What
 * passes it is a message that protobuf-c may be given: nesting is bounded, every length lies in its message, varints
 * are minimal, no singular field and no oneof occurs twice (so nothing is ever merged), wire types are those of the
 * schema, names are names, counts are within limits.  Unknown fields pass, groups do not. */
#ifndef FRONTENDS_ONNX_FILE_WIRE_H
#define FRONTENDS_ONNX_FILE_WIRE_H

#include "frontends/onnx/file/fields.h"
#include "frontends/onnx/file/source.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* A message that the walk is inside of. */
typedef struct WireFrame WireFrame;

/* One field as it lies in the file: [key, end), its value from `at` on (for bytes and messages: what the length
 * counts). */
typedef struct WireItem {
    const ProtobufCFieldDescriptor *field; /* null: unknown */
    const FieldRule *rule;                 /* null: none */
    uint32_t number;
    uint32_t index; /* which occurrence, from 0 */
    uint8_t wire;
    int depth; /* messages around it; 1 = the outermost */
    uint64_t key, at, end;
} WireItem;

/* What the walk tells; each may be null, and a status other than OK ends the walk. */
typedef struct WireVisitor {
    Status (*leaf)(void *user, const WireItem *item);
    Status (*enter)(void *user, const WireItem *item, bool *skip); /* a message; setting *skip passes over it */
    Status (*leave)(void *user, const WireItem *item);             /* the same item, after its fields */
    void *user;
} WireVisitor;

typedef struct Wire {
    Source *source;
    const ProtobufCMessageDescriptor *type; /* of the outermost message */
    const Limits *limits;
    Diag *diag;
    Arena *arena; /* scratch: window and stack */
    WireVisitor visitor;
} Wire;

/* Walks the whole source as one message of the given type. */
Status wire_walk(const Wire *wire);

/* Decodes a varint from n bytes: its length, or one of the complaints below. */
enum { VARINT_CUT = 0, VARINT_LONG = -1, VARINT_PADDED = -2 };
int varint_read(const uint8_t *p, size_t n, uint64_t *value);

/* Writes a varint of at most ten bytes; returns its length. */
int varint_write(uint8_t *p, uint64_t value);

/* The bytes that varint_write takes. */
int varint_size(uint64_t value);

#endif
