#include "api/bench/bench_rates.h"

#include <string.h>

#include "base/clock.h"
#include "ops/kernels/kernels.h"

enum {
    TRIES = 8,
    CHUNK = 1 << 20, /* bytes that one thread copies at a time */
    CHUNKS = 64,     /* more than caches hold */
    TILE_ROWS = 12,  /* or a tile: a product whose operands and result stay in a first-level cache */
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
    const PackedLoops *loops; /* null: those of codes */
    const CodeProducts *codes;
    f32 *room; /* for each thread its operands and its result: of any type they have room */
} Products;

enum {
    MOST_ROWS = MOST_TILE_ROWS,
    PRODUCT_ROOM = MOST_ROWS * TILE_DEPTH + TILE_DEPTH * TILE_COLS + MOST_ROWS * TILE_COLS
};

/* Tiles are multiplied whole, and those of codes twice as deep: of as many bytes. */
static size_t rows_of(const Products *p)
{
    const size_t rows = p->loops ? p->loops->rows : p->codes->rows;
    return rows > TILE_ROWS ? rows : TILE_ROWS;
}

static size_t depth_of(const Products *p)
{
    return p->loops || p->codes->whole == 1 ? TILE_DEPTH : 2 * TILE_DEPTH;
}

static void multiply(void *arg, int64_t begin, int64_t end, int worker)
{
    const Products *p = arg;
    f32 *a = p->room + (size_t)worker * PRODUCT_ROOM, *b = a + MOST_ROWS * TILE_DEPTH, *c = b + TILE_DEPTH * TILE_COLS;
    const PackedLoops *l = p->loops;
    const CodeProducts *q = p->codes;
    const size_t rows = rows_of(p), depth = depth_of(p), words = l ? 0 : depth / q->depth;
    for (int64_t i = begin; i < end && !l; i++)
        q->multiply(rows, TILE_COLS / q->width, words, (const u32 *)(void *)a, words * q->rows, (const u32 *)(void *)b,
                    words * q->width, (i32 *)(void *)c, TILE_COLS, false);
    for (int64_t i = begin; i < end && l; i++)
        l->multiply(rows, TILE_COLS, depth, a, depth * l->rows, b, c, TILE_COLS, false);
}

/* The best of some tries. */
static double product_rate(Parallel *pool, const Products *p)
{
    const int64_t n = (int64_t)PRODUCTS * parallel_threads(pool);
    double best = 0;
    for (int i = 0; i < TRIES; i++) {
        const double since = clock_seconds();
        parallel(pool, n, multiply, (void *)(uintptr_t)p);
        const double flops =
            2.0 * TILE_COLS * (double)(rows_of(p) * depth_of(p)) * (double)n / (clock_seconds() - since);
        best = flops > best ? flops : best;
    }
    return best;
}

static double copy_rate(Parallel *pool, Copies *c)
{
    double best = 0;
    for (int i = 0; i < TRIES; i++) {
        const double since = clock_seconds();
        parallel(pool, CHUNKS, copy_chunks, c);
        const double bytes = 2.0 * CHUNKS * CHUNK / (clock_seconds() - since);
        best = bytes > best ? bytes : best;
    }
    return best;
}

MachineRates machine_rates(qcc_context *cx)
{
    Parallel *pool = context_pool(cx);
    const ArenaMark mark = arena_mark(&cx->scratch);
    const Kernels *kernels = cx->kernels ? cx->kernels : kernels_best();
    Copies copies = { arena_alloc(&cx->scratch, (size_t)CHUNKS * CHUNK),
                      arena_alloc(&cx->scratch, (size_t)CHUNKS * CHUNK) };
    Products products = { kernels_packed(kernels, ARITH_F32), kernels_code_products(kernels, CODE_U8, CODE_I8),
                          NEWS(&cx->scratch, f32, (size_t)parallel_threads(pool) * PRODUCT_ROOM) };
    memset(copies.from, 0, (size_t)CHUNKS * CHUNK);
    MachineRates rates = { .bytes = copy_rate(pool, &copies), .flops = product_rate(pool, &products) };
    const bool narrows = cx->engine->narrows && !cx->engine->has_devices && !cx->options.exact;
    products.loops = narrows ? kernels_packed_bf16(kernels) : NULL;
    rates.narrow_flops = products.loops ? product_rate(pool, &products) : 0;
    products.loops = NULL;
    rates.code_flops = product_rate(pool, &products);
    arena_reset(&cx->scratch, mark);
    return rates;
}
