/* A session: a training step that runs.  It knows the names of a module's graphs (@step, @eval and whatever else is
 * asked for), runs the step whole or phase by phase, and commits the next states only when everything of a step is there
 * and finite.  Their values are the engine's (runtime/engine.h).
 *
 * Names are those of the graphs: inputs, states, results, the gradients of trained states among them.  What a state or a
 * result is to the step its role says, never its name.  One thread at a time. */
#ifndef RUNTIME_SESSION_SESSION_H
#define RUNTIME_SESSION_SESSION_H

#include "ir/role.h"
#include "ops/update/scaler.h"
#include "runtime/engine.h"

enum RunWhat {
    RUN_FORWARD = 1,
    RUN_BACKWARD = 2,
    RUN_UPDATE = 4,
    RUN_STEP = RUN_FORWARD | RUN_BACKWARD | RUN_UPDATE,
    RUN_EVAL = 8,        /* the graph @eval, alone */
    RUN_OBSERVE = 32,    /* the graph @observe, alone: session_observe */
    RUN_ACCUMULATE = 16, /* with backward: gradients are added to those of the runs before, until an update */
    RUN_LATER = 64,      /* of a whole step: what is told is what became of the one before it (session_wait) */
    RUN_HELD = 128,      /* with RUN_LATER: it is not run where the one before it is told not to be applied */
};

enum { SESSION_GRAPHS = 8 }; /* so many at most; the first is @step */

/* A value that lives from step to step. */
typedef struct State {
    const char *name;
    const Type *type;
    Payload *initial; /* null: zeros */
    int kept;         /* where the engine keeps what belongs to it (session_parts.h) */
    bool has_pending; /* there is what forward made of it while gradients accumulate */
    bool moves_early; /* its next value is there before the update */
    bool trained;
    RoleMark mark;            /* what it is to the step (ir/role.h) */
    int slot[SESSION_GRAPHS]; /* input of each graph; -1: it has none */
    int next;                 /* result of the step that is its next value; -1: it never changes */
    int gradient;             /* result of the step that is its gradient; -1: it has none */
    struct State *master;     /* whose shadow it is (ops/update/shadow.h); null: nobody's */
    uint64_t version; /* of the value: one more at each change; of a shadow the master's that it was made from */
} State;

/* What a run did. */
typedef struct RunResult {
    uint64_t step; /* steps begun so far, this one counted; 0: nothing was there to be told */
    bool applied;  /* the states changed */
    bool finite;   /* loss and gradient norm, as far as the step has them */
    bool has_loss, has_norm, has_rate;
    double loss, norm, rate;

    bool has_scale;           /* the loss is scaled; after an update: */
    double scale, next_scale; /* of the gradients of this step; of the next one's */
    int64_t found;         /* bits of ops/update/scaler.h: what was not finite, and whether the scale can still help */
    const char *first_bad; /* the trained state with the first gradient that was not finite; null: none */
    ScalerState scaler;    /* as the run left it */
} RunResult;

/* A graph that was made again. */
typedef struct GraphAgain {
    Graph *graph; /* null: there is none */
    Arena *arena; /* where it lives, and what is made for it */
    void *owner;  /* who gives both back */
} GraphAgain;

/* Makes graphs for other batches than a step was compiled for. */
typedef struct AgainMaker {
    /* The graph whose input has that type, with inputs, states and results as `g` has them, by name and in order; none
     * where the type is no other batch of that input.  A failure was reported. */
    Status (*make)(void *user, const Graph *g, const Node *input, const Type *type, GraphAgain *made);
    void (*keep)(GraphAgain *made); /* past guarded() */
    void (*drop)(GraphAgain *made); /* gives it back; it wants no memory */
    void *user;
} AgainMaker;

