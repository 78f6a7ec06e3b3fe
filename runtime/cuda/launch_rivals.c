/* Launches that a library makes, or kernels do: which takes less time is measured as a session begins, on memory that is nobody's, and
 * kept; a launch is a product and the rows behind it, since a library may make both at once. */
#include "runtime/cuda/launches_parts.h"
#include "runtime/cuda/products_parts.h"

enum { BY_LIBRARY, BY_KERNELS, SIDES, PLACE = 256, DRAWN = DRAWS * sizeof(uint64_t), MORE = 5 };

/* One way to run all launches, of which those are compiled that are measured. */
typedef struct Side {
    const ProgramKernels *kernels;
    int *at; /* by text: which of those that were compiled it is; below 0: none */
    KernelObjects objects;
    CudaLoaded **modules;
    size_t n_modules;
} Side;

typedef struct Rivals {
    const ProgramRunner *p;
    const EngineOptions *o;
    const KernelTarget *target;
    Products *products;
    Arena *scratch;
    Side sides[SIDES];
    int *launches, n; /* that are asked about */
    int now;          /* the one that is measured */
    bool compiled;
} Rivals;

/* The product of a launch that a library makes; null: it makes none. */
static KernelProduct *product_of(const LaunchKernels *how)
{
    for (int i = 0; i < how->launch.n; i++)
        if (how->launch.kernels[i].product)
            return (KernelProduct *)(uintptr_t)how->launch.kernels[i].product;
    return NULL;
}

/* ---- kernels ---- */

static Status compile_side(Rivals *r, Side *s, const Nvrtc *nvrtc)
{
    Device *device = r->products->device;
    const char **texts = NEWS(r->scratch, const char *, r->n + 1);
    const KernelCache cache = { .folder = r->o->device.cache, .version = r->o->device.version };
    KernelSource source = { s->kernels->prelude, texts, 0,
                            arena_printf(r->scratch, "sm_%d%d", device->facts.major, device->facts.minor) };
    s->at = NEWS(r->scratch, int, s->kernels->n_texts + 1);
    for (size_t i = 0; i < s->kernels->n_texts; i++)
        s->at[i] = -1;
    for (int i = 0; i < r->n; i++) {
        const int text = s->kernels->launches[r->launches[i]].text;
        if (text < 0 || s->at[text] >= 0)
            continue;
        s->at[text] = (int)source.n;
        texts[source.n++] = s->kernels->texts[text];
    }
    TRY(nvrtc_check_arch(nvrtc, r->p->ir->diag, NOWHERE, source.arch, r->scratch));
    TRY(kernels_compile(&cache, nvrtc, parallel_threads(r->p->pool), r->p->ir->diag, &source, r->scratch, &s->objects));
    s->modules = NEWS(r->scratch, CudaLoaded *, s->objects.n + 1);
    for (; s->n_modules < s->objects.n && device_well(device); s->n_modules++)
        (void)device_did(device, device->driver.load(&s->modules[s->n_modules], s->objects.list[s->n_modules].cubin.p),
                         "loading kernels");
    return OK;
}

/* Everything that is asked about, when the first of it is measured. */
static bool compile(Rivals *r)
{
    Device *device = r->products->device;
    Nvrtc nvrtc;
    if (r->compiled)
        return device_well(device);
    r->compiled = true;
    Status status = nvrtc_load(&nvrtc, r->p->ir->diag, NOWHERE, r->scratch);
    for (int i = 0; i < SIDES && status == OK && device_well(device); i++)
        status = compile_side(r, &r->sides[i], &nvrtc);
    device->said = device->said == OK ? status : device->said;
    return device_well(device);
}

static void unload(const Rivals *r)
{
    const Device *device = r->products->device;
    for (int i = 0; i < SIDES; i++)
        for (size_t k = 0; k < r->sides[i].n_modules; k++)
            if (r->sides[i].modules[k])
                (void)device->driver.unload(r->sides[i].modules[k]);
}

