/* Texts that are compiled side by side, as far as they are not kept. */
#include <string.h>

#include "base/parallel.h"
#include "runtime/cuda/kernel_cache.h"

/* What is compiled at once, and what it holds: it goes if a jump passes. */
typedef struct Round {
    const Nvrtc *nvrtc;
    Parallel *pool;
    NvrtcJob *jobs;
    KernelKey *keys;
    KernelObject **objects;
    int n, most;
    bool threads;
} Round;

typedef struct Compile {
    const KernelSource *source;
    KernelStore store;
    Diag *d;
    Arena *arena;
    Arena scratch; /* of a round: texts */
    Round round;
} Compile;

static void end_jobs(Round *r)
{
    for (int i = 0; i < r->n; i++)
        nvrtc_job_end(r->nvrtc, &r->jobs[i]);
    r->n = 0;
}

static void end_round(void *thing)
{
    Round *r = thing;
    end_jobs(r);
    parallel_close(r->pool);
    r->pool = NULL;
}

static void *pool_alloc(void *user, size_t size)
{
    return memory_try_block(user, size);
}

static void pool_release(void *user, void *block, size_t size)
{
    memory_release(user, block, size);
}

/* With a pool the caller, who is its worker 0, has nothing to do: compilers want more stack than some hosts have. */
static void run_jobs(void *arg, int64_t begin, int64_t end, int worker)
{
    const Round *r = arg;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        if (i > 0)
            nvrtc_job_run(r->nvrtc, &r->jobs[i - 1]);
}

/* ---- what is kept of an object: the cubin, the log and its NUL, and how long the cubin is ---- */

enum { BEHIND = 8 };

static Str pack(const KernelObject *o, Arena *arena)
{
    const uint64_t cubin = o->cubin.n;
    const size_t log = strlen(o->log) + 1, n = o->cubin.n + log + BEHIND;
    char *bytes = arena_alloc(arena, n);
    memcpy(bytes, o->cubin.p, o->cubin.n);
    memcpy(bytes + o->cubin.n, o->log, log);
    memcpy(bytes + o->cubin.n + log, &cubin, BEHIND);
    return (Str){ bytes, n };
}

static bool unpack(Str bytes, KernelObject *o)
{
    uint64_t cubin;
    if (bytes.n <= BEHIND)
        return false;
    memcpy(&cubin, bytes.p + bytes.n - BEHIND, BEHIND);
    if (cubin >= bytes.n - BEHIND || bytes.p[bytes.n - BEHIND - 1])
        return false;
    o->cubin = (Str){ bytes.p, (size_t)cubin };
    o->log = bytes.p + cubin;
    return true;
}

/* Takes what came of a round. */
static Status take_jobs(Compile *c)
{
    Round *r = &c->round;
    for (int i = 0; i < r->n; i++) {
        KernelObject *o = r->objects[i];
        TRY(nvrtc_job_take(r->nvrtc, c->d, &r->jobs[i], c->arena, &o->cubin, &o->log));
        kernel_store_keep(&c->store, &r->keys[i], pack(o, &c->scratch));
    }
    end_jobs(r);
    return OK;
}

static Status run_round(Compile *c)
{
    Round *r = &c->round;
    const ArenaMark nothing = { NULL, NULL };
    const ParallelMemory memory = { pool_alloc, pool_release, c->arena->memory };
    if (!r->n)
        return OK;
    if (!r->pool && r->threads)
        r->pool = parallel_open_deep(r->most + 1, &memory);
    parallel(r->pool, r->n + 1, run_jobs, r);
    TRY(take_jobs(c));
    arena_reset(&c->scratch, nothing);
    memory_poll(c->arena->memory);
    return OK;
}

static const char *text_of(Compile *c, const KernelObject *o)
{
    Text text;
    text_open(&text, &c->scratch);
    text_add(&text, c->source->prelude);
    for (size_t i = o->first; i < o->first + o->n; i++) {
        text_char(&text, '\n');
        text_add(&text, c->source->texts[i]);
    }
    return text_get(&text);
}

/* Finds an object, or puts it into the round that is being gathered. */
static Status add_object(Compile *c, KernelObject *o)
{
    Round *r = &c->round;
    const ArenaMark before = arena_mark(&c->scratch);
    const char *text = text_of(c, o);
    const KernelKey key = kernel_key(&c->store, r->nvrtc, c->source->arch, text);
    Str kept;
    o->was_kept = kernel_store_find(&c->store, &key, &kept) && unpack(kept, o);
    if (o->was_kept) {
        arena_reset(&c->scratch, before);
        return OK;
    }
    r->keys[r->n] = key;
    r->objects[r->n] = o;
    r->jobs[r->n] = nvrtc_job(text, c->source->arch, NVRTC_CUBIN, &c->scratch);
    r->n++;
    return r->n == r->most ? run_round(c) : OK;
}

static void open_round(Compile *c, const Nvrtc *nvrtc, int threads, size_t n)
{
    const int most = threads < 2 || !n ? 1 : n < (size_t)threads ? (int)n : threads;
    c->round = (Round){
        .nvrtc = nvrtc,
        .most = most,
        .threads = threads > 1,
        .jobs = NEWS(c->arena, NvrtcJob, most),
        .keys = NEWS(c->arena, KernelKey, most),
        .objects = NEWS(c->arena, KernelObject *, most),
    };
}

static Status compile_all(Compile *c, KernelObjects *objects)
{
    for (size_t i = 0; i < objects->n; i++)
        TRY(add_object(c, &objects->list[i]));
    return run_round(c);
}

Status kernels_compile(const KernelCache *cache, const Nvrtc *nvrtc, int threads, Diag *d, const KernelSource *source,
                       Arena *arena, KernelObjects *objects)
{
    Compile c = { .source = source, .d = d, .arena = arena };
    Cleanup cleanup;
    const size_t n = (source->n + KERNEL_TEXTS - 1) / KERNEL_TEXTS;
    *objects = (KernelObjects){ NEWS(arena, KernelObject, n + 1), n };
    for (size_t i = 0; i < n; i++) {
        const size_t first = i * KERNEL_TEXTS, left = source->n - first;
        objects->list[i] = (KernelObject){ .first = first, .n = left < KERNEL_TEXTS ? left : KERNEL_TEXTS };
    }
    kernel_store_open(&c.store, &store_of_kernels, cache, d, arena);
    open_round(&c, nvrtc, threads, n);
    arena_open(&c.scratch, arena->memory);
    cleanup_push(arena->memory, &cleanup, end_round, &c.round);
    const Status status = compile_all(&c, objects);
    cleanup_drop(&cleanup);
    end_round(&c.round);
    arena_close(&c.scratch);
    kernel_store_close(&c.store);
    return status;
}