typedef struct SessionOptions {
    const Engine *engine; /* null: the best there is */
    const char *const
        *graphs; /* their names, ended by null; those that the module lacks are left out.  Null: step, eval */
    const Kernels *kernels;
    Parallel *pool;
    uint64_t seed;
    const _Atomic int *stop, *stop_too; /* as of EngineOptions */
    RoundingCounts *rounding;           /* likewise */
    const LaunchWatch *watch;           /* likewise */
    DeviceUse device;                   /* likewise */
    bool exact;                         /* products of narrow numbers have the bits of the reference, too */
    ProgramMaker *programs;             /* for engines that want programs; null: they get none */
    void *maker;                        /* its first argument */
    AgainMaker again; /* of @eval for other batches; without make: it has the one it was compiled for */
} SessionOptions;

typedef struct Session Session;

/* Starts a session of a module with a graph @step in `arena`; states get their initial values. */
Status session_open(Module *m, const SessionOptions *options, Arena *arena, Session **session);

/* Keeps it past guarded(): a jump no longer closes it, its owner must. */
void session_keep(Session *s);

/* Gives everything back; null is allowed. */
void session_close(Session *s);

/* Binds an input of the graphs to memory of the caller, which stays until the next run is over.  For another batch than
 * the step was compiled for @eval is made again, which alone takes it; the last few batches stay made. */
Status session_bind(Session *s, const char *name, const Tensor *value);

/* Binds an input to memory of the caller for the step after the next one, until whose run is over it stays: to a device it
 * travels while the next one runs.  Evaluations in between read what is bound for them; a step whose input was bound both ways
 * is USAGE.  Null: what was given is forgotten.  USAGE where @step does not take it. */
Status session_bind_next(Session *s, const char *name, const Tensor *value);

/* Forgets all that was given for steps to come. */
void session_forget_next(Session *s);

/* Whom to tell, once a step runs and before anybody waits for it: there is time then to bind what the next one reads.  What fails
 * there says so when it is wanted.  Where values do not travel nobody is told; null: nobody. */
void session_while_it_runs(Session *s, void (*meanwhile)(void *user), void *user);

/* Whether the next step reads what session_bind_next gave that input before the last one. */
bool session_comes(const Session *s, const char *name);

/* Runs what `what` says.  A step whose loss or gradients are not finite changes nothing and is no failure; neither does
 * a run that fails, or is INTERRUPTED, change anything.  A backward without RUN_ACCUMULATE forgets the sums before it. */
Status session_run(Session *s, unsigned what, RunResult *result);

/* With RUN_LATER a step is asked for, and the run tells of the one that was asked for so before it: a device is at the next step
 * while the host looks at the last one.  Two are under way at most.  Whatever else needs what a session holds waits for them.
 *
 * The numbers of steps, what they draw, and the states are those of steps that are waited for.  Where one is refused, the error
 * names its step, and neither that nor the one behind it ever was: what they read is bound no longer, and has to be bound again.
 * Without devices a step is run, and what fails is told, at once; its result waits. */

/* Waits for the step that nobody was told of, and tells of it; step 0: there is none. */
Status session_wait(Session *s, RunResult *result);

/* Whether steps that are asked for with RUN_LATER run on while the host does something else. */
bool session_runs_on(const Session *s);

/* Runs a graph beside the step, alone, on the states as they are: "eval".  USAGE when the session has none of that name. */
Status session_run_graph(Session *s, const char *name, RunResult *result);

/* Lets the quantizers of a step see the data that are bound: ranges and the first values of learned scales become those of
 * all data seen so far.  USAGE when the step is not quantized. */
Status session_observe(Session *s);

/* The first state of a quantizer that has seen no data; null: all have. */
Status session_unobserved(Session *s, const State **state);

/* Runs the last step once more on the reference evaluator, on the same inputs and draws and the states as they are, for
 * `observe` to see every value; nothing changes. */
Status session_replay(Session *s, void (*observe)(void *user, const Node *n, const Tensor *value), void *user);

/* A state, a result of the last run, or a gradient; null when there is none, or after a reported failure.  It is there
 * until the next run. */
