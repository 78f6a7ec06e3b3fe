/* What the files of a session share: what it holds (session.c), how it runs (session_run.c), the arithmetic that it needs
 * outside of the step (session_sums.c). */
#ifndef RUNTIME_SESSION_SESSION_PARTS_H
#define RUNTIME_SESSION_SESSION_PARTS_H

#include "ir/step_part.h"
#include "runtime/session/scaler.h"

/* What the engine keeps for a state, from State.kept on. */
typedef enum StatePart {
    PART_VALUE,
    PART_PENDING, /* has_pending */
    PART_SUM,     /* where the session has sums */
    PART_FRESH,   /* on its way to be the value */
    STATE_PARTS
} StatePart;

static inline ValueAt state_part(const State *state, StatePart part)
{
    return value_kept(state->kept + (int)part);
}

/* A value of the caller's that a later step reads. */
typedef struct Given {
    const Type *type; /* null: there is none */
    void *data;
    size_t bytes;
} Given;

/* An input that the caller binds; the engine keeps it under its own number. */
typedef struct Input {
    const char *name;
    const Type *bound; /* of what is bound; null: nothing */
    bool given;        /* the gradient of an output, which the host gives back */
    bool counts_all;   /* which samples count: every one, as nobody bound something else */
    int slot[SESSION_GRAPHS];
    Given next;   /* of the step after the next one */
    Given coming; /* of the next one: it was `next` before the last one began */
    bool rebound; /* bound since then, and no evaluation has read that */
} Input;

/* A graph of the session. */
typedef struct SessionGraph {
    Graph *graph;
    int number;           /* of the engine; of @eval, for the batch that was evaluated last */
    Map result;           /* number of a result, by name */
    int loss, norm, rate; /* results of these names; -1: none */
} SessionGraph;

typedef enum Phase { PHASE_IDLE, PHASE_FORWARD, PHASE_BACKWARD, PHASE_DONE } Phase;

/* The scale of the loss (session_scale.c). */
typedef struct Scaling {
    State *scale, *counters; /* null: the loss is not scaled */
    const ScalerRules *rules;
    int latch, found, applied; /* results of the step */
    bool has_latched;
    float latched;  /* what the gradients at hand were multiplied with */
    bool is_told;   /* of a step that a device committed: the engine does not keep it yet */
    bool unscaled;  /* they were divided by it since */
    bool has_found; /* own[] is of the run under way */
    bool applies;   /* its update */
    int64_t flags;  /* what forwards found since gradients began to add up */
    int64_t own[2]; /* of the last step: place of the first gradient that was not finite, and flags */
    bool stepped;   /* since the shared scale moved */
    Scaler *shared; /* null: the session moves its scale itself */
    Session *next;  /* that shares it */
} Scaling;

/* A graph that trains: where its sides end, and which states it has the next values of before the update. */
typedef struct StepGraph {
    Graph *graph;
    int number;
    const Node *ends[STEP_PARTS];
    bool *early;
} StepGraph;

/* The graph of the first steps (session_phase.c). */
typedef struct SessionPhase {
    State *counter;  /* of steps that were applied; null: there is no such graph */
    int64_t steps;   /* it is run for so many of them */
    bool runs;       /* it stands in the place of @step */
    StepGraph other; /* the one that does not */
} SessionPhase;

/* The graph that rounds states of one type to shadows of another. */
typedef struct Rounder {
    struct Rounder *next;
    const Type *from, *to;
    int number;
} Rounder;

/* Graphs of the session's own, made when they are first wanted; -1: not yet (session_sums.c). */
typedef struct Arithmetics {
    int sum, unscale, finite;
    Rounder *rounders;
} Arithmetics;

enum { BATCHES_KEPT = 4 }; /* of @eval; which was not wanted for longest goes */

/* @eval for a batch that the step was not compiled for. */
typedef struct Batch {
    GraphAgain made; /* none: the place is free */
    int number;      /* of the engine */
    uint64_t wanted; /* the last time */
} Batch;

/* All of them (session_batches.c). */
typedef struct Batches {
    int graph; /* @eval; -1: it is not made again */
    int own;   /* its number for the engine, as it was compiled */
    Batch list[BATCHES_KEPT];
    uint64_t times;
    float *ones; /* so many: masks of samples that all count */
    int64_t n_ones;
} Batches;

/* The step that was asked for and not told of (session_later.c). */
typedef struct Later {
    bool asked;    /* it is the engine's to tell of, */
    uint64_t step; /* this one; or */
    bool there;    /* its result waits */
    RunResult result;
} Later;

