/* Bytes that come to a device while something runs there: the host copies them into pinned memory, and a stream of their own
 * takes them on from there.  What reads them waits for that stream, never the host. */
#include <string.h>

#include "runtime/cuda/device.h"

static Device *of(Space *s)
{
    return (Device *)s;
}

/* What is in its places may be written over once nobody on the device is at it. */
static void wait_for(Device *v, Brought *b)
{
    if (b->travels && device_well(v))
        (void)device_did(v, v->driver.wait_event(b->arrived), "waiting for what was brought");
    if (b->was_taken && device_well(v))
        (void)device_did(v, v->driver.stream_waits(v->bringing, b->taken, 0), "waiting for what was taken");
    b->travels = false;
}

static void give_places(Device *v, Brought *b)
{
    if (b->was_taken && device_well(v)) /* the device may still copy from there */
        device_wait(v);
    if (b->at)
        (void)v->driver.give_back(b->at);
    if (b->pinned)
        (void)v->driver.give_back_host(b->pinned);
    b->at = 0;
    b->pinned = NULL;
    b->bytes = 0;
    b->was_taken = false;
}

static Brought *open_brought(Device *v)
{
    Driver *a = &v->driver;
    if (!v->bringing && !device_did(v, a->stream(&v->bringing, CUDA_STREAM_APART), "making a stream"))
        return NULL;
    Brought *b = heap_alloc(&v->heap, sizeof *b);
    *b = (Brought){ .next = v->brought };
    v->brought = b;
    return device_did(v, a->event(&b->arrived, CUDA_EVENT_ORDER), "making an event") &&
                   device_did(v, a->event(&b->taken, CUDA_EVENT_ORDER), "making an event")
               ? b
               : NULL;
}

/* Of just that size: a batch has as many bytes as the one before. */
static bool make_places(Device *v, Brought *b, size_t bytes)
{
    if (b->bytes == bytes)
        return true;
    give_places(v, b);
    if (!device_did(v, v->driver.alloc_host(&b->pinned, bytes), "taking pinned memory"))
        return false;
    const int code = v->driver.alloc(&b->at, bytes);
    v->wanted = code == CUDA_NO_MEMORY ? bytes : v->wanted;
    b->bytes = device_did(v, code, "taking memory") ? bytes : 0;
    return b->bytes == bytes;
}

Brought *device_bring(Space *s, Brought *b, const void *host, size_t bytes)
{
    Device *v = of(s);
    if (!device_well(v))
        return NULL;
    if (!b)
        b = open_brought(v);
    if (!b || !bytes)
        return b;
    wait_for(v, b);
    if (!device_well(v) || !make_places(v, b, bytes))
        return NULL;
    memcpy(b->pinned, host, bytes);
    b->travels = device_did(v, v->driver.write(b->at, b->pinned, bytes, v->bringing), "copying to it") &&
                 device_did(v, v->driver.record(b->arrived, v->bringing), "noting that something arrived");
    return b->travels ? b : NULL;
}

void device_take_brought(Space *s, Brought *b, void *to)
{
    Device *v = of(s);
    if (!device_well(v))
        return;
    b->was_taken = device_did(v, v->driver.stream_waits(v->stream, b->arrived, 0), "waiting for what was brought") &&
                   device_did(v, v->driver.copy(device_address(to), b->at, b->bytes, v->stream), "copying on it") &&
                   device_did(v, v->driver.record(b->taken, v->stream), "noting that something was taken");
}

void device_close_brought(Device *v)
{
    if (v->bringing)
        (void)v->driver.wait(v->bringing);
    for (Brought *b = v->brought; b; b = b->next) {
        give_places(v, b);
        if (b->arrived)
            (void)v->driver.end_event(b->arrived);
        if (b->taken)
            (void)v->driver.end_event(b->taken);
    }
    v->brought = NULL;
    if (v->bringing)
        (void)v->driver.end_stream(v->bringing);
    v->bringing = NULL;
}
