/* Launches that have kernels: their arguments, one by one or as one graph of the driver, and how long they take. */
#include <string.h>

#include "base/clock.h"
#include "runtime/cuda/launches_parts.h"
#include "runtime/cuda/products.h"

enum { MORE_ARGUMENTS = 6 }; /* than operands and results: a product, draws, what refuses, what is applied, scratch */

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
        add_argument(a, (uint64_t *)launches_of(p)->draws + (size_t)DRAWS * p->program->launches[launch].turn);
    if (l->refuses)
        add_argument(a, (uint32_t *)launches_of(p)->refused + launch);
    if (l->late)
        add_argument(a, commit_applied(p));
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

void arguments_open(Arguments *a, int n, Arena *arena)
{
    a->values = NEWS(arena, CudaAddress, n);
    a->each = NEWS(arena, void *, n);
    for (int i = 0; i < n; i++)
        a->each[i] = &a->values[i];
}

void launch_open_arguments(DeviceLaunch *d, const Launch *l, Arena *arena)
{
    arguments_open(&d->rest, l->n_in + l->n_out + MORE_ARGUMENTS, arena);
    arguments_open(&d->product, (l->contraction ? l->contraction->n_in : 0) + MORE_ARGUMENTS, arena);
}

/* The scratch is the last argument of every kernel. */
void launch_works_in(const ProgramRunner *p, int launch, const char *scratch)
{
    DeviceLaunch *d = launch_of(p, launch);
    Arguments *const both[] = { &d->product, &d->rest };
    for (size_t i = 0; i < COUNT(both); i++)
        if (both[i]->n)
            both[i]->values[both[i]->n - 1] = device_address(scratch);
}

/* ---- kernels ---- */

void launch_kernels(Device *device, const LaunchKernels *how, CudaFunction *const *functions, const Arguments *product,
                    const Arguments *rest, CudaStream *stream)
{
    for (int i = 0; i < how->launch.n && device_well(device); i++) {
        const CudaKernel *k = &how->launch.kernels[i];
        const Arguments *a = i < how->n_product ? product : rest;
        if (k->blocks == 0)
            continue;
        if (k->product) {
            product_run(device->products, k->product, a->values, a->values[a->n - 1], stream);
            continue;
        }
        (void)device_did(device,
                         device->driver.launch(functions[i], (unsigned)k->blocks, 1, 1, (unsigned)k->threads, 1, 1, 0,
                                               stream, a->each, NULL),
                         "launching a kernel");
    }
}

void launch_on(const ProgramRunner *p, int launch, CudaStream *stream)
{
    const DeviceLaunch *d = launch_of(p, launch);
    launch_kernels(launches_of(p)->device, d->how, d->functions, &d->product, &d->rest, stream);
}

/* ---- launches as one graph ---- */

static void note_addresses(DeviceLaunches *d, size_t *n, const Arguments *a)
{
    for (int i = 0; i < a->n; i++) {
        GROW(d->arena, d->now, *n, d->cap_now);
        d->now[(*n)++] = a->values[i];
    }
}

/* What the kernels of a commit are launched with. */
static void note_commit(const ProgramRunner *p, size_t *n)
{
    const Commit *c = &launches_of(p)->commit;
    CudaAddress values[] = { device_address(c->asked.at), device_address(c->moves.at), (CudaAddress)c->moves.n };
    note_addresses(launches_of(p), n, &(Arguments){ .values = values, .n = COUNT(values) });
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
        note_addresses(launches_of(p), &n, &number);
        note_addresses(launches_of(p), &n, &launch_of(p, i)->product);
        note_addresses(launches_of(p), &n, &launch_of(p, i)->rest);
    }
    if (launches_of(p)->commit.decides)
        note_commit(p, &n);
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
            launch_on(p, i, launches_of(p)->device->stream);
}

static void launch_all(const ProgramRunner *p, int from, int end)
{
    const int late = launches_late(p, end);
    launch_range(p, from, late);
    if (launches_of(p)->commit.decides)
        commit_decide(p);
    launch_range(p, late, end);
    if (launches_of(p)->commit.decides)
        commit_move(p);
}

void launches_run(ProgramRunner *p, int from, int end)
{
    DeviceLaunches *d = launches_of(p);
    Recorded *r = &d->recorded[from];
    const size_t n = addresses(p, from, end);
    if (!is_as_before(d, r, n, end)) {
        remember(d, r, n, end);
        launch_all(p, from, end);
        return;
    }
    if (!r->made)
        launches_record(p, &r->made, from, end);
    if (r->made && device_well(d->device))
        (void)device_did(d->device, d->device->driver.launch_graph(r->made, d->device->stream), "running a step");
}

/* ---- launches that somebody watches ---- */

static void record_event(ProgramRunner *p, int at)
{
    DeviceLaunches *d = launches_of(p);
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
    DeviceLaunches *d = launches_of(p);
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

void launches_run_watched(ProgramRunner *p, int from, int end)
{
    device_wait(launches_of(p)->device);
    const double began = clock_seconds();
    (void)addresses(p, from, end);
    record_event(p, from);
    for (int i = from; i < end; i++) {
        if (program_wants(p, i))
            launch_on(p, i, launches_of(p)->device->stream);
        record_event(p, i + 1);
    }
    device_wait(launches_of(p)->device);
    tell_watch(p, from, end, began);
}

void launches_forget(ProgramRunner *p)
{
    DeviceLaunches *d = launches_of(p);
    const Driver *driver = &d->device->driver;
    for (int i = 0; i < p->program->n_launches; i++)
        if (d->recorded[i].made)
            (void)driver->end_made(d->recorded[i].made);
    for (int i = 0; d->events && i <= p->program->n_launches; i++)
        if (d->events[i])
            (void)driver->end_event(d->events[i]);
}
