/* What the kernels of lstm, gru and rnn and those of their gradients are written with. */
#ifndef OPS_RECURRENT_RECURRENT_KERNELS_H
#define OPS_RECURRENT_RECURRENT_KERNELS_H

#include "ops/card/own_kernel.h"
#include "ops/recurrent/recurrent.h"

enum { RECURRENT_GATES = 4, RECURRENT_FUNCTIONS = 3, RECURRENT_NONE = -1 };

/* A call, and what its kernels are written from. */
typedef struct RecurrentWriter {
    const Node *n;
    OwnKernels *to;
    const Cell *cell;
    const RecurrentAttr *at;
    RecurrentShape s;
    Layout layout;
    DType arithmetic, own;          /* of sums; of what meets in products */
    const char *type;               /* of the arithmetic */
    bool narrow, whole;             /* products are of 16 bits; a step needs all units (recurrent_is_whole) */
    int64_t rows, wide;             /* of x; columns of all gates */
    int64_t share, blocks, threads; /* of a walk: sequences of a block, blocks of a direction, threads of each */
    Activation act[2][RECURRENT_FUNCTIONS];
    Text t;
} RecurrentWriter;

/* False where a call has no kernels: nothing is walked, or sizes are beyond them. */
bool recurrent_open_kernels(RecurrentWriter *w, const Node *n, OwnKernels *to, const Cell *cell, DType own);

/* Begins a body; names some of the scratch; ends the body. */
void recurrent_open_body(RecurrentWriter *w);
void recurrent_name(RecurrentWriter *w, const char *name, size_t at);

/* So many numbers of the arithmetic, in the scratch. */
size_t recurrent_take(RecurrentWriter *w, int64_t n);

/* Prints how long the sequence `b` is, `length`; a wrong one refuses the run and is 0. */
void recurrent_print_length(RecurrentWriter *w, int indent);

/* Whether direction d goes backward, and where its step t stands. */
const char *recurrent_backward(const RecurrentWriter *w);
const char *recurrent_step_place(const RecurrentWriter *w, const char *t);

/* An operand of the form of a state at (d, b, j), "(T)0" where there is none; and its place. */
const char *recurrent_state(const RecurrentWriter *w, int operand);
const char *recurrent_state_place(const RecurrentWriter *w);

/* Whether an operand is there. */
bool recurrent_has(const RecurrentWriter *w, int operand);

/* A number as products have it. */
const char *recurrent_narrowed(const RecurrentWriter *w, const char *value);

/* Prints `to` = activation k of the direction of `from`, clipped where it is a gate's; and its slope there, `y` being what the
 * activation gave. */
void recurrent_print_squash(RecurrentWriter *w, int k, bool clips, const char *to, const char *from, int indent);
void recurrent_print_slope(RecurrentWriter *w, int k, bool clips, const char *to, const char *x, const char *y,
                           int indent);

/* Prints sums of k = 0 .. depth - 1 in the order of contractions: acc[g][r] += vector(r, k) * weight(g, k) for so many gates and all
 * sequences of a block.  `vector` and `weight` are of k, and of r and g. */
void recurrent_print_dots(RecurrentWriter *w, int gates, int64_t depth, const char *vector, const char *weight,
                          int indent);

/* Prints what a step forward makes of the gates of unit j, z and then acts of `gate` elements each: enters activations, and leaves them.
 * lstm: `c` becomes the next cell from `past_c`; gru: of the first two gates, and of the last. */
void recurrent_print_lstm(RecurrentWriter *w, int indent);
void recurrent_print_gru_gates(RecurrentWriter *w, int indent);
void recurrent_print_gru_fresh(RecurrentWriter *w, int indent);
void recurrent_print_rnn(RecurrentWriter *w, int indent);

bool kernels_recurrent(const Node *n, OwnKernels *to, const Cell *cell);
bool kernels_recurrent_grad(const Node *n, OwnKernels *to, const Cell *cell);

#endif
