/* NVRTC, loaded while a test runs and used only if it is there: compiles CUDA text to PTX without a GPU.
 *
 *     Nvrtc nvrtc;
 *     if (!nvrtc_open(&nvrtc))
 *         skip();
 *     char *ptx = nvrtc_ptx(&nvrtc, text, "sm_90a");      NULL and a message on stderr if the text does not compile
 *     nvrtc_count(ptx, "fma.rn.f32") ...
 *     free(ptx);
 *
 * It is the library's own way to it (runtime/cuda/nvrtc.h), without a context. */
#ifndef QCC_TESTS_NVRTC_H
#define QCC_TESTS_NVRTC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef fail /* of cmocka: ours reports to the user */
#include "runtime/cuda/nvrtc.h"

static const char *const nvrtc_archs[] = { "sm_75", "sm_80", "sm_90a", "sm_100" };

/* What one call of the library takes; messages go to stderr. */
typedef struct NvrtcRoom {
    Memory memory;
    Arena arena;
    Diag diag;
} NvrtcRoom;

static inline void nvrtc_said(void *arena, const Message *m)
{
    Text t;
    text_open(&t, arena);
    message_print(&t, m);
    fprintf(stderr, "%s", text_get(&t));
}

static inline void nvrtc_room(NvrtcRoom *r, bool tells)
{
    memory_open(&r->memory, NULL);
    arena_open(&r->arena, &r->memory);
    diag_open(&r->diag, &r->arena, tells ? nvrtc_said : NULL, &r->arena);
}

/* Loads the library; false, and a message, where there is none. */
static inline bool nvrtc_open(Nvrtc *nvrtc)
{
    NvrtcRoom r;
    nvrtc_room(&r, false);
    const bool there = nvrtc_load(nvrtc, &r.diag, NOWHERE, &r.arena) == OK;
    arena_close(&r.arena);
    if (!there)
        fprintf(stderr, "skipped: NVRTC is not installed; a CUDA toolkit\n");
    return there;
}

/* Whether the library knows an architecture; a message where it does not. */
static inline bool nvrtc_knows(const Nvrtc *nvrtc, const char *arch)
{
    NvrtcRoom r;
    nvrtc_room(&r, false);
    const bool knows = nvrtc_check_arch(nvrtc, &r.diag, NOWHERE, arch, &r.arena) == OK;
    arena_close(&r.arena);
    if (!knows)
        fprintf(stderr, "skipped: this NVRTC does not know %s\n", arch);
    return knows;
}

/* The PTX of a text for one architecture, to be freed; NULL, and the compiler's words, where it does not compile. */
static inline char *nvrtc_ptx(const Nvrtc *nvrtc, const char *text, const char *arch)
{
    NvrtcRoom r;
    Str bytes;
    const char *log;
    nvrtc_room(&r, true);
    const Status status = nvrtc_compile(nvrtc, &r.diag, text, arch, NVRTC_PTX, &r.arena, &bytes, &log);
    char *ptx = status == OK ? strndup(bytes.p, bytes.n) : NULL;
    arena_close(&r.arena);
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
