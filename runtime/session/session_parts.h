/* What the files of a session share: what it holds (session.c), and how it runs (session_run.c). */
#ifndef RUNTIME_SESSION_SESSION_PARTS_H
#define RUNTIME_SESSION_SESSION_PARTS_H

#include "runtime/session/scaler.h"

/* An input that the caller binds. */
typedef struct Input {
    const char *name;
    Tensor tensor; /* over the caller's memory */
    bool bound;
    bool given;          /* the gradient of an output, which the host gives back */
    int slot, eval_slot; /* input of the step, of @eval; -1: it has none */
} Input;

typedef enum Phase { PHASE_IDLE, PHASE_FORWARD, PHASE_BACKWARD, PHASE_DONE } Phase;

/* The scale of the loss (session_scale.c). */
typedef struct Scaling {
    State *scale, *counters; /* null: the loss is not scaled */
    const ScalerRules *rules;
    const Node *latch, *found;
    Tensor *latched; /* what the gradients at hand were multiplied with; null before the first */
    bool unscaled;   /* they were divided by it since */
    int64_t flags;   /* what forwards found since gradients began to add up */
    int64_t own[2];  /* of the last step: place of the first gradient that was not finite, and flags */
    bool stepped;    /* since the shared scale moved */
    Scaler *shared;  /* null: the session moves its scale itself */
    Session *next;   /* that shares it */
} Scaling;

struct Session {
    Ir *ir;
    Arena *arena;
    Heap heap;
    Graph *graph, *eval_graph;
    Evaluation *step, *eval;
    const Node *backward, *update; /* first nodes of these sides; null: there are none */
    State *states;
    Input *inputs;
    size_t n_states, n_inputs;
    size_t n_shadows;         /* of the states, at their end: what nobody else sees */
    const Tensor **arguments; /* of a run */
    Map by_name;              /* State or Input, by name */
    Map result, eval_result;  /* Node, by name */
    Map gradients;            /* State, by the name of the result that is its gradient */
    uint64_t steps;           /* begun */
    EvalOptions options;
    Phase phase;
    bool evaluated; /* results are those of @eval */
    Scaling scaling;
};

/* A copy of a tensor in the session's heap. */
Tensor *session_copy(Session *s, const Tensor *t);

/* A result of the last run by name; null when it has none. */
const Tensor *session_result(const Session *s, const char *name);

/* Reports a value of another type: USAGE. */
Status session_wrong_type(Session *s, const char *name, const Type *have, const Type *want);

/* Lets a place hold a value (null: nothing), which it takes over, instead of the one before. */
void session_keep_value(Session *s, Tensor **where, Tensor *value);

/* The state of that name; null when there is none. */
State *session_state(const Session *s, const char *name);

/* Makes a state's value another tensor, which it takes over. */
void session_commit(Session *s, State *state, Tensor *value);

/* Lets a value be that of a state, which takes it over, and of the run under way. */
void session_set_state(Session *s, State *state, Tensor *value);

/* Finds the shadows among the states, puts them to the end and links them to their masters. */
Status shadows_open(Session *s);

/* Rounds a value that a state is about to get, where a run under way reads its shadow. */
void shadows_prepare(Session *s, const State *state, const Tensor *value);

/* Once the states have their values: shadows get what was prepared, the run under way too.  It wants no memory. */
void shadows_set(Session *s);

/* Rounds every master that changed since into its shadow, and every shadow that was never made. */
void shadows_refresh(Session *s);

/* Says of the shadow of a state whose own next value was committed that it is that of the master's. */
void shadows_commit(Session *s);

/* Finds the scale of the loss in the signature, if the step has one. */
Status scaling_open(Session *s);

/* Before a backward: its gradients get the scale of now, or, going on with those that were added up, that of those. */
void scaling_begin(Session *s, bool goes_on);

/* After it: notes the scale, and keeps gradients of a window that was unscaled alike. */
void scaling_latch(Session *s, bool goes_on);

/* Before an update: lets it know all that was found, and run as far as that. */
Status scaling_find(Session *s);

/* After it: whether the states change; those of the scale have changed. */
bool scaling_commit(Session *s);

/* What a result tells of the scale. */
void scaling_tell(const Session *s, RunResult *r);

/* Puts a scale, into all sessions that share it: USAGE when it is none. */
Status scaling_put(Session *s, const Tensor *value);

/* Sets scale and counters (null: as they are) of a session and those after it that share the scale: of all or, where memory
 * ends, of none. */
void scaling_set(Session *first, const Tensor *scale, const Tensor *counters);

/* For the nodes of the run under way that have not read a state yet. */
void session_put_on(Session *s, const State *state);

/* Runs a side up to a node; one that was interrupted may be run on. */
Status session_side(Session *s, const Node *end);

/* Forgets gradients that were added up, and the states that went with them. */
void session_forget_sums(Session *s);

#endif
