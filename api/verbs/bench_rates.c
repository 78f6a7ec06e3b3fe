#include "api/verbs/bench_rates.h"

#include <string.h>

#include "base/clock.h"
#include "ops/kernels/kernels.h"

enum {
    TRIES = 8,
    CHUNK = 1 << 20, /* bytes that one thread copies at a time */
    CHUNKS = 64,     /* more than caches hold */
    TILE_ROWS = 12,  /* a product whose operands and result stay in a first-level cache */
    TILE_COLS = 32,
    TILE_DEPTH = 256,
    PRODUCTS = 100, /* of such tiles, for each thread */
};

typedef struct Copies {
    char *from, *to;
} Copies;

static void copy_chunks(void *arg, int64_t begin, int64_t end, int worker)
{
    const Copies *c = arg;
    (void)worker;
    memcpy(c->to + begin * CHUNK, c->from + begin * CHUNK, (size_t)(end - begin) * CHUNK);
}

typedef struct Products {
    const Kernels *kernels;
    f32 *room; /* for each thread its operands and its result */
} Products;

enum { PRODUCT_ROOM = TILE_ROWS * TILE_DEPTH + TILE_DEPTH * TILE_COLS + TILE_ROWS * TILE_COLS };

static void multiply(void *arg, int64_t begin, int64_t end, int worker)
{
    const Products *p = arg;
    f32 *a = p->room + (size_t)worker * PRODUCT_ROOM, *b = a + TILE_ROWS * TILE_DEPTH, *c = b + TILE_DEPTH * TILE_COLS;
    const PackedLoops *l = kernels_packed(p->kernels, ARITH_F32);
    for (int64_t i = begin; i < end; i++)
        l->multiply(TILE_ROWS, TILE_COLS, TILE_DEPTH, a, TILE_DEPTH * l->rows, b, c, TILE_COLS, false);
}

MachineRates machine_rates(qcc_context *cx)
{
    MachineRates rates = { 0, 0 };
    Parallel *pool = context_pool(cx);
    const int threads = parallel_threads(pool);
    const ArenaMark mark = arena_mark(&cx->scratch);
    Copies copies = { arena_alloc(&cx->scratch, (size_t)CHUNKS * CHUNK),
                      arena_alloc(&cx->scratch, (size_t)CHUNKS * CHUNK) };
    const Products products = { cx->kernels ? cx->kernels : kernels_best(),
                                NEWS(&cx->scratch, f32, (size_t)threads * PRODUCT_ROOM) };
    const int64_t n = (int64_t)PRODUCTS * threads;
    memset(copies.from, 0, (size_t)CHUNKS * CHUNK);
    for (int i = 0; i < TRIES; i++) {
        const double t0 = clock_seconds();
        parallel(pool, CHUNKS, copy_chunks, &copies);
        const double t1 = clock_seconds();
        parallel(pool, n, multiply, (void *)(uintptr_t)&products);
        const double t2 = clock_seconds(), bytes = 2.0 * CHUNKS * CHUNK / (t1 - t0);
        const double flops = 2.0 * TILE_ROWS * TILE_COLS * TILE_DEPTH * (double)n / (t2 - t1);
        rates.bytes = bytes > rates.bytes ? bytes : rates.bytes;
        rates.flops = flops > rates.flops ? flops : rates.flops;
    }
    arena_reset(&cx->scratch, mark);
    return rates;
}
