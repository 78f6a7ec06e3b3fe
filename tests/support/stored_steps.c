#include "support/stored_steps.h"

static StoredSteps *of;

static Status visit_model(void *stored)
{
    for (size_t i = 0; of->records[i]; i++) {
        StoredStep all = { .s = stored }, *k = &all;
        qcc_model *model;
        qcc_value_info y = { .size = sizeof y };
        const qcc_context_options options = { .size = sizeof options, .user = k->s, .threads = 1 };
        const qcc_source source = qcc_file(k->s->path);
        MUST(k, qcc_open(&options, &k->cx));
        MUST(k, qcc_read(k->cx, &source, NULL, &model));
        MUST(k, qcc_output(model, 0, &y));
        k->options = arena_printf(&k->s->c.arena, "--batch 2 --loss mse:%s %s", y.name, of->records[i]);
        const bool compiled = qcc_compile(model, k->options, &k->step) == QCC_OK;
        if (compiled)
            of->visit(k);
        of->steps += compiled;
        of->refused += !compiled;
        qcc_close(k->cx);
    }
    return OK;
}

void stored_steps(StoredSteps *all)
{
    static const char *const files[] = { "/tests/data/exports/*-*.onnx", "/tests/data/torch/*.onnx",
                                         "/tests/data/pytorch/*-dyn.onnx", "/examples/models/*.qir" };
    of = all;
    for (size_t i = 0; i < COUNT(files); i++)
        assert_int_equal(stored_each(files[i], NULL, NULL, visit_model, &all->models), 0);
}
