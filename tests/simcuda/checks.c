/* What each access of a checked kernel is held to: it lies inside of one block, at a multiple of its size, reads what was
 * written, and no other thread touches the same bytes without a barrier between them. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "simcuda/run.h"

enum { GRANULE = 4, MOST_SHARED_BYTES = 1 << 18 };

/* Who touched a granule last: the block of a launch, the thread, and how many barriers and exchanges it had gone through. */
typedef struct Touch {
    unsigned launch, block, barriers, exchanges;
    unsigned short thread;
    unsigned char bytes, atomic; /* which of the granule, a bit each */
    bool several;                /* threads, with no barrier between them */
} Touch;

typedef struct Cell {
    Touch read, write;
} Cell;

struct Shadow {
    char *written; /* by byte */
    Cell *cells;
    size_t bytes;
};

static void *map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "simcuda: no memory for what is noted of accesses\n");
        abort();
    }
    return p;
}

static Shadow *shadow_new(size_t bytes)
{
    Shadow *s = malloc(sizeof *s);
    if (!s)
        abort();
    *s = (Shadow){ map(bytes), map((bytes / GRANULE + 1) * sizeof(Cell)), bytes };
    return s;
}

void check_free(Shadow *s)
{
    if (!s)
        return;
    munmap(s->written, s->bytes);
    munmap(s->cells, (s->bytes / GRANULE + 1) * sizeof(Cell));
    free(s);
}

static Shadow *shadow_of(Block *b)
{
    if (!b->shadow)
        b->shadow = shadow_new(b->bytes);
    return b->shadow;
}

void check_wrote(CudaAddress at, size_t bytes)
{
    Block *b = dram_block((void *)(uintptr_t)at);
    memset(shadow_of(b)->written + ((char *)(uintptr_t)at - b->at), 1, bytes);
}

/* ---- what was refused ---- */

/* Flags that launches set which values refused.  What these were to make nobody wrote, and what is behind them reads it: no mistake,
 * as long as a flag stands, and nobody was told of it. */
enum { MOST_FLAGS = 64 };
static const unsigned *flags[MOST_FLAGS];
static int n_flags;

void check_refused(const unsigned *flag)
{
    for (int i = 0; i < n_flags; i++)
        if (flags[i] == flag)
            return;
    if (*flag && n_flags < MOST_FLAGS)
        flags[n_flags++] = flag;
}

static bool behind_refusal(void)
{
    for (int i = 0; i < n_flags; i++) {
        if (dram_holds((uintptr_t)flags[i], sizeof **flags) && *flags[i])
            return true;
        flags[i--] = flags[--n_flags];
    }
    return false;
}

bool check_is_written(CudaAddress at, size_t bytes)
{
    Block *b = dram_block((void *)(uintptr_t)at);
    const char *from = b->shadow ? b->shadow->written + ((char *)(uintptr_t)at - b->at) : NULL;
    return world.unwatched || !from || !memchr(from, 0, bytes) || behind_refusal();
}

void check_copied(CudaAddress to, CudaAddress from, size_t bytes)
{
    Block *a = dram_block((void *)(uintptr_t)from), *b = dram_block((void *)(uintptr_t)to);
    memmove(shadow_of(b)->written + ((char *)(uintptr_t)to - b->at),
            shadow_of(a)->written + ((char *)(uintptr_t)from - a->at), bytes);
}

/* ---- where in the text ---- */

/* The line of an address of a kernel's code, which the compiler noted; 0: nobody knows. */
static int line_of(const void *from)
{
    Dl_info info;
    char command[512];
    int line = 0;
    if (!from || !dladdr(from, &info))
        return 0;
    snprintf(command, sizeof command, "addr2line -e '%s' %#tx 2>/dev/null", info.dli_fname,
             (const char *)from - 1 - (const char *)info.dli_fbase);
    FILE *f = popen(command, "r");
    if (f && fscanf(f, "%*[^:]:%d", &line) != 1)
        line = 0;
    if (f)
        pclose(f);
    return line;
}

__attribute__((format(printf, 4, 5))) static void refuse(int code, int line, const void *from, const char *format, ...)
{
    char text[300];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    blame(code, run.now, line ? line : line_of(from), "%s", text);
    end_thread();
}

/* ---- races ---- */

