/* Where the tensors of a model lie once its file is written: in it, in the file beside it, or where they were. */
#ifndef FRONTENDS_ONNX_WRITE_RELOCATE_H
#define FRONTENDS_ONNX_WRITE_RELOCATE_H

#include "frontends/onnx/file/splice.h"
#include "frontends/onnx/file/weight_file.h"
#include "ir/tensor.h"

typedef struct Relocation {
    Spine *spine;
    Diag *diag;
    Arena *arena;
    WeightFile *weight_file; /* null: there is no such place */
    bool stays;              /* the model goes to the folder it came from: external data is found there */
    bool all;                /* initializers that are not small go beside, whatever they were */
    Map replaced;            /* where the body of a tensor begins that somebody else edits */
    Edit *edits;
    size_t n, cap;
} Relocation;

/* For the model of a spine that is written with `beside`; null: nothing moves. */
void relocation_open(Relocation *r, Spine *s, Arena *arena, Diag *d, WeightFile *weight_file, bool all);

/* A tensor of the file, or null for a new one, with another value: `to`, a copy of its message, gets the elements, or
 * where they are put.  The value must live as long as `to`. */
Status relocate_value(Relocation *r, const Onnx__TensorProto *t, const Tensor *value, Onnx__TensorProto *to);

/* Leaves out notes of ours that say a value which is no longer so; whether there were any. */
bool relocation_forget(Arena *arena, Onnx__StringStringEntryProto ***notes, size_t *n);

/* Edits for all other tensors that have to move. */
Status relocate_rest(Relocation *r);

/* Says that nothing more moves: messages may be written. */
void relocation_settle(Relocation *r);

#endif
