/* What the parts of the simulated driver share. */
#ifndef TESTS_SIMCUDA_WORLD_H
#define TESTS_SIMCUDA_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>

#include "runtime/cuda/driver.h"
#include "simcuda/codes.h"
#include "simcuda/counts.h"
#include "simcuda/sim.h"

typedef enum ThingKind {
    CONTEXT,
    MODULE,
    FUNCTION,
    STREAM,
    EVENT,
    GRAPH,
    MADE_GRAPH,
    OF_LIBRARY,
    THING_KINDS
} ThingKind;

/* What a handle points to; it stays when it is destroyed, so that whoever uses it then is found. */
typedef struct Thing {
    ThingKind kind;
    bool live;
    CudaContext *context;
    struct Thing *next;
} Thing;

struct CudaContext {
    Thing thing;
    int device, users;  /* retained and not released */
    CudaStream *legacy; /* stream 0 */
    size_t bytes;       /* of the device that are given out */
};

struct CudaLoaded {
    Thing thing;
    void *object;
    const SimModule *module;
    CudaFunction **functions;
    const char *from, *to; /* where its own data lies */
};

struct CudaFunction {
    Thing thing;
    CudaLoaded *module;
    const SimKernel *kernel;
};

typedef enum Capture { NO_CAPTURE, CAPTURES } Capture;

/* Nodes of a graph, by number. */
typedef struct Nodes {
    int *list, n;
} Nodes;

/* What is being captured, of one stream and those that joined it. */
typedef struct Captured {
    CudaStream *origin;
    int mode, n; /* nodes so far */
    bool broken;
    pthread_t thread;
    struct Op *first, **last;
    struct Captured *older;
} Captured;

struct CudaStream {
    Thing thing;
    bool apart; /* from the legacy one */
    Capture capture;
    Captured *captured; /* while it captures */
    Nodes behind;       /* what the next op comes behind */
};

struct CudaEvent {
    Thing thing;
    bool times;
    Captured *captured;     /* recorded there, */
    Nodes behind;           /* behind these */
    uint64_t recorded, ran; /* the last op that records it, and the last that ran; 0: none */
    double at;
};

struct CudaGraph {
    Thing thing;
    struct Op *first;
    int n;
};

struct CudaGraphExec {
    Thing thing;
    struct Op *first;
    struct Op **nodes; /* the same by number */
    bool *before;      /* n x n: whether one has to end before another begins */
    int n;
    unsigned beside;
    uint64_t launched;
};

/* What a library on top of the driver holds. */
typedef struct LibraryThing {
    Thing thing;
    const char *word; /* what it is */
    char data[];
} LibraryThing;

typedef enum OpKind { OP_WRITE, OP_READ, OP_COPY, OP_SET, OP_LAUNCH, OP_WORK, OP_RECORD } OpKind;

typedef struct Op {
    struct Op *next;
    OpKind kind;
    uint64_t number;
    CudaStream *stream;
    CudaAddress to, from;
    void *host;
    size_t bytes;
    unsigned char value;
    CudaEvent *event;
    CudaFunction *function;
    SimIndex grid, block;
    unsigned shared;
    char *arguments; /* of a launch, each in SIM_ARGUMENT bytes; of work of a library its data, of `bytes` */
    SimWork *work;
    int node;     /* of the graph that it is captured in, or was launched with, */
    Nodes behind; /* those right before it, */
    const CudaGraphExec *graph;
    uint64_t graph_launch; /* and by which launch of which graph it is; 0: by none */
} Op;

enum { SIM_ARGUMENT = 16, MOST_THREADS = 1024 };

typedef struct World {
    bool begun;
    int begun_by;    /* a process: a child that it forks owes nothing */
    bool asked;      /* to let a call fail */
    bool unwatched;  /* a kernel ran that does not tell what it writes */
    int sticky;      /* what every call answers from now on; 0: none */
    uint64_t number; /* of the last op */
    double spent;    /* milliseconds, where a test sets what things take */
    Thing *things;
    Op *first, **last; /* that wait */
    SimCounts counts;
    char report[512]; /* the last one */
} World;

