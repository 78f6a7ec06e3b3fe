/* Data files that a model leaves behind when another takes its place.
 *
 * One goes when we named it, its content is what its name says, and no model reads it: not the new one, none other of
 * the folder, none that is open.  Where one of these cannot be told it stays, and a note says so of those that the old
 * model read. */
#ifndef FRONTENDS_ONNX_FILE_SUPERSEDED_H
#define FRONTENDS_ONNX_FILE_SUPERSEDED_H

#include "frontends/onnx/file/weight_file.h"

enum {
    SUPERSEDED_MODELS = 1024, /* of a folder, that are looked into */
    SUPERSEDED_NAMES = 65536  /* of a folder, that are looked at */
};

typedef struct Superseded {
    WeightFile *weight_file;
    Map files;           /* by name, in small letters */
    const char **models; /* other models of the folder */
    size_t n_models, cap_models;
    bool busy;       /* somebody else writes this model */
    const char *why; /* nothing can go; null: it can */
} Superseded;

/* Finds what the model that is there reads. */
void superseded_read(Superseded *s, WeightFile *b);

/* Removes what nobody reads any more, once the new model is there (`replaced`); else what was kept for it. */
void superseded_clear(Superseded *s, bool alone, bool replaced);

#endif
