/* Calls for memory, streams, events and graphs. */
#include <pthread.h>

#include "simcuda/calls.h"

/* ---- streams ---- */

/* A stream that lives; 0 is the legacy one. */
CudaStream *call_stream(CudaStream *s, const char *call)
{
    if (!s)
        return call_context()->legacy;
    if (!thing_lives(s, STREAM, call))
        return NULL;
    if (s->thing.context != call_context()) {
        report("%s: the stream is of another context", call);
        return NULL;
    }
    return s;
}

static int new_stream(CudaStream **made, unsigned flags)
{
    if (!made || flags > CUDA_STREAM_APART)
        return CUDA_INVALID;
    CudaStream *s = thing_new(STREAM, call_context(), sizeof *s);
    s->apart = flags == CUDA_STREAM_APART;
    *made = s;
    return CUDA_OK;
}

int cuStreamCreate(CudaStream **stream, unsigned flags)
{
    CALL(NEEDS_CONTEXT, new_stream(stream, flags));
}

/* What it still has to do is done. */
static int end_stream(CudaStream *s)
{
    if (!thing_lives(s, STREAM, "cuStreamDestroy") || s == s->thing.context->legacy)
        return E_INVALID_HANDLE;
    const int code = queue_run(s, world.number);
    s->thing.live = false;
    return code;
}

int cuStreamDestroy_v2(CudaStream *stream)
{
    GIVING_UP(NEEDS_CONTEXT, end_stream(stream));
}

/* After a wait. */
static int drained(int code)
{
    world.counts.drains += !world.first;
    return code;
}

static int wait(CudaStream *stream)
{
    CudaStream *s = call_stream(stream, "cuStreamSynchronize");
    if (!s)
        return E_INVALID_HANDLE;
    if (s->capture) {
        s->captured->broken = true;
        return E_CAPTURE_UNSUPPORTED;
    }
    world.counts.waits++;
    return drained(queue_run(s, world.number));
}

int cuStreamSynchronize(CudaStream *stream)
{
    CALL(NEEDS_CONTEXT, wait(stream));
}

/* ---- memory ---- */

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    CALL(NEEDS_CONTEXT, (dram_info(call_context(), free_bytes, total), CUDA_OK));
}

int cuMemAlloc_v2(CudaAddress *at, size_t bytes)
{
    CALL(NEEDS_CONTEXT | UNLESS_CAPTURED, dram_alloc(call_context(), at, bytes));
}

/* Work that is under way ends first. */
static int give_back(CudaAddress at)
{
    const int code = call_context() ? queue_drain(call_context()) : CUDA_OK, freed = dram_free(call_context(), at);
    return code ? code : freed;
}

int cuMemFree_v2(CudaAddress at)
{
    GIVING_UP(NEEDS_CONTEXT | UNLESS_CAPTURED, give_back(at));
}

int cuMemAllocHost_v2(void **at, size_t bytes)
{
    CALL(NEEDS_CONTEXT | UNLESS_CAPTURED, dram_alloc_host(call_context(), at, bytes));
}

static int give_back_host(void *at)
{
    const int code = call_context() ? queue_drain(call_context()) : CUDA_OK, freed = dram_free_host(call_context(), at);
    return code ? code : freed;
}

int cuMemFreeHost(void *at)
{
    GIVING_UP(NEEDS_CONTEXT | UNLESS_CAPTURED, give_back_host(at));
}

/* A copy as it is asked for: its memory of the device has to be there already. */
static int add_copy(Op op, const char *call)
{
    char text[160];
    const bool writes = op.kind != OP_READ, reads = op.kind == OP_READ || op.kind == OP_COPY;
    op.stream = call_stream(op.stream, call);
    if (!op.stream)
        return E_INVALID_HANDLE;
    if (!op.bytes)
        return CUDA_OK;
    if ((writes && !dram_holds(op.to, op.bytes)) || (reads && !dram_holds(op.from, op.bytes))) {
        const CudaAddress at = writes && !dram_holds(op.to, op.bytes) ? op.to : op.from;
        report("%s of %zu bytes at %s", call, op.bytes, dram_say((void *)(uintptr_t)at, text, sizeof text));
        return CUDA_INVALID;
    }
    if (op.kind != OP_COPY && op.kind != OP_SET && (!op.host || dram_is_device(op.host))) {
        report("%s: %s is no memory of the host", call, op.host ? "what lies on a device" : "the null pointer");
        return CUDA_INVALID;
    }
    return queue_add(&op);
}

int cuMemcpyHtoDAsync_v2(CudaAddress to, const void *from, size_t bytes, CudaStream *s)
{
    CALL(NEEDS_CONTEXT,
         add_copy((Op){ .kind = OP_WRITE, .to = to, .host = (void *)(uintptr_t)from, .bytes = bytes, .stream = s },
                  "cuMemcpyHtoDAsync"));
}

