/* A training step, and the sessions that run it. */
#ifndef API_MAKE_STEP_H
#define API_MAKE_STEP_H

#include "api/hall/out.h"
#include "api/model/model.h"
#include "base/sha256.h"
#include "passes/recipe/recipe.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/session/session.h"

/* The input of @eval that says which samples of a batch count: all of them, until validation says otherwise. */

/* A table as it was read, and the tables of each kind. */
typedef struct TableText {
    const char *file, *text;
} TableText;

typedef struct TableTexts {
    const TableText *list;
    size_t n;
} TableTexts;

typedef enum TableKind { TABLES_OF_CLASSES, TABLES_OF_QUANTIZERS, TEXTS_OF_DATAPATHS, TABLE_KINDS } TableKind;

/* What was decided, for the summary and the notes of the file. */
typedef struct StepFacts {
    int64_t batch;                  /* samples of a step; 0: the inputs have none */
    const char *loss;               /* as --loss would say it */
    const char *loss_why;           /* the rule that chose it; null: it was given */
    const char *optimizer;          /* in words */
    bool silent;                    /* a step that was read does not say its options: it came as text */
    const char *origin;             /* the model it was compiled from, as it was named; null: not known */
    const char *options;            /* the options it was compiled with, all of them said */
    const char *given;              /* of these, what the line said itself */
    const char *identity;           /* of these, what the meaning of a checkpoint depends on */
    TableTexts tables[TABLE_KINDS]; /* known before they are asked for when a step is made again */
    const NamedTensor *weights; /* of classes, by the file they came from; known where a file of a step holds them */
    size_t n_weights;
    bool recorded;            /* the options are those of a file, which names no files to be opened */
    const char *trained_path; /* where a run without a destination leaves its states */
    size_t nodes;
} StepFacts;

/* What a target input holds. */
typedef struct StepTarget {
    const char *input;  /* its name */
    const char *output; /* the output that is compared with it, as deployed; null: none is */
    int64_t classes;    /* integers are 0 .. classes - 1; 0: they are no classes */
    int axis;           /* of the classes in the output */
    bool ignores;
    int64_t ignored; /* this class does not count */
} StepTarget;

struct qcc_step {
    qcc_context *cx;
    Held held;
    Cleanup cleanup;
    Arena arena;
    qcc_model *model;   /* whose file and payloads it reads; kept as long as the step is */
    qcc_model *teacher; /* the same of --teacher FILE; null: none */
    Ir *ir; /* types and names of its graphs: its own, which go with it; of a step that came as text the model's */
    Ir own;
    Heap data; /* values that were read for it */
    Module *module;
    Recipe recipe;
    StepFacts facts;
    Value *inputs, *parameters;
    size_t n_inputs, n_parameters;
    StepTarget *targets;
    size_t n_targets;
    size_t users; /* sessions */
    bool freed;   /* by its owner: it goes with its last session */
};

/* Which weights are judged and deployed (api/session/weights.h). */
typedef enum WeightsKind { WEIGHTS_UNSAID, WEIGHTS_RAW, WEIGHTS_AVERAGED } WeightsKind;

/* A property that travels with checkpoints. */
typedef struct Property {
    const char *key, *value;
} Property;

struct qcc_session {
    qcc_context *cx;
    Held held;
    Cleanup cleanup;
    Arena arena;
    qcc_step *step;
    Session *run;
    Property *properties;
    size_t n_properties, cap_properties;
    Heap texts;  /* of the properties */
    Map by_path; /* names of states by what their module calls them, once one is asked for */
    bool knows_paths;
    Map found;     /* values that the host looked up, by the names it gave; without an arena: none */
    Tensor *shown; /* in texts: numbers of a weight that is stored as codes, which the host sees; null: none */
    char model_hash[SHA256_TEXT], step_hash[SHA256_TEXT]; /* empty until they are asked for */
    uint64_t seed;                                        /* as the host sees it */
    NamedTensor *kept; /* states of checkpoints that this step has no place for; values in texts */
    size_t n_kept;
    WeightsKind weights;
    _Atomic int stop;
    bool poisoned; /* a run failed for memory: only ending it is legal */
};

/* A step of a model, empty; it gives itself back when a jump passes, until step_keep. */
qcc_step *step_new(qcc_model *m);

/* Gives back a step that was not kept. */
void step_drop(qcc_step *s);

/* The step outlives the call: it belongs to the context from here on. */
void step_keep(qcc_step *s);

/* Finds inputs and parameters of the graph @step. */
void step_signature(qcc_step *s);

/* What is known of a target by the name of its input; null: of the first one.  Null when there is none. */
const StepTarget *step_target(const qcc_step *s, const char *input);

/* Convolutions into whose weights PyTorch's exporter folded a BatchNormalization. */
size_t exporter_folded_norms(const qcc_model *m);

