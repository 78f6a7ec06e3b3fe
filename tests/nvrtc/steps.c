/* The kernels of steps in low bits, of micro-batches, and of calls that write theirs themselves, compile for every architecture: none
 * spills registers. */
#include "api/hall/lower.h"
#include "api/make/step.h"
#include "codegen/cuda/cuda_module.h"
#include "runtime/cuda/nvrtc.h"
#include "support/samples.h"
#include "support/stored.h"

static const char *const archs[] = { "sm_75", "sm_80", "sm_90a", "sm_100" };

static const char *const recipes[] = {
    "--optimizer adamw --quant fp8",
    "--optimizer adamw --quant mxfp8",
    "--optimizer adamw --quant mxint8",
    "--optimizer sgd --accumulate 2 --batch 4",
};

static int steps, kernels;
static bool there;

/* All texts of a module as one program. */
static void compile(Context *c, const CudaModule *made)
{
    Nvrtc nvrtc;
    const char *log;
    KernelUse *uses;
    Str bytes;
    Text text;
    assert_int_equal(nvrtc_load(&nvrtc, &c->diag, NOWHERE, &c->arena), OK);
    text_open(&text, &c->arena);
    cuda_prelude(&text);
    cuda_module_print(made, false, &text);
    for (size_t i = 0; i < COUNT(archs); i++) {
        assert_int_equal(
            nvrtc_compile(&nvrtc, &c->diag, text_get(&text), archs[i], NVRTC_CUBIN, &c->arena, &bytes, &log), OK);
        assert_int_equal(nvrtc_uses(log, &c->arena, &uses), made->n_kernels);
        for (int k = 0; k < made->n_kernels; k++) {
            if (uses[k].spills)
                print_error("%s for %s spills %d bytes\n", uses[k].name, archs[i], (int)uses[k].spills);
            assert_int_equal(uses[k].spills, 0);
        }
    }
    kernels += made->n_kernels;
}

typedef struct Case {
    Stored *s;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    const char *recipe;
    CudaModule *made;
} Case;

static Status add_step(void *thing)
{
    Case *k = thing;
    const Graph *g = k->step->module->graphs[0];
    const Lowered l = lower_graph_for(g, NULL, &k->cx->lowering, &k->s->c.arena);
    HOLDS(k, l.program, "%s: no program: %s\n", k->recipe, l.why);
    cuda_module_add(k->made, l.program, g->name);
    HOLDS(k, !k->made->n_without, "%s: %d launches have no kernels\n", k->recipe, k->made->n_without);
    steps++;
    return OK;
}

/* What steps have in common is compiled once. */
static Status visit(void *stored)
{
    Stored *s = stored;
    CudaModule made;
    Case cases[COUNT(recipes)];
    cuda_module_open(&made, &ops_table, &s->c.arena);
    for (size_t i = 0; i < COUNT(recipes); i++) {
        Case *k = &cases[i];
        const qcc_context_options options = {
            .size = sizeof options, .report = stored_report, .user = s, .threads = 1
        };
        const qcc_source source = qcc_file(s->path);
        *k = (Case){ .s = s, .recipe = recipes[i], .made = &made };
        MUST(k, qcc_open(&options, &k->cx));
        MUST(k, qcc_read(k->cx, &source, NULL, &k->model));
        MUST(k, qcc_compile(k->model, k->recipe, &k->step));
        assert_int_equal(guarded(k->step->module->ir->memory, add_step, k), OK);
    }
    compile(&s->c, &made);
    for (size_t i = 0; i < COUNT(recipes); i++)
        qcc_close(cases[i].cx);
    return OK;
}

static void steps_in_low_bits(void **state)
{
    size_t models = 0;
    (void)state;
    if (!there)
        skip();
    assert_int_equal(stored_each("/tests/data/pytorch/cnn-dyn.onnx", NULL, NULL, visit, &models), 0);
    print_message("%d steps, %d kernels\n", steps, kernels);
    assert_int_equal(steps, COUNT(recipes));
}

/* Those of samples of a card, some of which have none. */
static Status compile_samples(void *tour)
{
    static const char *const words[] = { "resize",           "resize_grad",           "grid_sample",
                                         "grid_sample_grad", "grid_sample_grid_grad", "affine_grid",
                                         "quantize_linear",  "dequantize_linear",     "cast" };
    enum { EACH = 7 }; /* of its variants */
    CardTour *t = tour;
    CudaModule m;
    bool wanted = false;
    for (size_t i = 0; i < COUNT(words); i++)
        wanted = wanted || strcmp(t->def->name, words[i]) == 0;
    cuda_module_open(&m, &ops_table, &t->c->arena);
    for (int v = 0; v < t->def->n_variants && wanted; v += EACH) {
        Graph *g = sample_graph(t->c, t->def, v);
        const Lowered l = g ? lower_graph(g, &t->c->arena) : (Lowered){ .program = NULL };
        if (l.program)
            cuda_module_add(&m, l.program, "sample");
    }
    if (m.n_kernels)
        compile(t->c, &m);
    t->said += m.n_kernels > 0;
    return OK;
}

static void calls_of_their_own(void **state)
{
    CardTour t = { .n = 0 };
    (void)state;
    if (!there)
        skip();
    assert_int_equal(each_card(&t, compile_samples), 0);
    assert_int_equal(t.said, 9);
}

static Status look(void *context)
{
    Context *c = context;
    Nvrtc nvrtc;
    return nvrtc_load(&nvrtc, &c->diag, NOWHERE, &c->arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(steps_in_low_bits), cmocka_unit_test(calls_of_their_own) };
    Context c;
    context_open(&c);
    there = guarded(&c.memory, look, &c) == OK;
    context_close(&c);
    if (!there)
        fprintf(stderr, "skipped: NVRTC is not installed; a CUDA toolkit\n");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
