/* Numbers that become the state of an optimizer outside of a step have the codes and scales that its update stores. */
#include <string.h>

#include "ir/verify.h"
#include "ops/scalar.h"
#include "ops/update/blocks.h"
#include "support/language.h"
#include "unit/check.h"

enum { ELEMENTS = 8 * 40, INPUTS = 8 };

typedef struct Case {
    const char *type, *scales;
    int block;
} Case;

/* With both factors 0 what is stored is the gradient, and its square. */
static void write_graph(Text *t, const Case *c)
{
    const char *d = c->type, *s = c->scales;
    text_printf(t, "graph @f(%%x: f32[8,40], %%g: f32[8,40], %%lr: f32[], %%t: i64[], %%m: %s[8,40], %%v: %s[8,40],", d,
                d);
    text_printf(t, " %%p: f32[%s], %%q: f32[%s]) -> (%%y, %%n, %%w, %%a, %%b) {\n", s, s);
    text_printf(t, "%%u: (f32[8,40], %s[8,40], %s[8,40], f32[%s], f32[%s]) = update_adam(%%x, %%g, %%lr, %%t, _, %%m,",
                d, d, s, s);
    text_printf(t, " %%v, _, _, _, _, %%p, %%q, beta1=0, beta2=0, block=%d)\n", c->block);
    text_printf(t, "%%y: f32[8,40] = part(%%u, index=0)\n%%n: %s[8,40] = part(%%u, index=1)\n", d);
    text_printf(t, "%%w: %s[8,40] = part(%%u, index=2)\n%%a: f32[%s] = part(%%u, index=3)\n", d, s);
    text_printf(t, "%%b: f32[%s] = part(%%u, index=4)\n}\n", s);
}

static void fill(Tensor *t, double factor)
{
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        const uint32_t bits = philox_group(3, 5, (uint64_t)i, 1, 0, PHILOX_VALUE).v[0];
        tensor_set_f64(t, i, factor * ((double)bits / 4294967296.0 - 0.5) * (double)(1 + i % 7));
    }
}

static void same(const Case *c, const char *name, const Tensor *a, const Tensor *b)
{
    check_that(a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0,
               "%s, %s in blocks of %d: not what the update stores", name, c->type, c->block);
}

static void round_and_compare(const Case *c, Language *l, Heap *heap, const char *name, const Tensor *numbers,
                              const Tensor *codes, const Tensor *scale)
{
    Node *results[2];
    Tensor *made[2];
    Graph *g = graph_new(&l->ir, &l->arena, NULL);
    Node *x = graph_input(g, NULL, numbers->type);
    Build b = build_at_end(g);
    results[0] = state_rounded(&b, name, c->block, codes->type, scale->type, x, &results[1]);
    graph_return(g, 2, results, NULL);
    check_that(b.status == OK && evaluate(g, NULL, heap, &numbers, made) == OK, "%s", text_get(&l->messages));
    same(c, name, made[0], codes);
    same(c, name, made[1], scale);
    tensor_drop(heap, made[0]);
    tensor_drop(heap, made[1]);
}

static void try_case(const Case *c)
{
    Language l;
    Heap heap;
    Text t;
    Tensor *in[INPUTS], *out[5];
    language_open(&l);
    heap_open(&heap, &l.memory);
    text_open(&t, &l.arena);
    write_graph(&t, c);
    Module *m = language_parse(&l, text_get(&t), NULL);
    check_that(m, "%s", text_get(&l.messages));
    Graph *g = m->graphs[0];
    for (size_t i = 0; i < INPUTS; i++) {
        in[i] = tensor_alloc(&heap, g->inputs[i]->type);
        memset(in[i]->data, 0, in[i]->bytes);
    }
    fill(in[1], 0.3);
    tensor_set_i64(in[3], 0, 1);
    check_that(evaluate(g, NULL, &heap, (const Tensor *const *)in, out) == OK, "%s", text_get(&l.messages));
    round_and_compare(c, &l, &heap, "m", in[1], out[1], out[3]);
    for (int64_t i = 0; i < ELEMENTS; i++)
        ((float *)in[0]->data)[i] = ((float *)in[1]->data)[i] * ((float *)in[1]->data)[i];
    round_and_compare(c, &l, &heap, "v", in[0], out[2], out[4]);
    for (size_t i = 0; i < INPUTS; i++)
        tensor_drop(&heap, in[i]);
    for (size_t i = 0; i < COUNT(out); i++)
        tensor_drop(&heap, out[i]);
    heap_close(&heap);
    language_close(&l);
}

static void codes_are_those_of_the_update(void **state)
{
    static const Case cases[] = {
        { "u8", "20,1", 16 }, { "u4", "20,1", 16 }, { "f8e4m3", "20,1", 16 }, { "u8", "8,3", 16 }, { "u4", "2,1", 256 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        try_case(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_those_of_the_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
