/* What engines share that run programs (ir/program.h): where the values of each launch are, in the arena of the program, in
 * what is read, among constants, or where a state lies; parts that run one after the other; what is made late. */
#ifndef RUNTIME_HOST_PROGRAM_RUNNER_H
#define RUNTIME_HOST_PROGRAM_RUNNER_H

#include "ir/program.h"
#include "ops/card/eval.h"
#include "runtime/host/host.h"

/* A value as a launch reads or writes it. */
typedef struct Slot {
    Tensor tensor;
    struct Slot *next; /* of the same input, or the same late result */
} Slot;

typedef struct LaunchRun {
    const Launch *launch;
    const Tensor **in; /* of the launch, and behind them, of a contract, its product, */
    Tensor **out;
    Tensor *product;        /* which is this, */
    const Tensor **factors; /* made of these */
    void *own;              /* the engine's */
} LaunchRun;

typedef struct ProgramRunner ProgramRunner;

/* How an engine runs launches. */
typedef struct LaunchesClass {
    void (*keep)(ProgramRunner *p); /* past guarded() */
    void (*close)(ProgramRunner *p);

    /* Bytes that they work in, all that run side by side. */
    size_t (*scratch)(const ProgramRunner *p);

    /* Values that are in the arena, or constants, lie where they are from now on, and the scratch is here. */
    void (*settle)(ProgramRunner *p, char *scratch);

    void (*begin)(ProgramRunner *p, uint64_t seed, uint64_t step);

    /* Runs the launches from p->at up to `end`, of late ones those that are wanted.  INTERRUPTED: it goes on from p->at. */
    Status (*run)(ProgramRunner *p, int end);

    /* Whether values refused what has run since it was asked last, which it waits for; null: `run` says so. */
    Status (*answer)(ProgramRunner *p);

    /* Of a device: whether it can run and commit such a step by itself, all launches of it, those that are late where it is applied;
     * doing so; and what became of the oldest that was not told of (runtime/engine.h).  Null: it cannot. */
    bool (*decides)(const ProgramRunner *p, const EngineStep *step);
    Status (*step)(ProgramRunner *p, const RunnerStep *step);
    Status (*told)(ProgramRunner *p, EngineTold *told);
} LaunchesClass;

struct ProgramRunner {
    GraphRunner runner;
    const LaunchesClass *does;
    void *own; /* the engine's */
    const Program *program;
    int n_parts;
    Ir *ir;
    Heap *heap;
    RunnerRoom *room;
    Parallel *pool;
    const _Atomic int *stop, *stop_too;
    const LaunchWatch *watch;
    LaunchRun *launches;
    Slot **of_input, **of_next; /* lists */
    Slot *of_result;            /* by result, in the arena or elsewhere */
    int *made_next;             /* by late result, the launch */
    void **constants;           /* their data, where they are read */
    const Tensor **operands;    /* of the run under way */
    char *arena, *scratch;      /* in the room, when it was last looked; null: not yet */
    Tensor **beside;            /* by late result: what nobody asked for, but a launch makes */
    Tensor **apart;      /* by late result: where it is made of a step that a device commits; null: nowhere so far */
    bool *wanted;        /* by launch */
    int at;              /* the launch to come */
    bool began, is_late; /* a run; what runs is late, and nothing stops it */
};

/* What runs a program as a class says; its own part is the caller's to make.  Null where there is no program, or where the
 * roundings of a run are to be counted, which the evaluator alone does. */
ProgramRunner *program_runner_open(const LaunchesClass *does, const Executable *x, const EngineOptions *o,
                                   RunnerRoom *room, Arena *arena, Heap *heap);

/* Which late launches run for what is wanted: `into` by late result, null where it is not. */
void program_want(ProgramRunner *p, Tensor *const *into);

/* Late results lie there from now on. */
void program_let_lie(ProgramRunner *p, int result, void *data);

/* Of GraphRunnerClass, for steps that a device commits (program_step.c). */
bool program_decides(const GraphRunner *r, const EngineStep *step);
const Tensor *program_settled(const GraphRunner *r, int result);
Tensor *program_apart(GraphRunner *r, int late);
Status program_step(GraphRunner *r, const RunnerStep *step);
Status program_told(GraphRunner *r, EngineTold *told);
void program_close_apart(ProgramRunner *p);

/* What calls inside of it run with. */
EvalOptions program_call_options(const Executable *x, const EngineOptions *o);

/* Whether the run under way is asked to stop. */
bool program_stopped(const ProgramRunner *p);

/* Whether a launch is to run: all are but those that are late and not wanted. */
static inline bool program_wants(const ProgramRunner *p, int launch)
{
    return p->program->launches[launch].part != STEP_LATE || p->wanted[launch];
}

#endif
