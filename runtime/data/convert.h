/* One sample of a file into one row of a batch: layout, element type, scale, mean and deviation; and what it may not
 * hold. */
#ifndef RUNTIME_DATA_CONVERT_H
#define RUNTIME_DATA_CONVERT_H

#include "runtime/data/samples.h"

typedef struct Convert {
    const char *file;
    const DataInput *input;
    const DataSpec *spec; /* scale, mean, std */
    const Type *from;     /* a vector of the sample's elements */
    DType to;
    int64_t n;         /* elements of a sample */
    bool turned;       /* channels come last in the file and first in the input */
    int64_t channels;  /* along which mean and std count */
    bool affine;       /* anything is to be computed */
    double most;       /* a finite number beyond it would become infinite; 0: none */
    int64_t low, high; /* integers that the element type holds */
} Convert;

/* Whether the element type can become the input's; false to be told by whoever knows the shapes. */
bool convert_can(DType from, DType to);

/* Prepares for samples of n elements of the source, the first dimension (after layout) being the channels. */
Status convert_open(Convert *c, Types *types, Diag *d, const Samples *s, const DataSpec *spec, const DataInput *input,
                    int64_t n, int64_t channels, bool turned);

/* Converts the raw sample into elements first .. first + n - 1 of `out`.  `room` holds another raw sample.  After a
 * failure *element is the number of the wrong one within the sample. */
Status convert_sample(const Convert *c, const void *raw, void *room, Tensor *out, int64_t first, Fault *f,
                      int64_t *element);

#endif
