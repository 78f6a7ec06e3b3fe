/* libcuda.so.1 of the simulated device: the functions that runtime/cuda/driver.def lists, and no others. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "simcuda/world.h"

#define EXPORT                          __attribute__((visibility("default")))
#define DRIVER(name, symbol, arguments) EXPORT int symbol arguments;
#include "runtime/cuda/driver.def"

World world;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- how calls begin and end ---- */

typedef enum Needs {
    NEEDS_NOTHING = 0,
    NEEDS_INIT = 1,
    NEEDS_CONTEXT = 2,
    FREES = 4, /* what it is about is given up even where the call fails, as errors of earlier work do not keep it */
    UNLESS_CAPTURED = 8 /* it may not be called while a stream of this thread captures */
} Needs;

enum { MOST_CONTEXTS = 32 };

static _Thread_local CudaContext *current[MOST_CONTEXTS];
static _Thread_local int n_current;

static CudaContext *context(void)
{
    return n_current ? current[n_current - 1] : NULL;
}

/* QCC_SIM_FAIL=K[+][:CODE]: the K-th call fails, or that one and all behind it. */
static int asked_to_fail(void)
{
    const char *word = getenv("QCC_SIM_FAIL");
    char *end;
    if (!word || !*word)
        return CUDA_OK;
    const unsigned long long k = strtoull(word, &end, 10);
    const bool on = *end == '+';
    if (world.counts.calls != k && !(on && world.counts.calls > k))
        return CUDA_OK;
    const char *code = strchr(end, ':');
    return code ? atoi(code + 1) : E_UNKNOWN;
}

static int begin(const char *call, int needs)
{
    pthread_mutex_lock(&lock);
    world.counts.calls++;
    const int asked = asked_to_fail();
    if (asked)
        return asked;
    if (needs && !world.begun)
        return E_NOT_INITIALIZED;
    if (!(needs & NEEDS_CONTEXT))
        return CUDA_OK;
    if (!context()) {
        report("%s without a context", call);
        return E_INVALID_CONTEXT;
    }
    if (!context()->thing.live) {
        report("%s in a context that was released", call);
        return E_INVALID_CONTEXT;
    }
    if (world.sticky)
        return world.sticky;
    return needs & UNLESS_CAPTURED ? queue_refuses(context()) : CUDA_OK;
}

static int end(int code)
{
    pthread_mutex_unlock(&lock);
    return code;
}

/* The body of a call, unless its beginning failed. */
#define CALL(needs, body)                                                                                              \
    do {                                                                                                               \
        int code = begin(__func__, needs);                                                                             \
        if (code == CUDA_OK)                                                                                           \
            code = body;                                                                                               \
        return end(code);                                                                                              \
    } while (0)

/* The body of a call that gives something up, which it does even where its beginning failed. */
#define GIVING_UP(needs, body)                                                                                         \
    do {                                                                                                               \
        const int failed = begin(__func__, needs), code = body;                                                        \
        return end(failed ? failed : code);                                                                            \
    } while (0)

/* ---- the driver and its devices ---- */

static int n_devices(void)
{
    const char *word = getenv("QCC_SIM_DEVICES");
    return word && *word ? atoi(word) : 1;
}

static int capability(void)
{
    const char *word = getenv("QCC_SIM_CAPABILITY");
    return word && *word ? atoi(word) : 90;
}

static int init(unsigned flags)
{
    if (flags)
        return CUDA_INVALID;
    if (!n_devices())
        return CUDA_NO_DEVICE;
    world.begun = true;
    world.begun_by = getpid();
    return CUDA_OK;
}

int cuInit(unsigned flags)
{
    CALL(NEEDS_NOTHING, init(flags));
}

int cuDriverGetVersion(int *version)
{
    const char *word = getenv("QCC_SIM_VERSION");
    CALL(NEEDS_NOTHING, version ? (*version = word && *word ? atoi(word) : 13000, CUDA_OK) : CUDA_INVALID);
}

