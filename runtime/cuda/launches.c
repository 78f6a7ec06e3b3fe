#include "runtime/cuda/launches.h"

#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "ops/machine/caller.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/host/program_runner.h"

enum {
    DRAWS = 2,          /* numbers that draws depend on: the seed and the step */
    MORE_ARGUMENTS = 5, /* than operands and results: a product, draws, what refuses, scratch */
};

/* What a kernel is called with: addresses, and where each of them stands. */
typedef struct Arguments {
    CudaAddress *values;
    void **each;
    int n;
} Arguments;

/* A launch of a program here. */
typedef struct DeviceLaunch {
    const LaunchKernels *how;
    CudaFunction *functions[CUDA_KERNELS];
    Arguments product, rest; /* of the kernels of a product, and of the others */
    Tensor **in, **out;      /* of one that runs on the host: copies there */
} DeviceLaunch;

/* Launches that follow each other and were recorded as one graph, with the addresses that stood there. */
typedef struct Recorded {
    CudaGraphExec *made; /* null: not yet */
    CudaAddress *values; /* of the last time */
    size_t n, cap;
    int end;
    bool seen; /* there was a last time */
} Recorded;

typedef struct DeviceLaunches {
    Device *device;
    const ProgramKernels *kernels;
    CudaLoaded **modules;
    size_t n_modules;
    void *draws;     /* DRAWS numbers on the device; null: nothing draws there */
    void *refused;   /* by launch a u32 on the device, 0 but where values refused it; null: none may be */
    uint32_t *asked; /* those, on the host */
    Caller *caller;  /* on the host */
    Arena *arena;
    Recorded *recorded; /* by first launch */
    CudaAddress *now;   /* addresses of launches that are about to run */
    size_t cap_now;
    size_t scratch;
    CudaEvent **events; /* between launches that somebody watches, n_launches + 1; null: nobody did */
} DeviceLaunches;

static DeviceLaunches *of(const ProgramRunner *p)
{
    return p->own;
}

static DeviceLaunch *launch_of(const ProgramRunner *p, int launch)
{
    return p->launches[launch].own;
}

static Space *space_of(const ProgramRunner *p)
{
    return p->room->space;
}

/* ---- beginning and end ---- */

static void keep(ProgramRunner *p)
{
    caller_keep(of(p)->caller);
}

static void close(ProgramRunner *p)
{
    DeviceLaunches *d = of(p);
    const Driver *driver = &d->device->driver;
    caller_close(d->caller);
    if (d->draws)
        space_of(p)->does->give(space_of(p), d->draws);
    if (d->refused)
        space_of(p)->does->give(space_of(p), d->refused);
    if (!d->device->entered) /* its context cannot be entered any more: what is in it goes with it */
        return;
    device_wait(d->device);
    for (int i = 0; i < p->program->n_launches; i++)
        if (d->recorded[i].made)
            (void)driver->end_made(d->recorded[i].made);
    for (int i = 0; d->events && i <= p->program->n_launches; i++)
        if (d->events[i])
            (void)driver->end_event(d->events[i]);
    for (size_t i = 0; i < d->n_modules; i++)
        if (d->modules[i])
            (void)driver->unload(d->modules[i]);
}

static size_t scratch(const ProgramRunner *p)
{
    return of(p)->scratch;
}

/* What lies somewhere else now is noticed as launches run: arguments are taken anew. */
static void settle(ProgramRunner *p, char *at)
{
    (void)p;
    (void)at;
}

static void begin(ProgramRunner *p, uint64_t seed, uint64_t step)
{
    const uint64_t draws[DRAWS] = { seed, step };
    caller_begin(of(p)->caller, seed, step);
    if (of(p)->draws)
        space_write(space_of(p), of(p)->draws, draws, sizeof draws);
}

/* ---- arguments ---- */

static void add_argument(Arguments *a, const void *at)
{
    a->values[a->n++] = device_address(at);
}

static void add_tensors(Arguments *a, const Tensor *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (list[i])
            add_argument(a, list[i]->data);
}

