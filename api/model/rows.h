/* Rows of many batches in one file: what a model gives for each sample of a data set, as .npy or as .csv. */
#ifndef API_MODEL_ROWS_H
#define API_MODEL_ROWS_H

#include "api/model/command.h"

typedef struct Rows {
    qcc_context *cx;
    const char *name, *path; /* of the output; of the file */
    Out out;
    bool begun, is_csv;
    int64_t wanted, n; /* rows there will be, and are */
} Rows;

/* The files that --output and -o name, for the outputs of a model: USAGE where one is no output, or where a file does not say
 * of which it is.  `first` is what is meant then, null: the only one there is. */
Status rows_read(Command *c, qcc_model *m, const char *first, Rows **rows, size_t *n);

/* Appends the first `valid` rows of a value; `wanted` rows come in all. */
Status rows_add(Rows *r, const Tensor *value, int64_t rows, int64_t valid, int64_t wanted);

/* Ends the files: they get their names when `status`, which is passed on, is OK.  Says what was written. */
Status rows_close(Command *c, Rows *rows, size_t n, Status status);

#endif