int cuGetErrorName(int code, const char **name)
{
    *name = error_name(code);
    return *name ? CUDA_OK : CUDA_INVALID;
}

int cuGetErrorString(int code, const char **text)
{
    *text = error_text(code);
    return *text ? CUDA_OK : CUDA_INVALID;
}

int cuDeviceGetCount(int *n)
{
    CALL(NEEDS_INIT, (*n = n_devices(), CUDA_OK));
}

static bool is_device(int device)
{
    return device >= 0 && device < n_devices();
}

int cuDeviceGet(int *device, int number)
{
    CALL(NEEDS_INIT, is_device(number) ? (*device = number, CUDA_OK) : E_INVALID_DEVICE);
}

int cuDeviceGetName(char *name, int bytes, int device)
{
    CALL(NEEDS_INIT,
         is_device(device) ? (snprintf(name, (size_t)bytes, "Simulated GPU %d", device), CUDA_OK) : E_INVALID_DEVICE);
}

typedef struct AttributeRow {
    int attribute, value;
} AttributeRow;

/* As an H100 answers, by the numbers of cuda.h. */
static const AttributeRow attributes[] = {
    { 1, 1024 }, /* threads of a block */
    { 2, 1024 },   { 3, 1024 },     { 4, 64 },      { 5, 2147483647 },
    { 6, 65535 },  { 7, 65535 },    { 8, 49152 }, /* shared memory of a block */
    { 9, 65536 },                                 /* constant memory */
    { 10, 32 },                                   /* lanes */
    { 12, 65536 }, { 13, 1980000 }, { 16, 132 },    { 18, 0 },
    { 31, 1 },     { 36, 2619000 }, { 37, 5120 },   { 38, 52428800 },
    { 39, 2048 },  { 40, 3 },       { 41, 1 },      { 81, 233472 }, /* shared memory of a processor */
    { 82, 65536 }, { 83, 1 },       { 97, 232448 }, { 106, 32 },
};

static int attribute(int *value, int number, int device)
{
    if (!value)
        return CUDA_INVALID;
    if (!is_device(device))
        return E_INVALID_DEVICE;
    if (number == CUDA_CAPABILITY_MAJOR || number == CUDA_CAPABILITY_MINOR) {
        *value = number == CUDA_CAPABILITY_MAJOR ? capability() / 10 : capability() % 10;
        return CUDA_OK;
    }
    for (size_t i = 0; i < COUNT(attributes); i++)
        if (attributes[i].attribute == number) {
            *value = attributes[i].value;
            return CUDA_OK;
        }
    report("cuDeviceGetAttribute: attribute %d, which the simulated device does not know", number);
    return CUDA_INVALID;
}

int cuDeviceGetAttribute(int *value, int number, int device)
{
    CALL(NEEDS_INIT, attribute(value, number, device));
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    CALL(NEEDS_INIT, is_device(device) ? (*bytes = dram_total(), CUDA_OK) : E_INVALID_DEVICE);
}

/* ---- contexts ---- */

static CudaContext *primary(int device)
{
    for (Thing *t = world.things; t; t = t->next)
        if (t->kind == CONTEXT && t->live && ((CudaContext *)t)->device == device)
            return (CudaContext *)t;
    return NULL;
}

static int retain(CudaContext **context, int device)
{
    if (!context)
        return CUDA_INVALID;
    if (!is_device(device))
        return E_INVALID_DEVICE;
    CudaContext *c = primary(device);
    if (!c) {
        c = thing_new(CONTEXT, NULL, sizeof *c);
        c->device = device;
        c->legacy = thing_new(STREAM, c, sizeof *c->legacy);
    }
    c->users++;
    *context = c;
    return CUDA_OK;
}

int cuDevicePrimaryCtxRetain(CudaContext **context, int device)
{
    CALL(NEEDS_INIT, retain(context, device));
}

