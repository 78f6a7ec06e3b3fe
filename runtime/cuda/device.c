#include "runtime/cuda/device.h"

#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "runtime/cuda/products.h"

/* ---- failures ---- */

bool device_did(Device *v, int code, const char *asked)
{
    if (code == CUDA_OK)
        return true;
    if (v->failed == CUDA_OK) {
        v->failed = code;
        v->asked = asked;
    }
    return false;
}

bool device_failed(Device *v, const char *asked, const char *why)
{
    if (v->failed == CUDA_OK)
        v->why = why;
    return device_did(v, CUDA_UNKNOWN, asked);
}

static Device *of(Space *s)
{
    return (Device *)s;
}

/* Where memory ended while some was taken: how much there is. */
static Message *no_memory(Device *v)
{
    const bool entered = v->entered;
    size_t free = 0, all = 0;
    device_enter(v);
    if (v->entered)
        (void)v->driver.free_bytes(&free, &all);
    if (!entered)
        device_leave(v);
    Message *m =
        message_new(v->diag, SEVERITY_ERROR, DEVICE, NOWHERE,
                    "device %d (%s) has no room for %zu bytes more: %zu of its %zu are free, %zu are taken here",
                    v->number, v->facts.name, v->wanted, free, all, v->taken_bytes);
    message_try(m, "a smaller --batch, --remat cheap, or --device cpu");
    return m;
}

static Message *broken(Device *v)
{
    Message *m = message_new(v->diag, SEVERITY_ERROR, DEVICE, NOWHERE, "device %d (%s), %s: %s", v->number,
                             v->facts.name, v->asked, v->why ? v->why : driver_error(&v->driver, v->failed));
    message_try(m,
                "the last checkpoint, in another process: after an error of the device nothing more runs on it here");
    return m;
}

/* It is told once. */
static Status status(Space *s)
{
    Device *v = of(s);
    if (v->said != OK || device_well(v))
        return v->said;
    v->said = DEVICE;
    return message_send(v->failed == CUDA_NO_MEMORY && v->wanted ? no_memory(v) : broken(v));
}

/* ---- memory ---- */

enum { SMALLEST = 512, LINE = 64, STAGED = 16 };

static size_t rounded(size_t bytes)
{
    return (bytes + SMALLEST - 1) / SMALLEST * SMALLEST;
}

/* A block that waits and is of just this size. */
static DeviceBlock *take_spare(Device *v, size_t bytes)
{
    for (DeviceBlock **b = &v->spare; *b; b = &(*b)->next)
        if ((*b)->bytes == bytes) {
            DeviceBlock *found = *b;
            *b = found->next;
            return found;
        }
    return NULL;
}

static void give_spare_back(Device *v)
{
    if (v->spare)
        device_wait(v);
    while (v->spare) {
        DeviceBlock *b = v->spare;
        v->spare = b->next;
        (void)v->driver.give_back(b->at);
        heap_free(&v->heap, b);
    }
}

/* Where memory ends, what waits goes, and it is asked for once more. */
static DeviceBlock *fresh_block(Device *v, size_t bytes)
{
    DeviceBlock *b = heap_alloc(&v->heap, sizeof *b);
    *b = (DeviceBlock){ .bytes = bytes };
    int code = device_well(v) ? v->driver.alloc(&b->at, bytes) : v->failed;
    if (code == CUDA_NO_MEMORY && v->spare) {
        give_spare_back(v);
        code = v->driver.alloc(&b->at, bytes);
    }
    if (code == CUDA_OK)
        return b;
    v->wanted = device_well(v) ? bytes : v->wanted;
    (void)device_did(v, code, "taking memory");
    heap_free(&v->heap, b);
    return NULL;
}

static void *take(Space *s, size_t bytes)
{
    Device *v = of(s);
    DeviceBlock *b = take_spare(v, rounded(bytes));
    if (!b)
        b = fresh_block(v, rounded(bytes));
    if (!b)
        return NULL;
    b->next = v->taken;
    v->taken = b;
    v->taken_bytes += b->bytes;
    return (void *)(uintptr_t)b->at;
}

/* It waits for the next of its size: what runs late still has it, but what comes later runs later. */
static void give(Space *s, void *at)
{
    Device *v = of(s);
    for (DeviceBlock **b = &v->taken; *b; b = &(*b)->next)
        if ((*b)->at == device_address(at)) {
            DeviceBlock *given = *b;
            *b = given->next;
            v->taken_bytes -= given->bytes;
            given->next = v->spare;
            v->spare = given;
            return;
        }
}

/* ---- bytes ---- */

void device_wait(Device *v)
{
    if (device_well(v))
        (void)device_did(v, v->driver.wait(v->stream), "waiting for what was asked before");
    v->staged = 0;
}

/* Through pinned memory, so that nobody has to know when the host's own is read. */
static void write(Space *s, void *to, const void *host, size_t bytes)
{
    Device *v = of(s);
    for (size_t at = 0, n; at < bytes && device_well(v); at += n) {
        if (v->staged == STAGING)
            device_wait(v);
        char *staging = v->staging + v->staged;
        n = bytes - at < STAGING - v->staged ? bytes - at : STAGING - v->staged;
        v->staged = (v->staged + n + LINE - 1) / LINE * LINE;
        memcpy(staging, (const char *)host + at, n);
        (void)device_did(v, v->driver.write(device_address(to) + at, staging, n, v->stream), "copying to it");
    }
}

static void begin_reading(Device *v, char *staging, const void *from, size_t at, size_t bytes)
{
    if (device_well(v))
        (void)device_did(v, v->driver.read(staging, device_address(from) + at, bytes, v->stream), "copying from it");
}

