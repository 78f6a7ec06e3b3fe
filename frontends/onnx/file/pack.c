#include "frontends/onnx/file/pack.h"

/* protobuf-c's buffer over our sink. */
typedef struct SinkBuffer {
    ProtobufCBuffer base;
    const Sink *sink;
    Status status;
} SinkBuffer;

static void append_to_sink(ProtobufCBuffer *base, size_t n, const uint8_t *bytes)
{
    SinkBuffer *b = (SinkBuffer *)(void *)base;
    if (b->status == OK)
        b->status = b->sink->put(b->sink->user, bytes, n);
}

Status put_message(const ProtobufCMessage *message, const Sink *sink)
{
    SinkBuffer buffer = { { append_to_sink }, sink, OK };
    protobuf_c_message_pack_to_buffer(message, &buffer.base);
    return buffer.status;
}

Status put_packed(void *message, const Sink *sink)
{
    return put_message(message, sink);
}
