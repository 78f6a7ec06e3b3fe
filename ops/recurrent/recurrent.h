/* What lstm, gru and rnn share: attributes, shapes, activations, and the walk over time. */
#ifndef OPS_RECURRENT_RECURRENT_H
#define OPS_RECURRENT_RECURRENT_H

#include "ops/contract/contract.h"

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
    int state_type;           /* of lstm: DType + 1 of Y_c; 0: that of the data */
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

/* Numbers for each unit that a step works in, forward or backward. */
enum { RECURRENT_SCRATCH = 11 };

/* One step of one sequence: gates is [gates, hidden] of x W' and then of h R'; state is h and then c, each [hidden]. */
typedef struct StepF32 {
    const RecurrentAttr *at;
    const Activation *act;
    int64_t hidden;
    const f32 *xw, *hr, *wb, *rb, *peephole; /* biases and peephole may be null */
    const f32 *r, *turned;                   /* [gates * hidden, hidden], and the other way round */
    f32 *h, *c, *scratch;                    /* scratch: RECURRENT_SCRATCH * hidden */
    f32 *z, *linear; /* gets what enters the activations, and of gru what its reset gate acts on; null: nobody asks */
    DType own;       /* of the call: what R multiplies is rounded to it when it is f16 or bf16 */
    const Kernels *kernels;
    f32 *room; /* of products with R */
} StepF32;
typedef struct StepF64 {
    const RecurrentAttr *at;
    const Activation *act;
    int64_t hidden;
    const f64 *xw, *hr, *wb, *rb, *peephole;
    const f64 *r, *turned;
    f64 *h, *c, *scratch;
    f64 *z, *linear;
    DType own;
    const Kernels *kernels;
    f64 *room;
} StepF64;
void step_lstm_f32(const StepF32 *s);
void step_lstm_f64(const StepF64 *s);
void step_gru_f32(const StepF32 *s);
void step_gru_f64(const StepF64 *s);
void step_rnn_f32(const StepF32 *s);
void step_rnn_f64(const StepF64 *s);

/* What the steps of one direction went through, a row for every step of every sequence, as x has them: the states
 * before the step, and z and linear as above. */
typedef struct TapeF32 {
    f32 *h, *c, *z, *linear;
} TapeF32;
typedef struct TapeF64 {
    f64 *h, *c, *z, *linear;
} TapeF64;

/* Elements between neighbours of one dimension. */
typedef struct Strides {
    int64_t step, direction, batch;
} Strides;

/* Rows of x, elements of Y, elements of a state. */
typedef struct Layout {
    Strides x, y, state;
} Layout;
Layout recurrent_layout(const RecurrentAttr *at, const RecurrentShape *s);

/* The extents of a call on x and r. */
RecurrentShape recurrent_shape(const RecurrentAttr *at, const Type *x, const Type *r);

/* The lengths of the sequences, in scratch; null after eval_fail. */
const int64_t *recurrent_lengths(Eval *e, const RecurrentShape *s);

/* Where step t of a sequence stands: backward walks begin at its end. */
static inline int64_t recurrent_place(bool backward, int64_t length, int64_t t)
{
    return backward ? length - 1 - t : t;
}

/* Readies a direction: weights, states from the operands, activations; and x W' of every row into xw. */
StepF32 recurrent_open_f32(Eval *e, const Cell *cell, const RecurrentShape *s, int64_t d, f32 *xw);
StepF64 recurrent_open_f64(Eval *e, const Cell *cell, const RecurrentShape *s, int64_t d, f64 *xw);

/* Walks the steps; step.h and step.c [batch, hidden] hold the states; y and tape may be null. */
void recurrent_run_f32(Eval *e, const Cell *cell, const RecurrentShape *s, StepF32 step, bool backward,
                       const int64_t *lengths, const f32 *xw, f32 *y, const TapeF32 *tape);
void recurrent_run_f64(Eval *e, const Cell *cell, const RecurrentShape *s, StepF64 step, bool backward,
                       const int64_t *lengths, const f64 *xw, f64 *y, const TapeF64 *tape);

/* An activation after the clip, and its slope there. */
f32 squash_f32(const Activation *a, float clip, f32 x);
f64 squash_f64(const Activation *a, float clip, f64 x);
f32 slope_f32(const Activation *a, float clip, f32 x);
f64 slope_f64(const Activation *a, float clip, f64 x);

/* The same of n elements, through the loops of a level where it has them; y: what squash_each made of x. */
void squash_each_f32(const Kernels *level, const Activation *a, float clip, int64_t n, const f32 *x, f32 *y);
void squash_each_f64(const Kernels *level, const Activation *a, float clip, int64_t n, const f64 *x, f64 *y);
void slope_each_f32(const Activation *a, float clip, int64_t n, const f32 *x, const f32 *y, f32 *slope);
void slope_each_f64(const Activation *a, float clip, int64_t n, const f64 *x, const f64 *y, f64 *slope);

/* c = a b, rows shared out over threads. */
void recurrent_product_f32(Eval *e, const Panel *p, const f32 *a, const f32 *b, f32 *c);
void recurrent_product_f64(Eval *e, const Panel *p, const f64 *a, const f64 *b, f64 *c);

/* Does sequences 0 .. batch - 1, shared out over threads where a walk of so many multiply-adds is worth it. */
void recurrent_shares(Eval *e, int64_t batch, double work, ParallelFn fn, void *arg);

/* A random call. */
Node *sample_recurrent(Build *b, Rng *rng, int variant, Op op, const Cell *cell);

/* The gradients of a call (ops/recurrent/recurrent_grad.c): behind the operands of the forward op stand what reaches Y, Y_h and, of
 * lstm, Y_c; the results are what reaches X, W, R, B, the initial states and, of lstm, the peepholes. */
const Type *infer_recurrent_grad(Infer *q, const Cell *cell);
Status eval_recurrent_grad(Eval *e, const Cell *cell);
Node *sample_recurrent_grad(Build *b, Rng *rng, int variant, Op op, Op forward, const Cell *cell);
void adjoint_recurrent(Build *b, const Site *s, Node **dx, Op grad, const Cell *cell);

/* Operands of the forward op. */
static inline int recurrent_operands(const Cell *cell)
{
    return cell->peephole >= 0 ? cell->peephole + 1 : cell->first_state + cell->states;
}

#endif
