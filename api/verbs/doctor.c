/* What this build runs with: libraries, processor, threads, and what brings the things that are missing. */
#include <dlfcn.h>
#include <jansson.h>
#include <protobuf-c/protobuf-c.h>
#include <string.h>
#include <zlib.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "api/hall/devices.h"
#include "api/hall/words.h"
#include "api/verbs/verbs.h"
#include "ops/card/schema.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/kernel_cache.h"

/* A library that is looked for at run time, under the first of its names that is there. */
typedef struct Sought {
    const char *what, *names[4], *package;
} Sought;

static const Sought sought[] = {
    { "oneDNN", { "libdnnl.so.3", "libdnnl.so.2" }, "libdnnl-dev" },
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
#elif defined(__aarch64__)
    enum { ASIMD = 1 << 1, DOT_PRODUCTS = 1 << 20, I8MM = 1 << 13, BF16_PRODUCTS = 1 << 14 }; /* HWCAP_.., HWCAP2_.. */
    const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    text_printf(&t, "%s%s%s%s", first & ASIMD ? " asimd" : "", first & DOT_PRODUCTS ? " asimddp" : "",
                second & I8MM ? " i8mm" : "", second & BF16_PRODUCTS ? " bf16" : "");
#endif
    TRY(out_printf(c->out, "processor\n  features    %s\n", t.n ? text_get(&t) : " (not asked on this machine)"));
    TRY(out_printf(c->out, "  inner loops  level %s of", kernels_name(c->cx->kernels)));
    for (size_t i = 0; kernels_levels[i]; i++)
        if (kernels_named(kernels_levels[i]))
            TRY(out_printf(c->out, " %s", kernels_levels[i]));
    const int threads = c->cx->options.threads ? c->cx->options.threads : parallel_processors();
    return out_printf(c->out, "\n  threads      %d of %d\n", threads, parallel_processors());
}

/* What a search that failed says, heard by nobody else. */
static void hear(void *user, const Message *m)
{
    const char **said = user;
    *said = m->text;
}

static Status tell_device(Command *c, const Driver *driver, int number)
{
    DeviceFacts f;
    const int code = driver_facts(driver, number, &f);
    if (code != CUDA_OK)
        return out_printf(c->out, "  device %d     the driver says: %s\n", number, driver_error(driver, code));
    return out_printf(c->out, "  device %d     %s, sm_%d%d, %s\n", number, name_text(&c->cx->scratch, f.name), f.major,
                      f.minor, bytes_text(&c->cx->scratch, f.bytes));
}

static Status tell_driver(Command *c, Diag *quiet, const char *const *said)
{
    Driver driver;
    int n = 0;
    if (driver_load(&driver, quiet, NOWHERE, &c->cx->scratch) != OK)
        return out_printf(c->out, "  driver       %s\n", *said);
    TRY(out_printf(c->out, "  driver       of CUDA %d.%d: %s\n", driver.made_for / 1000, driver.made_for % 1000 / 10,
                   driver.library));
    if (driver.count(&n) != CUDA_OK)
        n = 0;
    for (int i = 0; i < n; i++)
        TRY(tell_device(c, &driver, i));
    return OK;
}

static Status tell_kept(Command *c)
{
    const char *folder = c->cx->device.cache;
    size_t files;
    uint64_t bytes;
    if (!folder)
        return out_printf(c->out, "  kernels      are not kept (--cache)\n");
    if (!kernel_cache_size(folder, &c->cx->scratch, &files, &bytes))
        files = 0, bytes = 0;
    return out_printf(c->out, "  kernels      kept in %s: %zu file%s, %s of at most %s\n",
                      name_text(&c->cx->scratch, folder), files, files == 1 ? "" : "s",
                      bytes_text(&c->cx->scratch, bytes), bytes_text(&c->cx->scratch, KERNEL_CACHE_MOST));
}

/* What a GPU needs. */
static Status tell_cuda(Command *c)
{
    const char *said = "";
    Nvrtc nvrtc;
    Diag quiet;
    diag_open(&quiet, &c->cx->scratch, hear, &said);
    TRY(out_printf(c->out, "CUDA\n"));
    TRY(tell_driver(c, &quiet, &said));
    if (nvrtc_load(&nvrtc, &quiet, NOWHERE, &c->cx->scratch) == OK)
        TRY(out_printf(c->out, "  NVRTC        %d.%d: %s\n", nvrtc.major, nvrtc.minor, nvrtc.name));
    else
        TRY(out_printf(c->out, "  NVRTC        %s\n", said));
    return tell_kept(c);
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
    TRY(tell_cuda(c));
    return tell_capabilities(c);
}
