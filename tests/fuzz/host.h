/* A context whose host counts its blocks, for targets that go through the library's own door. */
#ifndef TESTS_FUZZ_HOST_H
#define TESTS_FUZZ_HOST_H

#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "qcc/qcc.h"

static void *fuzz_take(void *user, size_t size)
{
    long *blocks = user;
    void *block;
    if (posix_memalign(&block, 64, size) != 0)
        return NULL;
    ++*blocks;
    return block;
}

static void fuzz_give_back(void *user, void *block, size_t size)
{
    long *blocks = user;
    (void)size;
    *blocks -= block != NULL;
    free(block);
}

/* Opens one that holds at most `memory` bytes; small limits keep what a model asks for short. */
static qcc_context *fuzz_open(long *blocks, uint64_t memory)
{
    const qcc_context_options options = {
        .size = sizeof options,
        .user = blocks,
        .alloc = fuzz_take,
        .release = fuzz_give_back,
        .threads = 1,
        .memory = memory,
        .limits =
            "eval_bytes=65536,loop_iterations=50,inlined_nodes=1000,unrolled_nodes=1000,fold_work=1000000,fold_total=65536",
    };
    qcc_context *cx;
    if (qcc_open(&options, &cx) != QCC_OK)
        abort();
    return cx;
}

static inline void fuzz_close(qcc_context *cx, const long *blocks)
{
    qcc_close(cx);
    if (*blocks)
        abort();
}

#endif