static int release(int device)
{
    CudaContext *c = is_device(device) ? primary(device) : NULL;
    if (!is_device(device))
        return E_INVALID_DEVICE;
    if (!c) {
        report("cuDevicePrimaryCtxRelease of what was not retained");
        return E_INVALID_CONTEXT;
    }
    if (--c->users)
        return CUDA_OK;
    queue_drain(c);
    queue_drop(c);
    c->thing.live = c->legacy->thing.live = false;
    return CUDA_OK;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    GIVING_UP(NEEDS_INIT, release(device));
}

static int push(CudaContext *c)
{
    if (!thing_lives(c, CONTEXT, "cuCtxPushCurrent"))
        return E_INVALID_CONTEXT;
    if (n_current == MOST_CONTEXTS) {
        report("cuCtxPushCurrent: %d contexts were pushed and not popped", MOST_CONTEXTS);
        return CUDA_INVALID;
    }
    current[n_current++] = c;
    return CUDA_OK;
}

int cuCtxPushCurrent_v2(CudaContext *context)
{
    CALL(NEEDS_INIT, push(context));
}

static int pop(CudaContext **c)
{
    if (!n_current) {
        report("cuCtxPopCurrent, and none was pushed");
        return E_INVALID_CONTEXT;
    }
    n_current--;
    if (c)
        *c = current[n_current];
    return CUDA_OK;
}

int cuCtxPopCurrent_v2(CudaContext **context)
{
    GIVING_UP(NEEDS_INIT, pop(context));
}

/* ---- modules ---- */

/* A field of an image, "path=..."; to be freed. */
static char *field_of(const char *image, const char *name)
{
    const char *at = strstr(image, name);
    return at ? strndup(at + strlen(name), strcspn(at + strlen(name), "\n")) : NULL;
}

/* Whether the device runs what was compiled for an architecture: a cubin for the same major number and none above, PTX for
 * any that is not above; what a letter was said for, on that one alone. */
static bool fits(const char *form, const char *arch)
{
    char *end;
    const int made_for = (int)strtol(arch, &end, 10), here = capability();
    if (*end == 'a')
        return made_for == here;
    return made_for <= here && (strcmp(form, "ptx") == 0 || made_for / 10 == here / 10);
}

static int open_object(CudaLoaded **made, const char *path)
{
    SimOpen *enter;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = object ? dlsym(object, "simcuda_module") : NULL;
    if (!symbol) {
        report("cuModuleLoadData: %s", dlerror());
        return E_INVALID_IMAGE;
    }
    memcpy(&enter, &symbol, sizeof enter);
    CudaLoaded *m = thing_new(MODULE, context(), sizeof *m);
    m->object = object;
    m->module = enter(kernel_calls());
    m->functions = calloc((size_t)m->module->n + 1, sizeof(CudaFunction *));
    *made = m;
    return CUDA_OK;
}

static int load(CudaLoaded **module, const void *image)
{
    if (!module || !image)
        return CUDA_INVALID;
    if (strncmp(image, SIM_IMAGE, strlen(SIM_IMAGE)) != 0) {
        report("cuModuleLoadData of what the simulated NVRTC did not make");
        return E_INVALID_IMAGE;
    }
    char *form = field_of(image, "form="), *arch = field_of(image, "arch="), *path = field_of(image, "path=");
    const int code = !form || !arch || !path ? E_INVALID_IMAGE
                     : fits(form, arch)      ? open_object(module, path)
                                             : CUDA_NO_IMAGE;
    free(form);
    free(arch);
    free(path);
    return code;
}

int cuModuleLoadData(CudaLoaded **module, const void *image)
{
    CALL(NEEDS_CONTEXT | UNLESS_CAPTURED, load(module, image));
}

static int unload(CudaLoaded *m)
{
    if (!thing_lives(m, MODULE, "cuModuleUnload"))
        return E_INVALID_HANDLE;
    const int code = queue_drain(m->thing.context);
    m->thing.live = false;
    for (int i = 0; i < m->module->n; i++)
        if (m->functions[i])
            m->functions[i]->thing.live = false;
    return code; /* the object stays: reports name its kernels */
}

