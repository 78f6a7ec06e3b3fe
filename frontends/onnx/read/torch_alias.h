/* Which tensors of a module are one tensor under several names. */
#ifndef FRONTENDS_ONNX_READ_TORCH_ALIAS_H
#define FRONTENDS_ONNX_READ_TORCH_ALIAS_H

#include "frontends/onnx/read/torch_match.h"

typedef struct TorchKnown {
    Arena *arena;
    const Onnx__GraphProto *graph;
    const Map *initials; /* TorchInitial by name, matched */
    const Map *targets;  /* TorchTensor by what the module calls it */
} TorchKnown;

/* Maps every other name of a tensor that is held to the first one in the module's own order, whose tensor is held then. */
void torch_aliases(const TorchKnown *k, Map *aliases);

#endif
