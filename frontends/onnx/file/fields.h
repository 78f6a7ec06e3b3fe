/* What the reader knows about single fields of onnx.proto beyond their type: which hold payload, which hold names,
 * and which limit bounds how often they may occur. */
#ifndef FRONTENDS_ONNX_FILE_FIELDS_H
#define FRONTENDS_ONNX_FILE_FIELDS_H

#include <protobuf-c/protobuf-c.h>

#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum FieldKind {
    FIELD_PLAIN,   /* text and bytes of at most string_bytes, scalars, messages */
    FIELD_NAME,    /* UTF-8 without NUL, at most name_bytes */
    FIELD_OP,      /* the same without control characters, at most op_bytes */
    FIELD_PAYLOAD, /* the bulk of a tensor: not read, only located */
    FIELD_SOURCE,  /* ours (source_at, source_size): unknown in a file */
} FieldKind;

typedef enum LimitScope { LIMIT_NONE, LIMIT_EACH, LIMIT_TOTAL, LIMIT_NESTING } LimitScope;

typedef struct FieldRule {
    const ProtobufCMessageDescriptor *type;
    uint32_t number;
    FieldKind kind;
    uint8_t element;  /* of a payload: the wire type of one unpacked element */
    LimitScope scope; /* of occurrences: in one message, in the whole file, or inside each other */
    size_t limit;     /* offset in Limits */
} FieldRule;

/* The rules of a message type, in one run; `*n` gets their number, which may be 0. */
const FieldRule *field_rules(const ProtobufCMessageDescriptor *type, size_t *n);

/* All rules; `*n` gets their number. */
const FieldRule *field_rules_all(size_t *n);

/* The limit at an offset in Limits: its value and its name. */
int64_t limit_value(const Limits *limits, size_t offset);
const char *limit_name(size_t offset);

#endif