int cuMemcpyDtoHAsync_v2(void *to, CudaAddress from, size_t bytes, CudaStream *s)
{
    CALL(NEEDS_CONTEXT,
         add_copy((Op){ .kind = OP_READ, .host = to, .from = from, .bytes = bytes, .stream = s }, "cuMemcpyDtoHAsync"));
}

int cuMemcpyDtoDAsync_v2(CudaAddress to, CudaAddress from, size_t bytes, CudaStream *s)
{
    CALL(NEEDS_CONTEXT,
         add_copy((Op){ .kind = OP_COPY, .to = to, .from = from, .bytes = bytes, .stream = s }, "cuMemcpyDtoDAsync"));
}

int cuMemsetD8Async(CudaAddress at, unsigned char value, size_t bytes, CudaStream *s)
{
    CALL(NEEDS_CONTEXT,
         add_copy((Op){ .kind = OP_SET, .to = at, .value = value, .bytes = bytes, .stream = s }, "cuMemsetD8Async"));
}

/* ---- events ---- */

static int new_event(CudaEvent **made, unsigned flags)
{
    enum { BLOCKING = 1, NO_TIMES = 2 };
    if (!made || flags & ~(unsigned)(BLOCKING | NO_TIMES))
        return CUDA_INVALID;
    CudaEvent *e = thing_new(EVENT, call_context(), sizeof *e);
    e->times = !(flags & NO_TIMES);
    *made = e;
    return CUDA_OK;
}

int cuEventCreate(CudaEvent **event, unsigned flags)
{
    CALL(NEEDS_CONTEXT, new_event(event, flags));
}

static int end_event(CudaEvent *e)
{
    if (!thing_lives(e, EVENT, "cuEventDestroy"))
        return E_INVALID_HANDLE;
    e->thing.live = false;
    return CUDA_OK;
}

int cuEventDestroy_v2(CudaEvent *event)
{
    GIVING_UP(NEEDS_CONTEXT, end_event(event));
}

static int record(CudaEvent *e, CudaStream *stream)
{
    CudaStream *s = call_stream(stream, "cuEventRecord");
    if (!s || !thing_lives(e, EVENT, "cuEventRecord"))
        return E_INVALID_HANDLE;
    return queue_add(&(Op){ .kind = OP_RECORD, .event = e, .stream = s });
}

int cuEventRecord(CudaEvent *event, CudaStream *stream)
{
    CALL(NEEDS_CONTEXT, record(event, stream));
}

/* The stream of an op that waits; null: it ran. */
static CudaStream *waiting_in(uint64_t number)
{
    for (const Op *op = world.first; op; op = op->next)
        if (op->number == number)
            return op->stream;
    return NULL;
}

static int wait_event(CudaEvent *e)
{
    if (!thing_lives(e, EVENT, "cuEventSynchronize"))
        return E_INVALID_HANDLE;
    if (e->captured)
        return E_CAPTURED_EVENT;
    world.counts.waits++;
    CudaStream *s = waiting_in(e->recorded);
    return drained(s ? queue_run(s, e->recorded) : CUDA_OK);
}

int cuEventSynchronize(CudaEvent *event)
{
    CALL(NEEDS_CONTEXT, wait_event(event));
}

/* Outside of a capture what the event stands behind runs at once, which it may. */
static int stream_waits(CudaStream *stream, CudaEvent *e, unsigned flags)
{
    CudaStream *s = call_stream(stream, "cuStreamWaitEvent");
    if (!s || !thing_lives(e, EVENT, "cuStreamWaitEvent"))
        return E_INVALID_HANDLE;
    if (flags)
        return CUDA_INVALID;
    if (s->capture || e->captured)
        return capture_wait(s, e);
    CudaStream *other = waiting_in(e->recorded);
    return other ? queue_run(other, e->recorded) : CUDA_OK;
}

int cuStreamWaitEvent(CudaStream *stream, CudaEvent *event, unsigned flags)
{
    CALL(NEEDS_CONTEXT, stream_waits(stream, event, flags));
}

static int elapsed(float *milliseconds, const CudaEvent *from, const CudaEvent *to)
{
    if (!thing_lives(from, EVENT, "cuEventElapsedTime") || !thing_lives(to, EVENT, "cuEventElapsedTime"))
        return E_INVALID_HANDLE;
    if (!from->times || !to->times || !from->recorded || !to->recorded)
        return E_INVALID_HANDLE;
    if (from->ran != from->recorded || to->ran != to->recorded)
        return E_NOT_READY;
    *milliseconds = (float)(to->at - from->at);
    return CUDA_OK;
}

int cuEventElapsedTime(float *milliseconds, CudaEvent *from, CudaEvent *to)
{
    CALL(NEEDS_CONTEXT, elapsed(milliseconds, from, to));
}