static void end_arguments(const ProgramRunner *p, int launch, Arguments *a)
{
    const CudaLaunch *l = &launch_of(p, launch)->how->launch;
    if (l->draws)
        add_argument(a, of(p)->draws);
    if (l->refuses)
        add_argument(a, (uint32_t *)of(p)->refused + launch);
    add_argument(a, p->scratch);
}

/* Where everything is now. */
static void take_arguments(const ProgramRunner *p, int launch)
{
    const LaunchRun *run = &p->launches[launch];
    const Launch *l = run->launch;
    DeviceLaunch *d = launch_of(p, launch);
    d->product.n = d->rest.n = 0;
    if (run->product) {
        add_tensors(&d->product, run->factors, l->contraction->n_in);
        add_argument(&d->product, run->product->data);
        end_arguments(p, launch, &d->product);
    }
    add_tensors(&d->rest, run->in, l->n_in + (run->product != NULL));
    add_tensors(&d->rest, (const Tensor *const *)run->out, l->n_out);
    end_arguments(p, launch, &d->rest);
}

static void open_arguments(Arguments *a, int n, Arena *arena)
{
    a->values = NEWS(arena, CudaAddress, n);
    a->each = NEWS(arena, void *, n);
    for (int i = 0; i < n; i++)
        a->each[i] = &a->values[i];
}

/* ---- kernels ---- */

static bool has_kernels(const ProgramRunner *p, int launch)
{
    return launch_of(p, launch)->how->launch.n > 0;
}

static void launch_kernels(const ProgramRunner *p, int launch)
{
    Device *device = of(p)->device;
    const DeviceLaunch *d = launch_of(p, launch);
    for (int i = 0; i < d->how->launch.n && device_well(device); i++) {
        const CudaKernel *k = &d->how->launch.kernels[i];
        const Arguments *a = i < d->how->n_product ? &d->product : &d->rest;
        if (k->blocks == 0)
            continue;
        (void)device_did(device,
                         device->driver.launch(d->functions[i], (unsigned)k->blocks, 1, 1, (unsigned)k->threads, 1, 1,
                                               0, device->stream, a->each, NULL),
                         "launching a kernel");
    }
}

/* On the host: its operands go there, its results come back. */
static Status call_on_host(ProgramRunner *p, int launch)
{
    const LaunchRun *run = &p->launches[launch];
    const Launch *l = run->launch;
    DeviceLaunch *d = launch_of(p, launch);
    for (int i = 0; i < l->n_in; i++) {
        d->in[i] = run->in[i] ? tensor_alloc(p->heap, run->in[i]->type) : NULL;
        if (d->in[i])
            space_read(space_of(p), d->in[i]->data, run->in[i]->data, d->in[i]->bytes);
    }
    for (int i = 0; i < l->n_out; i++)
        d->out[i] = tensor_alloc(p->heap, run->out[i]->type);
    Status status = space_status(space_of(p));
    if (status == OK)
        status = caller_call(of(p)->caller, l->node, (const Tensor *const *)d->in, d->out);
    for (int i = 0; i < l->n_out; i++) {
        if (status == OK)
            space_write(space_of(p), run->out[i]->data, d->out[i]->data, d->out[i]->bytes);
        tensor_drop(p->heap, d->out[i]);
    }
    for (int i = 0; i < l->n_in; i++)
        if (d->in[i])
            tensor_drop(p->heap, d->in[i]);
    return status;
}

/* ---- launches as one graph ---- */

static void note_addresses(DeviceLaunches *d, size_t *n, const Arguments *a)
{
    for (int i = 0; i < a->n; i++) {
        GROW(d->arena, d->now, *n, d->cap_now);
        d->now[(*n)++] = a->values[i];
    }
}