int cuModuleUnload(CudaLoaded *module)
{
    GIVING_UP(NEEDS_CONTEXT | UNLESS_CAPTURED, unload(module));
}

static int function(CudaFunction **found, CudaLoaded *m, const char *name)
{
    if (!found || !name)
        return CUDA_INVALID;
    if (!thing_lives(m, MODULE, "cuModuleGetFunction"))
        return E_INVALID_HANDLE;
    for (int i = 0; i < m->module->n; i++) {
        if (strcmp(m->module->kernels[i]->name, name) != 0)
            continue;
        if (!m->functions[i]) {
            m->functions[i] = thing_new(FUNCTION, m->thing.context, sizeof **m->functions);
            m->functions[i]->module = m;
            m->functions[i]->kernel = m->module->kernels[i];
        }
        *found = m->functions[i];
        return CUDA_OK;
    }
    return E_NOT_FOUND;
}

int cuModuleGetFunction(CudaFunction **found, CudaLoaded *module, const char *name)
{
    CALL(NEEDS_CONTEXT, function(found, module, name));
}

/* ---- memory ---- */

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    CALL(NEEDS_CONTEXT, (dram_info(context(), free_bytes, total), CUDA_OK));
}

int cuMemAlloc_v2(CudaAddress *at, size_t bytes)
{
    CALL(NEEDS_CONTEXT | UNLESS_CAPTURED, dram_alloc(context(), at, bytes));
}

/* Work that is under way ends first. */
static int give_back(CudaAddress at)
{
    const int code = context() ? queue_drain(context()) : CUDA_OK, freed = dram_free(context(), at);
    return code ? code : freed;
}

int cuMemFree_v2(CudaAddress at)
{
    GIVING_UP(NEEDS_CONTEXT | UNLESS_CAPTURED, give_back(at));
}

int cuMemAllocHost_v2(void **at, size_t bytes)
{
    CALL(NEEDS_CONTEXT | UNLESS_CAPTURED, dram_alloc_host(context(), at, bytes));
}

static int give_back_host(void *at)
{
    const int code = context() ? queue_drain(context()) : CUDA_OK, freed = dram_free_host(context(), at);
    return code ? code : freed;
}

int cuMemFreeHost(void *at)
{
    GIVING_UP(NEEDS_CONTEXT | UNLESS_CAPTURED, give_back_host(at));
}

/* ---- streams ---- */

/* A stream that lives; 0 is the legacy one. */
static CudaStream *stream_of(CudaStream *s, const char *call)
{
    if (!s)
        return context()->legacy;
    if (!thing_lives(s, STREAM, call))
        return NULL;
    if (s->thing.context != context()) {
        report("%s: the stream is of another context", call);
        return NULL;
    }
    return s;
}

