/* libnvrtc.so.13 of the simulated device: the functions of NVRTC that runtime/cuda/nvrtc.c looks for.  A text becomes an
 * object of this machine, made by its own compiler of C++; what is handed out names the file. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simcuda/scan.h"
#include "simcuda/sim.h"

#define EXPORT __attribute__((visibility("default")))

typedef struct NvrtcProgram {
    char *text, *log, *ptx, *cubin;
} NvrtcProgram;

enum { /* of nvrtc.h */
       NO_MEMORY = 1,
       INVALID_INPUT = 3,
       INVALID_PROGRAM = 4,
       INVALID_OPTION = 5,
       COMPILATION = 6,
};

EXPORT int nvrtcVersion(int *major, int *minor);
EXPORT int nvrtcGetNumSupportedArchs(int *n);
EXPORT int nvrtcGetSupportedArchs(int *archs);
EXPORT const char *nvrtcGetErrorString(int code);
EXPORT int nvrtcCreateProgram(NvrtcProgram **, const char *text, const char *name, int n, const char *const *headers,
                              const char *const *names);
EXPORT int nvrtcCompileProgram(NvrtcProgram *, int n, const char *const *options);
EXPORT int nvrtcGetProgramLogSize(NvrtcProgram *, size_t *);
EXPORT int nvrtcGetProgramLog(NvrtcProgram *, char *);
EXPORT int nvrtcGetPTXSize(NvrtcProgram *, size_t *);
EXPORT int nvrtcGetPTX(NvrtcProgram *, char *);
EXPORT int nvrtcGetCUBINSize(NvrtcProgram *, size_t *);
EXPORT int nvrtcGetCUBIN(NvrtcProgram *, char *);
EXPORT int nvrtcDestroyProgram(NvrtcProgram **);

static const int known_archs[] = { 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121 };

enum { N_ARCHS = sizeof known_archs / sizeof *known_archs };

/* A version that no NVRTC has: what it makes is never found in a folder of kernels under the name of something real. */
int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 99;
    return 0;
}

int nvrtcGetNumSupportedArchs(int *n)
{
    *n = N_ARCHS;
    return 0;
}

int nvrtcGetSupportedArchs(int *archs)
{
    memcpy(archs, known_archs, sizeof known_archs);
    return 0;
}

const char *nvrtcGetErrorString(int code)
{
    static const char *const texts[] = { "NVRTC_SUCCESS",
                                         "NVRTC_ERROR_OUT_OF_MEMORY",
                                         "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                         "NVRTC_ERROR_INVALID_INPUT",
                                         "NVRTC_ERROR_INVALID_PROGRAM",
                                         "NVRTC_ERROR_INVALID_OPTION",
                                         "NVRTC_ERROR_COMPILATION" };
    return code >= 0 && code < (int)(sizeof texts / sizeof *texts) ? texts[code] : "NVRTC_ERROR unknown";
}

int nvrtcCreateProgram(NvrtcProgram **p, const char *text, const char *name, int n, const char *const *headers,
                       const char *const *names)
{
    (void)name, (void)headers, (void)names;
    if (!p || !text || n)
        return INVALID_INPUT;
    *p = calloc(1, sizeof **p);
    (*p)->text = strdup(text);
    return 0;
}

/* ---- options ---- */

typedef struct Wanted {
    int arch;
    char letter; /* behind the number; 0: none */
    bool real;   /* sm_, not compute_ */
    bool verbose, fused;
} Wanted;

/* A value of "--name=value" or of "-name=value"; null: it is another option. */
static const char *value_of(const char *option, const char *name)
{
    const size_t n = strlen(name);
    while (*option == '-')
        option++;
    return strncmp(option, name, n) == 0 && option[n] == '=' ? option + n + 1 : NULL;
}

static bool read_arch(Wanted *w, const char *value)
{
    char *end;
    w->real = strncmp(value, "sm_", 3) == 0;
    if (!w->real && strncmp(value, "compute_", 8) != 0)
        return false;
    w->arch = (int)strtol(value + (w->real ? 3 : 8), &end, 10);
    w->letter = *end;
    if (*end && ((*end != 'a' && *end != 'f') || end[1] || w->arch < 90))
        return false;
    for (int i = 0; i < N_ARCHS; i++)
        if (known_archs[i] == w->arch)
            return true;
    return false;
}

static bool is_truth(const char *value)
{
    return strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
}

static bool read_option(Wanted *w, const char *option)
{
    static const char *const plain[] = {
        "--disable-warnings", "-w", "--generate-line-info", "-lineinfo", "--device-as-default-execution-space",
        "-default-device"
    };
    const char *value;
    if ((value = value_of(option, "gpu-architecture")) || (value = value_of(option, "arch")))
        return read_arch(w, value);
    if ((value = value_of(option, "fmad"))) {
        w->fused = strcmp(value, "true") == 0;
        return is_truth(value);
    }
    if ((value = value_of(option, "ftz")) || (value = value_of(option, "prec-div")) ||
        (value = value_of(option, "prec-sqrt")))
        return is_truth(value);
    if ((value = value_of(option, "std")))
        return strcmp(value, "c++17") == 0;
    if ((value = value_of(option, "ptxas-options"))) {
        w->verbose = w->verbose || strcmp(value, "-v") == 0;
        return *value == '-';
    }
    if ((value = value_of(option, "maxrregcount")))
        return atoi(value) > 0;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(option, plain[i]) == 0)
            return true;
    return false;
}

