/* --batch on files with a fixed batch: constants that state it follow, entangled ones are named. */
#include "testing.h"

#include "ir/parse.h"
#include "passes/rebatch.h"

static Graph *graph_of(Context *c, const char *text)
{
    Module *m = NULL;
    assert_int_equal(parse_module(&c->ir, &c->arena, str(text), "t.qir", NULL, NULL, &m), OK);
    return m->graphs[0];
}

static Status follows(void *context)
{
    static const char text[] = "graph @f(%x: f32[2,3,4]) -> (%z) {\n"
                               "    param %s: i64[2] = [2, 12]\n"
                               "    param %e: i64[2] = [2, 5]\n"
                               "    param %w: f32[12,1] = hex\"0000803f0000803f0000803f0000803f0000803f0000803f"
                               "0000803f0000803f0000803f0000803f0000803f0000803f\"\n"
                               "    %r: f32[2,12] = reshape(%x, %s)\n"
                               "    %m: f32[2,1] = matmul(%r, %w)\n"
                               "    %y: f32[2,5] = expand(%m, %e)\n"
                               "    %k: f32[2,5] = constant_of_shape(%e)\n"
                               "    %z: f32[2,5] = add(%y, %k)\n"
                               "}\n";
    Context *c = context;
    int64_t old;
    Graph *g = graph_of(c, text), *original = graph_of(c, text);
    assert_int_equal(rebatch(g, 6, &old), OK);
    assert_int_equal(old, 2);
    assert_string_equal(type_text(&c->arena, graph_result(g, 0)->type), "f32[6,5]");
    assert_int_equal(rebatch_prove(g, original, 1), OK);
    assert_int_equal(rebatch(g, 3, &old), OK);
    assert_int_equal(old, 6);
    assert_string_equal(type_text(&c->arena, graph_result(g, 0)->type), "f32[3,5]");
    assert_int_equal(rebatch_prove(g, original, 1), OK);
    assert_int_equal(rebatch(g, 1, &old), OK);
    assert_int_equal(rebatch_prove(g, original, 1), OK);
    return OK;
}

static Status entangled(void *context)
{
    Context *c = context;
    int64_t old;
    Graph *g = graph_of(c, "graph @f(%x: f32[2,3]) -> (%z) {\n"
                           "    param %s: i64[1] = [6]\n"
                           "    %z: f32[6] = reshape(%x, %s) !1 node=\"/head/Reshape\"\n"
                           "}\n");
    assert_int_equal(rebatch(g, 4, &old), UNSUPPORTED);
    assert_non_null(strstr(c->last, "--batch 4: the file's batch of 2 is part of the computation at 1 node\n"));
    assert_non_null(strstr(c->last, "at: node 1 /head/Reshape"));
    assert_non_null(strstr(c->last, "try: re-export with dynamic_axes={'x': {0: 'batch'}}"));
    return OK;
}

/* A sum over the batch changes its value with the batch: the proof must find it. */
static Status disproved(void *context)
{
    static const char text[] = "graph @f(%x: f32[2,3]) -> (%z) {\n"
                               "    param %a: i64[1] = [0]\n"
                               "    %s: f32[1,3] = reduce_sum(%x, %a)\n"
                               "    %z: f32[2,3] = add(%x, %s)\n"
                               "}\n";
    Context *c = context;
    int64_t old;
    Graph *g = graph_of(c, text), *original = graph_of(c, text);
    assert_int_equal(rebatch(g, 4, &old), OK);
    assert_int_equal(rebatch_prove(g, original, 1), UNSUPPORTED);
    assert_non_null(strstr(c->last, "rows of z differ"));
    return OK;
}

static void constants_follow_the_batch(void **state)
{
    (void)state;
    with_context(follows);
}

static void an_entangled_batch_is_named(void **state)
{
    (void)state;
    with_context(entangled);
}

static void the_proof_finds_what_inference_cannot(void **state)
{
    (void)state;
    with_context(disproved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_follow_the_batch),
        cmocka_unit_test(an_entangled_batch_is_named),
        cmocka_unit_test(the_proof_finds_what_inference_cannot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