static bool find_functions(const Rivals *r, const Side *s, const LaunchKernels *how, CudaFunction **functions)
{
    Device *device = r->products->device;
    if (how->text < 0)
        return true;
    const size_t at = (size_t)s->at[how->text];
    for (size_t o = 0; o < s->objects.n; o++) {
        if (at < s->objects.list[o].first || at >= s->objects.list[o].first + s->objects.list[o].n)
            continue;
        for (int k = 0; k < how->launch.n && device_well(device); k++)
            if (!how->launch.kernels[k].product)
                (void)device_did(device,
                                 device->driver.function(&functions[k], s->modules[o], how->launch.kernels[k].name),
                                 "finding a kernel");
    }
    return device_well(device);
}

/* ---- arguments ---- */

/* Where values of a launch lie, behind each other; `base` is where the first one does. */
typedef struct Places {
    CudaAddress base;
    size_t bytes;
    CudaAddress *in, *out, product, draws, refused, applied, scratch;
} Places;

static CudaAddress place(Places *to, size_t bytes)
{
    const CudaAddress at = to->base + to->bytes;
    to->bytes += (bytes + PLACE - 1) / PLACE * PLACE;
    return at;
}

static size_t bytes_of(const Type *t)
{
    size_t bytes = 0;
    (void)type_bytes(t, &bytes);
    return bytes;
}

static void lay_out(const Launch *l, const LaunchKernels *how, Places *to)
{
    to->bytes = 0;
    for (int i = 0; i < l->n_in; i++)
        to->in[i] = l->in[i].home == HOME_NONE ? 0 : place(to, bytes_of(l->in[i].type));
    for (int i = 0; i < l->n_out; i++)
        to->out[i] = place(to, bytes_of(l->out[i].type));
    to->product = l->contraction ? place(to, bytes_of(l->product.type)) : 0;
    to->draws = place(to, DRAWN);
    to->refused = place(to, sizeof(uint32_t));
    to->applied = place(to, sizeof(uint32_t)); /* not 0, as all that is filled (TRIAL_NUMBERS): late kernels run */
    to->scratch = place(to, how->launch.scratch);
}

static void add(Arguments *a, CudaAddress at)
{
    if (at)
        a->values[a->n++] = at;
}

static void end_arguments(const LaunchKernels *how, const Places *at, Arguments *a)
{
    add(a, how->launch.draws ? at->draws : 0);
    add(a, how->launch.refuses ? at->refused : 0);
    add(a, how->launch.late ? at->applied : 0);
    add(a, at->scratch);
}

/* As launches have them (ir/kernels.h): a product's are those of the call, the others those of the region. */
static void take_arguments(const Launch *l, const LaunchKernels *how, const Places *at, Arguments *product,
                           Arguments *rest)
{
    for (int i = 0; l->contraction && i < l->contraction->n_in; i++)
        for (size_t k = 0; k < l->node->regions[0]->n_inputs; k++)
            if (in(l->contraction, i) == l->node->regions[0]->inputs[k])
                add(product, at->in[k]);
    add(product, at->product);
    end_arguments(how, at, product);
    for (int i = 0; i < l->n_in; i++)
        add(rest, at->in[i]);
    add(rest, at->product);
    for (int i = 0; i < l->n_out; i++)
        add(rest, at->out[i]);
    end_arguments(how, at, rest);
}

/* ---- times ---- */

/* A launch, ready to run. */
typedef struct Ready {
    Device *device;
    const LaunchKernels *how;
    CudaFunction *functions[CUDA_KERNELS];
    Arguments product, rest;
} Ready;

static bool run_ready(void *ready)
{
    const Ready *r = ready;
    launch_kernels(r->device, r->how, r->functions, &r->product, &r->rest, r->device->stream);
    return device_well(r->device);
}

