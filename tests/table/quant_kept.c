/* What a quantized step keeps for backward, beside what the same step of bf16 mixed precision keeps: codes, and a bit a
 * value for where gradients pass.  The bounds are what is reached, so that it grows no further; 0.55 was asked for. */
#include "api/make/step.h"
#include "passes/step/footprint.h"
#include "support/stored.h"

typedef struct Kept {
    qcc_step *step;
    Arena *arena;
    uint64_t bytes;
} Kept;

static Status count(void *thing)
{
    Kept *k = thing;
    k->bytes = footprint_kept(module_graph(k->step->module, "step"), k->arena);
    return OK;
}

static double kept(Stored *s, const char *options)
{
    Kept k = { .arena = &s->c.arena };
    qcc_context *cx = NULL;
    qcc_model *model = NULL;
    const qcc_context_options o = { .size = sizeof o, .report = stored_report, .user = s };
    const qcc_source source = qcc_file(s->path);
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    assert_int_equal(qcc_read(cx, &source, NULL, &model), QCC_OK);
    assert_int_equal(qcc_compile(model, options, &k.step), QCC_OK);
    assert_int_equal(guarded(k.step->module->ir->memory, count, &k), OK);
    qcc_close(cx);
    return (double)k.bytes;
}

typedef struct Bounds {
    double codes, both; /* of w8a8, alone and with bf16, over bf16 alone */
} Bounds;

static Status beside(Stored *s, const char *batch, Bounds most)
{
    Arena *arena = &s->c.arena;
    const char *rest = arena_printf(arena, "--optimizer adamw --loss cross_entropy --batch %s", batch);
    const double codes = kept(s, arena_printf(arena, "--quant w8a8 %s", rest));
    const double both = kept(s, arena_printf(arena, "--quant w8a8 --amp bf16 %s", rest));
    const double halves = kept(s, arena_printf(arena, "--amp bf16 %s", rest));
    const double wide = kept(s, rest);
    printf("w8a8 keeps %.0f bytes, with bf16 %.0f, bf16 alone %.0f, f32 %.0f: %.3f and %.3f of bf16\n", codes, both,
           halves, wide, codes / halves, both / halves);
    assert_true(halves > 0 && halves < wide);
    assert_true(codes > 0 && codes <= most.codes * halves);
    assert_true(both > 0 && both <= most.both * halves);
    return OK;
}

static Status convolutions(void *stored)
{
    return beside(stored, "64", (Bounds){ 0.46, 0.46 });
}

static Status residual(void *stored)
{
    return beside(stored, "8", (Bounds){ 0.27, 0.27 });
}

static Status resnet18(void *stored)
{
    return beside(stored, "8", (Bounds){ 0.54, 0.54 });
}

static Status transformer(void *stored)
{
    return beside(stored, "8", (Bounds){ 0.54, 0.54 });
}

static void kept_is_counted(void **state)
{
    size_t seen = 0;
    (void)state;
    assert_int_equal(stored_each("/examples/models/cnn.qir", NULL, NULL, convolutions, &seen), 0);
    assert_int_equal(stored_each("/tests/data/residual.qir", NULL, NULL, residual, &seen), 0);
    assert_int_equal(stored_each("/tests/data/resnet18.qir", NULL, NULL, resnet18, &seen), 0);
    assert_int_equal(stored_each("/examples/models/gpt.qir", NULL, NULL, transformer, &seen), 0);
    assert_int_equal(seen, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(kept_is_counted) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
