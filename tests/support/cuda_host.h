/* The kernels of tapes, compiled for this machine and run thread by thread (support/cuda_sim.hpp), against what the
 * evaluator gave: the text that a device gets, to the letter. */
#ifndef TESTS_SUPPORT_CUDA_HOST_H
#define TESTS_SUPPORT_CUDA_HOST_H

#include "codegen/cuda/cuda_text.h"
#include "support/tape_check.h"

/* One region or one call, and what goes in and has to come out. */
typedef struct CudaJob {
    const Tape *tape; /* null: a call, */
    const Node *call; /* which is this one */
    int n_in, n_out;
    const Type **out;
    CudaLaunch launch;
    const Tensor **in;
    const Tensor *want; /* a tuple where there are several results; null: the call is to be refused */
    void **seen;        /* what the run before gave */
    bool *shows;        /* kernels have a mistake: whether a result differs; null: they have none */
} CudaJob;

typedef struct CudaHost {
    Context *c;
    const char *name; /* of the files that it makes */
    KernelTarget target;
    double near;                /* how far results may be from the evaluator's, in units of the largest; 0: bits */
    const char *const *mistake; /* what stands in kernels that are added, and what shall stand there; or null */
    bool runs_long;             /* kernels take longer to run than to compile: they are optimized */
    bool *shows;                /* set where one of their results differs then */
    Map *known;                 /* texts that ran: the same one does not run again; null: everything does */
    Text kernels;
    CudaJob *jobs;
    size_t n, cap;
    int64_t ran, over, refused, launches; /* regions, those with results over arguments, those without kernels */
    int64_t contracts;                    /* tapes behind products, which have none either */
    int64_t calls;                        /* that are no regions and have kernels, which ran */
    bool wrong;                           /* a result differs, or the text does not compile; it was printed */
} CudaHost;

/* Whether there is a compiler for them; a word where there is none. */
bool cuda_host_there(void);

/* An empty list; files are called `name`. */
void cuda_host_open(CudaHost *h, Context *c, const char *name);

/* Adds what tape_values() noted of each fused node of a graph. */
void cuda_host_add(CudaHost *h, TapeCheck *w, Graph *g);

/* What the evaluator makes of a call and, null where they are absent, of its operands: draws are those that kernels make. */
Tensor *cuda_host_values(Context *c, Node *call);
const Tensor **cuda_host_operands(Context *c, const Node *call);

/* Adds a call and what the evaluator gave for it (null: it refused it) and its operands (null: absent); false where calls of its kind have no
 * kernels. */
bool cuda_host_add_call(CudaHost *h, const Node *call, const Tensor **operands, const Tensor *want);

/* Compiles all that was added, runs each region with threads in both orders and with results over arguments where they
 * may lie so, compares bits, and begins anew. */
void cuda_host_run(CudaHost *h);

#endif
