/* One step of an optimizer for one parameter, as PyTorch's optimizers take it.
 *
 *     update_sgd(parameter, gradient, lr, step, scale, states..) -> parameter, states..
 *
 * `lr` is a float scalar and `step` an i64 one, 1 for the first step; the gradient is multiplied by `scale` (a float
 * scalar; absent: 1) before anything else.  The states of the optimizer have the parameter's shape; which there are
 * follows from the attributes.  Everything is computed in f32, in f64 for a parameter of that type. */
#ifndef OPS_UPDATE_UPDATE_H
#define OPS_UPDATE_UPDATE_H

#include "ops/card/make.h"
#include "ops/card/shapes.h"

enum {
    UPDATE_PARAMETER,
    UPDATE_GRADIENT,
    UPDATE_LR,
    UPDATE_STEP,
    UPDATE_SCALE,
    UPDATE_STATE,      /* the first */
    UPDATE_STATES = 3, /* at most */
};

/* The short names ("m", "v") of the states that an update op with these attributes keeps, in their order; returns how
 * many, -1 for an op that is no update. */
int update_states(const OpDef *def, const void *attr, const char *names[UPDATE_STATES]);

/* An expansion under way. */
typedef struct Update {
    Build *b;
    DType type; /* in which it computes */
    Node *x, *g, *lr, *step;
    Node *state[UPDATE_STATES];
} Update;

const Type *infer_update(Infer *q);

/* Takes the operands of a call, widened, the gradient scaled; false after a failure. */
bool update_open(Update *u, Build *b, const Site *s);

/* What `expand` returns: the next parameter and the next states, in the types of the operands. */
Node *update_close(Update *u, const Site *s, Node *x, Node *const *states);

/* The number that an attribute was written as: the shortest decimal that is this float. */
double update_decimal(float v);

/* A constant in the type of the computation. */
Node *update_number(Update *u, double v);

/* x + y * k */
Node *update_add(Update *u, Node *x, Node *y, double k);

/* The running average keep * state + (1 - keep) * value. */
Node *update_average(Update *u, Node *state, float keep, Node *value);

/* The same of the square of a value. */
Node *update_average_square(Update *u, Node *state, float keep, Node *value);

/* 1 - keep^step: how much of an average that began with zero has come in. */
Node *update_filled(Update *u, float keep);

/* a in the first step, b in all others. */
Node *update_first(Update *u, Node *a, Node *b);

/* A call with random operands. */
Node *sample_update(Build *b, Rng *rng, int variant, Op op, const void *attr);

/* An update goes element by element, so parameter and states may be written over; or it looks at all of them first. */
/* clang-format off */
#define UPDATE_IN_PLACE                                                                                                \
    { { 0, UPDATE_PARAMETER, ALIAS_OVER }, { 1, UPDATE_STATE, ALIAS_OVER },                                            \
      { 2, UPDATE_STATE + 1, ALIAS_OVER }, { 3, UPDATE_STATE + 2, ALIAS_OVER } }
#define UPDATE_APART                                                                                                   \
    { { 0 } }
/* clang-format on */

/* A card.  `states_WORD` names the states that attributes ask for, `sample_WORD` gives the attributes of a variant. */
#define UPDATE_CARD(word, Attr, sentence) UPDATE_CARD_OF(word, Attr, IN_PLACE, sentence)
#define UPDATE_CARD_OF(word, Attr, over, sentence)                                                                     \
    static Node *sample_##word##_call(Build *b, Rng *rng, int variant)                                                 \
    {                                                                                                                  \
        return sample_update(b, rng, variant, OP_##word, &(const Attr[]){ sample_##word(variant) });                   \
    }                                                                                                                  \
    const OpDef op_##word = {                                                                                          \
        .name = #word,                                                                                                 \
        .min_in = UPDATE_SCALE,                                                                                        \
        .max_in = UPDATE_STATE + UPDATE_STATES,                                                                        \
        .min_out = 1,                                                                                                  \
        .max_out = 1 + UPDATE_STATES,                                                                                  \
        .attrs = word##_attrs,                                                                                         \
        .infer = infer_update,                                                                                         \
        .expand = expand_##word,                                                                                       \
        .sample = sample_##word##_call,                                                                                \
        .n_variants = 24,                                                                                              \
        .states = states_##word,                                                                                       \
        .weight = 16,                                                                                                  \
        .access.kind = ACCESS_COMPOSITE,                                                                               \
        .access.scalar = 1u << UPDATE_LR | 1u << UPDATE_STEP | 1u << UPDATE_SCALE,                                     \
        .access.alias = UPDATE_##over,                                                                                 \
        .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },                                                            \
        .quant = { .in = { QUANT_FLOAT, QUANT_FLOAT, QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },             \
        .brief = sentence,                                                                                             \
    }

#endif
