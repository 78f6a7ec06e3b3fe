/* Weights that a model file does not hold itself: a file beside it, named after it.
 *
 * Each tensor begins at a multiple of 4096 bytes; small ones stay in the model.  The file appears when it is whole, and
 * only when something was written to it. */
#ifndef FRONTENDS_ONNX_BESIDE_H
#define FRONTENDS_ONNX_BESIDE_H

#include "base/file.h"
#include "base/sink.h"
#include "frontends/onnx/spine.h"

enum { BESIDE_LEAST = 1024 }; /* bytes of a tensor from which on it may lie beside */

/* Models larger than this keep their weights beside: what writes and reads them elsewhere ends at 2 GiB. */
int64_t beside_threshold(const Limits *limits);

typedef struct Beside {
    Arena *arena;
    Diag *diag;
    const char *path, *name; /* of the file: to open it, and as the model beside it says it; null: there is no place */
    FileOut file;
    bool open;
    uint64_t at;
} Beside;

/* For the model at `path`; null: nothing can lie beside it. */
void beside_open(Beside *b, Arena *arena, Diag *d, const char *path);

/* Whether a folder that is open is the one the model goes to. */
bool beside_is_folder(const Beside *b, int folder);

/* Makes `t` a tensor whose `bytes` bytes `write` puts into the file now. */
Status beside_add(Beside *b, Onnx__TensorProto *t, uint64_t bytes, Status (*write)(void *user, const Sink *sink),
                  void *user);

/* The same for bytes that the message holds. */
Status beside_move(Beside *b, Onnx__TensorProto *t);

/* The same for all initializers of a graph that are not small. */
Status beside_move_all(Beside *b, Onnx__GraphProto *g);

/* Ends it: the file gets its name when `status`, which is passed on, is OK. */
Status beside_close(Beside *b, Status status);

#endif
