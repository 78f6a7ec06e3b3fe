/* libcuda.so.1 of the simulated device: the functions that runtime/cuda/driver.def lists, and no others.  Here: devices, contexts,
 * and what every call begins with. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simcuda/calls.h"

World world;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- how calls begin and end ---- */

enum { MOST_CONTEXTS = 32 };

static _Thread_local CudaContext *current[MOST_CONTEXTS];
static _Thread_local int n_current;

CudaContext *call_context(void)
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

int call_begin(const char *call, int needs)
{
    pthread_mutex_lock(&lock);
    world.counts.calls++;
    const int asked = asked_to_fail();
    world.asked = world.asked || asked;
    if (asked)
        return asked;
    if (needs && !world.begun)
        return E_NOT_INITIALIZED;
    if (!(needs & NEEDS_CONTEXT))
        return CUDA_OK;
    if (!call_context() || !call_context()->thing.live) {
        if (!world.asked) /* a push that was asked to fail has consequences */
            report("%s %s", call, call_context() ? "in a context that was released" : "without a context");
        return E_INVALID_CONTEXT;
    }
    if (world.sticky)
        return world.sticky;
    return needs & UNLESS_CAPTURED ? queue_refuses(call_context()) : CUDA_OK;
}

int call_end(int code)
{
    pthread_mutex_unlock(&lock);
    return code;
}

/* ---- the driver and its devices ---- */

static int n_devices(void)
{
    const char *word = getenv("QCC_SIM_DEVICES");
    return word && *word ? atoi(word) : 1;
}

int call_capability(void)
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
        *value = number == CUDA_CAPABILITY_MAJOR ? call_capability() / 10 : call_capability() % 10;
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
