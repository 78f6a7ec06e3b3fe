/* The kernels of a model or a step for CUDA, as text, or compiled: nothing here wants a device. */
#include <string.h>

#include "api/emit/emit.h"
#include "codegen/cuda/cuda_module.h"
#include "base/parallel.h"
#include "runtime/cuda/kernel_cache.h"

const char *kernels_arch(const CommandLine *line)
{
    const char *said = option_text(line, OPT_arch);
    return said ? said : "sm_90a";
}

static Status add_graph(qcc_context *cx, const Graph *g, CudaModule *made)
{
    const Lowered l = lower_graph_heard(g, &cx->lowering, &cx->scratch);
    if (!l.program)
        return lower_refuse(g, &l);
    cuda_module_add(made, l.program, g->name ? g->name : "graph");
    return OK;
}

Status kernels_of_graphs(qcc_context *cx, const Module *module, const Graph *model, const char *arch, CudaModule *made)
{
    static const char *const of_step[] = { "step", "eval" };
    cuda_module_open(made, module->graphs[0]->ir->ops, &cx->scratch);
    made->target.narrow = nvrtc_arch_number(arch) >= CUDA_NARROW_ARCH;
    made->target.narrow_codes = nvrtc_arch_number(arch) >= CUDA_NARROW_CODES_ARCH;
    if (model)
        return add_graph(cx, model, made);
    for (size_t i = 0; i < COUNT(of_step); i++) {
        const Graph *g = module_graph(module, of_step[i]);
        if (g)
            TRY(add_graph(cx, g, made));
    }
    return OK;
}

/* Who compiles the rest has to know that some calls have no kernels yet. */
static void tell_without(qcc_context *cx, const CudaModule *made, EmitKernels form)
{
    if (!made->n_without)
        return;
    Message *m = message_new(&cx->diag, SEVERITY_WARNING, OK, NOWHERE, "%d of %zu launches have no kernels%s",
                             made->n_without, made->n, form == EMIT_CUDA ? ": the end of the text lists them" : "");
    if (form != EMIT_CUDA)
        message_try(m, "--emit cuda, whose text lists them at its end");
    (void)message_send(m);
}

/* For people and other architectures: compiled each time. */
static Status compile_ptx(qcc_context *cx, const Nvrtc *nvrtc, const char *text, const char *arch, Out *o)
{
    const char *log;
    Str bytes;
    TRY(nvrtc_compile(nvrtc, &cx->diag, text, arch, NVRTC_PTX, &cx->scratch, &bytes, &log));
    return out_bytes(o, bytes.p, bytes.n);
}

static Status compile_cubin(qcc_context *cx, const Nvrtc *nvrtc, const char *text, const char *arch, Out *o)
{
    const KernelCache cache = { .folder = cx->device.cache, .version = cx->device.version };
    const KernelSource source = { .prelude = "", .texts = &text, .n = 1, .arch = arch };
    const int threads = cx->options.threads ? cx->options.threads : parallel_processors();
    KernelObjects made;
    TRY(kernels_compile(&cache, nvrtc, threads, &cx->diag, &source, &cx->scratch, &made));
    return out_bytes(o, made.list[0].cubin.p, made.list[0].cubin.n);
}

static Status compile(qcc_context *cx, const CommandLine *line, const char *text, EmitKernels form, Out *o)
{
    Place place = ON_COMMAND_LINE;
    const char *arch = kernels_arch(line);
    Nvrtc nvrtc;
    place.where = "--emit";
    TRY(nvrtc_load(&nvrtc, &cx->diag, place, &cx->scratch));
    place.where = "--arch";
    TRY(nvrtc_check_arch(&nvrtc, &cx->diag, place, arch, &cx->scratch));
    return (form == EMIT_PTX ? compile_ptx : compile_cubin)(cx, &nvrtc, text, arch, o);
}

/* What a text is for, without asking NVRTC whether it knows that. */
static Status check_arch(qcc_context *cx, const char *arch)
{
    Place place = ON_COMMAND_LINE;
    place.where = "--arch";
    return nvrtc_arch_number(arch) < 0
               ? fail_as(&cx->diag, USAGE, place, "%s is no architecture: wanted is one like sm_90a", arch)
               : OK;
}

Status emit_kernels(const Module *module, const Graph *model, const CommandLine *line, EmitKernels form, Out *o)
{
    CudaModule made;
    Text text;
    const char *arch = kernels_arch(line);
    if (form == EMIT_CUDA)
        TRY(check_arch(o->cx, arch));
    TRY(kernels_of_graphs(o->cx, module, model, arch, &made));
    text_open(&text, &o->cx->scratch);
    cuda_prelude(&text);
    cuda_module_print(&made, form == EMIT_CUDA, &text);
    tell_without(o->cx, &made, form);
    return form == EMIT_CUDA ? out_bytes(o, text.p, text.n) : compile(o->cx, line, text_get(&text), form, o);
}
