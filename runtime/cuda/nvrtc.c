#include "runtime/cuda/nvrtc.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runtime/cuda/library.h"

enum { MOST_ARCHS = 256, MOST_LOG = 4000 };

/* Newer ones first; the folder that the toolkit makes is in no search path of its own. */
static const char *const libraries[] = { "libnvrtc.so.13",
                                         "libnvrtc.so.12",
                                         "/usr/local/cuda/lib64/libnvrtc.so.13",
                                         "/usr/local/cuda/lib64/libnvrtc.so.12",
                                         "libnvrtc.so",
                                         NULL };

/* Products and sums are rounded as the text says: nothing becomes a fused multiply-add behind its back, nothing is flushed
 * to zero, divisions and roots are exact. */
const char *const nvrtc_options[] = { "--fmad=false", "--std=c++17", "--disable-warnings", "--ptxas-options=-v", NULL };

/* ---- the library ---- */

static const LibrarySymbol symbols[] = {
    { "nvrtcVersion", offsetof(Nvrtc, version) },
    { "nvrtcGetNumSupportedArchs", offsetof(Nvrtc, count_archs) },
    { "nvrtcGetSupportedArchs", offsetof(Nvrtc, list_archs) },
    { "nvrtcGetErrorString", offsetof(Nvrtc, error) },
    { "nvrtcCreateProgram", offsetof(Nvrtc, create) },
    { "nvrtcCompileProgram", offsetof(Nvrtc, compile) },
    { "nvrtcGetProgramLogSize", offsetof(Nvrtc, log_size) },
    { "nvrtcGetProgramLog", offsetof(Nvrtc, log) },
    { "nvrtcGetPTXSize", offsetof(Nvrtc, ptx_size) },
    { "nvrtcGetPTX", offsetof(Nvrtc, ptx) },
    { "nvrtcGetCUBINSize", offsetof(Nvrtc, cubin_size) },
    { "nvrtcGetCUBIN", offsetof(Nvrtc, cubin) },
    { "nvrtcDestroyProgram", offsetof(Nvrtc, destroy) },
};

static const char *begin(void *table, Arena *arena)
{
    Nvrtc *n = table;
    (void)arena;
    return n->version(&n->major, &n->minor) == 0 ? NULL : "it does not say its version";
}

static Status absent(Diag *d, Place place, const char *why)
{
    Message *m =
        message_new(d, SEVERITY_ERROR, DEVICE, place, "NVRTC, which compiles kernels, cannot be used: %s", why);
    message_try(m, "a CUDA toolkit of version 12 or 13; package cuda-nvrtc-12-8");
    message_try(m, "--emit cuda, which writes the text alone");
    return message_send(m);
}

Status nvrtc_load(Nvrtc *n, Diag *d, Place place, Arena *arena)
{
    static const Library library = { libraries, symbols, COUNT(symbols), begin };
    const char *why;
    n->name = library_find(&library, n, arena, &why);
    return n->name ? OK : absent(d, place, why);
}

/* ---- architectures ---- */

/* Letters are for what only one architecture has, from 90 on. */
int nvrtc_arch_number(const char *arch)
{
    enum { LETTERS_FROM = 90 };
    char *end;
    if (strncmp(arch, "sm_", 3) != 0 || arch[3] < '1' || arch[3] > '9')
        return -1;
    const long number = strtol(arch + 3, &end, 10);
    const bool letter = (*end == 'a' || *end == 'f') && !end[1] && number >= LETTERS_FROM;
    return number < 1000 && (!*end || letter) ? (int)number : -1;
}

Status nvrtc_check_arch(const Nvrtc *n, Diag *d, Place place, const char *arch, Arena *arena)
{
    int archs[MOST_ARCHS], count = 0;
    Text known;
    text_open(&known, arena);
    if (n->count_archs(&count) != 0 || count < 0 || count > MOST_ARCHS || n->list_archs(archs) != 0)
        count = 0;
    for (int i = 0; i < count; i++) {
        if (archs[i] == nvrtc_arch_number(arch))
            return OK;
        text_printf(&known, i ? ", sm_%d" : "sm_%d", archs[i]);
    }
    Message *m = message_new(d, SEVERITY_ERROR, USAGE, place, "%s is no architecture that NVRTC %d.%d compiles for",
                             arch, n->major, n->minor);
    message_try(m, "%s; behind one of 90 and above a letter (sm_90a): what only this one has", text_get(&known));
    return message_send(m);
}

/* ---- compiling ---- */

static char *read_log(const Nvrtc *n, NvrtcProgram *p, Arena *arena)
{
    size_t size = 0;
    if (n->log_size(p, &size) != 0 || !size)
        return arena_string(arena, "");
    char *log = arena_array(arena, size + 1, 1);
    if (n->log(p, log) != 0)
        return arena_string(arena, "");
    log[size] = '\0';
    return log;
}