extern World world;

/* ---- report.c ---- */

/* Says on the standard error what is wrong with the program under test; the first is what the audit names. */
__attribute__((format(printf, 1, 2))) void report(const char *format, ...);

const char *error_name(int code);
const char *error_text(int code);

/* ---- things.c ---- */

void *thing_new(ThingKind, CudaContext *, size_t bytes);

/* Whether a handle is of something that lives; a report where it is not. */
bool thing_lives(const void *handle, ThingKind, const char *call);

const char *thing_word(ThingKind);

/* ---- dram.c ---- */

int dram_alloc(CudaContext *, CudaAddress *at, size_t bytes);
int dram_free(CudaContext *, CudaAddress at);
int dram_alloc_host(CudaContext *, void **at, size_t bytes);
int dram_free_host(CudaContext *, void *at);
void dram_info(CudaContext *, size_t *free, size_t *total);
size_t dram_total(void);

/* Whether bytes of a device lie in one block that is given out. */
bool dram_holds(CudaAddress at, size_t bytes);

/* Whether an address is one of a device, given out or not. */
bool dram_is_device(const void *at);

/* Whether it is of the host and devices may use it. */
bool dram_is_pinned(const void *at);

/* What checked kernels touched of a block, made when they first do. */
typedef struct Shadow Shadow;

typedef struct Block {
    char *from, *end; /* its pages */
    char *at;         /* what was given out */
    size_t bytes;
    bool live;
    CudaContext *context;
    Shadow *shadow;
} Block;

/* The block whose pages, or the page behind them, hold an address; null: none. */
Block *dram_block(const void *at);

/* What lies at an address, for people. */
const char *dram_say(const void *at, char *text, size_t bytes);

/* Lets the host touch the memory of devices, or no longer. */
void dram_open(bool);

/* Finds what was written between blocks: a report, and true. */
bool dram_spoilt(const char *by);

/* Bytes and blocks of a context (null: of all) that are given out. */
size_t dram_left(const CudaContext *, bool host, size_t *bytes);

/* ---- checks.c ---- */

/* Bytes of a device that something else than a kernel wrote. */
void check_wrote(CudaAddress at, size_t bytes);

/* Whether bytes of a device were all written; where kernels are not looked at, nobody knows, and they were. */
bool check_is_written(CudaAddress at, size_t bytes);

/* A copy brought what lies at `from`, written or not. */
void check_copied(CudaAddress to, CudaAddress from, size_t bytes);

void check_free(Shadow *);

/* ---- kernels.c ---- */

/* Runs a launch; CUDA_OK, or how it ended, which was reported. */
int kernel_run(const Op *);

/* What modules are opened with. */
const SimCalls *kernel_calls(void);

/* ---- queue.c ---- */

/* Puts a copy of an op behind the others of its stream, or into the graph that is captured there. */
int queue_add(const Op *);

/* Runs what a stream has up to an op, and what of others has to run before that. */
int queue_run(CudaStream *, uint64_t number);

/* Runs all of a context. */
int queue_drain(CudaContext *);

/* The error of what may not be called while the calling thread captures; a capture that is broken by it. */
int queue_refuses(CudaContext *);

/* Forgets ops that wait, of a context or of all. */
void queue_drop(const CudaContext *);

/* ---- driver_graphs.c ---- */

/* Adds an op to what a stream captures. */
int capture_add(CudaStream *, const Op *copy);

/* Notes what an event stands behind in a capture; lets a stream wait for it there. */
void capture_record(CudaEvent *, const CudaStream *);
int capture_wait(CudaStream *, CudaEvent *);

/* An op that the graph keeps: a copy. */
Op *queue_copy(const Op *);

/* Copies an op behind what a stream has to do. */
void queue_append(const Op *, CudaStream *);

/* Before an op runs: which others of its graph may run beside it. */
void graph_begins(const Op *, unsigned launch);

/* Whether a launch that ran before is of the same launch of a graph as the one that runs, and nothing says that it has to end
 * before this one. */
bool graph_beside(unsigned launch);

#endif
