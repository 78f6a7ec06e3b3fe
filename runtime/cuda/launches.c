#include "runtime/cuda/launches.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/launches_parts.h"
#include "runtime/cuda/products.h"

/* ---- beginning and end ---- */

static void keep(ProgramRunner *p)
{
    caller_keep(launches_of(p)->caller);
}

static void close(ProgramRunner *p)
{
    DeviceLaunches *d = launches_of(p);
    ranges_end(d->device->ranges, &d->range);
    caller_close(d->caller);
    if (d->draws)
        space_of(p)->does->give(space_of(p), d->draws);
    commit_give(p);
    if (!d->device->entered) /* its context cannot be entered any more: what is in it goes with it */
        return;
    device_wait(d->device);
    launches_forget(p);
    commit_close(p);
    for (size_t i = 0; i < d->n_modules; i++)
        if (d->modules[i])
            (void)d->device->driver.unload(d->modules[i]);
}

static size_t scratch(const ProgramRunner *p)
{
    return lanes_scratch(launches_of(p)->scratch);
}

/* What lies somewhere else now is noticed as launches run: arguments are taken anew. */
static void settle(ProgramRunner *p, char *at)
{
    (void)p;
    (void)at;
}

static bool may_refuse(const ProgramRunner *p, int from, int end)
{
    bool any = false;
    for (int i = from; i < end; i++)
        any = any || (launch_of(p, i)->how->launch.refuses && program_wants(p, i));
    return any;
}

static void begin(ProgramRunner *p, uint64_t seed, uint64_t step)
{
    DeviceLaunches *d = launches_of(p);
    if (may_refuse(p, d->ask_from, d->ask_end)) /* a run that was given up */
        space_of(p)->does->zero(space_of(p), d->refused, refused_bytes(p));
    d->ask_from = d->ask_end = 0;
    const char *name = p->program->graph->name;
    ranges_begin(d->device->ranges, &d->range, name ? name : "graph", step);
    caller_begin(d->caller, seed, step);
    d->step = step;
    for (size_t i = 0; i < d->turns; i++)
        memcpy(d->drawn + i * DRAWS, (const uint64_t[DRAWS]){ seed, step, i }, DRAWS * sizeof(uint64_t));
    if (d->draws)
        space_write(space_of(p), d->draws, d->drawn, d->turns * DRAWS * sizeof(uint64_t));
}

/* ---- on the host ---- */

