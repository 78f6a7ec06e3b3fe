/* A compiler of kernels that is made up, and calls of it through a folder. */
#ifndef TESTS_SUPPORT_KERNEL_COMPILER_H
#define TESTS_SUPPORT_KERNEL_COMPILER_H

#include "testing.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <utime.h>

#include "runtime/cuda/kernel_cache.h"
#include "support/folder.h"

/* ---- a compiler ---- */

struct NvrtcProgram {
    char bytes[160];
    size_t n;
    bool broken;
};

static atomic_int made, ended, compiled;

static inline int fake_create(NvrtcProgram **p, const char *text, const char *name, int n, const char *const *headers,
                              const char *const *names)
{
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_TEXT];
    Sha256 s;
    (void)name, (void)n, (void)headers, (void)names;
    *p = calloc(1, sizeof **p);
    sha256_begin(&s);
    sha256_add(&s, text, strlen(text));
    sha256_end(&s, digest);
    sha256_text(hex, digest);
    (*p)->n = (size_t)sprintf((*p)->bytes, "ELF %s", hex);
    (*p)->broken = strstr(text, "broken") != NULL;
    made++;
    return 0;
}

static inline int fake_compile(NvrtcProgram *p, int n, const char *const *options)
{
    assert_true(n > 1);
    p->n += (size_t)sprintf(p->bytes + p->n, " %s", options[0]);
    compiled++;
    return p->broken ? 6 : 0;
}

static inline int fake_size(NvrtcProgram *p, size_t *n)
{
    *n = p->n;
    return 0;
}

static inline int fake_bytes(NvrtcProgram *p, char *to)
{
    memcpy(to, p->bytes, p->n);
    return 0;
}

static inline int fake_log_size(NvrtcProgram *p, size_t *n)
{
    *n = p->broken ? sizeof "line 1: broken" : 1;
    return 0;
}

static inline int fake_log(NvrtcProgram *p, char *to)
{
    strcpy(to, p->broken ? "line 1: broken" : "");
    return 0;
}

static inline const char *fake_error(int code)
{
    return code == 6 ? "it does not compile" : "?";
}

static inline int fake_destroy(NvrtcProgram **p)
{
    free(*p);
    *p = NULL;
    ended++;
    return 0;
}

static const Nvrtc fake = {
    .name = "fake",
    .major = 13,
    .error = fake_error,
    .create = fake_create,
    .compile = fake_compile,
    .log_size = fake_log_size,
    .log = fake_log,
    .cubin_size = fake_size,
    .cubin = fake_bytes,
    .destroy = fake_destroy,
};

/* ---- calls ---- */

enum { TEXTS = 80, OBJECTS = 3 };

static const char *texts[TEXTS];

static inline KernelSource source_of(size_t n)
{
    static char words[TEXTS][16];
    for (int i = 0; i < TEXTS; i++) {
        sprintf(words[i], "kernel %d", i);
        texts[i] = words[i];
    }
    return (KernelSource){ .prelude = "prelude", .texts = texts, .n = n, .arch = "sm_90" };
}

static int n_remarks;

static inline void hear(void *user, const Message *m)
{
    n_remarks += m->severity == SEVERITY_REMARK;
    context_report(user, m);
}

/* Compiles and counts what the compiler was asked for. */
static inline int compile_with(Context *c, const KernelCache *cache, const Nvrtc *nvrtc, int threads,
                               const KernelSource *s, KernelObjects *objects)
{
    n_remarks = 0;
    c->diag.report = hear;
    c->last = NULL;
    made = ended = compiled = 0;
    assert_int_equal(kernels_compile(cache, nvrtc, threads, &c->diag, s, &c->arena, objects), OK);
    assert_int_equal(made, ended);
    return compiled;
}

static inline void check_object(Context *c, const KernelSource *s, const KernelObject *o)
{
    NvrtcProgram *p;
    Text text;
    text_open(&text, &c->arena);
    text_add(&text, s->prelude);
    for (size_t i = o->first; i < o->first + o->n; i++)
        text_printf(&text, "\n%s", s->texts[i]);
    fake_create(&p, text_get(&text), "", 0, NULL, NULL);
    fake_compile(p, 2, (const char *const[]){ "--gpu-architecture=sm_90", "" });
    assert_int_equal(o->cubin.n, p->n);
    assert_memory_equal(o->cubin.p, p->bytes, p->n);
    fake_destroy(&p);
}

static inline void check_objects(Context *c, const KernelSource *s, const KernelObjects *o)
{
    size_t next = 0;
    for (size_t i = 0; i < o->n; i++) {
        assert_int_equal(o->list[i].first, next);
        check_object(c, s, &o->list[i]);
        next += o->list[i].n;
    }
    assert_int_equal(next, s->n);
}

static inline KernelCache cache_in(const char *name)
{
    return (KernelCache){ .folder = in_folder(name), .version = "1" };
}

/* The first compiled file of a folder. */
static inline const char *file_of(const char *of)
{
    static char path[600];
    const struct dirent *e;
    DIR *d = opendir(of);
    *path = 0;
    while (d && (e = readdir(d)))
        if (strstr(e->d_name, ".cubin"))
            snprintf(path, sizeof path, "%s/%s", of, e->d_name);
    if (d)
        closedir(d);
    return path;
}

static inline int count_names(const char *of, const char *part)
{
    int n = 0;
    const struct dirent *e;
    DIR *d = opendir(of);
    while (d && (e = readdir(d)))
        n += strstr(e->d_name, part) != NULL;
    if (d)
        closedir(d);
    return n;
}

#endif
