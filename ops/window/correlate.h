/* Products of weights with windows of data, as convolutions and, by parts, their transposes take them.
 *
 * A result is the sum over (tap, channel) in that order, as every contraction sums (ops/kernels/panel.h), padding
 * counting as zeros; then the bias is added.  The windows of a block of positions are gathered into a matrix (im2col)
 * and multiplied; how positions are blocked or spread over threads does not show. */
#ifndef OPS_WINDOW_CORRELATE_H
#define OPS_WINDOW_CORRELATE_H

#include "ops/window/window.h"

typedef struct Correlation {
    Window w;                          /* the distance of taps may be negative */
    int64_t groups, channels, results; /* channels and results of a group */
    const void *x, *filter, *bias;     /* filter: [groups * results, taps, channels] */
    void *y;
    bool f64;
    /* where results stand: position i.. of the window at place + the sum of i * step, of size elements a channel */
    bool apart; /* not simply one after the other */
    int64_t place, step[MAX_SPATIAL], size;

    /* the plan */
    int64_t taps, in, out;  /* of a kernel; spatial elements of data and result */
    int64_t tile, tiles;    /* positions of a block, blocks of an image */
    int64_t part, parts;    /* results of a block, blocks of a group */
    bool direct;            /* the data is its own window matrix */
    size_t columns, placed; /* elements of a window matrix, of results on their way */
    const Kernels *kernels;
    char *rooms; /* for each worker */
    size_t room_bytes;
} Correlation;

/* Cuts the work of some images into blocks for so many threads; room_bytes is what each of them needs. */
void correlation_plan(Correlation *c, int64_t images, int64_t threads);

/* Runs a plan whose rooms are there. */
void correlation_run(Eval *e, const Correlation *c, int64_t images);

/* Weights with the channels innermost, for a correlation: of each group (which has rows * taps * columns of them in `to`)
 * to[m, u, c] = from[m * row + c * column + tap[u]]. */
typedef struct FilterTurn {
    int64_t groups, rows, columns, taps;
    int64_t group, row, column; /* steps in `from` */
    const int64_t *tap;
    bool f64;
    const void *from;
    void *to;
} FilterTurn;
void filter_turn(Eval *e, const FilterTurn *t);

/* The weights [rows, channels, taps] of operand i with the channels innermost; the operand itself where that is all the
 * same. */
const void *filter_turned(Eval *e, int i, int64_t rows, int64_t channels, int64_t taps);

#endif
