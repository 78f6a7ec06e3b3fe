/* What this build runs with: libraries, processor, threads, and what brings the things that are missing. */
#include <dlfcn.h>
#include <jansson.h>
#include <protobuf-c/protobuf-c.h>
#include <string.h>
#include <zlib.h>

#include "api/hall/devices.h"
#include "api/verbs/verbs.h"
#include "ops/card/schema.h"

/* A library that is looked for at run time, under the first of its names that is there. */
typedef struct Sought {
    const char *what, *names[4], *package;
} Sought;

static const Sought sought[] = {
    { "oneDNN", { "libdnnl.so.3", "libdnnl.so.2" }, "libdnnl-dev" },
    { "CUDA driver", { "libcuda.so.1" }, "nvidia-driver" },
    { "NVRTC", { "libnvrtc.so.13", "libnvrtc.so.12" }, "cuda-nvrtc-12-8" },
    { "cuBLAS", { "libcublas.so.13", "libcublas.so.12" }, "libcublas-12-8" },
    { "cuBLASLt", { "libcublasLt.so.13", "libcublasLt.so.12" }, "libcublas-12-8" },
    { "NCCL", { "libnccl.so.2" }, "libnccl2" },
    { "MPI", { "libmpi.so.40", "libmpi.so.12" }, "libopenmpi3" },
};

static Status tell_sought(Command *c, const Sought *s)
{
    const char *reason = "not found";
    for (size_t i = 0; i < COUNT(s->names) && s->names[i]; i++) {
        /* It stays loaded: some of them lose what they allocated when they go. */
        void *handle = dlopen(s->names[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
        if (handle) {
            dlclose(handle);
            return out_printf(c->out, "  %-12s found: %s\n", s->what, s->names[i]);
        }
        const char *error = dlerror();
        if (error)
            reason = arena_string(&c->cx->scratch, error);
    }
    return out_printf(c->out, "  %-12s missing: %s; package %s\n", s->what, reason, s->package);
}

static Status tell_libraries(Command *c)
{
    TRY(out_printf(c->out, "libraries\n"));
    TRY(out_printf(c->out, "  %-12s %s\n", "protobuf-c", protobuf_c_version()));
    TRY(out_printf(c->out, "  %-12s %s\n", "jansson", JANSSON_VERSION));
    TRY(out_printf(c->out, "  %-12s %s\n", "zlib", zlibVersion()));
    for (size_t i = 0; i < COUNT(sought); i++)
        TRY(tell_sought(c, &sought[i]));
    return OK;
}

/* Features, and what they enable: a level of the inner loops needs all of its own. */
static Status tell_processor(Command *c)
{
    Text t;
    text_open(&t, &c->cx->scratch);
#if defined(__x86_64__)
#define FEATURE(name)                                                                                                  \
    if (__builtin_cpu_supports(name))                                                                                  \
        text_add(&t, " " name);
    FEATURE("sse4.2")
    FEATURE("avx")
    FEATURE("fma")
    FEATURE("avx2")
    FEATURE("avx512f")
    FEATURE("avx512bw")
    FEATURE("avx512vl")
    FEATURE("avx512vnni")
    FEATURE("avx512bf16")
#undef FEATURE
#endif
    TRY(out_printf(c->out, "processor\n  features    %s\n", t.n ? text_get(&t) : " (not asked on this machine)"));
    TRY(out_printf(c->out, "  inner loops  level %s of", kernels_name(c->cx->kernels)));
    for (size_t i = 0; kernels_levels[i]; i++)
        if (kernels_named(kernels_levels[i]))
            TRY(out_printf(c->out, " %s", kernels_levels[i]));
    const int threads = c->cx->options.threads ? c->cx->options.threads : parallel_processors();
    return out_printf(c->out, "\n  threads      %d of %d\n", threads, parallel_processors());
}

static Status tell_capabilities(Command *c)
{
    TRY(out_printf(c->out, "verbs\n "));
    for (int v = 0; v < VERB_COUNT; v++)
        if (command_has((Verb)v) && v != VERB_compile)
            TRY(out_printf(c->out, " %s", verb_name((Verb)v)));
    return out_printf(c->out, " MODEL --emit\ndevices\n%s", devices_text(&c->cx->scratch));
}

Status command_doctor(Command *c)
{
    TRY(out_printf(c->out, "qcc %s\n", qcc_version()));
    if (!option_given(&c->line, OPT_verbose))
        return OK;
    TRY(out_printf(c->out, "operators\n  ONNX         %s: opset %d, IR %d\n", ONNX_RELEASE, ONNX_OPSET_NEWEST,
                   ONNX_IR_NEWEST));
    TRY(tell_libraries(c));
    TRY(tell_processor(c));
    return tell_capabilities(c);
}