/* Whether an earlier touch has nothing between it and this one of another thread. */
static bool meets(const Touch *t, unsigned char bytes, unsigned launch, unsigned thread)
{
    if (t->launch != launch || !(t->bytes & bytes))
        return false;
    if (t->block != run.block_number)
        return true;
    if (t->barriers != run.now->barriers || (t->thread == thread && !t->several))
        return false;
    return t->several || t->thread / SIM_LANES != thread / SIM_LANES || t->exchanges == run.now->exchanges;
}

/* Whether it was by a kernel that may run beside this one. */
static bool beside(const Touch *t, unsigned char bytes)
{
    return t->bytes & bytes && graph_beside(t->launch);
}

static void keep(Touch *t, unsigned char bytes, unsigned launch, unsigned thread, bool atomic)
{
    const bool meets_others = meets(t, bytes, launch, thread);
    *t = (Touch){ launch, run.block_number, run.now->barriers, run.now->exchanges, (unsigned short)thread,
                  bytes,  atomic,           meets_others };
}

/* The other thread of a race; null: there is none. */
static const Touch *race(Cell *c, unsigned char bytes, int how, unsigned launch)
{
    const unsigned thread = (unsigned)(run.now - run.threads);
    const bool atomic = how & SIM_ATOMIC;
    if (meets(&c->write, bytes, launch, thread) && !(atomic && c->write.atomic))
        return &c->write;
    if (how & SIM_WRITES && meets(&c->read, bytes, launch, thread) && !(atomic && c->read.atomic))
        return &c->read;
    if (how & SIM_READS)
        keep(&c->read, bytes, launch, thread, atomic);
    if (how & SIM_WRITES)
        keep(&c->write, bytes, launch, thread, atomic);
    return NULL;
}

/* ---- what every access is held to ---- */

/* Kernels of a graph between which nothing says which comes first touch the same bytes, and one of them writes. */
static void check_graph(const Shadow *s, size_t at, size_t bytes, int how, int line, const void *from, const char *what)
{
    for (size_t g = at / GRANULE; g * GRANULE < at + bytes; g++) {
        const Cell *c = &s->cells[g];
        unsigned char mask = 0;
        for (size_t i = 0; i < GRANULE; i++)
            mask |= (unsigned char)((g * GRANULE + i >= at && g * GRANULE + i < at + bytes) << i);
        const bool meets_write = beside(&c->write, mask), meets_read = how & SIM_WRITES && beside(&c->read, mask);
        if (meets_write || meets_read)
            refuse(E_LAUNCH_FAILED, line, from, "%s byte %zu of %s, as a kernel %s that the graph lets run beside it",
                   how & SIM_WRITES ? "writes" : "reads", g * GRANULE, what, meets_write ? "writes it" : "reads it");
    }
}

static void check_shadow(Shadow *s, size_t at, size_t bytes, int how, unsigned launch, int line, const void *from,
                         const char *what)
{
    for (size_t i = at; how & SIM_READS && i < at + bytes; i++)
        if (!s->written[i] && !behind_refusal())
            refuse(E_LAUNCH_FAILED, line, from, "reads byte %zu of %s, which nobody wrote", i, what);
    for (size_t g = at / GRANULE; g * GRANULE < at + bytes; g++) {
        unsigned char mask = 0;
        for (size_t i = 0; i < GRANULE; i++)
            mask |= (unsigned char)((g * GRANULE + i >= at && g * GRANULE + i < at + bytes) << i);
        const Touch *other = race(&s->cells[g], mask, how, launch);
        if (other)
            refuse(E_LAUNCH_FAILED, line, from,
                   "%s byte %zu of %s, as thread %u of block %u %s, and no barrier stands between them",
                   how & SIM_WRITES ? "writes" : "reads", g * GRANULE, what, other->thread, other->block,
                   other == &s->cells[g].write ? "writes it" : "reads it");
    }
    if (how & SIM_WRITES)
        memset(s->written + at, 1, bytes);
}