/* ---- compiling ---- */

static uint64_t hash_of(uint64_t h, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

static char *read_file(const char *path)
{
    char *text = NULL;
    size_t n;
    FILE *f = fopen(path, "r"), *out = open_memstream(&text, &n);
    for (int c; f && (c = getc(f)) != EOF;)
        putc(c, out);
    fclose(out);
    if (f)
        fclose(f);
    return text;
}

static void set_log(NvrtcProgram *p, char *log)
{
    free(p->log);
    p->log = log;
}

/* What the compiler gets. */
static char *source_of(const Scan *s, bool checked)
{
    char *text;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    fprintf(f, "%s#include \"simcuda/kernel.hpp\"\n#line 1 \"kernels.cu\"\n%s\n#line 1 \"the kernels of kernels.cu\"\n",
            checked ? "#define SIM_CHECKED 1\n" : "", s->text);
    for (int i = 0; i < s->n; i++)
        fprintf(f, "SIM_KERNEL(%d, %s, %d, %d)\n", i, s->kernels[i].name, s->kernels[i].most_threads,
                s->kernels[i].refused);
    fprintf(f, "SIM_MODULE(%d, ", s->n);
    for (int i = 0; i < s->n; i++)
        fprintf(f, "sim_kernel_%d(), ", i);
    fprintf(f, "nullptr)\n");
    fclose(f);
    return text;
}

static const char include_tests[] = "-I" SIM_TESTS;
/* Compiling takes longer than running does: nothing is optimized. */
static const char *const plain_flags[] = { "-w",
                                           "-U_FORTIFY_SOURCE",
                                           "-std=c++17",
                                           "-O0",
                                           "-ffp-contract=off",
                                           "-fno-strict-aliasing",
                                           "-fno-math-errno",
                                           "-fno-trapping-math",
                                           "-fno-exceptions",
                                           "-fno-threadsafe-statics",
                                           "-fPIC",
                                           "-shared",
                                           include_tests };
/* The libraries of the sanitizers stay away: kernel.hpp has what they would bring.  Optimized: the fewer accesses of a
 * kernel's own locals, the fewer are looked at. */
static const char *const checked_flags[] = { "-O1", "-fsanitize=thread,alignment,bounds", "-nodefaultlibs", "-g1" };

enum {
    PLAIN = sizeof plain_flags / sizeof *plain_flags,
    CHECKED = sizeof checked_flags / sizeof *checked_flags,
    FILES = 8
};

/* Runs the compiler, whose messages go to a file; whether it succeeded. */
static bool run_compiler(const char *source, const char *object, const char *messages, bool checked)
{
    const char *words[PLAIN + CHECKED + FILES] = { "c++" };
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status, n = 1;
    for (int i = 0; i < PLAIN; i++)
        words[n++] = plain_flags[i];
    for (int i = 0; checked && i < CHECKED; i++)
        words[n++] = checked_flags[i];
    words[n++] = "-o";
    words[n++] = object;
    words[n++] = source;
    words[n++] = "-lm";
    words[n++] = "-lc";
    words[n++] = "-lgcc";
    words[n] = NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, messages, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    char *const environment[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", NULL };
    const int failed = posix_spawnp(&child, "c++", &actions, NULL, (char *const *)(uintptr_t)words, environment);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return false;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Compiles a source that nobody compiled yet; programs that do so at once each make the same file.  What the compiler says
 * where it fails. */
static char *make_object(const char *source, const char *path, bool checked)
{
    char *name = NULL, *object = NULL, *messages = NULL, *said = NULL;
    if (asprintf(&name, "%s-%d.cpp", path, getpid()) < 0 || asprintf(&object, "%s-%d.so", path, getpid()) < 0 ||
        asprintf(&messages, "%s-%d.txt", path, getpid()) < 0)
        abort();
    mkdir(SIM_CACHE, 0777);
    FILE *f = fopen(name, "w");
    if (!f || fputs(source, f) == EOF || fclose(f) == EOF)
        said = strdup("the folder " SIM_CACHE " cannot be written");
    else if (!run_compiler(name, object, messages, checked))
        said = read_file(messages);
    else if (rename(object, path) != 0)
        said = strdup("the object cannot be named");
    unlink(name);
    unlink(messages);
    unlink(object);
    free(name);
    free(object);
    free(messages);
    return said;
}

static bool is_checked(void)
{
    const char *word = getenv("QCC_SIM_CHECKS");
    return word ? strcmp(word, "on") == 0 : SIM_CHECKS;
}

/* Where the object of a source is. */
static char *path_of(const char *source, bool checked)
{
    char *path = NULL, *header = read_file(SIM_TESTS "/simcuda/kernel.hpp"),
         *face = read_file(SIM_TESTS "/simcuda/sim.h");
    uint64_t h[2] = { 0xcbf29ce484222325u, 0x84222325cbf29ce4u };
    for (int i = 0; i < 2; i++) {
        h[i] = hash_of(h[i], source, strlen(source));
        h[i] = hash_of(h[i], header, strlen(header));
        h[i] = hash_of(h[i], face, strlen(face));
        for (int k = 0; k < PLAIN; k++)
            h[i] = hash_of(h[i], plain_flags[k], strlen(plain_flags[k]) + 1);
        for (int k = 0; checked && k < CHECKED; k++)
            h[i] = hash_of(h[i], checked_flags[k], strlen(checked_flags[k]) + 1);
    }
    if (asprintf(&path, "%s/%016llx%08x%s.so", SIM_CACHE, (unsigned long long)h[0], (unsigned)h[1],
                 checked ? "-checked" : "") < 0)
        abort();
    free(header);
    free(face);
    return path;
}

/* What ptxas -v says, with figures that no device has. */
static char *assembler_log(const Scan *s, const Wanted *w)
{
    char *text;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (w->verbose && w->real)
        fprintf(f, "ptxas info    : 0 bytes gmem\n");
    for (int i = 0; w->verbose && w->real && i < s->n; i++)
        fprintf(f,
                "ptxas info    : Compiling entry function '%s' for 'sm_%d%s'\n"
                "ptxas info    : Function properties for %s\n"
                "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                "ptxas info    : Used 32 registers, used 1 barriers\n",
                s->kernels[i].name, w->arch, w->letter ? (char[]){ w->letter, 0 } : "", s->kernels[i].name);
    fclose(f);
    return text;
}

static char *image_of(const char *form, const Wanted *w, const char *path)
{
    char *image = NULL;
    if (asprintf(&image, SIM_IMAGE "form=%s\narch=%d%s\npath=%s\n", form, w->arch,
                 w->letter ? (char[]){ w->letter, 0 } : "", path) < 0)
        abort();
    return image;
}

static bool fails_on_purpose(void)
{
    const char *word = getenv("QCC_SIM_FAIL_NVRTC");
    return word && *word;
}

int nvrtcCompileProgram(NvrtcProgram *p, int n, const char *const *options)
{
    Wanted w = { .arch = 75, .fused = true };
    if (!p)
        return INVALID_PROGRAM;
    for (int i = 0; i < n; i++)
        if (!read_option(&w, options[i])) {
            char *log = NULL;
            if (asprintf(&log, "nvrtc: error: invalid value or unrecognized option: %s\n", options[i]) < 0)
                abort();
            set_log(p, log);
            return INVALID_OPTION;
        }
    if (fails_on_purpose()) {
        set_log(p, strdup("kernels.cu(1): error: it was asked to fail\n"));
        return COMPILATION;
    }
    const bool checked = is_checked();
    Scan s;
    scan(&s, p->text);
    char *source = source_of(&s, checked), *path = path_of(source, checked);
    char *said = access(path, R_OK) == 0 ? NULL : make_object(source, path, checked);
    set_log(p, said ? said : assembler_log(&s, &w));
    if (!said) {
        p->ptx = image_of("ptx", &w, path);
        p->cubin = w.real ? image_of("cubin", &w, path) : NULL;
    }
    free(source);
    free(path);
    scan_free(&s);
    return said ? COMPILATION : 0;
}

/* ---- what came out ---- */

static int give_size(const char *text, size_t *n)
{
    if (!text)
        return INVALID_PROGRAM;
    *n = strlen(text) + 1;
    return 0;
}

static int give(const char *text, char *to)
{
    if (!text)
        return INVALID_PROGRAM;
    memcpy(to, text, strlen(text) + 1);
    return 0;
}

int nvrtcGetProgramLogSize(NvrtcProgram *p, size_t *n)
{
    return give_size(p && p->log ? p->log : "", n);
}

int nvrtcGetProgramLog(NvrtcProgram *p, char *to)
{
    return give(p && p->log ? p->log : "", to);
}

int nvrtcGetPTXSize(NvrtcProgram *p, size_t *n)
{
    return give_size(p->ptx, n);
}

int nvrtcGetPTX(NvrtcProgram *p, char *to)
{
    return give(p->ptx, to);
}

int nvrtcGetCUBINSize(NvrtcProgram *p, size_t *n)
{
    *n = 0; /* of an architecture that no device has: none */
    return p->ptx && !p->cubin ? 0 : give_size(p->cubin, n);
}

int nvrtcGetCUBIN(NvrtcProgram *p, char *to)
{
    return give(p->cubin, to);
}

int nvrtcDestroyProgram(NvrtcProgram **p)
{
    if (!p || !*p)
        return INVALID_PROGRAM;
    free((*p)->text);
    free((*p)->log);
    free((*p)->ptx);
    free((*p)->cubin);
    free(*p);
    *p = NULL;
    return 0;
}
