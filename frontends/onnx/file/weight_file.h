/* A model file and the data file beside it, which change together.
 *
 * Weights that a model does not hold itself lie in one file in its folder, MODEL.<16 digits of its sha256>.data: what a
 * model names is always the content that it was written with.  The data file gets its name first, then the model, which
 * is what replaces the old pair; then data goes that no model reads any more (superseded.h).  However a write ends, the
 * old model is there with its data or the new one with its own.
 *
 * Each tensor begins at a multiple of 4096 bytes; small ones stay in the model. */
#ifndef FRONTENDS_ONNX_FILE_WEIGHT_FILE_H
#define FRONTENDS_ONNX_FILE_WEIGHT_FILE_H

#include "base/file.h"
#include "base/map.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include "base/sink.h"
#include "frontends/onnx/file/spine.h"

enum {
    WEIGHT_FILE_LEAST = 1024, /* bytes of a tensor from which on it may lie beside */
    WEIGHT_FILE_DIGITS = 16   /* of the digest, in the name */
};

/* Models larger than this keep their weights in a weight file: protobuf cannot be written or read from 2 GiB on. */
int64_t weight_file_threshold(const Limits *limits);

typedef struct WeightFile {
    Arena *arena;
    Diag *diag;
    const Disk *disk;
    const Limits *limits;
    const char *model, *folder, *stem; /* the path of the model, where that is, and its name there */
    char *path, *name, *checksum;      /* of the data: to open it, and as the model says it; of their final length from
                                          the start, and right once it is settled */
    FileOut file;
    bool open;    /* something was written to it */
    bool settled; /* nothing more will be */
    bool kept;    /* the file has been renamed to its final name */
    uint64_t at;  /* its bytes */
    Sha256 content;
    Sha1 sum;
    uint8_t digest[SHA256_BYTES];
    Map read; /* names of data in this folder that a model which is open reads */
} WeightFile;

/* For the model that is written to `path`, through `disk`; all of these must live until it has ended. */
void weight_file_open(WeightFile *b, Arena *arena, Diag *d, const Limits *limits, const Disk *disk, const char *path);

/* Whether a folder that is open is the one the model goes to. */
bool weight_file_is_folder(const WeightFile *b, int folder);

/* Makes `t` a tensor whose `bytes` bytes `write` puts into the file now. */
Status weight_file_add(WeightFile *b, Onnx__TensorProto *t, uint64_t bytes,
                       Status (*write)(void *user, const Sink *sink), void *user);

/* The same for bytes that the message holds. */
Status weight_file_move(WeightFile *b, Onnx__TensorProto *t);

/* The same for all initializers of a graph that are not small. */
Status weight_file_move_all(WeightFile *b, Onnx__GraphProto *g);

/* Says that nothing more is added: from now on messages may be packed. */
void weight_file_settle(WeightFile *b);

/* Gives the data and then the model, whose file is ended, their names, and removes data that this leaves unread. */
Status weight_file_keep(WeightFile *b, FileOut *model);

/* Forgets the data; the caller does so with the model. */
void weight_file_drop(WeightFile *b);

/* Whether a name is that of data beside the model `stem`; `digits` (may be null) gets what it says of the content. */
bool weight_file_names(const char *name, const char *stem, const char **digits);

#endif