static bool has_kernels(const ProgramRunner *p, int launch)
{
    return launch_of(p, launch)->how->launch.n > 0;
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
        status = caller_call(launches_of(p)->caller, l->node, l->turn, (const Tensor *const *)d->in, d->out);
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

static Status run_on_host(ProgramRunner *p, int launch)
{
    if (!p->watch)
        return call_on_host(p, launch);
    device_wait(launches_of(p)->device);
    const double began = clock_seconds();
    const Status status = call_on_host(p, launch);
    p->watch->launched(p->watch->user, p->program, launch, 1, began, clock_seconds());
    return status;
}

/* ---- runs ---- */

Status launch_refused(ProgramRunner *p, int launch, uint64_t step)
{
    const Launch *l = p->launches[launch].launch;
    Message *m = message_new(p->ir->diag, SEVERITY_ERROR, INVALID, node_place(l->node),
                             "%s: an index leads out of what it is an index of", launch_word(l));
    if (step)
        message_at(m, "step %" PRIu64, step);
    message_try(m, "--device cpu, which says which one");
    space_of(p)->does->zero(space_of(p), launches_of(p)->refused, refused_bytes(p));
    return message_send(m);
}

/* Whether values refused a launch: what it made is not to be used then. */
static Status answer(ProgramRunner *p)
{
    DeviceLaunches *d = launches_of(p);
    const int from = d->ask_from, end = d->ask_end;
    d->ask_from = d->ask_end = 0;
    if (!may_refuse(p, from, end))
        return OK;
    space_read(space_of(p), d->asked, d->refused, refused_bytes(p));
    TRY(space_status(space_of(p)));
    for (int i = from; i < end; i++)
        if (d->asked[i])
            return launch_refused(p, i, 0);
    return OK;
}

static Status run_launches(ProgramRunner *p, int end)
{
    DeviceLaunches *d = launches_of(p);
    if (d->ask_from == d->ask_end)
        d->ask_from = p->at;
    d->ask_end = end;
    while (p->at < end) {
        if (program_stopped(p))
            return INTERRUPTED;
        int to = p->at;
        while (to < end && has_kernels(p, to))
            to++;
        if (to > p->at)
            (p->watch ? launches_run_watched : launches_run)(p, p->at, to);
        else if (program_wants(p, to))
            TRY(run_on_host(p, to++));
        else
            to++;
        p->at = to;
        TRY(space_status(space_of(p)));
    }
    return program_stopped(p) ? INTERRUPTED : OK;
}

/* What the launches to come are called, for people. */
static const char *name_parts(const ProgramRunner *p, int end, char *text, size_t bytes)
{
    const Launch *list = p->program->launches;
    const StepPart first = list[p->at].part, last = list[end - 1].part;
    snprintf(text, bytes, first == last ? "%s" : "%s to %s", step_part_name(first), step_part_name(last));
    return text;
}

static Status run(ProgramRunner *p, int end)
{
    const Ranges *ranges = launches_of(p)->device->ranges;
    char name[64];
    if (!ranges || p->at >= end)
        return run_launches(p, end);
    (void)ranges->push(name_parts(p, end, name, sizeof name));
    const Status status = run_launches(p, end);
    (void)ranges->pop();
    if (p->at == p->program->n_launches)
        ranges_end(ranges, &launches_of(p)->range);
    return status;
}

/* All of it at once, which the device commits. */
static Status step(ProgramRunner *p, const RunnerStep *s)
{
    const Ranges *ranges = launches_of(p)->device->ranges;
    char name[64];
    if (!ranges)
        return commit_step(p, s);
    (void)ranges->push(name_parts(p, p->program->n_launches, name, sizeof name));
    const Status status = commit_step(p, s);
    (void)ranges->pop();
    ranges_end(ranges, &launches_of(p)->range);
    return status;
}

static const LaunchesClass launches = {
    .keep = keep,
    .close = close,
    .scratch = scratch,
    .settle = settle,
    .begin = begin,
    .run = run,
    .answer = answer,
    .decides = commit_decides,
    .step = step,
    .told = commit_told,
};

/* ---- opening ---- */

/* A launch that runs on the host moves all that it reads and makes: who waits for it has to know. */
static void tell_host(const ProgramRunner *p, Diag *d)
{
    const DeviceLaunches *l = launches_of(p);
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

/* What was measured since anybody was told. */
static void tell_choices(Choices *c, Diag *d)
{
    if (c && c->measured)
        remark(d, "engine", NOWHERE, "%d choices of how to make products were measured in %.1f s and are kept in %s",
               c->measured, c->seconds, c->store.cache.folder);
    if (c)
        c->measured = 0, c->seconds = 0;
}

static void tell_products(const ProgramRunner *p, Diag *d)
{
    const Products *by = launches_of(p)->device->products;
    int n = 0, whole = 0;
    for (int i = 0; i < p->program->n_launches; i++) {
        const LaunchKernels *how = launch_of(p, i)->how;
        for (int k = 0; k < how->launch.n; k++) {
            n += how->launch.kernels[k].product != NULL;
            whole += how->launch.kernels[k].product && p->program->launches[i].kind == LAUNCH_CONTRACT &&
                     k >= how->n_product;
        }
    }
    if (by)
        tell_choices(by->choices, d);
    if (by && whole)
        remark(d, "engine", NOWHERE, "%s %d.%d makes %d products of %d launches, %d with the rows behind them",
               by->library.library, by->library.major, by->library.minor, n, p->program->n_launches, whole);
    else if (by)
        remark(d, "engine", NOWHERE, "%s %d.%d makes %d products of %d launches", by->library.library,
               by->library.major, by->library.minor, n, p->program->n_launches);
}

static bool is_of(const KernelObject *o, int text)
{
    return text >= 0 && (size_t)text >= o->first && (size_t)text < o->first + o->n;
}

/* The functions of launches whose texts were compiled together. */
static void find_functions(ProgramRunner *p, const KernelObject *o, CudaLoaded *module)
{
    Device *device = launches_of(p)->device;
    Commit *commit = &launches_of(p)->commit;
    if (is_of(o, launches_of(p)->kernels->commit) &&
        device_did(device, device->driver.function(&commit->decide, module, COMMIT_DECIDE), "finding a kernel"))
        (void)device_did(device, device->driver.function(&commit->move, module, COMMIT_MOVE), "finding a kernel");
    for (int i = 0; i < p->program->n_launches; i++) {
        DeviceLaunch *d = launch_of(p, i);
        if (!is_of(o, d->how->text))
            continue;
        for (int k = 0; k < d->how->launch.n && device_well(device); k++)
            if (!d->how->launch.kernels[k].product)
                (void)device_did(device,
                                 device->driver.function(&d->functions[k], module, d->how->launch.kernels[k].name),
                                 "finding a kernel");
    }
}

/* What is compiled lies in `scratch`: the driver has its own copy. */
static Status compile(ProgramRunner *p, const EngineOptions *o, Diag *d, Arena *scratch)
{
    DeviceLaunches *l = launches_of(p);
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
    DeviceLaunches *l = launches_of(p);
    bool refuses = false;
    for (int i = 0; i < p->program->n_launches; i++) {
        const Launch *launch = &p->program->launches[i];
        DeviceLaunch *d = p->launches[i].own = NEW(arena, DeviceLaunch);
        d->how = &l->kernels->launches[i];
        d->in = NEWS(arena, Tensor *, launch->n_in + 1);
        d->out = NEWS(arena, Tensor *, launch->n_out + 1);
        launch_open_arguments(d, launch, arena);
        l->scratch = d->how->launch.scratch > l->scratch ? d->how->launch.scratch : l->scratch;
        if (d->how->launch.draws && launch->turn >= l->turns)
            l->turns = launch->turn + 1;
        refuses = refuses || d->how->launch.refuses;
    }
    l->drawn = NEWS(arena, uint64_t, l->turns * DRAWS + 1);
    if (l->turns)
        l->draws = space_of(p)->does->take(space_of(p), l->turns * DRAWS * sizeof(uint64_t));
    l->asked = NEWS(arena, uint32_t, p->program->n_launches + 1);
    commit_open(p, refuses);
}

GraphRunner *device_runner(const Executable *x, const EngineOptions *o, RunnerRoom *room, Arena *arena, Heap *heap)
{
    ProgramRunner *p = o->device.kernels ? program_runner_open(&launches, x, o, room, arena, heap) : NULL;
    if (!p)
        return NULL;
    Device *device = (Device *)room->space;
    EvalOptions options = program_call_options(x, o);
    options.narrow = false; /* what the host does has the same bits on every host */
    const int arch = 10 * device->facts.major + device->facts.minor;
    const KernelTarget target = { .narrow = o->narrow && arch >= CUDA_NARROW_ARCH,
                                  .narrow_codes = o->narrow && arch >= CUDA_NARROW_CODES_ARCH,
                                  .products = device->products ? &device->products->maker : NULL };
    DeviceLaunches *l = p->own = NEW(arena, DeviceLaunches);
    *l = (DeviceLaunches){ .device = device,
                           .kernels = o->device.kernels(p->program, &target, p->ir->ops, arena),
                           .caller = caller_open(p->ir, &options, arena, heap, &room->calls),
                           .arena = arena,
                           .recorded = NEWS(arena, Recorded, p->program->n_launches + 1) };
    if (device->products && device->products->choices && o->device.products == PRODUCTS_AUTO)
        l->kernels = launches_contest(p, o, &target, l->kernels);
    if (device->products)
        products_settle(device->products);
    open_launches(p, arena);
    tell_host(p, p->ir->diag);
    tell_products(p, p->ir->diag);
    if (p->n_parts > 1 && l->commit.why)
        remark(p->ir->diag, "engine", NOWHERE, "the host decides whether a step is applied: %s", l->commit.why);
    if (!l->kernels->n_texts || !device_well(device))
        return &p->runner;
    Arena scratch;
    arena_open(&scratch, p->ir->memory);
    device->said = compile(p, o, p->ir->diag, &scratch);
    arena_close(&scratch);
    return &p->runner;
}
