/* What lstm, gru and rnn share: attributes, shapes, activations, and the walk over time. */
#ifndef OPS_RECURRENT_H
#define OPS_RECURRENT_H

#include "ops/contract.h"

typedef enum Direction { RUN_FORWARD, RUN_REVERSE, RUN_BIDIRECTIONAL } Direction;

typedef struct RecurrentAttr {
    Floats activation_alpha, activation_beta;
    Strs activations;
    float clip; /* of what enters an activation; 0: none */
    int direction;
    int64_t hidden_size;      /* 0: what the weights say */
    int64_t layout;           /* 1: the batch comes first */
    bool input_forget;        /* of lstm: the forget gate is 1 - input gate */
    bool linear_before_reset; /* of gru: the reset gate acts on the product, not on the state */
} RecurrentAttr;

extern const char *const recurrent_directions[];

/* Attributes that all three have. */
#define RECURRENT_ATTRS                                                                                                \
    ATTR_OPTIONAL(RecurrentAttr, activation_alpha, FLOATS), ATTR_OPTIONAL(RecurrentAttr, activation_beta, FLOATS),     \
        ATTR_OPTIONAL(RecurrentAttr, activations, STRS), ATTR(RecurrentAttr, clip, FLOAT, 0),                          \
        ATTR_CHOICE(RecurrentAttr, direction, recurrent_directions, RUN_FORWARD),                                      \
        ATTR(RecurrentAttr, hidden_size, INT, 0), ATTR(RecurrentAttr, layout, INT, 0)

/* An activation and its scalars. */
typedef enum Squash {
    SQUASH_RELU,
    SQUASH_TANH,
    SQUASH_SIGMOID,
    SQUASH_AFFINE,
    SQUASH_LEAKY_RELU,
    SQUASH_THRESHOLDED_RELU,
    SQUASH_SCALED_TANH,
    SQUASH_HARD_SIGMOID,
    SQUASH_ELU,
    SQUASH_SOFTSIGN,
    SQUASH_SOFTPLUS,
} Squash;

typedef struct Activation {
    Squash squash;
    float alpha, beta;
} Activation;

/* A kind of recurrent cell. */
typedef struct Cell {
    int gates;       /* blocks of W and R */
    int functions;   /* activations of one direction */
    int states;      /* h, or h and c */
    int first_state; /* operand of the first initial state */
    int peephole;    /* operand; -1: none */
    Squash usual[3]; /* activations unless told */
} Cell;

extern const Cell cell_lstm, cell_gru, cell_rnn;

/* The extents of a call. */
typedef struct RecurrentShape {
    int64_t steps, batch, input, hidden, directions;
} RecurrentShape;

/* The types of Y, Y_h and, of lstm, Y_c. */
const Type *infer_recurrent(Infer *q, const Cell *cell);

/* The activations of a direction; null, or what is wrong. */
const char *recurrent_activations(const RecurrentAttr *at, const Cell *cell, int direction, Activation *to,
                                  Arena *arena);

/* Runs the cell over time and batch. */
Status eval_recurrent(Eval *e, const Cell *cell);

/* One step of one sequence: gates is [gates, hidden] of x W' and then of h R'; state is h and then c, each [hidden]. */
typedef struct StepF32 {
    const RecurrentAttr *at;
    const Activation *act;
    int64_t hidden;
    const f32 *xw, *hr, *wb, *rb, *peephole; /* biases and peephole may be null */
    const f32 *r;                            /* [gates * hidden, hidden] */
    f32 *h, *c, *scratch;
} StepF32;
typedef struct StepF64 {
    const RecurrentAttr *at;
    const Activation *act;
    int64_t hidden;
    const f64 *xw, *hr, *wb, *rb, *peephole;
    const f64 *r;
    f64 *h, *c, *scratch;
} StepF64;
void step_lstm_f32(const StepF32 *s);
void step_lstm_f64(const StepF64 *s);
void step_gru_f32(const StepF32 *s);
void step_gru_f64(const StepF64 *s);
void step_rnn_f32(const StepF32 *s);
void step_rnn_f64(const StepF64 *s);

/* A random call. */
Node *sample_recurrent(Build *b, Rng *rng, int variant, Op op, const Cell *cell);

#endif
