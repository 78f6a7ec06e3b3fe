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
    int product_type;         /* of gradients: DType + 1 of what meets in products; 0: that of the data */
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

enum {
    RECURRENT_KEPT = 2, /* results that are there for the gradient */
    RECURRENT_OPERANDS =
        8 + 3 + 1 + RECURRENT_KEPT, /* of a gradient, at most: the call's, what reaches its results, Y, what was kept */
};

/* Whether the slopes of a call follow from what its gates gave, and of that type the gradient takes the states to be what they were: then
 * that, and the cells, are all that has to be kept. */
bool recurrent_keeps(const Cell *cell, const RecurrentAttr *at, DType own, Arena *arena);

/* Behind the results of a call two more, with rows like those of X, direction after direction: what the gates gave; and the cells of
 * lstm, or what gru's reset gate acted on.  Zeros behind the ends of sequences. */
const Type *infer_recurrent_kept(Infer *q, const Cell *cell);

/* The types of these two. */
void recurrent_kept_types(Types *types, const RecurrentAttr *at, const Cell *cell, const Type *x, const Type *r,
                          const Type **kept);

/* Numbers for each unit that a step works in, forward or backward. */
enum { RECURRENT_SCRATCH = 11 };

/* R, packed: gate after gate, and of each the panels of all units; what is called a gate may be all of R. */
typedef struct RecallF32 {
    Panel product; /* of rows that meet it, with some columns of a gate */
    int gates;
    int64_t units;          /* columns of a gate */
    size_t gate, room_each; /* elements from one gate to the next; of room, for each worker */
    size_t depth;           /* k, filled up */
    const void *panels;
} RecallF32;

/* One step of one sequence, some units of it: gates is [gates, hidden] of x W' and of h R', and all of it begins with the first unit. */
typedef struct StepF32 {
    const RecurrentAttr *at;
    const Activation *act;
    int64_t hidden, units;                          /* elements from gate to gate; those of them that the step is of */
    const f32 *xw, *hr, *wb, *rb, *bias, *peephole; /* bias: Wb + Rb; biases and peephole may be null */
    const void *x, *w, *r;                          /* of products */
    const Type *words;                              /* null: in the step's own type */
    const f32 *past, *past_c; /* the states before it; and behind it, where h may be null: nobody asks */
    f32 *h, *c, *scratch;     /* scratch: RECURRENT_SCRATCH * hidden */
    f32 *z, *acts,
        *linear; /* get what enters the gates' activations, what they make of it, and what gru's reset gate acts on */
    DType own;   /* of the call: what R multiplies is rounded to it when it is f16 or bf16 */
    const Kernels *kernels;
    const RecallF32 *recall;
    f32 *room;
} StepF32;
typedef struct RecallF64 {
    Panel product;
    int gates;
    int64_t units;
    size_t gate, room_each;
    size_t depth;
    const void *panels;
} RecallF64;
typedef struct StepF64 {
    const RecurrentAttr *at;
    const Activation *act;
    int64_t hidden, units;
    const f64 *xw, *hr, *wb, *rb, *bias, *peephole;
    const void *x, *w, *r;
    const Type *words;
    const f64 *past, *past_c;
    f64 *h, *c, *scratch, *z, *acts, *linear;
    DType own;
    const Kernels *kernels;
    const RecallF64 *recall;
    f64 *room;
} StepF64;
void step_lstm_f32(const StepF32 *s);
void step_lstm_f64(const StepF64 *s);
void step_gru_f32(const StepF32 *s);
void step_gru_f64(const StepF64 *s);
void step_rnn_f32(const StepF32 *s);
void step_rnn_f64(const StepF64 *s);

/* The step of a cell. */
typedef void RecurrentStepF32(const StepF32 *s);
typedef void RecurrentStepF64(const StepF64 *s);
static inline RecurrentStepF32 *recurrent_step_f32(const Cell *cell)
{
    return cell == &cell_lstm ? step_lstm_f32 : cell == &cell_gru ? step_gru_f32 : step_rnn_f32;
}
static inline RecurrentStepF64 *recurrent_step_f64(const Cell *cell)
{
    return cell == &cell_lstm ? step_lstm_f64 : cell == &cell_gru ? step_gru_f64 : step_rnn_f64;
}

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

/* Readies a direction: weights, states from the operands, activations; and x W' of every row into xw, unless that is null.  own: the
 * type of products. */
StepF32 recurrent_open_f32(Eval *e, const Cell *cell, const RecurrentShape *s, int64_t d, DType own, f32 *xw);
StepF64 recurrent_open_f64(Eval *e, const Cell *cell, const RecurrentShape *s, int64_t d, DType own, f64 *xw);

/* The initial state of a direction, or any operand of that form: [batch, hidden], zeros where there is none. */
f32 *recurrent_state_f32(Eval *e, int operand, int64_t d, const RecurrentShape *s);
f64 *recurrent_state_f64(Eval *e, int operand, int64_t d, const RecurrentShape *s);

/* All of a direction: result Y and the last states. */
void recurrent_f32(Eval *e, const Cell *cell, const RecurrentShape *s, const int64_t *lengths);
void recurrent_f64(Eval *e, const Cell *cell, const RecurrentShape *s, const int64_t *lengths);

/* What a thread does of a step: some sequences, some units. */
typedef struct RecurrentShare {
    int64_t begin, end, unit, units;
    int worker;
} RecurrentShare;

