/* What the calls behind nodes say of the initializers that the nodes read. */
#ifndef FRONTENDS_ONNX_READ_TORCH_MATCH_H
#define FRONTENDS_ONNX_READ_TORCH_MATCH_H

#include "frontends/onnx/read/torch.h"
#include "frontends/onnx/read/torch_text.h"

typedef struct TorchInitial TorchInitial;

/* An operand that is an initializer, and what the node's call says that it is. */
typedef struct TorchSlot {
    TorchRead read;
    TorchInitial *initial;
    TorchTensor *tensor; /* null: it is not said */
    const char *label;   /* where it is several tensors in one */
    bool turned;
    bool constant; /* the operator reads none of the module's tensors there */
    struct TorchSlot *next_in_call, *next_of_initial;
} TorchSlot;

struct TorchInitial {
    const Onnx__TensorProto *proto;
    const char *name;
    TorchTensor *own; /* whose name it has */
    TorchSlot *slots, *last;
};

/* The nodes of one call. */
typedef struct TorchGroup {
    TorchCall call;
    TorchSlot *slots, *last;
} TorchGroup;

/* Finds the tensor of each slot of a call, as far as the call tells. */
void torch_match(TorchGroup *g, Arena *arena);

/* The last word of a name: weight of h.0.attn.weight. */
const char *torch_leaf(const char *target);

#endif