static void read_large(Device *v, const SpaceRead *r)
{
    for (size_t at = 0, n; at < r->bytes && device_well(v); at += n) {
        n = r->bytes - at < STAGING ? r->bytes - at : STAGING;
        begin_reading(v, v->staging, r->from, at, n);
        device_wait(v);
        if (device_well(v))
            memcpy((char *)r->host + at, v->staging, n);
    }
}

/* How many of a list fit beside each other, and are waited for once. */
static int read_some(Device *v, int n, const SpaceRead *list)
{
    size_t at[STAGED], used = 0;
    int some = 0;
    while (some < n && some < STAGED && list[some].bytes <= STAGING - used) {
        at[some] = used;
        used += (list[some].bytes + LINE - 1) / LINE * LINE;
        begin_reading(v, v->staging + at[some], list[some].from, 0, list[some].bytes);
        some++;
    }
    if (some)
        device_wait(v);
    for (int i = 0; i < some && device_well(v); i++)
        memcpy(list[i].host, v->staging + at[i], list[i].bytes);
    return some;
}

/* Through pinned memory, too: where waiting fails nobody knows how long it may still be written to. */
static void read(Space *s, int n, const SpaceRead *list)
{
    Device *v = of(s);
    if (v->staged)
        device_wait(v);
    for (int i = 0, some; i < n && device_well(v); i += some) {
        some = read_some(v, n - i, list + i);
        if (!some) {
            read_large(v, &list[i]);
            some = 1;
        }
    }
}

static void copy(Space *s, void *to, const void *from, size_t bytes)
{
    Device *v = of(s);
    if (device_well(v))
        (void)device_did(v, v->driver.copy(device_address(to), device_address(from), bytes, v->stream),
                         "copying on it");
}

static void zero(Space *s, void *at, size_t bytes)
{
    Device *v = of(s);
    if (device_well(v))
        (void)device_did(v, v->driver.set(device_address(at), 0, bytes, v->stream), "setting memory to zero");
}

static const SpaceClass on_device = {
    .take = take,
    .give = give,
    .write = write,
    .read = read,
    .copy = copy,
    .zero = zero,
    .bring = device_bring,
    .take_brought = device_take_brought,
    .status = status,
};

/* ---- beginning and end ---- */

void device_enter(Device *v)
{
    for (int i = 0; i < 2 && v->context && !v->entered; i++) /* once more: what is there is given back in it alone */
        v->entered = device_did(v, v->driver.push(v->context), "entering its context");
}

void device_leave(Device *v)
{
    CudaContext *before;
    if (v->entered)
        (void)v->driver.pop(&before);
    v->entered = false;
}

static void give_all_back(Device *v)
{
    if (v->stream)
        (void)v->driver.wait(v->stream);
    device_close_brought(v);
    if (v->products)
        products_close(v->products);
    for (DeviceBlock *b = v->taken; b; b = b->next)
        (void)v->driver.give_back(b->at);
    for (DeviceBlock *b = v->spare; b; b = b->next)
        (void)v->driver.give_back(b->at);
    if (v->staging)
        (void)v->driver.give_back_host(v->staging);
    for (int i = 0; i < LANES - 1; i++)
        if (v->beside[i])
            (void)v->driver.end_stream(v->beside[i]);
    if (v->stream)
        (void)v->driver.end_stream(v->stream);
}

/* What is closed after an error may fail again, which says nothing; with its context goes what could not be given back. */
static void close_device(void *device)
{
    Device *v = device;
    if (v->context) {
        device_enter(v);
        if (v->entered)
            give_all_back(v);
        device_leave(v);
        (void)v->driver.release(v->facts.ordinal);
        v->context = NULL;
    }
    v->taken = v->spare = NULL;
    v->brought = NULL;
    if (v->outlives)
        heap_close(&v->heap);
}

void device_keep(Device *v)
{
    cleanup_drop(&v->cleanup);
    heap_keep(&v->heap);
    v->outlives = true;
}

void device_close(Device *v)
{
    if (!v->outlives)
        device_keep(v);
    close_device(v);
}

static Status no_such_device(Device *v, Diag *d, int n)
{
    Message *m =
        message_new(d, SEVERITY_ERROR, DEVICE, NOWHERE, "there is no device %d: the driver knows %d", v->number, n);
    message_try(m, n > 1 ? "--device cuda:0 to cuda:%d" : "--device cuda", n - 1);
    return message_send(m);
}

static bool begin(Device *v)
{
    Driver *a = &v->driver;
    void *staging = NULL;
    if (!device_did(v, a->retain(&v->context, v->facts.ordinal), "taking its primary context"))
        return false;
    device_enter(v);
    if (v->entered && device_did(v, a->stream(&v->stream, CUDA_STREAM_APART), "making a stream") &&
        device_did(v, a->alloc_host(&staging, STAGING), "taking pinned memory"))
        v->staging = staging;
    device_leave(v);
    return device_well(v);
}

Status device_open(Device *v, Diag *d, Memory *memory, int number, Arena *arena)
{
    int n = 0;
    *v = (Device){ .space = { &on_device }, .diag = d, .number = number };
    TRY(driver_load(&v->driver, d, NOWHERE, arena));
    if (v->driver.count(&n) != CUDA_OK || number >= n)
        return no_such_device(v, d, n);
    heap_open(&v->heap, memory);
    cleanup_push(memory, &v->cleanup, close_device, v);
    if (device_did(v, driver_facts(&v->driver, number, &v->facts), "asking what it is"))
        (void)begin(v);
    const Status answer = status(&v->space);
    if (answer != OK)
        device_close(v);
    return answer;
}
