/* Memory of devices: a range of addresses that nobody may touch but while something runs there.  Each block has pages of its
 * own, and behind it one that nobody has; what is freed is never given out again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "simcuda/world.h"

enum { PAGE = 4096, ALIGNMENT = 256, SLACK = 0xc5, FRESH = 0xff };

typedef struct Blocks {
    Block *p; /* in the order of addresses */
    size_t n, cap;
    size_t first_live;
} Blocks;

static Blocks device, host;
static char *range, *next_free, *range_end;

static void add(Blocks *b, Block block)
{
    if (b->n == b->cap) {
        b->cap = b->cap ? 2 * b->cap : 64;
        b->p = realloc(b->p, b->cap * sizeof *b->p);
        if (!b->p)
            abort();
    }
    b->p[b->n++] = block;
}

/* The block whose pages, or the page behind them, hold an address. */
static Block *find(const Blocks *b, const void *at)
{
    for (size_t low = 0, high = b->n; low < high;) {
        const size_t middle = (low + high) / 2;
        Block *k = &b->p[middle];
        if ((const char *)at < k->from)
            high = middle;
        else if ((const char *)at >= k->end + PAGE)
            low = middle + 1;
        else
            return k;
    }
    return NULL;
}

Block *dram_block(const void *at)
{
    return find(&device, at);
}

static bool reserve(void)
{
    for (size_t bytes = (size_t)1 << 41; !range && bytes >= (size_t)1 << 33; bytes /= 2) {
        char *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED)
            continue;
        range = at;
        next_free = at + PAGE;
        range_end = at + bytes;
    }
    return range;
}

size_t dram_total(void)
{
    const char *word = getenv("QCC_SIM_MEMORY");
    return word && *word ? strtoull(word, NULL, 10) : (size_t)4 << 30;
}

static size_t device_bytes(int number)
{
    size_t bytes = 0;
    for (size_t i = device.first_live; i < device.n; i++)
        if (device.p[i].live && device.p[i].context->device == number)
            bytes += device.p[i].bytes;
    return bytes;
}

void dram_info(CudaContext *c, size_t *free_bytes, size_t *total)
{
    const size_t used = device_bytes(c->device);
    *total = dram_total();
    *free_bytes = used < *total ? *total - used : 0;
}

static void fill(const Block *b)
{
    memset(b->from, SLACK, (size_t)(b->end - b->from));
    memset(b->at, FRESH, b->bytes);
}

int dram_alloc(CudaContext *c, CudaAddress *at, size_t bytes)
{
    const size_t used = device_bytes(c->device), total = dram_total();
    if (!at || !bytes)
        return CUDA_INVALID;
    if (!reserve() || bytes > total || used > total - bytes)
        return CUDA_NO_MEMORY;
    const size_t held = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, pages = (held + PAGE - 1) / PAGE * PAGE;
    if (pages + PAGE > (size_t)(range_end - next_free))
        return CUDA_NO_MEMORY;
    Block b = { next_free, next_free + pages, next_free + pages - held, bytes, true, c, NULL };
    if (mprotect(b.from, pages, PROT_READ | PROT_WRITE) != 0)
        return CUDA_NO_MEMORY;
    fill(&b);
    mprotect(b.from, pages, PROT_NONE);
    next_free = b.end + PAGE;
    add(&device, b);
    *at = (uintptr_t)b.at;
    return CUDA_OK;
}

