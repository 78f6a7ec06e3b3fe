/* Writing protobuf messages. */
#ifndef FRONTENDS_ONNX_FILE_PACK_H
#define FRONTENDS_ONNX_FILE_PACK_H

#include <protobuf-c/protobuf-c.h>

#include "base/sink.h"

/* Puts a message. */
Status put_message(const ProtobufCMessage *message, const Sink *sink);

/* The same as the writer of an edit, whose user the message is: it is packed when the file is written, and what it says
 * may change until then, but for its size. */
Status put_packed(void *message, const Sink *sink);

#endif
