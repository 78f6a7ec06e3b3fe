/* Calls for modules and launches. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "simcuda/calls.h"

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
    const int made_for = (int)strtol(arch, &end, 10), here = call_capability();
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
    CudaLoaded *m = thing_new(MODULE, call_context(), sizeof *m);
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
                                             : E_NO_IMAGE;
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
    op.stream = call_stream(op.stream, "cuLaunchKernel");
    if (!op.stream || !thing_lives(op.function, FUNCTION, "cuLaunchKernel"))
        return E_INVALID_HANDLE;
    const SimKernel *k = op.function->kernel;
    if (op.function->thing.context != call_context()) {
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
