/* Values that are tensors, on the host, so that nothing is copied which is got, lent or moved, or with their data in another
 * space (runtime/space.h).  An engine says how graphs run; the rest of its face (runtime/engine.h) is here. */
#ifndef RUNTIME_HOST_HOST_H
#define RUNTIME_HOST_HOST_H

#include "runtime/engine.h"
#include "runtime/space.h"

/* Who lends a tensor holds it so often: it is never given back, and known from one of ours. */
#define LENT ((int64_t)1 << 40)

/* What runs one graph. */
typedef struct GraphRunner GraphRunner;

/* Bytes that are copied as a step is applied. */
typedef struct StepCopy {
    Tensor *to;
    const Tensor *from;
    bool always; /* of a step that is not applied, but counts, too */
} StepCopy;

/* A step that a runner commits by itself. */
typedef struct RunnerStep {
    const EngineStep *asked;
    Tensor *const *into; /* by late result: where it is made; null: nobody wants it */
    int n_copies;        /* behind that */
    const StepCopy *copies;
} RunnerStep;

typedef struct GraphRunnerClass {
    void (*keep)(GraphRunner *r);  /* past guarded() */
    void (*close)(GraphRunner *r); /* it wants no memory */

    /* Whether a run with these operands is its business; null: any is. */
    bool (*fits)(const GraphRunner *r, const Tensor *const *operands);

    Status (*begin)(GraphRunner *r, uint64_t seed, uint64_t step, const Tensor *const *operands);

    /* Whether an input will be read again by the run under way. */
    bool (*reads)(const GraphRunner *r, int input);

    /* An input reads another value from now on; null: none. */
    void (*reread)(GraphRunner *r, int input, const Tensor *value);

    /* Runs what has not run yet up to the end of a part. */
    Status (*until)(GraphRunner *r, int part);

    /* Whether values refused what ran, which it waits for; null: `until` says so. */
    Status (*answer)(GraphRunner *r);

    /* A result of the run; null: there is none.  The runner's own memory is as often held as what is LENT. */
    const Tensor *(*result)(const GraphRunner *r, int result);

    /* Puts another value in its place. */
    void (*put)(GraphRunner *r, int result, const Tensor *value);
    bool copies; /* of its bytes; or else it holds the tensor */

    /* Ends a run. */
    void (*end)(GraphRunner *r);

    /* Of results that are made as they are moved: the number of such a result, below 0 where it is none; the input, a
     * state, over which it may be made, below 0 where it may not; and making them, by number into the tensors of `into`
     * (null: it is not wanted), all or none.  Null where there are none. */
    int (*late)(const GraphRunner *r, int result);
    int (*made_over)(const GraphRunner *r, int late);
    Status (*make_late)(GraphRunner *r, Tensor *const *into);

    /* Whether it can run and commit the step that was begun by itself; where a result will be that is not late; the place of its own
     * for what is late and is not made where it goes; doing it, from the beginning to the end; and what became of the oldest that
     * was not told of.  Null: it cannot. */
    bool (*decides)(const GraphRunner *r, const EngineStep *step);
    const Tensor *(*settled)(const GraphRunner *r, int result);
    Tensor *(*apart)(GraphRunner *r, int late);
    Status (*step)(GraphRunner *r, const RunnerStep *step);
    Status (*told)(GraphRunner *r, EngineTold *told);
} GraphRunnerClass;

struct GraphRunner {
    const GraphRunnerClass *does;
};

static inline void runner_keep(GraphRunner *r)
{
    if (r)
        r->does->keep(r);
}

static inline void runner_close(GraphRunner *r)
{
    if (r)
        r->does->close(r);
}

/* Memory that the runners of one graph share, of which one runs at a time: what lies there is its own from begin until another
 * begins. */
typedef struct RunnerRoom {
    Arena calls;  /* what a call works in */
    Space *space; /* of the blocks, */
    Heap heap;    /* or where they are where that is null: */
    struct {
        void *at; /* null: not taken yet */
        size_t bytes;
    } block[2];
    bool outlives; /* guarded() */
    size_t keeps;  /* bytes that runners may still take for what they make of constants */
} RunnerRoom;

/* An empty one, with its blocks in a space (null: on the host); it closes itself if a jump passes. */
void runner_room_open(RunnerRoom *room, Memory *memory, Space *space);

/* Keeps it past guarded(). */
void runner_room_keep(RunnerRoom *room);

/* Gives everything back. */
void runner_room_close(RunnerRoom *room);

/* At least so many bytes of block 0 or 1: where it is too small another takes its place. */
void *runner_room(RunnerRoom *room, int block, size_t bytes);

/* Gives back what is there; more may be asked for. */
void runner_room_empty(RunnerRoom *room);

/* What runs a graph by the engine's own means; null: it has none, and the evaluator does. */
typedef GraphRunner *RunnerMaker(const Executable *x, const EngineOptions *options, RunnerRoom *room, Arena *arena,
                                 Heap *heap);

/* The evaluator, which runs any graph. */
GraphRunner *evaluated_open(const Executable *x, const EngineOptions *options, Arena *arena, Heap *heap);

/* The evaluator for values in a space: what it reads is copied to the host, and what is asked of it from there. */
GraphRunner *staged_open(GraphRunner *evaluated, const Graph *g, Space *space, Arena *arena, Heap *heap);

/* The face of an engine whose graphs run as `maker` says (null: all by the evaluator), on values in a space that outlives
 * them (null: the host's). */
Status host_open(Ir *ir, const EngineOptions *o, int n_kept, Arena *arena, RunnerMaker *maker, Space *space,
                 Values **values);
void host_keep(Values *v);
Status host_load(Values *v, const Executable *x, int *number);
void host_unload(Values *v, int graph);
Status host_begin(Values *v, int graph, const EngineRun *o);
bool host_programmed(const Values *v, int graph);
Status host_bind(Values *v, int graph, int input, ValueAt value);
Status host_run(Values *v, int graph, int part);
Status host_answer(Values *v, int graph);
void host_end(Values *v, int graph);
Status host_get(Values *v, ValueAt at, const Tensor **host);
Status host_get_all(Values *v, int n, const ValueAt *at, const Tensor **host);
Status host_put(Values *v, int n, const ValueAt *to, Tensor *const *host, PutHow how);
Status host_bring(Values *v, int kept, const Tensor *host);
Status host_take(Values *v, int kept);
Status host_fill(Values *v, int kept, const Type *type, Payload *initial);
Status host_move(Values *v, int n, const ValueMove *moves);
Status host_step(Values *v, int graph, const EngineStep *step, bool *taken);
Status host_told(Values *v, int graph, EngineTold *told);
void host_stats(const Values *v, EngineStats *to);
void host_close(Values *v);

/* Where data lie; null: on the host. */
Space *host_space(const Values *v);

#define HOST_ENGINE(NAME, OPEN, ...)                                                                                   \
    {                                                                                                                  \
        .name = NAME, .open = OPEN, .keep = host_keep, .load = host_load, .unload = host_unload, .begin = host_begin,  \
        .programmed = host_programmed, .bind = host_bind, .run = host_run, .answer = host_answer, .end = host_end,     \
        .get = host_get, .get_all = host_get_all, .put = host_put, .fill = host_fill, .move = host_move,               \
        .stats = host_stats, .close = host_close, __VA_ARGS__                                                          \
    }

#endif