/* The addresses of launches, and which of them run. */
static size_t addresses(ProgramRunner *p, int from, int end)
{
    size_t n = 0;
    for (int i = from; i < end; i++) {
        if (!program_wants(p, i))
            continue;
        const Arguments number = { .values = (CudaAddress[]){ (CudaAddress)i }, .n = 1 };
        take_arguments(p, i);
        note_addresses(of(p), &n, &number);
        note_addresses(of(p), &n, &launch_of(p, i)->product);
        note_addresses(of(p), &n, &launch_of(p, i)->rest);
    }
    return n;
}

static bool is_as_before(const DeviceLaunches *d, const Recorded *r, size_t n, int end)
{
    return r->seen && r->end == end && r->n == n && memcmp(r->values, d->now, n * sizeof *d->now) == 0;
}

static void remember(DeviceLaunches *d, Recorded *r, size_t n, int end)
{
    if (r->made && device_well(d->device))
        (void)device_did(d->device, d->device->driver.end_made(r->made), "forgetting a step");
    r->made = NULL;
    if (r->cap < n) {
        r->values = NEWS(d->arena, CudaAddress, n);
        r->cap = n;
    }
    memcpy(r->values, d->now, n * sizeof *d->now);
    r->n = n;
    r->end = end;
    r->seen = true;
}

static void launch_range(const ProgramRunner *p, int from, int end)
{
    for (int i = from; i < end; i++)
        if (program_wants(p, i))
            launch_kernels(p, i);
}

/* Records launches instead of running them; where that fails they have not run, and the error sticks. */
static void record(ProgramRunner *p, Recorded *r, int from, int end)
{
    Device *device = of(p)->device;
    const Driver *driver = &device->driver;
    CudaGraph *graph = NULL;
    if (!device_well(device) ||
        !device_did(device, driver->capture(device->stream, CUDA_CAPTURE_THREAD), "recording a step"))
        return;
    launch_range(p, from, end);
    const int ended = driver->end_capture(device->stream, &graph);
    if (device_did(device, ended, "recording a step"))
        (void)device_did(device, driver->instantiate(&r->made, graph, 0), "making a graph of a step");
    else if (!graph) /* a stream that still records lets nothing be given back */
        (void)driver->end_capture(device->stream, &graph);
    if (graph)
        (void)driver->end_graph(graph);
}

/* Launches that all have kernels: what runs a second time with the same addresses is recorded. */
static void run_kernels(ProgramRunner *p, int from, int end)
{
    DeviceLaunches *d = of(p);
    Recorded *r = &d->recorded[from];
    const size_t n = addresses(p, from, end);
    if (!is_as_before(d, r, n, end)) {
        remember(d, r, n, end);
        launch_range(p, from, end);
        return;
    }
    if (!r->made)
        record(p, r, from, end);
    if (r->made && device_well(d->device))
        (void)device_did(d->device, d->device->driver.launch_graph(r->made, d->device->stream), "running a step");
}

/* ---- launches that somebody watches ---- */

static void record_event(ProgramRunner *p, int at)
{
    DeviceLaunches *d = of(p);
    Device *device = d->device;
    if (!d->events)
        d->events = NEWS(d->arena, CudaEvent *, p->program->n_launches + 1);
    if (!d->events[at] && device_well(device))
        (void)device_did(device, device->driver.event(&d->events[at], CUDA_EVENT_TIMES), "making an event");
    if (device_well(device))
        (void)device_did(device, device->driver.record(d->events[at], device->stream), "recording an event");
}

static void tell_watch(ProgramRunner *p, int from, int end, double began)
{
    DeviceLaunches *d = of(p);
    float before = 0, after = 0;
    for (int i = from; i < end && device_well(d->device); i++) {
        const int code = d->device->driver.elapsed(&after, d->events[from], d->events[i + 1]);
        if (!device_did(d->device, code, "asking for times"))
            return;
        if (program_wants(p, i))
            p->watch->launched(p->watch->user, p->program, i, 1, began + before / 1e3, began + after / 1e3);
        before = after;
    }
}

