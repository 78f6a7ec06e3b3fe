/* The only way work is spread over threads: n things are split into one contiguous range per thread, by index and by
 * nothing else, so that what is computed never depends on who was faster. */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

/* Where the pool's own memory comes from; null functions mean malloc and free. */
typedef struct ParallelMemory {
    void *(*alloc)(void *user, size_t size);
    void (*release)(void *user, void *block, size_t size);
    void *user;
} ParallelMemory;

typedef struct Parallel Parallel;

/* Does things begin .. end - 1.  `worker` is below parallel_threads() and no two calls of one region share it, so it
 * may select scratch memory. */
typedef void (*ParallelFn)(void *arg, int64_t begin, int64_t end, int worker);

/* A pool of `threads` threads, the caller's included; 1 starts none.  Null when memory or threads are refused. */
Parallel *parallel_open(int threads, const ParallelMemory *memory);

/* The same with stacks as main() has one, for code of others that goes deep; where OpenMP has the threads, theirs. */
Parallel *parallel_open_deep(int threads, const ParallelMemory *memory);

/* Joins the workers and frees the pool; in a forked child, where there are none, only frees. Null is fine. */
void parallel_close(Parallel *pool);

/* How many workers a region may have; 1 for null. */
int parallel_threads(const Parallel *pool);

/* Calls fn over 0 .. n - 1 and returns when all is done.  Every call runs in the standard floating-point environment,
 * the caller's own is put back.  Runs on the calling thread alone when the pool is null or has one thread, inside a
 * region of the same pool, while another thread has a region on it, and in a forked child. */
void parallel(Parallel *pool, int64_t n, ParallelFn fn, void *arg);

/* How many processors this process may use, at least 1. */
int parallel_processors(void);

#endif