struct Session {
    Ir *ir;
    Arena *arena;
    const Engine *engine;
    Values *values;
    SessionGraph graphs[SESSION_GRAPHS];
    int n_graphs;
    StepGraph step; /* as @step is; its graph and number are those of graphs[0] */
    SessionPhase early;
    State *states;
    Input *inputs;
    size_t n_states, n_inputs;
    size_t n_shadows; /* of the states, at their end: what nobody else sees */
    State **graded;   /* states that have a gradient */
    size_t n_graded;
    int latched;        /* kept: the scale that the gradients at hand have */
    ValueAt *arguments; /* of a run, or of a put; two for each input of all graphs */
    ValueMove *moves;   /* of a commit */
    State **chosen;     /* for session_adopt, */
    Tensor **given;     /* which wants no memory between steps */
    Map by_name;        /* State or Input, by name */
    Map gradients;      /* State, by the name of the result that is its gradient */
    uint64_t steps;     /* begun */
    SessionOptions options;
    Phase phase;
    Later later;
    int shown;     /* the graph whose results are shown */
    bool observed; /* every range of a quantized step has been seen */
    bool has_sums; /* of the gradients of the backwards since an update */
    Scaling scaling;
    Arithmetics arithmetics;
    Batches batches;
    void (*meanwhile)(void *user); /* null: nobody is told that a step runs */
    void *meanwhile_user;
};

/* The graph @step. */
static inline const Graph *session_step_graph(const Session *s)
{
    return s->graphs[0].graph;
}

/* A result of the step. */
static inline ValueAt session_step_result(const Session *s, int result)
{
    return value_result(s->graphs[0].number, result);
}

/* Adds a move to those of a commit. */
static inline void add_move(Session *s, int *n, ValueAt to, ValueAt from)
{
    s->moves[(*n)++] = (ValueMove){ to, from };
}

/* Lets the engine get ready to run a graph, whose program is made on the way where it wants one. */
Status session_load(Session *s, Executable x, int *number);

/* Finds where the sides of a graph like @step end, and which states have their next values before the update. */
void session_find_parts(const Session *s, const Graph *g, StepGraph *parts);

/* Finds the graph of the first steps; loads it; and lets it, or @step, be what the next step runs. */
Status phase_open(Session *s, const Module *m);
Status phase_load(Session *s);
Status phase_choose(Session *s);

/* USAGE while a quantizer of the step has seen no data. */
Status session_check_observed(Session *s);

/* A number that the engine has: not there where there is no value, or none of one element.  Status of the engine. */
typedef struct SessionNumber {
    ValueAt at;
    bool there;
    double value;
} SessionNumber;

/* Several of them, at once, eight at most. */
Status session_numbers(Session *s, int n, SessionNumber *numbers);

/* One of them. */
Status session_number(Session *s, ValueAt at, bool *there, double *value);

/* Reports a value of another type: USAGE. */
Status session_wrong_type(Session *s, const char *name, const Type *have, const Type *want);

/* Lets an input be a value of the caller's, whatever its type. */
Status session_lend(Session *s, Input *input, const Tensor *value);

/* The state of that name; null when there is none. */
State *session_state(const Session *s, const char *name);

/* Lets go of what was on its way to be values of this session and of those after it that share its scale.  It wants no
 * memory. */
void session_drop_fresh(void *session);

/* Puts values into states, all or none, and into what the run under way has still to do. */
Status session_set_states(Session *s, int n, State *const *states, Tensor *const *values, PutHow how);

/* Finds the shadows among the states, puts them to the end and links them to their masters. */
Status shadows_open(Session *s);

/* Where a run under way reads the shadow of a state that is about to get a value, rounds that and adds what lets the
 * shadow have it. */
Status shadows_prepare(Session *s, const State *state, int *n_moves);

/* Says of the shadows of a state that shadows_prepare was asked for that they are up to date. */
void shadows_set(Session *s, const State *state);

/* Rounds every master that changed since into its shadow, and every shadow that was never made. */
Status shadows_refresh(Session *s);

/* Says of the shadow of a state whose own next value was committed that it is that of the master's. */
void shadows_commit(Session *s);

/* sums + gradients of the run, into the results of a graph; then adds the moves that make them the sums. */
Status sums_add(Session *s, int *n_moves);

/* gradients / latched scale, and 1 for that, into the results of a graph; then adds the moves that put them in place. */
Status sums_unscale(Session *s, bool of_sums, int *n_moves);

/* Whether all gradients at hand are finite. */
Status sums_finite(Session *s, bool *finite);

/* Rounds the value under `from` and moves it to the shadow's `to`. */
Status sums_round(Session *s, const State *shadow, ValueAt from, StatePart to);

