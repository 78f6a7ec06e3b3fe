/* What runs graphs for a session, and where their values lie.
 *
 * A session knows names and transactions; an engine holds the values behind them, in memory of the host or on a device.
 * Nobody above an engine touches one: a value is put and got as a tensor of the host, moved from one place to another, or
 * read by a graph.  Whatever can fail does so before anything has changed. */
#ifndef RUNTIME_ENGINE_H
#define RUNTIME_ENGINE_H

#include "base/parallel.h"
#include "ir/kernels.h"
#include "ops/kernels/kernels.h"
#include "ops/kernels/rounding.h"

/* Where a value is: a result of the last run of a graph, or, where graph is KEPT, under a number of its own, as states,
 * inputs and sums are. */
typedef struct ValueAt {
    int graph; /* as load numbered it, or KEPT */
    int at;    /* number of the result, or of the kept value; -1: no value */
} ValueAt;

enum { KEPT = -1 };

static inline ValueAt value_kept(int number)
{
    return (ValueAt){ KEPT, number };
}

static inline ValueAt value_result(int graph, int result)
{
    return (ValueAt){ graph, result };
}

/* Nothing: an input that is absent, or what a value is moved from that goes. */
static inline ValueAt value_none(void)
{
    return (ValueAt){ KEPT, -1 };
}

typedef struct ValueMove {
    ValueAt to, from;
} ValueMove;

/* Whose memory the tensor is that is put. */
typedef enum PutHow {
    PUT_COPY, /* the caller's, and done with when put returns */
    PUT_LEND, /* the caller's, who leaves it alone until the next run is over: kept values alone */
    PUT_GIVE, /* the engine's from now on: a block of some heap over the same memory */
} PutHow;

/* Who is told of each launch of a program as it ends; times are seconds of a clock that nobody sets. */
typedef struct LaunchWatch {
    /* so many launches, from `launch` on, which ran side by side */
    void (*launched)(void *user, const Program *p, int launch, int n, double began, double ended);
    void *user;
} LaunchWatch;

/* Who makes products of matrices on a device. */
typedef enum ProductsBy {
    PRODUCTS_OURS,    /* kernels */
    PRODUCTS_LIBRARY, /* that of its vendor, where it can and bits near those of the reference are enough */
    PRODUCTS_AUTO,    /* the same, if it is there, of launches that it makes faster */
} ProductsBy;

/* Which device an engine of devices runs on, and how. */
typedef struct DeviceUse {
    int number;           /* of the device, as the driver counts them */
    KernelMaker *kernels; /* the kernels of a program; null: it has none */
    const char *cache;    /* the folder where compiled kernels are kept; null: nowhere, */
    const char *version;  /* and of whom they are */
    ProductsBy products;
    bool unmeasured; /* of the ways to make a product the first is taken; else the fastest, which is kept in `cache` */
    bool ranges;     /* profilers are told where runs and their parts begin and end */
} DeviceUse;

/* What all graphs of a session run with. */
typedef struct EngineOptions {
    const Kernels *kernels;             /* null: the best the machine has */
    Parallel *pool;                     /* null: one thread */
    const _Atomic int *stop, *stop_too; /* not 0: run ends with INTERRUPTED; looked at before a part writes anything */
    RoundingCounts *rounding;           /* added to as results are stored; or null */
    const LaunchWatch *watch;           /* null: nobody is told */
    bool narrow;                        /* as of EvalOptions: for an engine that narrows */
    size_t keeps;     /* bytes that what is made of constants may take from run to run, of each graph */
    DeviceUse device; /* of an engine that has devices */
} EngineOptions;

/* Makes the program of a graph for operands of some types (of each input its own where `types` has null, or is null), in
 * `arena`; null: it has none, and where `tells` a remark says why. */
typedef const Program *ProgramMaker(void *maker, Graph *g, const Type *const *types, bool tells, Arena *arena);

/* A graph and what was made of it for an engine.  It does not change any more. */
typedef struct Executable {
    Graph *graph;
    int n_parts;             /* they run one after the other, or several at once */
    const Node *const *ends; /* of each part: the first node behind it; null: none */
    const Program *program;  /* for an engine that wants one; null: it runs the graph itself */
    ProgramMaker *programs;  /* of a graph of one part that leaves types of its inputs open: asked once operands */
    void *maker;             /* have some, with this; null: nobody is */
    bool brief;              /* arithmetic of the session's own: nothing stops it, and its roundings are not counted */
    Arena *arena;            /* of a graph that may be unloaded: where what is made for it lies; null: that of open */
    const int *room_of;      /* the graph in whose memory it works, only one of them having results; null: in its own */
} Executable;

/* What one run of a graph depends on. */
typedef struct EngineRun {
    uint64_t seed, step;   /* what random operators draw from */
    const ValueAt *inputs; /* what each input of the graph reads */
} EngineRun;

/* A number that is told of a step: an element of a result. */
typedef struct StepNumber {
    int result, element; /* -1: none */
    bool needed;         /* without it the step is not taken; else it is told where the result has one element */
    bool finite;         /* it has to be */
} StepNumber;

