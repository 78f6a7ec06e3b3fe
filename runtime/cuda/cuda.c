#include "runtime/cuda/cuda.h"

#include "runtime/cuda/device.h"
#include "runtime/cuda/launches.h"
#include "runtime/cuda/products.h"
#include "runtime/cuda/ranges.h"
#include "runtime/host/host.h"

/* A call of the engine, during which the device's context is the current one, also where a jump ends it. */
typedef struct Entry {
    Device *device;
    Cleanup cleanup;
} Entry;

static Device *device_of(const Values *v)
{
    return (Device *)host_space(v);
}

static void undo(void *device)
{
    device_leave(device);
}

static void enter(Entry *e, Device *device)
{
    e->device = device;
    device_enter(device);
    cleanup_push(device->heap.memory, &e->cleanup, undo, device);
}

static Status leave(Entry *e, Status status)
{
    cleanup_drop(&e->cleanup);
    device_leave(e->device);
    return status;
}

/* Choices among its ways, where they can be kept. */
static Choices *open_choices(Ir *ir, const EngineOptions *options, Arena *arena)
{
    const KernelCache cache = { .folder = options->device.cache };
    if (options->device.unmeasured || !cache.folder)
        return NULL;
    Choices *c = NEW(arena, Choices);
    choices_open(c, &cache, ir->diag, arena);
    return c;
}

/* The library of products, where one is wanted.  One that is not there is an error for who asked for it. */
static Status open_products(Ir *ir, const EngineOptions *options, Arena *arena, Device *device)
{
    Cublas library;
    Entry e;
    if (options->device.products == PRODUCTS_OURS || !options->narrow)
        return OK;
    if (options->device.products == PRODUCTS_LIBRARY) {
        TRY(cublas_load(&library, ir->diag, NOWHERE, arena));
    } else {
        const char *why = cublas_find(&library, arena);
        if (why) {
            remark(ir->diag, "engine", NOWHERE, "kernels make all products: %s", why);
            return OK;
        }
    }
    enter(&e, device);
    device->products = NEW(arena, Products);
    products_open(device->products, device, &library, open_choices(ir, options, arena), arena);
    return leave(&e, space_status(&device->space));
}

/* What profilers are told by, where that is asked for: without it a run is as good. */
static void open_ranges(Ir *ir, const EngineOptions *options, Arena *arena, Device *device)
{
    Ranges *ranges = NEW(arena, Ranges);
    const char *why = options->device.ranges ? ranges_find(ranges, arena) : NULL;
    if (why)
        (void)message_send(
            message_new(ir->diag, SEVERITY_WARNING, OK, NOWHERE, "no profiler is told of ranges: %s", why));
    else if (options->device.ranges)
        device->ranges = ranges;
}

static Status open(Ir *ir, const EngineOptions *options, int n_kept, Arena *arena, Values **values)
{
    Device *device = NEW(arena, Device);
    TRY(device_open(device, ir->diag, ir->memory, options->device.number, arena));
    open_ranges(ir, options, arena, device);
    const Status status = open_products(ir, options, arena, device);
    if (status != OK) {
        device_close(device);
        return status;
    }
    return host_open(ir, options, n_kept, arena, device_runner, &device->space, values);
}

static void keep(Values *v)
{
    host_keep(v);
    device_keep(device_of(v));
}

static Status load(Values *v, const Executable *x, int *number)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_load(v, x, number));
}

static void unload(Values *v, int graph)
{
    device_enter(device_of(v));
    host_unload(v, graph);
    device_leave(device_of(v));
}

static Status begin(Values *v, int graph, const EngineRun *o)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_begin(v, graph, o));
}

static Status bind(Values *v, int graph, int input, ValueAt value)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_bind(v, graph, input, value));
}

static Status run(Values *v, int graph, int part)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_run(v, graph, part));
}

static Status answer(Values *v, int graph)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_answer(v, graph));
}

static void end(Values *v, int graph)
{
    device_enter(device_of(v));
    host_end(v, graph);
    device_leave(device_of(v));
}

static Status get(Values *v, ValueAt value, const Tensor **host)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_get(v, value, host));
}

static Status get_all(Values *v, int n, const ValueAt *values, const Tensor **host)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_get_all(v, n, values, host));
}

static Status bring(Values *v, int kept, const Tensor *host)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_bring(v, kept, host));
}

static Status take(Values *v, int kept)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_take(v, kept));
}

static Status put(Values *v, int n, const ValueAt *to, Tensor *const *host, PutHow how)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_put(v, n, to, host, how));
}

static Status fill(Values *v, int kept, const Type *type, Payload *initial)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_fill(v, kept, type, initial));
}

static Status move(Values *v, int n, const ValueMove *moves)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_move(v, n, moves));
}

static Status step(Values *v, int graph, const EngineStep *step, bool *taken)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_step(v, graph, step, taken));
}

static Status told(Values *v, int graph, EngineTold *told)
{
    Entry e;
    enter(&e, device_of(v));
    return leave(&e, host_told(v, graph, told));
}

static void close(Values *v)
{
    if (!v)
        return;
    Device *device = device_of(v);
    device_enter(device);
    host_close(v);
    device_leave(device);
    device_close(device);
}

const Engine engine_cuda = {
    .name = "cuda",
    .wants_programs = true,
    .has_devices = true,
    .narrows = true,
    .open = open,
    .keep = keep,
    .load = load,
    .unload = unload,
    .begin = begin,
    .programmed = host_programmed,
    .bind = bind,
    .run = run,
    .answer = answer,
    .end = end,
    .get = get,
    .get_all = get_all,
    .put = put,
    .bring = bring,
    .take = take,
    .fill = fill,
    .move = move,
    .step = step,
    .told = told,
    .stats = host_stats,
    .close = close,
};

bool cuda_is_there(Arena *scratch)
{
    Driver driver;
    Diag quiet;
    diag_open(&quiet, scratch, NULL, NULL);
    return driver_load(&driver, &quiet, NOWHERE, scratch) == OK;
}
