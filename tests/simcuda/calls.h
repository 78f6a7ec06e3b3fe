/* How the functions of the simulated driver begin and end, and what several of them ask. */
#ifndef TESTS_SIMCUDA_CALLS_H
#define TESTS_SIMCUDA_CALLS_H

#include "simcuda/world.h"

#define DRIVER(name, symbol, arguments) __attribute__((visibility("default"))) int symbol arguments;
#include "runtime/cuda/driver.def"

typedef enum Needs {
    NEEDS_NOTHING = 0,
    NEEDS_INIT = 1,
    NEEDS_CONTEXT = 2,
    UNLESS_CAPTURED = 4 /* it may not be called while a stream of this thread captures */
} Needs;

/* CUDA_OK, or what the call answers at once.  Other threads wait until it ends. */
int call_begin(const char *call, int needs);

/* Ends it with a code, which it gives. */
int call_end(int code);

/* The current context of this thread; null: there is none. */
CudaContext *call_context(void);

/* The compute capability of the devices: 90 is 9.0. */
int call_capability(void);

/* A stream that lives and is of the current context, null being the legacy one; null: there is none, and a report. */
CudaStream *call_stream(CudaStream *, const char *call);

/* The body of a call, unless its beginning failed. */
#define CALL(needs, body)                                                                                              \
    do {                                                                                                               \
        int code = call_begin(__func__, needs);                                                                        \
        if (code == CUDA_OK)                                                                                           \
            code = body;                                                                                               \
        return call_end(code);                                                                                         \
    } while (0)

/* The body of a call that gives something up.  It does so even where an error is answered, which may be of earlier work; not
 * where there is no context or a stream captures. */
#define GIVING_UP(needs, body)                                                                                         \
    do {                                                                                                               \
        const int failed = call_begin(__func__, needs);                                                                \
        const bool stays = failed == E_INVALID_CONTEXT || failed == E_CAPTURE_UNSUPPORTED;                             \
        const int code = stays ? failed : body;                                                                        \
        return call_end(failed ? failed : code);                                                                       \
    } while (0)

#endif