int dram_free(CudaContext *c, CudaAddress at)
{
    Block *b = find(&device, (void *)(uintptr_t)at);
    (void)c;
    if (!at)
        return CUDA_OK;
    if (!b || b->at != (char *)(uintptr_t)at || !b->live) {
        char text[160];
        report("cuMemFree of what was not given out: %s", dram_say((void *)(uintptr_t)at, text, sizeof text));
        return CUDA_INVALID;
    }
    b->live = false;
    check_free(b->shadow);
    b->shadow = NULL;
    while (device.first_live < device.n && !device.p[device.first_live].live)
        device.first_live++;
    /* The pages go back to the system, the addresses stay taken. */
    mmap(b->from, (size_t)(b->end - b->from), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
    return CUDA_OK;
}

int dram_alloc_host(CudaContext *c, void **at, size_t bytes)
{
    const size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
    if (!at || !bytes)
        return CUDA_INVALID;
    char *from = mmap(NULL, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (from == MAP_FAILED)
        return CUDA_NO_MEMORY;
    mprotect(from + pages, PAGE, PROT_NONE);
    const size_t held = (bytes + 63) / 64 * 64; /* as strictly aligned as anything of the host */
    const Block b = { from, from + pages, from + pages - held, bytes, true, c, NULL };
    fill(&b);
    add(&host, b);
    *at = b.at;
    return CUDA_OK;
}

int dram_free_host(CudaContext *c, void *at)
{
    (void)c;
    for (size_t i = 0; at && i < host.n; i++) {
        Block *b = &host.p[i];
        if (b->at != at || !b->live)
            continue;
        b->live = false;
        mprotect(b->from, (size_t)(b->end - b->from), PROT_NONE);
        return CUDA_OK;
    }
    report("cuMemFreeHost of what was not given out");
    return CUDA_INVALID;
}

bool dram_is_device(const void *at)
{
    return range && (const char *)at >= range && (const char *)at < range_end;
}

bool dram_is_pinned(const void *at)
{
    for (size_t i = 0; i < host.n; i++)
        if (host.p[i].live && (const char *)at >= host.p[i].at && (const char *)at <= host.p[i].at + host.p[i].bytes)
            return true;
    return false;
}

bool dram_holds(CudaAddress at, size_t bytes)
{
    const char *p = (const char *)(uintptr_t)at;
    const Block *b = find(&device, p);
    return b && b->live && p >= b->at && p <= b->at + b->bytes && bytes <= (size_t)(b->at + b->bytes - p);
}

const char *dram_say(const void *where, char *text, size_t bytes)
{
    const char *at = where;
    const Block *b = find(&device, at);
    if (!at)
        snprintf(text, bytes, "the null pointer");
    else if (!dram_is_device(at))
        snprintf(text, bytes, "%p, which is no memory of a device", where);
    else if (!b)
        snprintf(text, bytes, "%p, which was never given out", where);
    else if (!b->live)
        snprintf(text, bytes, "byte %td of block %td of %zu bytes, which was freed", at - b->at, b - device.p,
                 b->bytes);
    else if (at < b->at)
        snprintf(text, bytes, "%td bytes before block %td of %zu bytes", b->at - at, b - device.p, b->bytes);
    else if (at >= b->at + b->bytes)
        snprintf(text, bytes, "%td bytes behind the end of block %td of %zu bytes", at - b->at - (ptrdiff_t)b->bytes,
                 b - device.p, b->bytes);
    else
        snprintf(text, bytes, "byte %td of block %td of %zu bytes", at - b->at, b - device.p, b->bytes);
    return text;
}

void dram_open(bool open)
{
    for (size_t i = device.first_live; i < device.n; i++)
        if (device.p[i].live)
            mprotect(device.p[i].from, (size_t)(device.p[i].end - device.p[i].from),
                     open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/* The first byte that is not slack any more; the end: none. */
static char *first_other(char *from, char *end)
{
    while (from < end && *from == (char)SLACK)
        from++;
    return from;
}

bool dram_spoilt(const char *by)
{
    char text[160];
    for (size_t i = device.first_live; i < device.n; i++) {
        const Block *b = &device.p[i];
        char *behind = b->at + b->bytes, *end = b->end;
        if (!b->live)
            continue;
        char *at = first_other(behind, end);
        if (at == end) {
            at = first_other(b->from, b->at);
            end = b->at;
        }
        if (at == end)
            continue;
        report("%s wrote %s", by, dram_say(at, text, sizeof text));
        *at = (char)SLACK;
        return true;
    }
    return false;
}

size_t dram_left(const CudaContext *c, bool of_host, size_t *bytes)
{
    const Blocks *all = of_host ? &host : &device;
    size_t n = 0;
    *bytes = 0;
    for (size_t i = 0; i < all->n; i++)
        if (all->p[i].live && (!c || all->p[i].context == c)) {
            *bytes += all->p[i].bytes;
            n++;
        }
    return n;
}
