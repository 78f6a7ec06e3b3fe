/* What the files share that run programs on a device: launches as a whole (launches.c), and those that have kernels
 * (launch_kernels.c). */
#ifndef RUNTIME_CUDA_LAUNCHES_PARTS_H
#define RUNTIME_CUDA_LAUNCHES_PARTS_H

#include "ops/machine/caller.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/ranges.h"
#include "runtime/host/program_runner.h"

enum { DRAWS = 3 }; /* numbers that draws depend on: the seed, the step and the turn of a loop */

/* What a kernel is called with: addresses, and where each of them stands. */
typedef struct Arguments {
    CudaAddress *values;
    void **each;
    int n;
} Arguments;

/* A launch of a program here. */
typedef struct DeviceLaunch {
    const LaunchKernels *how;
    CudaFunction *functions[CUDA_KERNELS];
    Arguments product, rest; /* of the kernels of a product, and of the others */
    Tensor **in, **out;      /* of one that runs on the host: copies there */
} DeviceLaunch;

/* Launches that follow each other and were recorded as one graph, with the addresses that stood there. */
typedef struct Recorded {
    CudaGraphExec *made; /* null: not yet */
    CudaAddress *values; /* of the last time */
    size_t n, cap;
    int end;
    bool seen; /* there was a last time */
} Recorded;

/* Numbers that a kernel of the commit reads, as they are now and as the device has them. */
typedef struct CommitWords {
    uint64_t *now, *was;
    size_t n, cap, n_was, room;
    void *at; /* on the device; null: nowhere yet */
} CommitWords;

/* What is told of a step. */
typedef struct CommitAnswer {
    char *pinned;
    CudaEvent *there;
    uint64_t step; /* as people count them */
    int n;
    const Type *types[STEP_NUMBERS]; /* of the numbers; null: there is none */
} CommitAnswer;

enum { COMMIT_ANSWERS = 2 };

/* Steps that the device commits by itself (launch_commit.c). */
typedef struct Commit {
    const char *why; /* the host decides, for this reason; null: it does not */
    bool decides;    /* the device, of the step that is asked for */
    CudaFunction *decide, *move;
    CommitWords asked, moves;
    CommitAnswer answers[COMMIT_ANSWERS];
    int first, n; /* that nobody was told of */
    size_t bytes; /* of an answer */
} Commit;

typedef struct DeviceLaunches {
    Device *device;
    const ProgramKernels *kernels;
    CudaLoaded **modules;
    size_t n_modules;
    void *draws;           /* DRAWS numbers on the device for each turn; null: nothing draws there */
    uint64_t *drawn;       /* those, on the host, */
    size_t turns;          /* of so many turns */
    void *told;            /* on the device: what is told of steps (ir/kernels.h), and behind it */
    void *refused;         /* by launch a u32, 0 but where values refused it; null: none may be, and nothing is late */
    uint32_t *asked;       /* those, on the host; */
    int ask_from, ask_end; /* launches that ran since anybody asked */
    uint64_t step;         /* of the run under way */
    Caller *caller;        /* on the host */
    Arena *arena;
    Recorded *recorded; /* by first launch */
    CudaAddress *now;   /* addresses of launches that are about to run */
    size_t cap_now;
    size_t scratch;
    Commit commit;
    RangeId range;      /* of the run under way, which profilers are told */
    CudaEvent **events; /* between launches that somebody watches, n_launches + 1; null: nobody did */
} DeviceLaunches;

static inline DeviceLaunches *launches_of(const ProgramRunner *p)
{
    return p->own;
}

static inline DeviceLaunch *launch_of(const ProgramRunner *p, int launch)
{
    return p->launches[launch].own;
}

static inline Space *space_of(const ProgramRunner *p)
{
    return p->room->space;
}

/* Of what launches refuse, a u32 each. */
static inline size_t refused_bytes(const ProgramRunner *p)
{
    return (size_t)p->program->n_launches * sizeof(uint32_t);
}

/* ---- launches.c ---- */

/* Says that values refused a launch, of the step of that number (0: of no step that a device commits), and that nothing is
 * refused from now on. */
Status launch_refused(ProgramRunner *p, int launch, uint64_t step);

/* ---- launch_commit.c ---- */

/* Room for what is told of steps, and whether the device can decide; ends it, while its context is entered and at any time. */
void commit_open(ProgramRunner *p, bool refuses);
void commit_close(ProgramRunner *p);
void commit_give(ProgramRunner *p);

/* Where late launches look whether the step is applied. */
const void *commit_applied(const ProgramRunner *p);

/* The two kernels of a commit, in the stream of all runs. */
void commit_decide(const ProgramRunner *p);
void commit_move(const ProgramRunner *p);

/* As of LaunchesClass. */
bool commit_decides(const ProgramRunner *p, const EngineStep *step);
Status commit_step(ProgramRunner *p, const RunnerStep *step);
Status commit_told(ProgramRunner *p, EngineTold *told);

/* ---- launch_kernels.c ---- */

/* Room for so many arguments. */
void arguments_open(Arguments *a, int n, Arena *arena);

/* Room for the arguments of the kernels of a launch. */
void launch_open_arguments(DeviceLaunch *d, const Launch *l, Arena *arena);

/* Runs launches that all have kernels, of late ones those that are wanted.  What runs a second time with the same addresses is
 * recorded as one graph, and run as that from then on. */
void launches_run(ProgramRunner *p, int from, int end);

/* The same, one by one, and tells who watches how long each took by the clock of the device. */
void launches_run_watched(ProgramRunner *p, int from, int end);

/* Where the device decides, if it does: the launches from there on to `end` are late. */
static inline int launches_late(const ProgramRunner *p, int end)
{
    return launches_of(p)->commit.decides ? p->program->first[STEP_LATE] : end;
}

/* Launches kernels, and what a library makes, with arguments of products and of what is behind them. */
void launch_kernels(Device *device, const LaunchKernels *how, CudaFunction *const *functions, const Arguments *product,
                    const Arguments *rest, CudaStream *stream);

/* Launches the kernels of one, whose arguments were taken, in a stream; has it work somewhere else before. */
void launch_on(const ProgramRunner *p, int launch, CudaStream *stream);
void launch_works_in(const ProgramRunner *p, int launch, const char *scratch);

/* Gives back what was recorded. */
void launches_forget(ProgramRunner *p);

/* ---- launch_rivals.c ---- */

/* The kernels of a program of which a library makes products, where kernels do not make them faster: as that was measured, once. */
const ProgramKernels *launches_contest(const ProgramRunner *p, const EngineOptions *o, const KernelTarget *target,
                                       const ProgramKernels *by_library);

/* ---- launch_lanes.c ---- */

/* In a lane beside the first one runs what works in no more bytes than this. */
enum { LANE_SCRATCH = 1 << 25, LANE_ALIGNMENT = 256 };

static inline size_t lane_rounded(size_t bytes)
{
    return (bytes + LANE_ALIGNMENT - 1) / LANE_ALIGNMENT * LANE_ALIGNMENT;
}

/* Bytes that all lanes work in, where no launch wants more than `most`. */
size_t lanes_scratch(size_t most);

/* Records launches, whose arguments were taken, as a graph instead of running them, side by side where they may be; null: it
 * failed. */
void launches_record(ProgramRunner *p, CudaGraphExec **made, int from, int end);

#endif
