/* The kernels of whole programs compile for every architecture, through the library's own way to NVRTC: all of them are there,
 * and none spills registers. */
#include "codegen/cuda/cuda_commit.h"
#include "codegen/cuda/cuda_module.h"
#include "codegen/program.h"
#include "passes/lower/plan_memory.h"
#include "runtime/cuda/nvrtc.h"
#include "support/lowered_graphs.h"

enum { MOST_MODELS = 16, COMMIT_KERNELS = 2 }; /* whose texts are compiled; beside the kernels of a program */

static const char *const archs[] = { "sm_75", "sm_80", "sm_90a", "sm_100" };

typedef struct Totals {
    int models, texts, kernels, launches, without;
} Totals;

static Status compile(Context *c, const Nvrtc *nvrtc, const CudaModule *made)
{
    const char *log;
    KernelUse *uses;
    Str bytes;
    Text text;
    text_open(&text, &c->arena);
    cuda_prelude(&text);
    cuda_module_print(made, false, &text);
    cuda_commit_print(&text);
    const int n_kernels = made->n_kernels + COMMIT_KERNELS;
    for (size_t i = 0; i < COUNT(archs); i++) {
        TRY(nvrtc_check_arch(nvrtc, &c->diag, NOWHERE, archs[i], &c->arena));
        TRY(nvrtc_compile(nvrtc, &c->diag, text_get(&text), archs[i], NVRTC_CUBIN, &c->arena, &bytes, &log));
        assert_true(bytes.n > 4 && memcmp(bytes.p,
                                          "\x7f"
                                          "ELF",
                                          4) == 0);
        assert_int_equal(nvrtc_uses(log, &c->arena, &uses), n_kernels);
        for (int k = 0; k < n_kernels; k++)
            if (uses[k].spills) {
                print_error("%s for %s spills %d bytes\n", uses[k].name, archs[i], (int)uses[k].spills);
                return MISMATCH;
            }
    }
    return OK;
}

static Status visit(Stored *s, Graph *g, void *user)
{
    Totals *t = user;
    Nvrtc nvrtc;
    CudaModule made;
    Plan plan;
    const char *why = NULL;
    const Node *where = NULL;
    if (t->models >= MOST_MODELS || !plan_memory(g, &s->c.arena, &plan, &where))
        return OK;
    const Program *p = program_make(&plan, &s->c.arena, &why, &where);
    if (!p)
        return OK;
    cuda_module_open(&made, g->ir->ops, &s->c.arena);
    cuda_module_add(&made, p, "g");
    t->models++;
    t->texts += (int)made.n_texts;
    t->kernels += made.n_kernels;
    t->launches += (int)made.n;
    t->without += made.n_without;
    TRY(nvrtc_load(&nvrtc, &s->c.diag, NOWHERE, &s->c.arena));
    return made.n_kernels ? compile(&s->c, &nvrtc, &made) : OK;
}

static Status is_there(void *context)
{
    Context *c = context;
    Nvrtc nvrtc;
    return nvrtc_load(&nvrtc, &c->diag, NOWHERE, &c->arena);
}

static void stored_programs(void **state)
{
    Totals t = { 0 };
    Context c;
    size_t seen = 0;
    (void)state;
    context_open(&c);
    const Status there = guarded(&c.memory, is_there, &c);
    context_close(&c);
    if (there != OK) {
        fprintf(stderr, "skipped: NVRTC is not installed; a CUDA toolkit\n");
        skip();
    }
    assert_int_equal(lowered_graphs(visit, &t, &seen), 0);
    printf("%d programs: %d texts of %d kernels for %d launches, %d without\n", t.models, t.texts, t.kernels,
           t.launches, t.without);
    assert_true(t.models == MOST_MODELS && t.kernels > 150 && t.without == 0);
}

/* Words that are no architecture, or none of those that the library knows. */
static Status refuse_archs(void *context)
{
    static const char *const wrong[] = {
        "", "90", "sm_", "sm_9z", "sm_75a", "sm_1", "sm_90aa", "compute_90", "sm_1000"
    };
    Context *c = context;
    Nvrtc nvrtc;
    TRY(nvrtc_load(&nvrtc, &c->diag, NOWHERE, &c->arena));
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (nvrtc_check_arch(&nvrtc, &c->diag, NOWHERE, wrong[i], &c->arena) != USAGE) {
            print_error("%s\n", wrong[i]);
            return MISMATCH;
        }
    return nvrtc_check_arch(&nvrtc, &c->diag, NOWHERE, "sm_90a", &c->arena);
}

static void architectures(void **state)
{
    Context c;
    (void)state;
    context_open(&c);
    const bool there = guarded(&c.memory, is_there, &c) == OK;
    context_close(&c);
    if (!there)
        skip();
    with_context(refuse_archs);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(architectures), cmocka_unit_test(stored_programs) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