static void check_device(const char *at, size_t bytes, int how, int line, const void *from)
{
    char text[160];
    Block *b = dram_block(at);

    if (!b || !b->live || at < b->at || at >= b->at + b->bytes)
        refuse(E_ILLEGAL_ADDRESS, line, from, "%s %zu bytes at %s", how & SIM_WRITES ? "writes" : "reads", bytes,
               dram_say(at, text, sizeof text));
    if (bytes > (size_t)(b->at + b->bytes - at))
        refuse(E_ILLEGAL_ADDRESS, line, from, "%s %zu bytes at %s, beyond its end",
               how & SIM_WRITES ? "writes" : "reads", bytes, dram_say(at, text, sizeof text));
    snprintf(text, sizeof text, "a block of %zu bytes", b->bytes);
    check_graph(shadow_of(b), (size_t)(at - b->at), bytes, how, line, from, text);
    check_shadow(shadow_of(b), (size_t)(at - b->at), bytes, how, (unsigned)world.counts.launches, line, from, text);
}

/* ---- shared memory ---- */

static Shadow *shared[3]; /* the kernel's own, that of functions, what the launch gives */

void check_block(void)
{
    for (int i = 0; i < 3; i++) {
        if (!shared[i])
            shared[i] = shadow_new(MOST_SHARED_BYTES);
        memset(shared[i]->written, 0, MOST_SHARED_BYTES);
    }
}

static bool check_shared(const char *at, size_t bytes, int how, int line, const void *from)
{
    const char *const begin[] = { run.kernel->shared, run.module->shared, run.dynamic };
    const char *const end[] = { run.kernel->shared_end, run.module->shared_end,
                                run.dynamic ? run.dynamic + run.op->shared : NULL };
    for (int i = 0; i < 3; i++)
        if (begin[i] && at >= begin[i] && at < end[i]) {
            if (bytes > (size_t)(end[i] - at))
                refuse(E_ILLEGAL_ADDRESS, line, from, "touches %zu bytes at the end of shared memory", bytes);
            check_shadow(shared[i], (size_t)(at - begin[i]), bytes, how, run.serial, line, from, "shared memory");
            return true;
        }
    return false;
}

/* ---- everything else ---- */

typedef struct Find {
    const char *at, *inside;
    bool found;
} Find;

/* Whether an address and the module lie in the same object. */
static int same_object(struct dl_phdr_info *info, size_t bytes, void *user)
{
    Find *f = user;
    bool at = false, inside = false;
    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const char *begin = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        const char *end = begin + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        at = at || (f->at >= begin && f->at < end);
        inside = inside || (f->inside >= begin && f->inside < end);
    }
    f->found = at && inside;
    return inside;
}

/* Constants of the kernel's own text, and what the shim keeps there. */
static bool is_of_module(const char *at)
{
    static const char *from, *to; /* a page that was found */
    if (at >= from && at < to)
        return true;
    Find f = { at, (const char *)run.module, false };
    dl_iterate_phdr(same_object, &f);
    if (f.found) {
        from = at - (uintptr_t)at % 4096;
        to = from + 4096;
    }
    return f.found;
}

void check_touch(const void *where, size_t bytes, int how, int line, const void *from)
{
    const char *at = where;
    char text[160];
    if (!run.now || fiber_holds(run.now->stack, at))
        return;
    if (!(how & SIM_ANYWHERE) && (uintptr_t)at % bytes)
        refuse(E_MISALIGNED, line, from, "touches %zu bytes at %s, which is no multiple of %zu", bytes,
               dram_say(at, text, sizeof text), bytes);
    if (!run.module->checked) { /* atomics alone tell */
        if (dram_is_device(at) && !dram_holds((uintptr_t)at, bytes))
            refuse(E_ILLEGAL_ADDRESS, line, from, "%zu bytes at %s", bytes, dram_say(at, text, sizeof text));
    } else if (dram_is_device(at)) {
        check_device(at, bytes, how, line, from);
    } else if (!check_shared(at, bytes, how, line, from) && !is_of_module(at) && !dram_is_pinned(at)) {
        refuse(E_ILLEGAL_ADDRESS, line, from, "%s %zu bytes at %s", how & SIM_WRITES ? "writes" : "reads", bytes,
               dram_say(at, text, sizeof text));
    }
}

void check_misaligned(const void *at, size_t bytes, int line)
{
    char text[160];
    if (at && (uintptr_t)at % bytes)
        refuse(E_MISALIGNED, line, NULL, "touches what lies at multiples of %zu at %s", bytes,
               dram_say(at, text, sizeof text));
}