const Tensor *session_view(Session *s, const char *name);

/* Copies a value into a state, also for what the run under way has still to do, or, between backward and update, over a
 * gradient. */
Status session_put(Session *s, const char *name, const Tensor *value);

/* What a name of a session means; found once, it is bound, viewed and put without looking the name up again. */
typedef struct SessionValue {
    const char *name;           /* the graph's, or the caller's */
    struct Input *input;        /* what is bound; null: nothing */
    State *state, *of;          /* what is put: a state; the state whose gradient it is */
    int result[SESSION_GRAPHS]; /* of each graph; -1: none */
} SessionValue;

/* Finds what a name means, its text living as long as `v`; false when the graphs have no such value. */
bool session_find(const Session *s, const char *name, SessionValue *v);

/* As session_bind, session_bind_next, session_view and session_put. */
Status session_bind_value(Session *s, const SessionValue *v, const Tensor *value);
Status session_bind_next_value(Session *s, const SessionValue *v, const Tensor *value);
const Tensor *session_view_value(Session *s, const SessionValue *v);
Status session_put_value(Session *s, const SessionValue *v, const Tensor *value);

/* Exchanges the values of two states of one type, between two steps. */
Status session_exchange(Session *s, const char *a, const char *b);

/* Makes values[i] the value of state i, null leaving it as it is: tensors of its type, each alone in some heap over the
 * same memory, which become the engine's.  Nothing changes before all that it takes is there. */
Status session_adopt(Session *s, Tensor *const *values);

/* Where a session stands between two steps. */
typedef enum SessionStage {
    SESSION_READY,         /* no gradients are there */
    SESSION_HAS_GRADIENTS, /* multiplied with the scale that backward found */
    SESSION_UNSCALED,      /* divided by it */
    SESSION_STEPPED, /* the update is done; the scale that it shares has not moved yet (runtime/session/scaler.h) */
} SessionStage;

SessionStage session_stage(const Session *s);

/* Divides the gradients at hand by their scale, as a view or a put of one does too, so that the host has them as they
 * are; what the update then does is the same.  A second time it sets *already (which may be null) and touches nothing.
 * USAGE when there are none.  Of a type narrower than f32 they may underflow here, as they do without a scale. */
Status session_unscale(Session *s, bool *already);

/* Forgets gradients that are not to be used: the step is not counted.  USAGE when there are none. */
Status session_abandon(Session *s);

/* The state of the scale; false where the loss is not scaled, or after a reported failure. */
bool session_scaler(Session *s, ScalerState *state);

/* Lets a dynamic scale stay as it is, or move again. */
Status session_freeze_scale(Session *s, bool stays);

/* Forgets the run under way and the sums of gradients: the next run begins with forward. */
Status session_forget(Session *s);

/* The states in the order of the step's signature, without the shadows of others. */
State *session_states(Session *s, size_t *n);

/* The first state of a role and of the state of that name (null: of none); null when there is none. */
State *session_state_of(const Session *s, StateRole role, const char *of);

/* The value of a state, as session_view shows it, for who cannot do without. */
Status session_value(Session *s, const State *state, const Tensor **value);

/* The gradient of a state, as session_view shows it; null when there is none. */
const Tensor *session_gradient(Session *s, State *of);

/* The name under which the gradient of a state leaves the step; null when it has none. */
const char *session_gradient_name(const Session *s, const State *of);

/* Steps begun so far: what random operators draw by.  A resumed session sets it. */
uint64_t session_step(const Session *s);
void session_set_step(Session *s, uint64_t step);

/* What random operators draw from, beside the step. */
uint64_t session_seed(const Session *s);
void session_set_seed(Session *s, uint64_t seed);

/* The input of that name of the first graph that has one; null when there is none. */
const Node *session_input(const Session *s, const char *name);

/* The first input of a role that is bound; null when there is none. */
const Node *session_input_of(const Session *s, InputRole role);

#endif
