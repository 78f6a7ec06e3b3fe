/* One step of an optimizer for one parameter, as PyTorch's optimizers take it.
 *
 *     update_sgd(parameter, gradient, lr, step, scale, 3 states, stored forms..) -> parameter, states, stored forms..
 *
 * `lr` is a float scalar and `step` an i64 one, 1 for the first step; the gradient is multiplied by `scale` (a float
 * scalar; absent: 1) before anything else.  The states of the optimizer have the parameter's shape; which there are
 * follows from the attributes.  Everything is computed in f32, in f64 for a parameter of that type.
 *
 * What is kept in few bits has operands behind the states, at fixed places, all of them optional:
 *
 *     parameter scale, parameter zero, draw, 3 scales of states
 *
 * A parameter of integer codes has a scale, f32 of its rank, that repeats along its axes: in each of them it is 1, the
 * whole, or a part that divides it (a group of K / g there).  With a zero point of the codes' type and the scale's shape
 * its numbers are (code - zero) * scale.  The attributes common to all updates say which codes there are (`least` ..
 * `largest`) and how they are rounded, `sr` reading `draw`, an f32 of [0, 1) for each element; a bf16 parameter may be
 * rounded so too.  A state of u8 or u4 holds numbers of levels (ops/scalar/levels.h), one of f8e4m3 numbers; its scale, f32,
 * has one for each `block` elements.  It has the state's dimensions, but that in one of them it counts blocks, the last of
 * which may be shorter, and that it is 1 in those behind it along which the blocks go on (ops/update/blocks.h).  States
 * whose name begins with a v are never negative and have levels of their own.
 *
 * What is stored is read, the step is taken in f32, and each result is rounded once; the parameter's next value follows
 * from states that were not rounded.  The results stand in the same order: parameter, states, then the next scale and
 * zero point of the parameter and the next scales of the states, of those that there are; with `counts` what became of
 * the codes is the last one, i64[3]: how many numbers were to change, how many of them by less than half a step, how many
 * codes changed. */
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
    UPDATE_X_SCALE = UPDATE_STATE + UPDATE_STATES,
    UPDATE_X_ZERO,
    UPDATE_DRAW,
    UPDATE_STATE_SCALE, /* the first */
    UPDATE_OPERANDS = UPDATE_STATE_SCALE + UPDATE_STATES,
    UPDATE_RESULTS = 2 * (1 + UPDATE_STATES) + 2, /* at most */
};

/* The numbers of the last result. */
enum {
    COUNT_UPDATES, /* elements whose number was to be another */
    COUNT_BELOW,   /* of these, by less than half a step: the nearest code is the one that was there */
    COUNT_CHANGED, /* codes that are another */
    UPDATE_COUNTS,
};

/* How results are stored: the attributes that all updates begin with. */
typedef struct UpdateForm {
    int64_t least, largest; /* codes of the parameter */
    int rounding;           /* ROUND_RNE or ROUND_SR (ops/scalar/quant.h) */
    bool sticky;            /* a scale stays while its numbers reach 120/127 of the codes and not beyond them */
    bool scale_decay; /* weight decay that is apart from the gradient goes into the scale, not through the codes */
    bool counts;
    int64_t block; /* elements of a state that share a scale; 0: none do */
} UpdateForm;

extern const char *const update_roundings[];

/* clang-format off */
#define UPDATE_FORM(label, K, field, v)                                                                                \
    { .name = label, .kind = ATTR_##K, .offset = offsetof(UpdateForm, field), .value = (v), .ours = true }
#define UPDATE_FORM_ATTRS                                                                                              \
    UPDATE_FORM("least", INT, least, 0), UPDATE_FORM("largest", INT, largest, 0),                                      \
    { .name = "rounding", .kind = ATTR_ENUM, .offset = offsetof(UpdateForm, rounding), .choices = update_roundings,    \
      .ours = true },                                                                                                  \
    UPDATE_FORM("sticky", BOOL, sticky, false), UPDATE_FORM("scale_decay", BOOL, scale_decay, false),                  \
    UPDATE_FORM("counts", BOOL, counts, false), UPDATE_FORM("block", INT, block, 0)
/* clang-format on */

/* The short names ("m", "v") of the states that an update op with these attributes keeps, in their order; returns how
 * many, -1 for an op that is no update. */
int update_states(const OpDef *def, const void *attr, const char *names[UPDATE_STATES]);

/* Scales of parameters are no less, so that what is divided by them stays finite. */
#define UPDATE_LEAST_SCALE 1e-30f

/* Whether updates with these attributes take weight decay apart from the gradient. */
bool update_decays_apart(const OpDef *def, const void *attr);

/* Whether an update keeps nothing in few bits. */
bool update_is_plain(const Node *n);

/* Which result is the next value of that operand, of a call with these operands (null, or beyond n_in: absent) that keeps
 * n states; -1 of one that has none.  Of UPDATE_DRAW it is the counts, where the attributes ask for them. */
int update_result(const UpdateForm *form, int n_states, int n_in, Node *const *in, int operand);

/* How many results such a call has. */
int update_results(const UpdateForm *form, int n_states, int n_in, Node *const *in);

/* An expansion under way. */
typedef struct Update {
    Build *b;
    DType type; /* in which it computes */
    Node *x, *g, *lr, *step;
    Node *state[UPDATE_STATES];
    const UpdateForm *form;
    const char *names[UPDATE_STATES];
    const Type *own;     /* of the parameter */
    Node *codes, *scale; /* of a parameter of codes: what is multiplied with which scale; null of others */
} Update;

const Type *infer_update(Infer *q);

/* Takes the operands of a call, widened, the gradient scaled; false after a failure. */
bool update_open(Update *u, Build *b, const Site *s, int (*states)(const void *attr, const char **names));

/* Weight decay that is apart from the gradient: the parameter times 1 - lr * decay.  Of codes that is their scale's, where
 * the form says so: they stay as they are. */
Node *update_decayed(Update *u, double decay);

/* Whether that is so. */
bool update_decays_scale(const Update *u);

/* What `expand` returns: the next parameter and the next states, in the types and forms of the operands. */
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
#define UPDATE_CARD_OF(word, Attr, place, sentence)                                                                    \
    static Node *sample_##word##_call(Build *b, Rng *rng, int variant)                                                 \
    {                                                                                                                  \
        return sample_update(b, rng, variant, OP_##word, &(const Attr[]){ sample_##word(variant) });                   \
    }                                                                                                                  \
    const OpDef op_##word = {                                                                                          \
        .name = #word,                                                                                                 \
        .min_in = UPDATE_SCALE,                                                                                        \
        .max_in = UPDATE_OPERANDS,                                                                                     \
        .min_out = 1,                                                                                                  \
        .max_out = UPDATE_RESULTS,                                                                                     \
        .attrs = word##_attrs,                                                                                         \
        .infer = infer_update,                                                                                         \
        .expand = expand_##word,                                                                                       \
        .sample = sample_##word##_call,                                                                                \
        .n_variants = 39,                                                                                              \
        .states = states_##word,                                                                                       \
        .weight = 16,                                                                                                  \
        .access.kind = ACCESS_COMPOSITE,                                                                               \
        .access.scalar = 1u << UPDATE_LR | 1u << UPDATE_STEP | 1u << UPDATE_SCALE,                                     \
        .access.alias = UPDATE_##place,                                                                                \
        .access.over = update_is_plain,                                                                                \
        .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },                                                            \
        .quant = { .in = { QUANT_FLOAT, QUANT_FLOAT, QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },             \
        .brief = sentence,                                                                                             \
    }

#endif