/* Warns of parameters that the exporter's signature names and the file does not hold, or not apart from others. */
Status step_tell_exporter(const qcc_step *s);

/* Compiles a model by the options of a line, those of reading it included; the context owns the step. */
Status step_compile(qcc_model *m, const CommandLine *line, qcc_step **step);

/* Compiles the model in front of a step by the options that it was made with: what was decided then is known again.
 * `changes` are options that count instead, "" for none. */
Status step_again(const qcc_step *made, const char *changes, qcc_step **step);

/* Makes @eval alone of the model that a step is to be of, by the options of a line: the step stays without a module. */
Status step_build_eval(qcc_step *s, const CommandLine *line, Graph **eval);

/* What makes @eval of a step again for other batches (api/make/again.c). */
AgainMaker step_again_maker(qcc_step *step);

/* Whether a model that was read is a step already. */
bool model_is_step(const qcc_model *m);

/* Writes STEP.onnx; `path`, which the output fills, may be null. */
Status step_write(qcc_step *s, Out *o);

/* Gives a step back, or marks it to go with its last session. */
void step_close(qcc_step *s);

/* Starts a session of a step; the context owns it.  `stop` ends a run between two nodes; null: the session's own and the
 * context's. */
Status session_start(qcc_step *step, uint64_t seed, const _Atomic int *stop, qcc_session **session);

/* The same on another engine than that of the context. */
Status session_start_on(qcc_step *step, const Engine *engine, DeviceUse device, uint64_t seed, const _Atomic int *stop,
                        qcc_session **session);

/* Runs fn(arg) as a call of a session; one that `runs` it leaves it unusable when there is no memory. */
qcc_status session_call(qcc_session *s, Status (*fn)(void *arg), void *arg, bool runs);

/* Gives a session back. */
void session_end(qcc_session *s);

/* The name that people see of a parameter; null: its own. */
const char *step_path(const qcc_step *s, const char *name);

/* Lets a step that was compiled before run at the rate of --lr. */
Status step_set_rate(qcc_step *s, Session *run, const CommandLine *line);

/* The command line that exports what a run left. */
const char *step_next_command(const qcc_step *s, Arena *arena, const char *checkpoint);

struct ExportForm;

/* Writes the deployable model with a session's states, in a form (null: as the file is); `path`, which the output fills,
 * may be null. */
Status session_export(qcc_session *s, const struct ExportForm *form, Out *o);

/* Puts the weights of a checkpoint (a file, or the newest of a folder) into a session, and the averages that it keeps. */
Status session_take(qcc_context *cx, qcc_step *step, Session *run, const char *path);

/* Puts all states of a session's checkpoint back, with its step and properties. */
Status session_take_all(qcc_session *s, const char *path);

/* The hashes that a checkpoint of a session carries: of the model's states, and of what was compiled into the step (not
 * of rates, which may change). */
void session_identify(qcc_session *s, CheckpointInfo *info);

/* All states of a session by name, and its properties; in the scratch of the call. */
Status session_tensors(qcc_session *s, const NamedTensor **tensors, size_t *n);

/* Keeps states that a checkpoint has and the step does not know, for the next one that is saved: copies that become the
 * session's. */
void session_keep_states(qcc_session *s, NamedTensor *kept, size_t n);

/* The place of a state in files, by its name and the name of its path. */
StateSlot session_slot(const qcc_step *step, const State *state);

/* Copies of states for it, in `heap`: all the memory that keeping them wants. */
NamedTensor *session_copy_states(Heap *heap, const NamedTensor *states, size_t n);

SafePair *session_properties(qcc_session *s);

/* ---- api/session/culprit.c ---- */

/* The first value of a step that was not finite. */
typedef struct Culprit {
    const Node *node;              /* null: all of them were */
    int64_t nans, above, below, n; /* elements that are NaN, +inf, -inf, and how many there are */
} Culprit;

/* Runs the last step once more to find it; values that hold -inf alone are masks as long as there is another. */
Status session_culprit(qcc_session *s, Culprit *c);

/* Whether the culprit is a value of the forward side. */
bool culprit_is_forward(const Culprit *c);

/* Says which value it is, and with mixed precision how it is stored and what would mend it. */
Status session_explain(Out *out, qcc_session *s, const Culprit *c);

/* Multiply-adds of a step, about. */
double step_work(const qcc_step *s);

/* The value of a property, or null. */
const char *property_get(const qcc_session *s, const char *key);

/* Sets a property; a null value removes it. */
void property_set(qcc_session *s, const char *key, const char *value);

/* These properties in place of all.  What they need is taken from `heap` first: when there is no memory nothing changed. */
void properties_replace(qcc_session *s, Heap *heap, const SafePair *pairs, size_t n);

#endif
