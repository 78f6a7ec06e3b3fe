#include "frontends/onnx/file/fields.h"

#include <string.h>

#include "frontends/onnx/file/onnx.pb-c.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* clang-format off */
#define AT(LIMIT)                   offsetof(Limits, LIMIT)
#define NAME(T, N)                  { &onnx__##T##__descriptor, N, FIELD_NAME, 0, LIMIT_NONE, 0 },
#define OPERATOR(T, N)              { &onnx__##T##__descriptor, N, FIELD_OP, 0, LIMIT_NONE, 0 },
#define PAYLOAD(T, N, ELEMENT)      { &onnx__##T##__descriptor, N, FIELD_PAYLOAD, ELEMENT, LIMIT_NONE, 0 },
#define SOURCE(T)                   { &onnx__##T##__descriptor, 536870910, FIELD_SOURCE, 0, LIMIT_NONE, 0 },           \
                                    { &onnx__##T##__descriptor, 536870911, FIELD_SOURCE, 0, LIMIT_NONE, 0 },
#define COUNTED(T, N, SCOPE, LIMIT) { &onnx__##T##__descriptor, N, FIELD_PLAIN, 0, LIMIT_##SCOPE, AT(LIMIT) },
#define NAMES(T, N, SCOPE, LIMIT)   { &onnx__##T##__descriptor, N, FIELD_NAME, 0, LIMIT_##SCOPE, AT(LIMIT) },

/* The rows of one message type stand together. */
static const FieldRule rules[] = {
    COUNTED(model_proto, 25, TOTAL, functions)

    COUNTED(graph_proto, 1, TOTAL, nodes)
    NAME(graph_proto, 2)
    COUNTED(graph_proto, 5, TOTAL, initializers)
    COUNTED(graph_proto, 11, TOTAL, values)
    COUNTED(graph_proto, 12, TOTAL, values)
    COUNTED(graph_proto, 13, TOTAL, values)
    COUNTED(graph_proto, 15, TOTAL, initializers)
    SOURCE(graph_proto)

    NAMES(node_proto, 1, EACH, node_io)
    NAMES(node_proto, 2, EACH, node_io)
    NAME(node_proto, 3)
    OPERATOR(node_proto, 4)
    COUNTED(node_proto, 5, EACH, attributes)
    OPERATOR(node_proto, 7)
    OPERATOR(node_proto, 8)
    SOURCE(node_proto)

    NAME(attribute_proto, 1)
    COUNTED(attribute_proto, 6, NESTING, graph_nesting)
    COUNTED(attribute_proto, 11, NESTING, graph_nesting)
    NAME(attribute_proto, 21)

    COUNTED(tensor_proto, 1, EACH, rank)
    PAYLOAD(tensor_proto, 4, FIXED32)
    PAYLOAD(tensor_proto, 5, VARINT)
    PAYLOAD(tensor_proto, 6, BYTES)
    PAYLOAD(tensor_proto, 7, VARINT)
    NAME(tensor_proto, 8)
    PAYLOAD(tensor_proto, 9, BYTES)
    PAYLOAD(tensor_proto, 10, FIXED64)
    PAYLOAD(tensor_proto, 11, VARINT)
    SOURCE(tensor_proto)

    COUNTED(sparse_tensor_proto, 3, EACH, rank)
    SOURCE(sparse_tensor_proto)

    NAME(value_info_proto, 1)

    COUNTED(tensor_shape_proto, 1, EACH, rank)
    NAME(tensor_shape_proto__dimension, 2)

    OPERATOR(function_proto, 1)
    NAMES(function_proto, 4, EACH, node_io)
    NAMES(function_proto, 5, EACH, node_io)
    NAMES(function_proto, 6, EACH, attributes)
    COUNTED(function_proto, 7, TOTAL, nodes)
    OPERATOR(function_proto, 10)
    COUNTED(function_proto, 11, EACH, attributes)
    COUNTED(function_proto, 12, TOTAL, values)
    OPERATOR(function_proto, 13)
    SOURCE(function_proto)

    OPERATOR(operator_set_id_proto, 1)

    NAME(tensor_annotation, 1)
};
/* clang-format on */

const FieldRule *field_rules(const ProtobufCMessageDescriptor *type, size_t *n)
{
    size_t first = 0;

    while (first < sizeof rules / sizeof *rules && rules[first].type != type)
        first++;
    for (*n = 0; first + *n < sizeof rules / sizeof *rules && rules[first + *n].type == type;)
        ++*n;
    return rules + first;
}

const FieldRule *field_rules_all(size_t *n)
{
    *n = sizeof rules / sizeof *rules;
    return rules;
}

int64_t limit_value(const Limits *limits, size_t offset)
{
    int64_t value;

    memcpy(&value, (const char *)limits + offset, sizeof value);
    return value;
}

const char *limit_name(size_t offset)
{
    static const char *const names[] = {
#define NAMED(name, value, what) #name,
        LIMITS(NAMED)
#undef NAMED
    };

    return names[offset / sizeof(int64_t)];
}
