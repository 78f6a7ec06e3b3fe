/* What a module of simulated kernels and the simulated driver know of each other: kernel.hpp, compiled with the text of
 * kernels, is the one side, and libcuda.so.1 of this folder the other. */
#ifndef TESTS_SIMCUDA_SIM_H
#define TESTS_SIMCUDA_SIM_H

#include <stddef.h>

enum { SIM_LANES = 32, SIM_SLOT = 8, SIM_ARGUMENTS = 512 };

/* How memory is touched. */
enum { SIM_READS = 1, SIM_WRITES = 2, SIM_ATOMIC = 4, SIM_ANYWHERE = 8 /* whatever its alignment */ };

typedef struct SimIndex {
    unsigned x, y, z;
} SimIndex;

/* One parameter of a kernel. */
typedef struct SimParameter {
    size_t bytes;
    int pointer; /* it is the address of something */
} SimParameter;

typedef struct SimKernel {
    const char *name;
    const SimParameter *parameters;
    int n;
    int most_threads;              /* of a block, as __launch_bounds__ says; 0: it does not */
    int refused;                   /* parameter: a flag that it sets where values refuse it; below 0: there is none */
    char *shared, *shared_end;     /* its own static shared memory */
    void (*run)(void **arguments); /* one thread of it */
} SimKernel;

/* What threads ask of the driver; `line` is that of the kernel's text. */
typedef struct SimCalls {
    /* Waits for all threads of the block; how many of them came with a predicate that is not 0, or of what = 1. */
    int (*barrier)(int line, int predicate);
    /* Waits for the lanes of a mask; what each of them showed, and 0xff in place of the others. */
    void (*exchange)(unsigned mask, const void *mine, size_t bytes, char (*all)[SIM_SLOT], int line);
    /* The memory that a launch gives to a block: <<<grid, block, bytes>>>. */
    char *(*dynamic)(void);
    /* A thread is about to touch memory; `from` is where in the kernel's code, null where there is a line. */
    void (*touch)(const void *at, size_t bytes, int how, int line, const void *from);
    /* A thread does what has no meaning; it ends there. */
    void (*stop)(const char *what, int line);
    /* It uses an address for what must lie at multiples of some bytes. */
    void (*misaligned)(const void *at, size_t bytes, int line);
} SimCalls;

typedef struct SimModule {
    SimIndex *thread, *block, *threads, *blocks; /* threadIdx, blockIdx, blockDim, gridDim */
    char *shared, *shared_end;                   /* static shared memory of functions that are no kernels */
    const SimKernel *const *kernels;
    int n;
    int checked; /* it tells each access */
} SimModule;

/* What each module exports under the name simcuda_module. */
typedef const SimModule *SimOpen(const SimCalls *);

/* ---- what other libraries of this folder ask of the driver, under these names ---- */

/* Work of a library, of the data that came with it; CUDA_OK, or the error of a kernel. */
typedef int SimWork(const void *data);

/* Begins a call of a library: CUDA_OK, or what it answers at once; and ends it with a code, which it gives. */
int simcuda_enter(const char *call);
int simcuda_leave(int code);

/* A thing that a library holds until it lets go of it, `word` says what; its bytes are zeros. */
void *simcuda_hold(const char *word, size_t bytes);
void simcuda_let_go(void *thing);

/* Whether it is held, and is that; a report where it is not. */
int simcuda_holds(const void *thing, const char *word, const char *call);

/* Puts work behind what a stream has to do, with a copy of its data. */
int simcuda_queue(void *stream, SimWork *work, const void *data, size_t bytes);

/* Work takes so long, by the clock of a device whose times a test sets (QCC_SIM_TIMES): milliseconds of the first, second, .. way to
 * make a product, with commas between them, and behind a semicolon those of a kernel. */
void simcuda_spend(double milliseconds);

/* Number `which` of such a list; 0 where there is none. */
double simcuda_time(int which);

/* The compute capability of the devices: 90 is 9.0. */
int simcuda_capability(void);

/* Work reads or writes bytes of a device; whether it may. */
int simcuda_touch(const void *at, size_t bytes, int how, const char *call);

/* Says what is wrong with the program under test. */
__attribute__((format(printf, 1, 2))) void simcuda_complain(const char *format, ...);

/* What the NVRTC of this folder gives for a cubin or for PTX, a text that ends with a NUL: this line, then
 * "form=", "arch=", and "path=" with what was compiled. */
#define SIM_IMAGE "// kernels for a simulated device\n"

#endif
