/* A device as a session uses it: its primary context, one stream, and memory on it, which is a space (runtime/space.h).
 *
 * The context is current only between device_enter() and device_leave(): a host that uses the device by itself does not notice.
 * The first failure of the driver sticks, and says what was asked. */
#ifndef RUNTIME_CUDA_DEVICE_H
#define RUNTIME_CUDA_DEVICE_H

#include "base/heap.h"
#include "runtime/cuda/driver.h"
#include "runtime/space.h"

enum { STAGING = 1 << 23, LANES = 2 };

typedef struct DeviceBlock {
    struct DeviceBlock *next;
    CudaAddress at;
    size_t bytes;
} DeviceBlock;

/* What comes while something runs: its place in pinned memory, the one on the device, and when it is at each. */
struct Brought {
    Brought *next;
    void *pinned;
    CudaAddress at;
    size_t bytes;
    CudaEvent *arrived; /* on the device, */
    CudaEvent *taken;   /* and copied on from there */
    bool travels, was_taken;
};

typedef struct Device {
    Space space;
    Driver driver;
    Diag *diag;
    Heap heap; /* of what is noted of blocks */
    int number;
    DeviceFacts facts;
    CudaContext *context;
    CudaStream *stream, *beside[LANES - 1]; /* all runs in the one; a graph is recorded in all, null: none was */
    CudaStream *bringing;                   /* what is brought comes in this; null: nothing was */
    Brought *brought;                       /* places for that */
    char *staging;                          /* what is on its way there, in pinned memory, */
    size_t staged;                          /* so many bytes of it since the last wait */
    DeviceBlock *taken;                     /* blocks in use, */
    DeviceBlock *spare;                     /* and those that wait to be used again */
    size_t taken_bytes;
    int failed;                  /* the number of the first error */
    const char *asked;           /* what failed, for people, */
    const char *why;             /* and what a library said of it; null: the driver says it */
    size_t wanted;               /* where memory ended */
    Status said;                 /* of a failure that was reported where it was found */
    const struct Ranges *ranges; /* what profilers are told by; null: nobody asked */
    struct Products *products;   /* a library that makes products; null: kernels do */
    bool entered, outlives;
    Cleanup cleanup;
} Device;

/* Opens a device by its number; DEVICE, with what there is, where it cannot be.  It closes itself if a jump passes. */
Status device_open(Device *v, Diag *d, Memory *memory, int number, Arena *arena);

/* Keeps it past guarded(). */
void device_keep(Device *v);

/* Gives everything back; it was opened. */
void device_close(Device *v);

/* Makes its context the current one of this thread, until it is left, or a jump passes. */
void device_enter(Device *v);
void device_leave(Device *v);

/* Notes what the driver answered to what was asked, for people; whether all is well. */
bool device_did(Device *v, int code, const char *asked);

/* Notes that a library on the device failed at what was asked, and what it said; false. */
bool device_failed(Device *v, const char *asked, const char *why);

/* Whether nothing has failed. */
static inline bool device_well(const Device *v)
{
    return v->failed == CUDA_OK && v->said == OK;
}

/* Waits until all is done that was asked for in its stream. */
void device_wait(Device *v);

/* The two of a space (runtime/space.h), and their end. */
Brought *device_bring(Space *s, Brought *b, const void *host, size_t bytes);
void device_take_brought(Space *s, Brought *b, void *to);
void device_close_brought(Device *v);

static inline CudaAddress device_address(const void *at)
{
    return (CudaAddress)(uintptr_t)at;
}

#endif
