/* What states, results and inputs are to a training step.  Whoever makes one says it; nobody parses names to find out. */
#ifndef IR_ROLE_H
#define IR_ROLE_H

#include "ir/graph.h"

/* clang-format off */
/*     word        of            what it is                                                             */
#define STATE_ROLES(_)                                                                                    \
    _( weight,     OF_NOTHING,   "the model's own, trained or not"                                      ) \
    _( statistic,  OF_NOTHING,   "the model's own, and forward moves it: running mean and variance"      ) \
    _( moment,     OF_STATE,     "what an optimizer remembers of a weight's gradients"                  ) \
    _( shadow,     OF_STATE,     "a weight in a narrower type, always rounded from it"                  ) \
    _( master,     OF_STATE,     "a weight in a wider type, from which it is rounded"                   ) \
    _( scaler,     OF_ANY,       "the scale of the loss; of that scale: its counters"                   ) \
    _( counter,    OF_NOTHING,   "how many steps were applied"                                          ) \
    _( length,     OF_NOTHING,   "how many steps the schedule has; the host says it"                    ) \
    _( rate,       OF_NOTHING,   "a factor of rates that the host says"                                 ) \
    _( ema,        OF_STATE,     "the running average of a weight"                                      ) \
    _( quant,      OF_ANY,       "of a value: the range, or the learned scale, that quantizes it"                          )

#define RESULT_ROLES(_)                                                                                   \
    _( value,      OF_NOTHING,   "an output of the model, or the next value of the state of its name"   ) \
    _( gradient,   OF_STATE,     "the gradient of a state"                                              ) \
    _( clipped,    OF_STATE,     "the same within bounds, on its way to the update"                     ) \
    _( factor,     OF_NOTHING,   "what the update multiplies all gradients with"                        ) \
    _( latched,    OF_NOTHING,   "the scale that all gradients have"                                    ) \
    _( found,      OF_NOTHING,   "what was not finite"                                                  ) \
    _( applied,    OF_NOTHING,   "whether the step changes the states"                                  ) \
    _( counts,     OF_STATE,     "what became of the updates of a state that is kept in few bits"       )

#define INPUT_ROLES(_)                                                                                    \
    _( data,       OF_NOTHING,   "what people bind"                                                     ) \
    _( gradient,   OF_ANY,       "the gradient of an output, which the host gives back"                 ) \
    _( valid,      OF_NOTHING,   "which samples of a batch count"                                       )
/* clang-format on */

#define ROLE(word, of, what) STATE_##word,
typedef enum StateRole { STATE_ROLES(ROLE) STATE_ROLE_COUNT } StateRole;
#undef ROLE
#define ROLE(word, of, what) RESULT_##word,
typedef enum ResultRole { RESULT_ROLES(ROLE) RESULT_ROLE_COUNT } ResultRole;
#undef ROLE
#define ROLE(word, of, what) INPUT_##word,
typedef enum InputRole { INPUT_ROLES(ROLE) INPUT_ROLE_COUNT } InputRole;
#undef ROLE

/* Whose roles: of inputs, states or results. */
typedef enum RoleKind { ROLES_OF_INPUTS, ROLES_OF_STATES, ROLES_OF_RESULTS } RoleKind;

/* What `of` may be: absent, the name of a state, or either. */
typedef enum RoleOf { OF_NOTHING, OF_STATE, OF_ANY } RoleOf;

/* The words of a kind, ended by null. */
const char *const *role_words(RoleKind kind);

/* What the `of` of a role may be. */
RoleOf role_may_be_of(RoleKind kind, int role);

/* The mark of an input or state; that of a result is graph_result_mark. */
RoleMark node_role(const Node *n);

/* The initial value of a state; null: zeros, or it is no state. */
Payload *state_initial(const Node *n);

/* Lets an input or state have that role. */
void node_set_role(Node *n, int role, const char *of);

/* The words of the quantizer that a state is written by (passes/recipe/quantizer.h); null: its values are kept as they are.
 * What it holds are codes then, or floats of fewer bits; the scale of codes is the state of role quant and float type
 * that is of it, their zero points one of integers. */
const char *node_stored(const Node *n);
void node_set_stored(Node *n, const char *stored);

/* The scale of the codes of a state, and their zero points; null: it has none. */
Node *stored_scale(const Graph *g, const char *state);
Node *stored_zero(const Graph *g, const char *state);

/* Whether a node is a state of that role. */
static inline bool is_state(const Node *n, StateRole role)
{
    return n->op == OP_state && node_role(n).role == (int)role;
}

/* Whether a state belongs to the model, rather than to its training. */
static inline bool role_is_of_model(int role)
{
    return role == STATE_weight || role == STATE_statistic;
}

/* Whether a state is deployed with the model: its own, and what quantizes it. */
static inline bool role_is_deployed(int role)
{
    return role_is_of_model(role) || role == STATE_quant;
}

/* Whether a node is a state of the model. */
bool is_model_state(const Node *n);

/* Whether an input is a gradient that the host gives. */
static inline bool is_given_gradient(const Node *n)
{
    return n->op == OP_input && node_role(n).role == INPUT_gradient;
}

/* The first state of a role and of that state (null: of none); null when there is none. */
Node *graph_state_of(const Graph *g, StateRole role, const char *of);

/* The first result of a role and of that state (null: of none); -1 when there is none. */
int graph_result_of(const Graph *g, ResultRole role, const char *of);

/* What a name says (`of` lies in it) where there is nothing else to ask: in texts and steps that were written before
 * there were roles, and in files of tensors. */
RoleMark role_by_name(RoleKind kind, const char *name);

/* Whether a text must say this mark, since the name alone would be read otherwise or says more than nothing. */
bool role_is_said(RoleKind kind, const char *name, RoleMark mark);

#endif
