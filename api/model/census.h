/* Counting what is in a model. */
#ifndef API_MODEL_CENSUS_H
#define API_MODEL_CENSUS_H

#include "api/model/model.h"

/* How many nodes there are of each operator, under the names that the file uses; nodes of regions count too. */
typedef struct Census {
    Map ops; /* name -> count, in order of appearance */
    size_t nodes;
    size_t casts, norms, dropouts, training; /* BatchNormalization; nodes in training mode */
    size_t trained_norms;                    /* BatchNormalization in training mode */
} Census;

/* Counts; everything lives in `arena`. */
Census census_of(qcc_model *m, Arena *arena);

typedef struct OpCount {
    const char *op;
    int64_t n;
} OpCount;

/* The counts, most frequent first, then by name; their number is census->ops.n. */
const OpCount *census_sorted(const Census *c, Arena *arena);

/* The count of an operator. */
int64_t census_count(const Census *c, const char *op);

#endif