/* A step that a device runs and commits by itself: it is applied where nothing refused it, the numbers that have to be finite
 * are, and the step itself says so.  Of one that says it is not, `n_always` moves are made all the same. */
enum { STEP_NUMBERS = 16 };
typedef struct EngineStep {
    int n_numbers; /* that are told of it, STEP_NUMBERS at most */
    StepNumber numbers[STEP_NUMBERS];
    bool says;   /* whether it is applied, by */
    int applied; /* this result, a bool */
    int n_moves, n_always;
    const ValueMove *moves; /* of results of the graph to kept values: the commit, first those that are always made */
} EngineStep;

/* What became of one. */
typedef struct EngineTold {
    bool applied;
    bool there[STEP_NUMBERS];
    double numbers[STEP_NUMBERS];
    int64_t integers[STEP_NUMBERS]; /* numbers of a type of integers */
} EngineTold;

typedef struct EngineStats {
    uint64_t runs;  /* parts that were asked for */
    uint64_t bytes; /* of the values that are kept now */
    int graphs;     /* loaded */
    uint64_t made;  /* programs, for operands of types that a graph leaves open */
} EngineStats;

/* The values that an engine holds for one session. */
typedef struct Values Values;

typedef struct Engine {
    const char *name; /* as --device calls it */
    bool wants_programs;
    bool has_devices; /* cuda:1: by number */
    bool narrows;     /* products of narrow numbers have its own bits, unless those of the reference are asked for */

    /* Bytes, about, that running a program on so many threads takes beside what the program says; null: none. */
    size_t (*scratch)(const Program *p, int threads, Arena *arena);

    /* Room for so many kept values, none of which is there yet. */
    Status (*open)(Ir *ir, const EngineOptions *options, int n_kept, Arena *arena, Values **values);

    /* Keeps it past guarded(): a jump no longer closes it, its owner must. */
    void (*keep)(Values *v);

    /* Gets ready to run a graph; it is called by the number from now on. */
    Status (*load)(Values *v, const Executable *x, int *number);

    /* Forgets a graph that was loaded with an arena of its own and whose values nobody reads.  It wants no memory. */
    void (*unload)(Values *v, int graph);

    /* Begins a run of a graph: the results of the run before go. */
    Status (*begin)(Values *v, int graph, const EngineRun *options);

    /* Whether a program runs what was begun. */
    bool (*programmed)(const Values *v, int graph);

    /* Lets an input read another value, as far as the run under way has not read it. */
    Status (*bind)(Values *v, int graph, int input, ValueAt value);

    /* Runs what has not run yet up to the end of a part; what was INTERRUPTED goes on when it is asked for again.  Nodes
     * read kept values as they are when they run.  A device may still be at it when this returns. */
    Status (*run)(Values *v, int graph, int part);

    /* Waits for what a device is still at where values may refuse it, and says whether they did; whoever gets or moves a result
     * waits by himself. */
    Status (*answer)(Values *v, int graph);

    /* Ends a run: its results go.  It wants no memory. */
    void (*end)(Values *v, int graph);

    /* A value on the host: a view that is valid until the value changes or the next run; null where there is none. */
    Status (*get)(Values *v, ValueAt value, const Tensor **host);

    /* Several of them, which a device is waited for once. */
    Status (*get_all)(Values *v, int n, const ValueAt *values, const Tensor **host);

    /* Gives values, all or none.  A result that is put is what the rest of its run reads. */
    Status (*put)(Values *v, int n, const ValueAt *to, Tensor *const *host, PutHow how);

    /* Has a value of the caller's on its way to a device while that computes, its bytes read before this returns; it becomes a
     * kept value when it is taken, and goes unused where another one is brought.  Null: values do not travel. */
    Status (*bring)(Values *v, int kept, const Tensor *host);
    Status (*take)(Values *v, int kept);

    /* Gives a kept value its first bytes, read straight to where it lies; null: zeros. */
    Status (*fill)(Values *v, int kept, const Type *type, Payload *initial);

    /* Moves values, all or none, each as it was before: a commit.  What it is moved from stays, too.  Between kept values it
     * wants no memory. */
    Status (*move)(Values *v, int n, const ValueMove *moves);

    /* Runs all of what was begun and commits it, without waiting: whether it is applied the device decides.  What is asked for
     * behind it reads what it leaves.  *taken: this step is one that it can do so; else nothing was done.  Null: none is. */
    Status (*step)(Values *v, int graph, const EngineStep *step, bool *taken);

    /* Waits for the oldest such step that was not told of, two of which there may be, and tells of it.  What refused it is
     * reported.  What was asked for behind one that was not applied was not applied either, and is not told of. */
    Status (*told)(Values *v, int graph, EngineTold *told);

    void (*stats)(const Values *v, EngineStats *stats);

    /* Gives everything back; null is allowed.  It wants no memory. */
    void (*close)(Values *v);
} Engine;

/* The engine of that name; null, and "auto": the one that is best on every machine.  Null when there is none. */
const Engine *engine_find(const char *name);

/* Every engine of this build, ended by null. */
const Engine *const *engines_all(void);

#endif
