/* Kernels in several objects, compiled on two threads by NVRTC, kept, and found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include "tests/nvrtc/nvrtc.h"

#include "runtime/cuda/kernel_cache.h"
#include "support/folder.h"

enum { TEXTS = 2 * KERNEL_TEXTS + 3 };

static bool same(const KernelObjects *a, const KernelObjects *b, bool kept)
{
    bool good = a->n == 3 && b->n == 3;
    for (size_t i = 0; good && i < a->n; i++) {
        const Str x = a->list[i].cubin, y = b->list[i].cubin;
        good = x.n > 100 && memcmp(x.p, "\177ELF", 4) == 0 && x.n == y.n && memcmp(x.p, y.p, x.n) == 0;
        good = good && b->list[i].was_kept == kept;
    }
    return good;
}

/* Each kernel of an object is there with its registers, in the order of the log; times of compilers are no part of that. */
static bool same_uses(const KernelObjects *a, const KernelObjects *b, Arena *arena)
{
    bool good = true;
    for (size_t i = 0; good && i < a->n; i++) {
        KernelUse *x, *y;
        const size_t n = nvrtc_uses(a->list[i].log, arena, &x);
        good = n == a->list[i].n && n == nvrtc_uses(b->list[i].log, arena, &y);
        for (size_t k = 0; good && k < n; k++)
            good = strcmp(x[k].name, y[k].name) == 0 && x[k].registers > 0 && x[k].registers == y[k].registers;
    }
    return good;
}

/* Compiled on one thread, on two, and found: the same bytes. */
static bool compile_all(const Nvrtc *nvrtc, NvrtcRoom *r)
{
    const char *texts[TEXTS];
    KernelCache cache = { .folder = NULL, .version = "1" };
    KernelObjects one, two, found;
    for (int i = 0; i < TEXTS; i++)
        texts[i] =
            arena_printf(&r->arena, "extern \"C\" __global__ void k%d(F *x)\n{\n    x[threadIdx.x] *= %d;\n}\n", i, i);
    const KernelSource s = { .prelude = "typedef float F;\n", .texts = texts, .n = TEXTS, .arch = "sm_90" };
    bool good = kernels_compile(&cache, nvrtc, 1, &r->diag, &s, &r->arena, &one) == OK;
    cache.folder = folder;
    good = good && kernels_compile(&cache, nvrtc, 2, &r->diag, &s, &r->arena, &two) == OK && same(&one, &two, false);
    return good && kernels_compile(&cache, nvrtc, 2, &r->diag, &s, &r->arena, &found) == OK &&
           same(&two, &found, true) && same_uses(&one, &two, &r->arena) && same_uses(&two, &found, &r->arena);
}

static void what_is_compiled_is_found(void **state)
{
    Nvrtc nvrtc;
    NvrtcRoom r;
    (void)state;
    if (!nvrtc_open(&nvrtc) || !nvrtc_knows(&nvrtc, "sm_90"))
        skip();
    assert_int_equal(folder_open(), 0);
    nvrtc_room(&r, true);
    const bool good = compile_all(&nvrtc, &r);
    arena_close(&r.arena);
    assert_int_equal(folder_close(), 0);
    assert_true(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_compiled_is_found) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