/* Ends the runs of the session's own graphs, whose results are where they belong. */
void sums_end(Session *s);

/* Finds the scale of the loss in the signature, if the step has one. */
Status scaling_open(Session *s);

/* Before a backward: its gradients get the scale of now, or, going on with those that were added up, that of those. */
Status scaling_begin(Session *s, bool goes_on);

/* After it: notes the scale, and keeps gradients of a window that was unscaled alike. */
Status scaling_latch(Session *s, bool goes_on);

/* Before an update: lets it know all that was found, and run as far as that. */
Status scaling_find(Session *s);

/* After it: whether the states change; adds what the states of the scale become. */
bool scaling_prepare(Session *s, int *n_moves);

/* Those were committed. */
void scaling_committed(Session *s);

/* What a result tells of the scale; `done`: after an update, before anything was committed. */
Status scaling_tell(Session *s, bool done, RunResult *r);

/* Whether the step itself says what becomes of the scale, so that a device may decide about it: nobody shares it. */
bool scaling_decides(const Session *s);

/* Adds what a device is to tell of the scale of a step that it commits, and what is committed in any case. */
void scaling_ask(Session *s, EngineStep *step);

/* What it told, behind `n` other numbers: notes it, and adds it to the result. */
void scaling_told(Session *s, const EngineTold *told, int n, RunResult *r);

/* Lets the engine keep the scale of the gradients at hand, which a device told of. */
Status scaling_keep(Session *s);

/* Puts a scale, into all sessions that share it: USAGE when it is none. */
Status scaling_put(Session *s, const Tensor *value);

/* Sets scale and counters (null: as they are) of a session and those after it that share the scale: of all or, where memory
 * ends, of none. */
Status scaling_set(Session *first, const Tensor *scale, const Tensor *counters);

/* The state of the scale. */
Status scaling_read(Session *s, ScalerState *state);

/* Gives a session the scale of another. */
Status scaling_as(Session *s, Session *other);

/* Knows of the graph that may be made again, which is loaded; and gives back what was. */
void batches_open(Session *s);
void batches_close(Session *s);

/* Whether @eval can be had for a value of that type in place of what an input has: it is made where it is not there. */
Status batches_take(Session *s, const Input *input, const Type *type, bool *taken);

/* Of a graph that is to run alone: as it was compiled, or for the batch that is bound, which its number then is of.
 * USAGE where more than one is. */
Status batches_choose(Session *s, int graph, const Graph **chosen);

/* Masks that nobody bound become as long as a graph wants them. */
Status batches_mask(Session *s, int graph, const Graph *g);

/* Reports that the step cannot train on what is bound: USAGE. */
Status batches_refuse(Session *s, const Input *input, const Type *want);

/* USAGE, reported, where inputs that the step reads have no value. */
Status session_complete(Session *s);

/* A step begins: what was given for it before the last one is bound.  USAGE where something else was bound for it since. */
Status next_take(Session *s);

/* A step runs: what was given for the one behind it is on its way from now on. */
Status next_bring(Session *s);

/* The step that began never was: the one that takes its place reads the same. */
void next_undo(Session *s);

/* An evaluation reads what is bound. */
void next_evaluated(Session *s);

/* An input by its name; null when there is none. */
Input *session_input_named(const Session *s, const char *name);

/* Runs the step as far as the end of a part; one that was interrupted may be run on, one that failed is over. */
Status session_side(Session *s, StepPart part);

/* Whether a whole step may be left to an engine that commits by itself: nothing of it is for the host to decide. */
bool decided_may(const Session *s);

/* Says why the host decides about all steps of a session whose engine could, where it does. */
void decided_tell(const Session *s);

/* Asks for the step that was begun; *taken: the engine runs and commits it. */
Status decided_step(Session *s, bool *taken);

/* Waits for the oldest of these steps, which has that number, and says what became of it. */
Status decided_told(Session *s, uint64_t step, RunResult *r);

/* Waits for the step that was asked for, if there is one: its result waits then.  What refused it is told here. */
Status later_settle(Session *s);

/* A step was asked for, behind another one perhaps, of which *r becomes the result; *held: this one was not run. */
Status later_asked(Session *s, RunResult *r, bool *held);

/* Whether the step whose result waits was not applied: it becomes *r, and waits no longer. */
bool later_held(Session *s, RunResult *r);

/* The result of a step that was run at once waits; *r becomes that of the one before it. */
void later_waits(Session *s, RunResult *r);

/* A failure of the run under way ends it; an interruption or a refusal does not. */
Status session_lost(Session *s, Status status);

#endif
