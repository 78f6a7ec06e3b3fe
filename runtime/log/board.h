/* Event files that TensorBoard reads: records of TFRecord framing, each an Event of numbers by tag. */
#ifndef RUNTIME_LOG_BOARD_H
#define RUNTIME_LOG_BOARD_H

#include "ir/tensor.h"

typedef struct Board {
    Diag *diag;
    const char *path; /* of the file, in the board's arena */
    Arena arena, record;
    int fd;
    bool goes_on, lost; /* as those of a log */
} Board;

typedef struct BoardScalar {
    const char *tag;
    float value;
} BoardScalar;

enum { BOARD_BUCKETS = 30 };

/* How values are spread: buckets of one width from the least to the most, those that are not finite left out. */
typedef struct BoardHistogram {
    const char *tag;
    double least, most, n, sum, squares;
    double bucket[BOARD_BUCKETS];
} BoardHistogram;

/* Makes the folder where there is none and a new file in it; the time is the caller's, in seconds since 1970.  With
 * `resumed` >= 0 TensorBoard forgets what older files of the folder say of later steps.  Outlives a guarded() call. */
Status board_open(Board *b, Memory *memory, Diag *diag, const char *folder, double wall_time, int64_t resumed);

/* One event with the numbers of a step. */
Status board_scalars(Board *b, double wall_time, int64_t step, const BoardScalar *scalars, size_t n);

/* One event with how tensors are spread at a step. */
Status board_histograms(Board *b, double wall_time, int64_t step, const BoardHistogram *histograms, size_t n);

/* Counts the elements of a tensor. */
void board_count(BoardHistogram *h, const char *tag, const Tensor *t);

/* From now on an event that cannot be written is a warning, and the last one. */
void board_go_on(Board *b);

/* Gives everything back; an unopened (zeroed) board is fine. */
void board_close(Board *b);

#endif
