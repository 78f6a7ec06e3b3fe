/* Files as samples for the inputs of a model: opened, checked against each other and against the model, converted.
 *
 *     dataset_open    files, lengths, shapes and element types agree or an error says which does not
 *     feed_open       an order over the samples (runtime/data/feed.h), any number of them over one dataset
 */
#ifndef RUNTIME_DATA_DATASET_H
#define RUNTIME_DATA_DATASET_H

#include "base/heap.h"
#include "base/limits.h"
#include "ir/tensor.h"
#include "runtime/data/spec.h"

/* What the integers of an input mean, hence what they may be. */
typedef enum DataRole { DATA_PLAIN, DATA_CLASSES, DATA_TOKENS } DataRole;

/* An input of the model that wants data. */
typedef struct DataInput {
    const char *name;
    const Type *type;  /* known; dimension 0 counts the samples of a batch */
    const char *shown; /* the type in the model's own words; null: its text, `batch` for dimension 0 */
    bool target;       /* fed by --target, not by --data */
    DataRole role;
    int64_t count; /* of classes or of the vocabulary: values are 0 .. count - 1; 0: not checked */
    bool ignores;  /* classes: one value more is allowed */
    int64_t ignored;
} DataInput;

typedef struct DataOptions {
    /* TensorProto files, read by whoever knows ONNX; null: there are none */
    Status (*read_proto)(void *user, Heap *heap, const char *path, const Type *declared, Tensor **value);
    void *user;
    int stream; /* descriptor of `-`; 0 is standard input */
} DataOptions;

typedef struct Dataset Dataset;

/* Opens what the specs name for the inputs.  Unnamed specs go to the one input of their side that nothing else names.
 * Everything stays open until dataset_close, or until a jump passes; types, limits and the strings of
 * inputs and specs must last as long. */
Status dataset_open(Dataset **dataset, Memory *m, Types *types, Diag *d, const Limits *limits,
                    const DataOptions *options, size_t n_inputs, const DataInput *inputs, size_t n_specs,
                    const DataSpec *specs, size_t n_fills, const DataFill *fills);

/* Closes the files and gives the memory back; null is allowed.  Its feeds must be closed. */
void dataset_close(Dataset *dataset);

/* The number of samples; -1: a stream. */
int64_t dataset_samples(const Dataset *dataset);

/* Samples of a batch: dimension 0 of the inputs. */
int64_t dataset_batch(const Dataset *dataset);

/* Whether the samples are one batch beside arrays that are given as a whole: such an array may count the rows of the
 * batch (edges of a graph), so they keep their order. */
bool dataset_is_one(const Dataset *dataset);

/* What is given to an input, for the summary: "u8[60000,28,28] -> f32"; null for one that gets nothing. */
const char *dataset_says(const Dataset *dataset, size_t input);

/* The file that an input is fed from; null for one that is filled or gets nothing. */
const char *dataset_path(const Dataset *dataset, size_t input);

/* The type of the array in a file, samples first: what dimensions can be taken from.  Null for a stream, and for raw
 * bytes without a shape. */
Status data_probe(Memory *m, Types *types, Diag *d, const Limits *limits, const DataOptions *options,
                  const DataSpec *spec, const Type **type);

/* The whole array of a file as one tensor in `heap`, converted to nothing. */
Status data_tensor(Types *types, Heap *heap, Diag *d, const Limits *limits, const DataOptions *options,
                   const DataSpec *spec, const Type *declared, Tensor **value);

#endif
