/* STEP.onnx: what is written is read again to the letter, the model in front is untouched and comes out as it was. */
#include "support/step_texts.h"

typedef struct Written {
    Text model, step;
    Spine spine, back;
    Module *origin, *module;
} Written;

static Status write_text(Context *c, Written *w, const char *model, const char *module, const StepNotes *notes)
{
    memset(w, 0, sizeof *w);
    w->origin = step_model(c, model, &w->model, &w->spine);
    w->module = step_module(c, module, w->origin);
    text_open(&w->step, &c->arena);
    return onnx_write_step(&w->spine, w->module, notes, &c->diag, &(Sink){ step_append, &w->step }, NULL);
}

static Status read_back(Context *c, Written *w, Module **m, StepNotes *notes)
{
    source_memory(&w->back.source, &c->memory, "step.onnx", w->step.p, w->step.n);
    TRY(spine_read(&w->back, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor));
    return onnx_read_step(&c->ir, &c->arena, &w->back, m, notes);
}

static void must(Context *c, Status status)
{
    if (status != OK)
        print_error("%s\n", c->last ? c->last : "no message");
    assert_int_equal(status, OK);
}

static void same_text(const char *got, const char *want)
{
    if (strcmp(got, want) != 0)
        print_error("%s\nwanted was\n%s\n", got, want);
    assert_int_equal(strcmp(got, want), 0);
}

static Status round_trips(void *context)
{
    Context *c = context;
    size_t n;
    const StepText *texts = step_texts(&n);
    for (size_t i = 0; i < n; i++) {
        Written w;
        Module *m;
        print_message("%s\n", texts[i].name);
        must(c, write_text(c, &w, texts[i].model, texts[i].module, NULL));
        must(c, read_back(c, &w, &m, NULL));
        same_text(step_text_of(c, m), step_text_of(c, w.module));
        assert_ptr_equal(m->origin, &w.back);
        spine_close(&w.spine);
        spine_close(&w.back);
    }
    return OK;
}

static void what_is_written_is_read_to_the_letter(void **state)
{
    (void)state;
    with_context(round_trips);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_to_the_letter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
