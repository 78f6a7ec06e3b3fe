/* Models with weights beside them, written and read back. */
#ifndef TESTS_SUPPORT_PAIRS_H
#define TESTS_SUPPORT_PAIRS_H

#include "frontends/onnx/file/weight_file.h"
#include "frontends/onnx/write.h"
#include "testing.h"

enum { PAIR_LARGE = 600, PAIR_SMALL = 8 }; /* elements of its parameters */

/* A model that is being written, and what lies beside it. */
typedef struct Pair {
    Context *c;
    FileOut model;
    WeightFile weight_file;
    Text bytes;
    Sink sink; /* of the model */
} Pair;

/* Begins to write one to `path`, through `disk` (null: the real one). */
void pair_open(Pair *p, Context *c, const Disk *disk, const char *path);

/* Ends it: both appear when `status`, which is passed on, is OK. */
Status pair_close(Pair *p, Status status);

/* Complains and fails unless the status is OK. */
void pair_must(Context *c, Status status);

/* A model of two large parameters, drawn from `seed`, an alias of one, and a small one. */
Graph *pair_graph(Context *c, int seed);

/* Writes it, large parameters beside it where `apart`. */
Status pair_write(Context *c, const Disk *disk, const char *path, int seed, bool apart);

/* The values of a model's parameters, wherever they lie; null: it cannot be read. */
const char *pair_values(Context *c, const char *path);

/* The path of the data beside a model: the one name in its folder that is such; null: there is none, or more. */
const char *pair_data(Context *c, const char *path);

/* The names in a folder, sorted, with a blank behind each. */
const char *pair_names(Context *c, const char *folder);

/* A folder for this process, in the build folder or, with `fast`, in memory. */
const char *pair_folder(Context *c, const char *name, bool fast);

/* Removes a folder with all it holds. */
void pair_remove(Context *c, const char *folder);

#endif
