/* explain --kernels: the kernels of a model or a step for CUDA, and what they take of a processor as NVRTC compiles them. */
#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/emit/emit.h"
#include "api/verbs/explain.h"
#include "codegen/cuda/cuda_module.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/log/log.h"

/* A kernel, and how often the graphs launch it. */
typedef struct Told {
    const CudaKernel *kernel;
    const KernelUse *use;
    int launches;
    const char *first; /* whose launch it is first */
} Told;

typedef struct Kernels {
    CudaModule made;
    Told *list;
    size_t n;
    const char *arch;
    Nvrtc nvrtc;
} Kernels;

static void add_part(Kernels *k, Map *seen, const CudaPart *part, Arena *arena)
{
    for (int i = 0; i < part->kernels.n; i++) {
        bool fresh;
        MapEntry *e = map_put(seen, part->kernels.kernels[i].name, &fresh);
        if (fresh) {
            const Node *n = part->launch->node;
            const char *name = n->label ? n->label : n->name;
            e->value.u = k->n;
            k->list[k->n++] = (Told){ .kernel = &part->kernels.kernels[i],
                                      .first = arena_printf(arena, "%s %d%s%s", part->program, part->number,
                                                            name ? " " : "", name ? name_text(arena, name) : "") };
        }
        k->list[e->value.u].launches++;
    }
}

/* What the assembler says of each. */
static void add_uses(Kernels *k, const KernelObjects *made, Arena *arena)
{
    Map known;
    map_open(&known, arena);
    for (size_t o = 0; o < made->n; o++) {
        KernelUse *uses;
        const size_t n = nvrtc_uses(made->list[o].log, arena, &uses);
        for (size_t i = 0; i < n; i++)
            map_put(&known, uses[i].name, NULL)->value.cp = &uses[i];
    }
    for (size_t i = 0; i < k->n; i++) {
        const MapEntry *e = map_find(&known, k->list[i].kernel->name);
        k->list[i].use = e ? e->value.cp : NULL;
    }
}

/* Compiles all texts, or finds what an earlier run kept of them. */
static Status compile(Command *c, Kernels *k)
{
    qcc_context *cx = c->cx;
    const KernelCache cache = { .folder = cx->device.cache, .version = cx->device.version };
    const int threads = cx->options.threads ? cx->options.threads : parallel_processors();
    KernelObjects made;
    Text prelude;
    text_open(&prelude, &cx->scratch);
    cuda_prelude(&prelude);
    const KernelSource source = { text_get(&prelude), k->made.texts, k->made.n_texts, k->arch };
    TRY(kernels_compile(&cache, &k->nvrtc, threads, &cx->diag, &source, &cx->scratch, &made));
    add_uses(k, &made, &cx->scratch);
    return OK;
}

static Status find_kernels(Command *c, const Module *module, const Graph *model, Kernels *k)
{
    Arena *arena = &c->cx->scratch;
    Place place = ON_COMMAND_LINE;
    Map seen;
    place.where = "--kernels";
    TRY(nvrtc_load(&k->nvrtc, &c->cx->diag, place, arena));
    place.where = "--arch";
    k->arch = kernels_arch(&c->line);
    TRY(nvrtc_check_arch(&k->nvrtc, &c->cx->diag, place, k->arch, arena));
    TRY(kernels_of_graphs(c->cx, module, model, k->arch, &k->made));
    k->list = NEWS(arena, Told, k->made.n_kernels + 1);
    map_open(&seen, arena);
    for (size_t i = 0; i < k->made.n; i++)
        add_part(k, &seen, &k->made.parts[i], arena);
    return compile(c, k);
}

/* Those of tensor cores, which every architecture that NVRTC knows has for codes. */
static void tell_tensor(const Kernels *k, Text *t)
{
    int n = 0, launches = 0;
    for (size_t i = 0; i < k->n; i++) {
        n += k->list[i].kernel->tensor;
        launches += k->list[i].kernel->tensor ? k->list[i].launches : 0;
    }
    text_label(t, "tensor cores");
    text_printf(t, "%d launches of %d kernels%s", launches, n, n ? ":" : "");
    for (size_t i = 0; i < k->n; i++)
        if (k->list[i].kernel->tensor)
            text_printf(t, " %s", k->list[i].kernel->name);
    text_char(t, '\n');
}

static void tell(const Kernels *k, Text *t)
{
    text_label(t, "kernels");
    text_printf(t, "%zu of %zu texts, for %zu of %zu launches; NVRTC %d.%d, %s\n", k->n, k->made.n_texts,
                k->made.n - (size_t)k->made.n_without, k->made.n, k->nvrtc.major, k->nvrtc.minor, k->arch);
    text_label(t, "");
    text_add(t, "launches     blocks  threads  registers  spills  shared  kernel\n");
    for (size_t i = 0; i < k->n; i++) {
        const Told *o = &k->list[i];
        const KernelUse none = { .name = "" }, *use = o->use ? o->use : &none;
        text_label(t, "");
        text_printf(t, "%8d  %9" PRId64 "  %7d  %9d  %6" PRId64 "  %6" PRId64 "  %s: %s\n", o->launches,
                    o->kernel->blocks, o->kernel->threads, use->registers, use->spills, use->shared, o->kernel->name,
                    o->first);
    }
    tell_tensor(k, t);
    for (size_t i = 0; i < k->made.n; i++) {
        const CudaPart *part = &k->made.parts[i];
        if (!part->why)
            continue;
        text_label(t, "no kernels");
        text_printf(t, "%s %d, %s: %s\n", part->program, part->number, launch_word(part->launch), part->why);
    }
}

static void records(const Kernels *k, Text *t)
{
    log_record(t, "kernels", { "nvrtc", logged_text(arena_printf(t->arena, "%d.%d", k->nvrtc.major, k->nvrtc.minor)) },
               { "arch", logged_text(k->arch) }, { "texts", logged_int((int64_t)k->made.n_texts) },
               { "kernels", logged_int((int64_t)k->n) }, { "launches", logged_int((int64_t)k->made.n) },
               { "launches_without", logged_int(k->made.n_without) });
    for (size_t i = 0; i < k->n; i++) {
        const Told *o = &k->list[i];
        const KernelUse none = { .name = "" }, *use = o->use ? o->use : &none;
        log_record(t, "kernel", { "name", logged_text(o->kernel->name) }, { "launches", logged_int(o->launches) },
                   { "blocks", logged_int(o->kernel->blocks) }, { "threads", logged_int(o->kernel->threads) },
                   { "registers", logged_int(use->registers) }, { "spill_bytes", logged_int(use->spills) },
                   { "shared_bytes", logged_int(use->shared) }, { "tensor_cores", logged_flag(o->kernel->tensor) },
                   { "first", logged_text(o->first) });
    }
}

Status explain_kernels(Command *c, const qcc_model *m, const qcc_step *s)
{
    Kernels k = { .n = 0 };
    Text t;
    text_open(&t, &c->cx->scratch);
    TRY(find_kernels(c, s ? s->module : m->module, s ? NULL : m->graph, &k));
    if (out_is_json(c->out)) {
        records(&k, &t);
        return out_objects(c->out, &t);
    }
    tell(&k, &t);
    return out_bytes(c->out, t.p, t.n);
}