static double seconds_of(void *rivals, int way)
{
    Rivals *r = rivals;
    const Side *s = &r->sides[way];
    const Launch *l = &r->p->program->launches[r->now];
    Ready ready = { .device = r->products->device, .how = &s->kernels->launches[r->now] };
    Places at = { .in = NEWS(r->scratch, CudaAddress, l->n_in + 1),
                  .out = NEWS(r->scratch, CudaAddress, l->n_out + 1) };
    if (!ready.how->launch.n)
        return CHOICE_UNKNOWN;
    lay_out(l, ready.how, &at);
    if (!compile(r) || !trial_room(r->products, at.bytes, TRIAL_NUMBERS) ||
        !find_functions(r, s, ready.how, ready.functions))
        return device_well(ready.device) ? CHOICE_UNKNOWN : CHOICE_FAILED;
    at.base = r->products->room.at;
    lay_out(l, ready.how, &at);
    const int n = l->n_in + l->n_out + (l->contraction ? l->contraction->n_in : 0) + MORE + 1;
    arguments_open(&ready.product, n, r->scratch);
    arguments_open(&ready.rest, n, r->scratch);
    take_arguments(l, ready.how, &at, &ready.product, &ready.rest);
    return trial_seconds(r->products, run_ready, &ready);
}

/* ---- the contest ---- */

/* Launches of which a library makes a product that nobody has asked about yet: one of each product. */
static void gather(Rivals *r)
{
    r->launches = NEWS(r->scratch, int, r->p->program->n_launches + 1);
    for (int i = 0; i < r->p->program->n_launches; i++) {
        KernelProduct *k = product_of(&r->sides[BY_LIBRARY].kernels->launches[i]);
        if (!k || k->contested)
            continue;
        k->contested = true;
        r->launches[r->n++] = i;
    }
}

/* Whether kernels win; what our kernels are is their text. */
static bool kernels_win(Rivals *r, int launch)
{
    static const Str ways[SIDES] = { { "library", 7 }, { "kernels", 7 } };
    const LaunchKernels *ours = &r->sides[BY_KERNELS].kernels->launches[launch];
    const KernelProduct *k = product_of(&r->sides[BY_LIBRARY].kernels->launches[launch]);
    const char *text = ours->text < 0 ? "" : r->sides[BY_KERNELS].kernels->texts[ours->text];
    const Choice choice = { .words = product_words(r->products, k,
                                                   arena_printf(r->scratch, "launch %s %s", r->o->device.version, text),
                                                   r->scratch),
                            .ways = ways,
                            .n = SIDES,
                            .seconds = seconds_of,
                            .user = r };
    r->now = launch;
    return choice_make(r->products->choices, &choice) == BY_KERNELS;
}

static void unload_rivals(void *rivals)
{
    unload(rivals);
}

/* One round; how many products kernels make from now on. */
static int contest(Rivals *r)
{
    const KernelTarget ours = { .narrow = r->target->narrow, .narrow_codes = r->target->narrow_codes };
    Device *device = r->products->device;
    int won = 0;
    gather(r);
    if (r->n)
        r->sides[BY_KERNELS].kernels = r->o->device.kernels(r->p->program, &ours, r->p->ir->ops, r->scratch);
    for (int i = 0; i < r->n && device_well(device); i++) {
        if (!kernels_win(r, r->launches[i]))
            continue;
        product_decline(r->products, product_of(&r->sides[BY_LIBRARY].kernels->launches[r->launches[i]]));
        won++;
    }
    return won;
}

const ProgramKernels *launches_contest(const ProgramRunner *p, const EngineOptions *o, const KernelTarget *target,
                                       const ProgramKernels *by_library)
{
    Products *products = launches_of(p)->device->products;
    int won = 0, more;
    do {
        Arena scratch;
        Cleanup cleanup;
        arena_open(&scratch, p->ir->memory);
        Rivals r = { .p = p, .o = o, .target = target, .products = products, .scratch = &scratch };
        r.sides[BY_LIBRARY].kernels = by_library;
        cleanup_push(p->ir->memory, &cleanup, unload_rivals, &r);
        more = contest(&r);
        cleanup_drop(&cleanup);
        unload(&r);
        arena_close(&scratch);
        if (more) /* of a product whose rows the library does not make any more it may make the product */
            by_library = o->device.kernels(p->program, target, p->ir->ops, launches_of(p)->arena);
        won += more;
    } while (more && device_well(products->device));
    if (won)
        remark(p->ir->diag, "engine", NOWHERE, "kernels make %d products, which %s makes no faster", won,
               products->library.library);
    return by_library;
}
