/* What the kernels of a gradient of lstm, gru or rnn are written from: those before and behind its walk back through time
 * (ops/recurrent/recurrent_kernels_grad.c), and that walk (ops/recurrent/recurrent_kernels_back.c). */
#ifndef OPS_RECURRENT_RECURRENT_KERNELS_BACK_H
#define OPS_RECURRENT_RECURRENT_KERNELS_BACK_H

#include "ops/recurrent/recurrent_kernels.h"

enum { RECURRENT_OF_STATES = 4, /* the result that has what reaches the first state */ RECURRENT_SHARED = 40 << 10 };

/* Offsets are of the scratch; rows are those of x. */
typedef struct RecurrentBack {
    RecurrentWriter *w;
    int dy, y;                    /* operands */
    int64_t through, sent;        /* columns that reach the state through R; what a step of a sequence sends, in all */
    size_t dx, dr, z, h, c;       /* rows of all steps */
    size_t linear, gated, recall; /* of gru */
    size_t dh, dc, at_sent, kept_x, kept_w, kept_r, kept_h, kept_dx, kept_dr, third, kept_gated;
    bool shared, kept; /* kept: the forward call kept what its gates gave, from which slopes follow */
} RecurrentBack;

/* Whether what reaches h R' is not what reaches x W'. */
static inline bool recurrent_is_apart(const RecurrentBack *k)
{
    return k->w->cell == &cell_gru && !k->w->whole;
}

/* Prints names of all rows. */
void recurrent_name_rows(RecurrentBack *k);

/* Prints where step t of sequence b of direction d stands, and goes on to the next one where it has none; the cell before it. */
void recurrent_print_place(RecurrentBack *k);
void recurrent_print_past_cell(RecurrentBack *k);

/* The walk, from the last step to the first. */
void recurrent_print_walk_back(RecurrentBack *k);

#endif
