/* Which files the tensors of a model lie in, found without reading anything else of it. */
#ifndef FRONTENDS_ONNX_FILE_REFERENCES_H
#define FRONTENDS_ONNX_FILE_REFERENCES_H

#include "base/limits.h"
#include "base/memory.h"
#include "base/status.h"

/* Shows the location of every external tensor of the model at `path`, "./" and doubled slashes left out; the text lives
 * as long as the call.  Says nothing to anybody: not OK where the file cannot be read as a model to its end. */
Status refers_each(Memory *memory, const Limits *limits, const char *path,
                   void (*see)(void *user, const char *location), void *user);

#endif