/* Times are those of the device, from events before and behind each launch. */
static void run_watched(ProgramRunner *p, int from, int end)
{
    device_wait(of(p)->device);
    const double began = clock_seconds();
    (void)addresses(p, from, end);
    record_event(p, from);
    for (int i = from; i < end; i++) {
        if (program_wants(p, i))
            launch_kernels(p, i);
        record_event(p, i + 1);
    }
    device_wait(of(p)->device);
    tell_watch(p, from, end, began);
}

static Status run_on_host(ProgramRunner *p, int launch)
{
    if (!p->watch)
        return call_on_host(p, launch);
    device_wait(of(p)->device);
    const double began = clock_seconds();
    const Status status = call_on_host(p, launch);
    p->watch->launched(p->watch->user, p->program, launch, 1, began, clock_seconds());
    return status;
}

/* ---- runs ---- */

static bool may_refuse(const ProgramRunner *p, int from, int end)
{
    bool any = false;
    for (int i = from; i < end; i++)
        any = any || (launch_of(p, i)->how->launch.refuses && program_wants(p, i));
    return any;
}

static size_t refused_bytes(const ProgramRunner *p)
{
    return (size_t)p->program->n_launches * sizeof(uint32_t);
}

/* Whether values refused a launch: what it made is not to be used then. */
static Status ask_refused(ProgramRunner *p, int from, int end)
{
    DeviceLaunches *d = of(p);
    if (!may_refuse(p, from, end))
        return OK;
    space_read(space_of(p), d->asked, d->refused, refused_bytes(p));
    TRY(space_status(space_of(p)));
    for (int i = from; i < end; i++) {
        if (!d->asked[i])
            continue;
        const Launch *l = p->launches[i].launch;
        Message *m = message_new(p->ir->diag, SEVERITY_ERROR, INVALID, node_place(l->node),
                                 "%s: an index leads out of what it is an index of", launch_word(l));
        message_try(m, "--device cpu, which says which one");
        space_of(p)->does->zero(space_of(p), d->refused, refused_bytes(p));
        return message_send(m);
    }
    return OK;
}

static Status run(ProgramRunner *p, int end)
{
    const int from = p->at;
    while (p->at < end) {
        if (program_stopped(p))
            return INTERRUPTED;
        int to = p->at;
        while (to < end && has_kernels(p, to))
            to++;
        if (to > p->at)
            (p->watch ? run_watched : run_kernels)(p, p->at, to);
        else if (program_wants(p, to))
            TRY(run_on_host(p, to++));
        else
            to++;
        p->at = to;
        TRY(space_status(space_of(p)));
    }
    TRY(ask_refused(p, from, end));
    return program_stopped(p) ? INTERRUPTED : OK;
}

static const LaunchesClass launches = {
    .keep = keep, .close = close, .scratch = scratch, .settle = settle, .begin = begin, .run = run
};

/* ---- opening ---- */

/* A launch that runs on the host moves all that it reads and makes: who waits for it has to know. */
static void tell_host(const ProgramRunner *p, Diag *d)
{
    const DeviceLaunches *l = of(p);
    for (int i = 0; i < p->program->n_launches; i++) {
        const LaunchKernels *k = &l->kernels->launches[i];
        if (k->launch.n || !k->why)
            continue;
        Message *m =
            message_new(d, SEVERITY_WARNING, OK, node_place(p->program->launches[i].node),
                        "no kernel for %s (%s): %d of %d launches run on the host",
                        launch_word(&p->program->launches[i]), k->why, l->kernels->n_without, p->program->n_launches);
        message_try(m, "--emit cuda, whose text lists them at its end");
        (void)message_send(m);
        return;
    }
}

/* The functions of launches whose texts were compiled together. */
static void find_functions(ProgramRunner *p, const KernelObject *o, CudaLoaded *module)
{
    Device *device = of(p)->device;
    for (int i = 0; i < p->program->n_launches; i++) {
        DeviceLaunch *d = launch_of(p, i);
        if (d->how->text < 0 || (size_t)d->how->text < o->first || (size_t)d->how->text >= o->first + o->n)
            continue;
        for (int k = 0; k < d->how->launch.n && device_well(device); k++)
            (void)device_did(device, device->driver.function(&d->functions[k], module, d->how->launch.kernels[k].name),
                             "finding a kernel");
    }
}

