/* Parts of the writer of steps. */
#ifndef FRONTENDS_ONNX_WRITE_STEP_WRITER_H
#define FRONTENDS_ONNX_WRITE_STEP_WRITER_H

#include "frontends/onnx/step.h"
#include "frontends/onnx/write/writer.h"

/* A state of the module, shared by its graphs. */
typedef struct StepState {
    const char *name; /* in the text */
    const char *onnx; /* of its initializer */
    const Type *type;
    Payload *payload; /* of an initializer of ours; null: it begins with zeros */
    bool of_model;    /* the model has that initializer */
} StepState;

typedef struct StepWriter {
    Writer w;
    Spine *spine;
    const Module *module;
    Onnx__TrainingInfoProto info;
    Onnx__GraphProto algorithm;
    Level level;
    Map initializers; /* of the model: name -> TensorProto */
    Map beginnings;   /* those that graphs call otherwise (torch.h): name of a state -> TensorProto */
    Map changing;     /* initializers of the model that states begin with */
    Map inputs;       /* of the model, that are no initializers: name -> ValueInfoProto */
    Map bound;        /* inputs that the step reads: ONNX name -> Type * */
    Map states;       /* name -> StepState * */
    size_t cap_input, cap_output, cap_binding;
} StepWriter;

/* Reports that something cannot be written. */
Status step_refuse(StepWriter *x, const char *where, const char *what);

/* Writes the graphs of the module into x->algorithm (step_write.c). */
Status step_write_graphs(StepWriter *x);

/* Takes the names of the model in front, before anything of ours gets one. */
Status step_read_model(StepWriter *x);

#endif
