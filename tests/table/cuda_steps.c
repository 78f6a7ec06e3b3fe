/* label: slow */
/* No launch of a usual training step runs on the host: the steps of stored models by usual recipes, launch by launch. */
#include "api/hall/lower.h"
#include "api/make/step.h"
#include "codegen/cuda/cuda_module.h"
#include "support/stored.h"

static const char *const recipes[] = {
    "--optimizer adamw",
    "--optimizer adamw --amp bf16",
    "--optimizer adam --amp fp16 --loss-scale dynamic --clip-norm 1",
    "--optimizer sgd:momentum=0.9 --ema 0.9",
    "--optimizer adamw --quant w8a8",
    "--optimizer adamw --quant w4a8",
    "--optimizer adamw --quant int8-weights",
    "--optimizer adamw --quant int8-matmul",
    "--optimizer adamw --quant fp8",
    "--optimizer adamw --quant mxfp8",
    "--optimizer adamw --quant mxint8",
    "--optimizer sgd --accumulate 2 --batch 4",
};

static int64_t steps, launches, refused, turns;

typedef struct Case {
    Stored *s;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    const char *recipe;
} Case;

static Status check_graphs(void *thing)
{
    Case *k = thing;
    for (size_t i = 0; i < k->step->module->n_graphs; i++) {
        const Graph *g = k->step->module->graphs[i];
        const Lowered l = lower_graph_for(g, NULL, &k->cx->lowering, &k->s->c.arena);
        CudaModule m;
        HOLDS(k, l.program, "%s: @%s has no program: %s\n", k->recipe, g->name, l.why);
        cuda_module_open(&m, g->ir->ops, &k->s->c.arena);
        cuda_module_add(&m, l.program, g->name);
        launches += (int64_t)m.n;
        for (size_t p = 0; p < m.n; p++) {
            turns += m.parts[p].launch->within != NULL;
            HOLDS(k, !m.parts[p].why, "%s: @%s: %s runs on the host: %s\n", k->recipe, g->name,
                  launch_word(m.parts[p].launch), m.parts[p].why);
        }
    }
    steps++;
    return OK;
}

static void silent(void *user, const qcc_message *m)
{
    (void)user;
    (void)m;
}

static Status visit(void *stored)
{
    for (size_t i = 0; i < COUNT(recipes); i++) {
        Case k = { .s = stored, .recipe = recipes[i] };
        const qcc_context_options options = { .size = sizeof options, .report = silent, .user = k.s, .threads = 1 };
        const qcc_source source = qcc_file(k.s->path);
        MUST(&k, qcc_open(&options, &k.cx));
        /* some have no loss, or a batch that cannot be cut */
        if (qcc_read(k.cx, &source, NULL, &k.model) == QCC_OK && qcc_compile(k.model, recipes[i], &k.step) == QCC_OK)
            assert_int_equal(guarded(k.step->module->ir->memory, check_graphs, &k), OK);
        else
            refused++;
        qcc_close(k.cx);
    }
    return OK;
}

static void stored_steps(void **state)
{
    static const char *const files[] = { "/tests/data/exports/*-16-*.onnx", "/tests/data/torch/*.onnx",
                                         "/tests/data/pytorch/*-dyn.onnx" };
    size_t models = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(files); i++)
        assert_int_equal(stored_each(files[i], NULL, NULL, visit, &models), 0);
    print_message("%zu models, %d steps, %d launches, %d of them of turns, %d refused\n", models, (int)steps,
                  (int)launches, (int)turns, (int)refused);
    assert_true(models > 40 && steps > 300 && launches > 30000 && turns > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(stored_steps) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
