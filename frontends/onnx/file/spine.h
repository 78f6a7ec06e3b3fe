/* A file that was read: its source, and its skeleton as protobuf-c messages.
 *
 * The messages hold everything but weights; payload fields say where those lie (skeleton.h), and payload.h reads them
 * when they are wanted.  Names in the messages are UTF-8 without NUL and within limits; other text is only bounded. */
#ifndef FRONTENDS_ONNX_FILE_SPINE_H
#define FRONTENDS_ONNX_FILE_SPINE_H

#include "frontends/onnx/file/onnx.pb-c.h"
#include "frontends/onnx/file/skeleton.h"

typedef struct SpineChunk SpineChunk;

typedef struct Spine {
    Source source; /* opened by the caller, closed with the spine */
    Memory *memory;
    Limits limits;
    const ProtobufCMessageDescriptor *type;
    union {
        ProtobufCMessage *root;
        Onnx__ModelProto *model;
        Onnx__TensorProto *tensor;
        Onnx__SequenceProto *sequence;
        Onnx__OptionalProto *optional;
    };
    bool linked_data; /* the host's permission: external data may be links, as in caches of downloaded models */
    Arena arena;      /* what is learnt of external files */
    Map external;     /* location -> FileId */
    SpineChunk *chunks;
    char *at, *end;
    uint64_t message_bytes; /* taken by messages so far */
    bool over_budget, out_of_memory;
    Cleanup cleanup;
} Spine;

/* Reads s->source, which must be open, as a message of the given type; the spine then owns the source, also where
 * reading fails. */
Status spine_read(Spine *s, Memory *m, Diag *d, const Limits *limits, const ProtobufCMessageDescriptor *type);

/* Opens and reads a model file. */
Status spine_open(Spine *s, Memory *m, Diag *d, const Limits *limits, const char *path);

/* Keeps the spine past guarded(): a jump no longer closes it, its owner must. */
void spine_keep(Spine *s);

/* Closes the source and gives the messages back; closing twice is allowed. */
void spine_close(Spine *s);

/* A bytes field as a view. */
static inline Str str_of(ProtobufCBinaryData b)
{
    return (Str){ (const char *)b.data, b.len };
}

#endif