/* Takes a step of a walk. */
typedef void RecurrentTake(const void *walk, const RecurrentShare *share, int64_t t);

/* Takes all steps, one after the other; parts: units may be shared out, too, since what they have of each other they have from the
 * step before.  So many multiply-adds in all. */
void recurrent_walk(Eval *e, const RecurrentShape *s, bool parts, int64_t steps, double work, RecurrentTake *take,
                    const void *walk);

/* Whether a step needs all units: a reset gate before the product. */
static inline bool recurrent_is_whole(const Cell *cell, const RecurrentAttr *at)
{
    return cell == &cell_gru && !at->linear_before_reset;
}

/* Whether products, of that type, are those of bf16 as it lies (docs/arithmetic.md). */
bool recurrent_in_words(const Eval *e, const Cell *cell, DType own);

/* to[at ..] = n numbers as products have them. */
void recurrent_keep_f32(const StepF32 *step, const f32 *from, int64_t n, void *to, int64_t at);
void recurrent_keep_f64(const StepF64 *step, const f64 *from, int64_t n, void *to, int64_t at);

/* Packs R for products of p's k, strides of b and row strides of a and c: so many gates, which lie `gate` apart. */
RecallF32 recurrent_recall_f32(Eval *e, const RecurrentShape *s, const Panel *p, const void *r, int gates, size_t gate);
RecallF64 recurrent_recall_f64(Eval *e, const RecurrentShape *s, const Panel *p, const void *r, int gates, size_t gate);

/* The same for steps forward: of states with R'. */
RecallF32 recurrent_recall_steps_f32(Eval *e, const Cell *cell, const RecurrentShape *s, const StepF32 *step);
RecallF64 recurrent_recall_steps_f64(Eval *e, const Cell *cell, const RecurrentShape *s, const StepF64 *step);

/* Room that steps and their products work in, for each worker. */
void recurrent_rooms_f32(Eval *e, StepF32 *step, const RecallF32 *recall);
void recurrent_rooms_f64(Eval *e, StepF64 *step, const RecallF64 *recall);

/* The product of a share: rows of `from` with its columns, to their places in `to`. */
void recurrent_recalled_f32(const StepF32 *step, const RecallF32 *recall, const RecurrentShare *share, const void *from,
                            f32 *to);
void recurrent_recalled_f64(const StepF64 *step, const RecallF64 *recall, const RecurrentShare *share, const void *from,
                            f64 *to);

/* The step of a share: weights, scratch and room are those of its units and its worker. */
StepF32 recurrent_part_f32(const StepF32 *whole, const RecurrentShare *share);
StepF64 recurrent_part_f64(const StepF64 *whole, const RecurrentShare *share);

/* An activation after the clip, and its slope there. */
f32 squash_f32(const Activation *a, float clip, f32 x);
f64 squash_f64(const Activation *a, float clip, f64 x);
f32 slope_f32(const Activation *a, float clip, f32 x);
f64 slope_f64(const Activation *a, float clip, f64 x);

/* The same of n elements, through the loops of a level where it has them; y: what squash_each made of x. */
void squash_each_f32(const Kernels *level, const Activation *a, float clip, int64_t n, const f32 *x, f32 *y);
void squash_each_f64(const Kernels *level, const Activation *a, float clip, int64_t n, const f64 *x, f64 *y);
void slope_each_f32(const Kernels *level, const Activation *a, float clip, int64_t n, const f32 *x, const f32 *y,
                    f32 *slope);
void slope_each_f64(const Kernels *level, const Activation *a, float clip, int64_t n, const f64 *x, const f64 *y,
                    f64 *slope);

enum { RECURRENT_SIDES = 4 };

/* c = a b, rows shared out over threads; and several products of the same a, at most RECURRENT_SIDES. */
void recurrent_product_f32(Eval *e, const Panel *p, const void *a, const void *b, f32 *c);
void recurrent_product_f64(Eval *e, const Panel *p, const void *a, const void *b, f64 *c);
void recurrent_products_f32(Eval *e, const Panel *p, const void *a, const PanelSide *sides, size_t n);
void recurrent_products_f64(Eval *e, const Panel *p, const void *a, const PanelSide *sides, size_t n);

/* Does things 0 .. n - 1, shared out over threads by multiples of `whole` where so many multiply-adds are worth it. */
void recurrent_shares(Eval *e, int64_t n, int64_t whole, double work, ParallelFn fn, void *arg);

/* A random call. */
Node *sample_recurrent(Build *b, Rng *rng, int variant, Op op, const Cell *cell);

/* The gradients of a call (ops/recurrent/recurrent_grad.c): behind the operands of the forward op stand what reaches Y, Y_h and, of
 * lstm, Y_c, and then Y itself and, or not, what the forward call kept; the results are what reaches X, W, R, B, the initial states and,
 * of lstm, the peepholes. */
const Type *infer_recurrent_grad(Infer *q, const Cell *cell);
Status eval_recurrent_grad(Eval *e, const Cell *cell);
Node *sample_recurrent_kept(Build *b, Rng *rng, int variant, Op op, Op forward, const Cell *cell);
Node *sample_recurrent_grad(Build *b, Rng *rng, int variant, Op op, Op forward, const Cell *cell);
void adjoint_recurrent(Build *b, const Site *s, Node **dx, Op grad, const Cell *cell);

/* Operands of the forward op. */
static inline int recurrent_operands(const Cell *cell)
{
    return cell->peephole >= 0 ? cell->peephole + 1 : cell->first_state + cell->states;
}

#endif
