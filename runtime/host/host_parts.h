/* What the files of the host's engines share: the values of a session and the graphs that are loaded (host.c), and how
 * values move (host_move.c). */
#ifndef RUNTIME_HOST_HOST_PARTS_H
#define RUNTIME_HOST_HOST_PARTS_H

#include "runtime/host/host.h"
#include "runtime/host/runners.h"

struct Loaded;

/* Where graphs work of which one has results at a time. */
typedef struct Room {
    RunnerRoom memory;
    struct Loaded *user; /* the graph that began last; null: none of those that are loaded */
    bool is_stale;       /* a graph that worked here went: it may have been the one that wanted so much */
} Room;

/* A graph that was loaded. */
typedef struct Loaded {
    Executable x;
    Room *room;  /* of what the engine makes, its own or */
    bool shares; /* another graph's */
    Heap own;    /* of a graph with an arena of its own: values of the evaluator */
    Heap *heap;
    GraphRunner *runner;     /* of the run under way: one of those below */
    GraphRunner *made;       /* by the engine; null: it takes the evaluator */
    Runners *by_types;       /* made by the engine, for operands of some types; null: none is */
    GraphRunner *evaluated;  /* null: not needed so far */
    int done;                /* parts; as many as there are: nothing is under way */
    bool unanswered;         /* something ran since that may have been refused */
    ValueAt *reads;          /* what each input reads */
    const Tensor **operands; /* of a run that begins */
    int *reader;             /* by kept value: the input that read it last */
    Tensor **views;          /* by result, of values in a space: what was got */
} Loaded;

/* What one move has in hand. */
typedef struct Moving {
    Tensor *value;    /* held; null: nothing */
    const void *from; /* bytes that are copied to where the value is, once nothing can fail */
    bool stays;       /* the kept value has them already: it was made there */
} Moving;

/* A value on its way to a space. */
typedef struct Coming {
    Brought *bytes;   /* null: none came yet */
    const Type *type; /* null: what came was taken, or nothing came */
} Coming;

struct Values {
    Ir *ir;
    Arena *arena;
    Heap heap;
    EngineOptions options;
    RunnerMaker *maker;
    Tensor **kept;
    Space *space;   /* where their data lie; null: with them */
    Tensor **views; /* by kept value, of those in a space: what was got */
    Tensor **lent;  /* by kept value: how we hold what is the caller's */
    Coming *coming; /* by kept value, of those in a space */
    Moving *moving;
    StepCopy *copies; /* as many */
    Tensor **late;    /* by result: what move lets a graph make */
    int cap_late;
    int n_kept, cap_moving;
    Loaded **graphs;
    int n_graphs, cap_graphs;
    bool outlives; /* its arenas are past guarded() */
    uint64_t runs;
};

/* A value, where it is; null: there is none. */
const Tensor *host_value(const Values *v, ValueAt at);

/* One holder less of a value. */
void host_drop(Values *v, Tensor *value);

/* Takes the tensor over, which becomes the value; null: nothing. */
void host_set_value(Values *v, ValueAt to, Tensor *value);

/* The kept value that a move goes to, if its bytes may be written over: nobody else holds them. */
Tensor *host_own_target(const Values *v, ValueAt to, const Type *type);

/* The number of a result among those that are made as they are moved; below 0: it is none. */
int host_late_number(const Values *v, ValueAt from);

/* Whether a graph may make a result right where it goes to: it is the state's own place, or nobody's that it reads. */
bool host_may_be_made_in(const Loaded *l, int late, ValueAt to);

/* Whether what a graph ran was refused, waiting for it. */
Status host_answered(Loaded *l);

/* Makes room for so many moves at once. */
void host_expect_moves(Values *v, int n);

#endif
