/* Who is who: which initializers of a file from PyTorch's exporter are which parameters of the module.
 *
 * The exporter merges equal tensors, transposes and renames them, and folds what it can.  The signature of the exported
 * program says what the module learns, and each node says which call it came from, with the tensors that it read. */
#ifndef FRONTENDS_ONNX_READ_TORCH_H
#define FRONTENDS_ONNX_READ_TORCH_H

#include "base/map.h"
#include "frontends/onnx/file/spine.h"

/* A reader of an initializer. */
typedef struct TorchRead {
    const Onnx__NodeProto *node;
    size_t index; /* of the node in the file */
    int slot;
} TorchRead;

/* An initializer, or what is one of several tensors that one initializer holds, being equal. */
typedef struct TorchHeld {
    const char *name;  /* in the file; of a part: the same as it is shown */
    const char *shown; /* its name in graphs: what the module calls it where that is free, else the file's */
    const char *label; /* what the module calls it; null: nothing of the module */
    uint16_t flags;    /* NODE_PARAMETER or NODE_FIXED, NODE_TURNED */
    const char *of;    /* the initializer of a part; null: it is one */
    TorchRead *reads;  /* of a part: who reads it */
    size_t n_reads, cap_reads;
} TorchHeld;

typedef struct TorchNames {
    Map initializers; /* name -> TorchHeld * */
    TorchHeld **parts;
    size_t n_parts, cap_parts;
    Map readers;          /* of parts: node -> what each operand reads, TorchHeld *[] */
    Map aliases;          /* other names of tensors that are held: name in the module -> its first name, the label */
    const char **missing; /* parameters that the graph does not hold */
    size_t n_missing, cap_missing;
    size_t n_parameters;      /* of the signature, names of one tensor counted once */
    const TorchHeld **shared; /* initializers of several tensors, of whose readers some cannot be told apart */
    size_t n_shared, cap_shared;
} TorchNames;

/* What the exporter says of the initializers of a model; null: nothing. */
const TorchNames *torch_names(const Onnx__ModelProto *model, Arena *arena);

/* The part of an initializer that a node reads as operand `slot`; null: it reads what it names. */
const TorchHeld *torch_part(const TorchNames *names, const Onnx__NodeProto *o, int slot);

/* Whether a convolution holds a BatchNormalization that the exporter, this one or the older one, folded into it. */
bool torch_holds_norm(const Onnx__NodeProto *o);

#endif
