/* NVRTC, loaded while a test runs and used only if it is there: compiles CUDA text to PTX without a GPU.
 *
 *     Nvrtc nvrtc;
 *     if (!nvrtc_open(&nvrtc))
 *         skip();
 *     char *ptx = nvrtc_ptx(&nvrtc, text, "sm_90a");      NULL and a message on stderr if the text does not compile
 *     nvrtc_count(ptx, "fma.rn.f32") ...
 *     free(ptx);
 *
 * Needs no CUDA header. */
#ifndef QCC_TESTS_NVRTC_H
#define QCC_TESTS_NVRTC_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct NvrtcProgram NvrtcProgram;

typedef struct Nvrtc {
    void *library;
    int (*n_archs)(int *);
    int (*archs)(int *);
    int (*create)(NvrtcProgram **, const char *text, const char *name, int n, const char *const *headers,
                  const char *const *names);
    int (*compile)(NvrtcProgram *, int n, const char *const *options);
    int (*log_size)(NvrtcProgram *, size_t *);
    int (*log)(NvrtcProgram *, char *);
    int (*ptx_size)(NvrtcProgram *, size_t *);
    int (*ptx)(NvrtcProgram *, char *);
    int (*destroy)(NvrtcProgram **);
} Nvrtc;

static const char *const nvrtc_archs[] = { "sm_75", "sm_80", "sm_90a", "sm_100" };

static inline bool nvrtc_symbol(const Nvrtc *nvrtc, const char *name, void *slot)
{
    void *symbol = dlsym(nvrtc->library, name);
    memcpy(slot, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* Loads the library; false, and a message, where there is none. */
static inline bool nvrtc_open(Nvrtc *nvrtc)
{
    static const char *const names[] = { "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                         "/usr/local/cuda/lib64/libnvrtc.so" };
    nvrtc->library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !nvrtc->library; i++)
        nvrtc->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!nvrtc->library || !nvrtc_symbol(nvrtc, "nvrtcGetNumSupportedArchs", &nvrtc->n_archs) ||
        !nvrtc_symbol(nvrtc, "nvrtcGetSupportedArchs", &nvrtc->archs) ||
        !nvrtc_symbol(nvrtc, "nvrtcCreateProgram", &nvrtc->create) ||
        !nvrtc_symbol(nvrtc, "nvrtcCompileProgram", &nvrtc->compile) ||
        !nvrtc_symbol(nvrtc, "nvrtcGetProgramLogSize", &nvrtc->log_size) ||
        !nvrtc_symbol(nvrtc, "nvrtcGetProgramLog", &nvrtc->log) ||
        !nvrtc_symbol(nvrtc, "nvrtcGetPTXSize", &nvrtc->ptx_size) || !nvrtc_symbol(nvrtc, "nvrtcGetPTX", &nvrtc->ptx) ||
        !nvrtc_symbol(nvrtc, "nvrtcDestroyProgram", &nvrtc->destroy)) {
        fprintf(stderr, "skipped: NVRTC is not installed; a CUDA toolkit\n");
        return false;
    }
    return true;
}

/* Whether the library knows an architecture; a message where it does not. */
static inline bool nvrtc_knows(const Nvrtc *nvrtc, const char *arch)
{
    int list[256], n = 0;
    if (nvrtc->n_archs(&n) != 0 || n < 0 || n > 256 || nvrtc->archs(list) != 0)
        return false;
    for (int i = 0; i < n; i++)
        if (list[i] == atoi(arch + 3))
            return true;
    fprintf(stderr, "skipped: this NVRTC does not know %s\n", arch);
    return false;
}

/* The PTX of a text for one architecture, to be freed; NULL, and the compiler's words, where it does not compile. */
static inline char *nvrtc_ptx(const Nvrtc *nvrtc, const char *text, const char *arch)
{
    char target[64];
    snprintf(target, sizeof target, "--gpu-architecture=compute_%s", arch + 3);
    const char *const options[] = { target, "--fmad=false", "--std=c++17", "--disable-warnings" };
    NvrtcProgram *program = NULL;
    char *ptx = NULL;
    size_t size = 0;
    if (nvrtc->create(&program, text, "kernel.cu", 0, NULL, NULL) != 0)
        return NULL;
    if (nvrtc->compile(program, 4, options) == 0) {
        if (nvrtc->ptx_size(program, &size) == 0 && (ptx = malloc(size)) != NULL)
            nvrtc->ptx(program, ptx);
    } else if (nvrtc->log_size(program, &size) == 0 && (ptx = malloc(size)) != NULL) {
        nvrtc->log(program, ptx);
        fprintf(stderr, "%s: %.4000s\n", arch, ptx);
        free(ptx);
        ptx = NULL;
    }
    nvrtc->destroy(&program);
    return ptx;
}

/* How often a word occurs in a text. */
static inline size_t nvrtc_count(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        n++;
    return n;
}

#endif
