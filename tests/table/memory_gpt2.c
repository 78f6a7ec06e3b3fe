/* label: long */
/* Parameters and what an optimizer keeps of a GPT-2 small, by the books, against AdamW in f32: 12 bytes a parameter. */
#include <stdio.h>
#include <string.h>

#include "api/make/memory.h"
#include "qcc/qcc.h"
#include "unit/check.h"

static void report(void *user, const qcc_message *m)
{
    (void)user;
    if (m->severity == QCC_ERROR)
        print_error("%s", m->text);
}

/* A block has its weights and vectors; what data do between them does not matter here. */
static void print_block(Text *t, int i)
{
    text_printf(t, "    param %%b%d.n1: f32[768] = ones\n    param %%b%d.n1b: f32[768] = zeros\n", i, i);
    text_printf(t, "    param %%b%d.n2: f32[768] = ones\n    param %%b%d.n2b: f32[768] = zeros\n", i, i);
    text_printf(t, "    param %%b%d.qkv: f32[768,2304] = normal(seed=1)\n    param %%b%d.qkvb: f32[2304] = zeros\n", i,
                i);
    text_printf(t, "    param %%b%d.o: f32[768,768] = normal(seed=2)\n    param %%b%d.ob: f32[768] = zeros\n", i, i);
    text_printf(t, "    param %%b%d.up: f32[768,3072] = normal(seed=3)\n    param %%b%d.upb: f32[3072] = zeros\n", i,
                i);
    text_printf(t, "    param %%b%d.dn: f32[3072,768] = normal(seed=4)\n    param %%b%d.dnb: f32[768] = zeros\n", i, i);
    text_printf(t, "    %%b%d.a: f32[2,768] = layer_normalization(%%x%d, %%b%d.n1, %%b%d.n1b)\n", i, i, i, i);
    text_printf(t, "    %%b%d.p: f32[2,2304] = gemm(%%b%d.a, %%b%d.qkv, %%b%d.qkvb)\n", i, i, i, i);
    text_printf(t, "    %%b%d.r: f32[2,3,768] = reshape(%%b%d.p, %%parts)\n", i, i);
    text_printf(t, "    %%b%d.v: f32[2,768] = reduce_sum(%%b%d.r, %%one, keepdims=false)\n", i, i);
    text_printf(t, "    %%b%d.h: f32[2,768] = gemm(%%b%d.v, %%b%d.o, %%b%d.ob)\n", i, i, i, i);
    text_printf(t, "    %%b%d.c: f32[2,768] = layer_normalization(%%b%d.h, %%b%d.n2, %%b%d.n2b)\n", i, i, i, i);
    text_printf(t, "    %%b%d.u: f32[2,3072] = gemm(%%b%d.c, %%b%d.up, %%b%d.upb)\n", i, i, i, i);
    text_printf(t, "    %%b%d.g: f32[2,3072] = tanh(%%b%d.u)\n", i, i);
    text_printf(t, "    %%x%d: f32[2,768] = gemm(%%b%d.g, %%b%d.dn, %%b%d.dnb)\n", i + 1, i, i, i);
}

static const char *gpt2_text(Arena *arena)
{
    Text t;
    text_open(&t, arena);
    text_add(&t, "graph @gpt2(%tokens: i64[2], %places: i64[2]) -> (%logits) {\n"
                 "    param %wte: f32[50257,768] = normal(seed=8)\n    param %wpe: f32[1024,768] = normal(seed=9)\n"
                 "    const %parts: i64[3] = [2, 3, 768]\n    const %one: i64[1] = [1]\n"
                 "    %t: f32[2,768] = gather(%wte, %tokens)\n    %p: f32[2,768] = gather(%wpe, %places)\n"
                 "    %x0: f32[2,768] = add(%t, %p)\n");
    for (int i = 0; i < 12; i++)
        print_block(&t, i);
    text_add(&t, "    %logits: f32[2,50257] = gemm(%x12, %wte, transB=true)\n}\n");
    return text_get(&t);
}

typedef struct StatesHeld {
    qcc_step *step;
    uint64_t bytes;
} StatesHeld;

static Status add_states(void *arg)
{
    StatesHeld *h = arg;
    const Footprint f = footprint_of(module_graph(h->step->module, "step"), &h->step->cx->scratch);
    static const FootprintPart parts[] = { FOOTPRINT_trained, FOOTPRINT_scales, FOOTPRINT_moments, FOOTPRINT_masters };
    for (size_t i = 0; i < COUNT(parts); i++)
        h->bytes += footprint_sum(f.parts[parts[i]]);
    return OK;
}

/* Parameters and what an optimizer keeps of them. */
static uint64_t gpt2_bytes(const char *options)
{
    Arena arena;
    qcc_context *cx;
    qcc_model *m;
    StatesHeld h = { .bytes = 0 };
    const qcc_context_options o = { .size = sizeof o, .report = report, .threads = 1 };
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    arena_open(&arena, &cx->memory);
    const char *text = gpt2_text(&arena);
    qcc_source source = qcc_bytes(text, strlen(text));
    source.name = "gpt2.qir";
    assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
    assert_int_equal(qcc_compile(m, options, &h.step), QCC_OK);
    assert_int_equal(context_call(cx, add_states, &h), QCC_OK);
    arena_close(&arena);
    qcc_close(cx);
    return h.bytes;
}

static void gpt2_is_small(void **state)
{
    (void)state;
    const uint64_t wide = gpt2_bytes("--optimizer adamw");
    const uint64_t some = gpt2_bytes("--optimizer adamw:states=8bit --quant int8-weights --quant-op wte=off");
    const uint64_t all = gpt2_bytes("--optimizer adamw:states=8bit --quant int8-weights");
    printf("f32 %llu bytes, but the embedding %.4f of it, all %.4f\n", (unsigned long long)wide,
           (double)some / (double)wide, (double)all / (double)wide);
    assert_true(wide > UINT64_C(12) * 123000000 && wide < UINT64_C(12) * 126000000);
    assert_true((double)some <= 0.34 * (double)wide && (double)all <= 0.26 * (double)wide);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(gpt2_is_small) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