static Status refuse(const Nvrtc *n, Diag *d, const char *what, int code, const char *log)
{
    return fail_as(d, INTERNAL, NOWHERE, "NVRTC %d.%d, %s: %s\n%.*s", n->major, n->minor, what, n->error(code),
                   MOST_LOG, log);
}

static Status take(const Nvrtc *n, Diag *d, NvrtcProgram *p, NvrtcForm form, Arena *arena, Str *bytes)
{
    const bool ptx = form == NVRTC_PTX;
    size_t size = 0;
    int code = (ptx ? n->ptx_size : n->cubin_size)(p, &size);
    char *to = code == 0 ? arena_array(arena, size + 1, 1) : NULL;
    code = to ? (ptx ? n->ptx : n->cubin)(p, to) : code;
    if (code != 0)
        return refuse(n, d, "what it compiled", code, "");
    *bytes = (Str){ to, ptx && size ? size - 1 : size }; /* a text ends with a NUL */
    return OK;
}

NvrtcJob nvrtc_job(const char *text, const char *arch, NvrtcForm form, Arena *arena)
{
    enum { OWN = COUNT(nvrtc_options) - 1 };
    const char **options = NEWS(arena, const char *, OWN + 1);
    options[0] = arena_printf(arena, "--gpu-architecture=%s%s", form == NVRTC_PTX ? "compute_" : "sm_", arch + 3);
    memcpy(options + 1, nvrtc_options, OWN * sizeof *options);
    return (NvrtcJob){ .text = text, .options = options, .n_options = OWN + 1, .form = form };
}

void nvrtc_job_run(const Nvrtc *n, NvrtcJob *job)
{
    job->failed = "a program";
    job->code = n->create(&job->program, job->text, "kernels.cu", 0, NULL, NULL);
    if (job->code != 0) {
        job->program = NULL;
        return;
    }
    job->code = n->compile(job->program, job->n_options, job->options);
    job->failed = job->code != 0 ? "kernels" : NULL;
}

Status nvrtc_job_take(const Nvrtc *n, Diag *d, const NvrtcJob *job, Arena *arena, Str *bytes, const char **log)
{
    *log = job->program ? read_log(n, job->program, arena) : "";
    if (job->failed)
        return refuse(n, d, job->failed, job->code, *log);
    return take(n, d, job->program, job->form, arena, bytes);
}

void nvrtc_job_end(const Nvrtc *n, NvrtcJob *job)
{
    if (job->program)
        n->destroy(&job->program);
    job->program = NULL;
}

/* What a jump passes by. */
typedef struct Running {
    const Nvrtc *n;
    NvrtcJob job;
} Running;

static void end_running(void *thing)
{
    Running *r = thing;
    nvrtc_job_end(r->n, &r->job);
}

Status nvrtc_compile(const Nvrtc *n, Diag *d, const char *text, const char *arch, NvrtcForm form, Arena *arena,
                     Str *bytes, const char **log)
{
    Running r = { n, nvrtc_job(text, arch, form, arena) };
    Cleanup cleanup;
    cleanup_push(arena->memory, &cleanup, end_running, &r);
    nvrtc_job_run(n, &r.job);
    const Status status = nvrtc_job_take(n, d, &r.job, arena, bytes, log);
    cleanup_drop(&cleanup);
    end_running(&r);
    return status;
}

/* ---- what the assembler says ---- */

/* The number in front of a word of a line; 0: the line has none. */
static int64_t number_before(const char *line, size_t n, const char *word)
{
    const size_t length = strlen(word);
    for (size_t i = 0; i + length <= n; i++) {
        size_t at = i;
        if (memcmp(line + i, word, length) != 0)
            continue;
        while (at > 0 && line[at - 1] >= '0' && line[at - 1] <= '9')
            at--;
        return strtoll(line + at, NULL, 10);
    }
    return 0;
}

static void read_use(KernelUse *use, const char *line, size_t n)
{
    if (number_before(line, n, " registers")) {
        use->registers = (int)number_before(line, n, " registers");
        use->barriers = (int)number_before(line, n, " barriers");
        use->shared = number_before(line, n, " bytes smem");
    }
    use->stack += number_before(line, n, " bytes stack frame");
    use->spills += number_before(line, n, " bytes spill stores") + number_before(line, n, " bytes spill loads");
}

size_t nvrtc_uses(const char *log, Arena *arena, KernelUse **uses)
{
    static const char heading[] = "Compiling entry function '";
    size_t n = 0, cap = 0;
    *uses = NULL;
    while (*log) {
        const size_t length = strcspn(log, "\n");
        const char *name = strstr(log, heading);
        if (name && name < log + length) {
            name += strlen(heading);
            GROW(arena, *uses, n, cap);
            (*uses)[n++] = (KernelUse){ .name = arena_printf(arena, "%.*s", (int)strcspn(name, "'"), name) };
        } else if (n) {
            read_use(&(*uses)[n - 1], log, length);
        }
        log += length + (log[length] == '\n');
    }
    return n;
}