/* A copy as it is asked for: its memory of the device has to be there already. */
static int add_copy(Op op, const char *call)
{
    char text[160];
    const bool writes = op.kind != OP_READ, reads = op.kind == OP_READ || op.kind == OP_COPY;
    op.stream = stream_of(op.stream, call);
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

static int new_stream(CudaStream **made, unsigned flags)
{
    if (!made || flags > CUDA_STREAM_APART)
        return CUDA_INVALID;
    CudaStream *s = thing_new(STREAM, context(), sizeof *s);
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

static int wait(CudaStream *stream)
{
    CudaStream *s = stream_of(stream, "cuStreamSynchronize");
    if (!s)
        return E_INVALID_HANDLE;
    if (s->capture) {
        s->capture = CAPTURE_BROKEN;
        return E_CAPTURE_UNSUPPORTED;
    }
    world.counts.waits++;
    return queue_run(s, world.number);
}

int cuStreamSynchronize(CudaStream *stream)
{
    CALL(NEEDS_CONTEXT, wait(stream));
}

/* ---- events ---- */

static int new_event(CudaEvent **made, unsigned flags)
{
    enum { BLOCKING = 1, NO_TIMES = 2 };
    if (!made || flags & ~(unsigned)(BLOCKING | NO_TIMES))
        return CUDA_INVALID;
    CudaEvent *e = thing_new(EVENT, context(), sizeof *e);
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
    CudaStream *s = stream_of(stream, "cuEventRecord");
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
    return s ? queue_run(s, e->recorded) : CUDA_OK;
}

int cuEventSynchronize(CudaEvent *event)
{
    CALL(NEEDS_CONTEXT, wait_event(event));
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

/* ---- launches ---- */

/* Reads the argument at an address that somebody else made. */
static bool read_argument(char *to, const void *from, size_t bytes)
{
    const struct iovec here = { to, bytes }, there = { (void *)(uintptr_t)from, bytes };
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes)
        return true;
    if (errno != ENOSYS && errno != EPERM)
        return false;
    memcpy(to, from, bytes);
    return true;
}

static int read_arguments(const SimKernel *k, char *values, void **arguments)
{
    if (k->n && !arguments) {
        report("%s is launched without arguments; it has %d parameters", k->name, k->n);
        return CUDA_INVALID;
    }
    for (int i = 0; i < k->n; i++) {
        const size_t bytes = k->parameters[i].bytes;
        void *from = NULL;
        if (bytes > SIM_ARGUMENT) {
            report("%s: parameter %d has %zu bytes; the simulated device takes %d", k->name, i, bytes, SIM_ARGUMENT);
            return CUDA_INVALID;
        }
        if (!read_argument((char *)&from, &arguments[i], sizeof from) || !from ||
            !read_argument(values + (size_t)i * SIM_ARGUMENT, from, bytes)) {
            report("%s: nothing lies where argument %d of %d should", k->name, i, k->n);
            return CUDA_INVALID;
        }
    }
    return CUDA_OK;
}

static int check_shape(const SimKernel *k, SimIndex grid, SimIndex block, size_t shared)
{
    enum { MOST_SHARED = 49152 };
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    const size_t own = k->shared ? (size_t)(k->shared_end - k->shared) : 0;
    const char *why = !grid.x || !grid.y || !grid.z                             ? "a grid without blocks"
                      : !block.x || !block.y || !block.z                        ? "blocks without threads"
                      : grid.x > 2147483647 || grid.y > 65535 || grid.z > 65535 ? "a grid that is too large"
                      : block.x > 1024 || block.y > 1024 || block.z > 64 || threads > MOST_THREADS
                          ? "blocks of more than 1024 threads"
                      : k->most_threads && threads > (uint64_t)k->most_threads
                          ? "more threads than its __launch_bounds__"
                      : own + shared > MOST_SHARED ? "more than 48 KiB of shared memory"
                                                   : NULL;
    if (!why)
        return CUDA_OK;
    report("%s is launched with %s: <<<(%u,%u,%u), (%u,%u,%u), %zu>>>", k->name, why, grid.x, grid.y, grid.z, block.x,
           block.y, block.z, shared);
    return CUDA_INVALID;
}

static int launch(Op op, void **arguments, void **more)
{
    char values[SIM_ARGUMENTS * SIM_ARGUMENT];
    op.stream = stream_of(op.stream, "cuLaunchKernel");
    if (!op.stream || !thing_lives(op.function, FUNCTION, "cuLaunchKernel"))
        return E_INVALID_HANDLE;
    const SimKernel *k = op.function->kernel;
    if (op.function->thing.context != context()) {
        report("%s is launched in another context than its module's", k->name);
        return E_INVALID_HANDLE;
    }
    if (more || k->n > SIM_ARGUMENTS) {
        report("%s: %s", k->name,
               more ? "arguments in a buffer, which the simulated device does not take"
                    : "more parameters than the simulated device takes");
        return CUDA_INVALID;
    }
    int code = check_shape(k, op.grid, op.block, op.shared);
    if (code == CUDA_OK)
        code = read_arguments(k, values, arguments);
    op.arguments = values;
    return code ? code : queue_add(&op);
}

int cuLaunchKernel(CudaFunction *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, CudaStream *stream, void **arguments, void **more)
{
    const Op op = { .kind = OP_LAUNCH,
                    .function = function,
                    .grid = { gx, gy, gz },
                    .block = { bx, by, bz },
                    .shared = shared,
                    .stream = stream };
    CALL(NEEDS_CONTEXT, launch(op, arguments, more));
}

/* ---- graphs ---- */

static int capture(CudaStream *s, int mode)
{
    if (!s)
        return E_CAPTURE_UNSUPPORTED;
    if (!stream_of(s, "cuStreamBeginCapture"))
        return E_INVALID_HANDLE;
    if (s->capture || mode < 0 || mode > 2)
        return CUDA_INVALID;
    s->capture = CAPTURES;
    s->mode = mode;
    s->thread = pthread_self();
    s->first = NULL;
    s->last = &s->first;
    return CUDA_OK;
}

int cuStreamBeginCapture_v2(CudaStream *stream, int mode)
{
    CALL(NEEDS_CONTEXT, capture(stream, mode));
}

static int end_capture(CudaStream *s, CudaGraph **graph)
{
    if (!graph || !s || !stream_of(s, "cuStreamEndCapture"))
        return CUDA_INVALID;
    *graph = NULL;
    if (!s->capture)
        return CUDA_INVALID;
    if (s->mode != 2 && !pthread_equal(s->thread, pthread_self()))
        return E_CAPTURE_WRONG_THREAD;
    const bool broken = s->capture == CAPTURE_BROKEN;
    s->capture = NO_CAPTURE;
    if (broken)
        return E_CAPTURE_INVALIDATED;
    CudaGraph *g = thing_new(GRAPH, context(), sizeof *g);
    g->first = s->first;
    *graph = g;
    return CUDA_OK;
}

int cuStreamEndCapture(CudaStream *stream, CudaGraph **graph)
{
    CALL(NEEDS_CONTEXT, end_capture(stream, graph));
}

static int instantiate(CudaGraphExec **made, CudaGraph *graph, unsigned long long flags)
{
    if (!made || flags)
        return CUDA_INVALID;
    if (!thing_lives(graph, GRAPH, "cuGraphInstantiateWithFlags"))
        return E_INVALID_HANDLE;
    CudaGraphExec *e = thing_new(MADE_GRAPH, context(), sizeof *e);
    e->first = graph->first;
    *made = e;
    return CUDA_OK;
}

int cuGraphInstantiateWithFlags(CudaGraphExec **made, CudaGraph *graph, unsigned long long flags)
{
    CALL(NEEDS_CONTEXT, instantiate(made, graph, flags));
}

static int launch_graph(CudaGraphExec *made, CudaStream *stream)
{
    CudaStream *s = stream_of(stream, "cuGraphLaunch");
    if (!s || !thing_lives(made, MADE_GRAPH, "cuGraphLaunch"))
        return E_INVALID_HANDLE;
    if (s->capture)
        return s->capture == CAPTURE_BROKEN ? E_CAPTURE_INVALIDATED : E_CAPTURE_UNSUPPORTED;
    world.counts.graphs++;
    queue_replay(made->first, s);
    return CUDA_OK;
}

int cuGraphLaunch(CudaGraphExec *made, CudaStream *stream)
{
    CALL(NEEDS_CONTEXT, launch_graph(made, stream));
}

static int end_thing(void *handle, ThingKind kind, const char *call)
{
    if (!thing_lives(handle, kind, call))
        return E_INVALID_HANDLE;
    ((Thing *)handle)->live = false;
    return CUDA_OK;
}

int cuGraphExecDestroy(CudaGraphExec *made)
{
    GIVING_UP(NEEDS_CONTEXT, end_thing(made, MADE_GRAPH, "cuGraphExecDestroy"));
}

int cuGraphDestroy(CudaGraph *graph)
{
    GIVING_UP(NEEDS_CONTEXT, end_thing(graph, GRAPH, "cuGraphDestroy"));
}
