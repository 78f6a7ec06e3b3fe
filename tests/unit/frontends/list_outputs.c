/* Results that ONNX has as a list are all written with a name, also those that nobody reads, and read back as they were. */
#include "support/step_texts.h"

#include "frontends/onnx/import.h"
#include "frontends/onnx/write.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"

static const char split[] = "graph @g(%x: f32[2,6]) -> (%y) {\n"
                            "    %s: (f32[2,2], f32[2,2], f32[2,2]) = split(%x, axis=1, num_outputs=3)\n"
                            "    %a: f32[2,2] = part(%s, index=0)\n"
                            "    %c: f32[2,2] = part(%s, index=2)\n"
                            "    %y: f32[2,2] = add(%a, %c)\n"
                            "}\n";

static void *from_arena(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void to_nowhere(void *arena, void *block)
{
    (void)arena, (void)block;
}

static const char *text_of(Context *c, const Graph *g)
{
    Text t;
    text_open(&t, &c->arena);
    assert_int_equal(print_graph(&t, g, NULL), OK);
    return text_get(&t);
}

static Status all_named(void *context)
{
    Context *c = context;
    ProtobufCAllocator allocator = { from_arena, to_nowhere, &c->arena };
    Module *m, *back;
    Text bytes;
    Spine s = { 0 };
    int seen = 0;
    text_open(&bytes, &c->arena);
    TRY(parse_module(&c->ir, &c->arena, str(split), "g.qir", NULL, NULL, &m));
    TRY(onnx_write(m->graphs[0], &c->diag, &(Sink){ step_append, &bytes }));
    const Onnx__ModelProto *p = onnx__model_proto__unpack(&allocator, bytes.n, (const uint8_t *)bytes.p);
    assert_non_null(p);
    for (size_t i = 0; i < p->graph->n_node; i++) {
        const Onnx__NodeProto *o = p->graph->node[i];
        if (o->op_type.len != 5 || memcmp(o->op_type.data, "Split", 5) != 0)
            continue;
        seen++;
        assert_int_equal(o->n_output, 3);
        for (size_t k = 0; k < o->n_output; k++)
            assert_true(o->output[k].len > 0);
    }
    assert_int_equal(seen, 1);
    source_memory(&s.source, &c->memory, "g.onnx", bytes.p, bytes.n);
    TRY(spine_read(&s, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor));
    TRY(onnx_import(&c->ir, &c->arena, &s, NULL, &back));
    assert_string_equal(text_of(c, back->graphs[0]), text_of(c, m->graphs[0]));
    spine_close(&s);
    return OK;
}

static void every_part_of_a_split_has_a_name(void **state)
{
    (void)state;
    with_context(all_named);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_part_of_a_split_has_a_name) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
