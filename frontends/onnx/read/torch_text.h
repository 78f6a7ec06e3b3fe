/* What PyTorch's exporter writes beside a graph, as text: the signature of the program and the call behind a node. */
#ifndef FRONTENDS_ONNX_READ_TORCH_TEXT_H
#define FRONTENDS_ONNX_READ_TORCH_TEXT_H

#include "base/map.h"
#include "frontends/onnx/file/spine.h"

/* A tensor of the module. */
typedef struct TorchTensor {
    const char *target; /* h.0.attn.weight */
    bool parameter;     /* it is learned; otherwise a buffer, or a constant in the code */
    size_t order;       /* in the signature */
    bool held;          /* by an initializer, in whatever form */
} TorchTensor;

/* A tensor that a call reads, and as which argument; -1: by keyword. */
typedef struct TorchRef {
    TorchTensor *tensor;
    int argument;
} TorchRef;

/* The call of an operator: "%linear : [..] = call_function[target=torch.ops.aten.linear.default](args = (..), ..)". */
typedef struct TorchCall {
    Str result; /* "%linear" */
    Str op;     /* "linear" */
    TorchRef *refs;
    size_t n_refs, cap_refs;
} TorchCall;

/* The tensors of a graph's signature, by the name that calls use (p_h_0_attn_weight), in its order; false: it has none. */
bool torch_signature(const Onnx__GraphProto *g, Arena *arena, Map *tensors);

/* The call that a node is part of; false: it does not say. */
bool torch_call(const Onnx__NodeProto *o, Arena *arena, const Map *tensors, TorchCall *call);

/* The module that a node's call stands in ("h.0.attn"; "" is the model itself); empty as well where it does not say. */
Str torch_module(const Onnx__NodeProto *o);

/* Where a node comes from; false: it does not say.  Texts are in `arena`; null: unknown. */
bool torch_origin(const Onnx__NodeProto *o, Arena *arena, const char **module, const char **line);

#endif