/* What is compiled lies in `scratch`: the driver has its own copy. */
static Status compile(ProgramRunner *p, const EngineOptions *o, Diag *d, Arena *scratch)
{
    DeviceLaunches *l = of(p);
    Device *device = l->device;
    const KernelCache cache = { .folder = o->device.cache, .version = o->device.version };
    const KernelSource source = { l->kernels->prelude, l->kernels->texts, l->kernels->n_texts,
                                  arena_printf(scratch, "sm_%d%d", device->facts.major, device->facts.minor) };
    Nvrtc nvrtc;
    KernelObjects made;
    TRY(nvrtc_load(&nvrtc, d, NOWHERE, scratch));
    TRY(nvrtc_check_arch(&nvrtc, d, NOWHERE, source.arch, scratch));
    TRY(kernels_compile(&cache, &nvrtc, parallel_threads(p->pool), d, &source, scratch, &made));
    l->modules = NEWS(l->arena, CudaLoaded *, made.n + 1);
    for (; l->n_modules < made.n && device_well(device); l->n_modules++) {
        CudaLoaded **module = &l->modules[l->n_modules];
        const KernelObject *object = &made.list[l->n_modules];
        if (device_did(device, device->driver.load(module, object->cubin.p), "loading kernels"))
            find_functions(p, object, *module);
    }
    return OK;
}

static void open_launches(ProgramRunner *p, Arena *arena)
{
    DeviceLaunches *l = of(p);
    bool draws = false, refuses = false;
    for (int i = 0; i < p->program->n_launches; i++) {
        const Launch *launch = &p->program->launches[i];
        DeviceLaunch *d = p->launches[i].own = NEW(arena, DeviceLaunch);
        d->how = &l->kernels->launches[i];
        d->in = NEWS(arena, Tensor *, launch->n_in + 1);
        d->out = NEWS(arena, Tensor *, launch->n_out + 1);
        open_arguments(&d->rest, launch->n_in + launch->n_out + MORE_ARGUMENTS, arena);
        open_arguments(&d->product, (launch->contraction ? launch->contraction->n_in : 0) + MORE_ARGUMENTS, arena);
        l->scratch = d->how->launch.scratch > l->scratch ? d->how->launch.scratch : l->scratch;
        draws = draws || d->how->launch.draws;
        refuses = refuses || d->how->launch.refuses;
    }
    if (draws)
        l->draws = space_of(p)->does->take(space_of(p), DRAWS * sizeof(uint64_t));
    if (!refuses)
        return;
    l->asked = NEWS(arena, uint32_t, p->program->n_launches + 1);
    l->refused = space_of(p)->does->take(space_of(p), refused_bytes(p));
    space_of(p)->does->zero(space_of(p), l->refused, refused_bytes(p));
}

GraphRunner *device_runner(const Executable *x, const EngineOptions *o, RunnerRoom *room, Arena *arena, Heap *heap)
{
    ProgramRunner *p = o->device.kernels ? program_runner_open(&launches, x, o, room, arena, heap) : NULL;
    if (!p)
        return NULL;
    Device *device = (Device *)room->space;
    const EvalOptions options = program_call_options(x, o);
    DeviceLaunches *l = p->own = NEW(arena, DeviceLaunches);
    *l = (DeviceLaunches){ .device = device,
                           .kernels = o->device.kernels(p->program, p->ir->ops, arena),
                           .caller = caller_open(p->ir, &options, arena, heap, &room->calls),
                           .arena = arena,
                           .recorded = NEWS(arena, Recorded, p->program->n_launches + 1) };
    open_launches(p, arena);
    tell_host(p, p->ir->diag);
    if (l->kernels->n_without == p->program->n_launches || !device_well(device))
        return &p->runner;
    Arena scratch;
    arena_open(&scratch, p->ir->memory);
    device->said = compile(p, o, p->ir->diag, &scratch);
    arena_close(&scratch);
    return &p->runner;
}
