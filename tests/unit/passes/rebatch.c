/* --batch on files with a fixed batch: constants that state it follow, entangled ones are named. */
#include "testing.h"

#include "ir/text/parse.h"
#include "passes/model/rebatch.h"

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

/* What exporters leave of a fixed batch: shapes put together from numbers, shapes asked for, initial states. */
static Status computed(void *context)
{
    static const char text[] = "graph @f(%x: f32[2,3,4]) -> (%z) {\n"
                               "    param %b: i64[1] = [2] !1\n"
                               "    param %t: i64[1] = [12] !2\n"
                               "    param %w: f32[1,8,12] = normal(seed=1)\n"
                               "    param %v: f32[1,8,2] = normal(seed=2)\n"
                               "    param %h0: f32[1,2,2] = [0, 0, 0, 0] !3\n"
                               "    param %one: i64[] = 1 !4\n"
                               "    param %axes: i64[1] = [0] !5\n"
                               "    param %rest: i64[1] = [2] !6\n"
                               "    param %ones: i64[1] = [1] !7\n"
                               "    %s: i64[3] = concat(%ones, %b, %t, axis=0) !8\n"
                               "    %r: f32[?,?,?] = reshape(%x, %s) !9\n"
                               "    %q: i64[3] = shape(%r) !10\n"
                               "    %g: i64[] = gather(%q, %one) !11\n"
                               "    %u: i64[1] = unsqueeze(%g, %axes) !12\n"
                               "    %e: i64[3] = concat(%ones, %u, %rest, axis=0) !13\n"
                               "    %h: f32[1,2,2] = expand(%h0, %e) !14\n"
                               "    %0: (f32[1,1,2,2], f32[1,2,2], f32[1,2,2]) = lstm(%r, %w, %v, _, _, %h, %h,"
                               " hidden_size=2) !15\n"
                               "    %l: f32[1,2,2] = part(%0, index=1) !15\n"
                               "    %z: f32[2,2] = squeeze(%l, %axes) !16\n"
                               "}\n";
    Context *c = context;
    const int64_t batches[] = { 6, 1, 3 };
    for (size_t i = 0; i < COUNT(batches); i++) {
        int64_t old;
        Graph *g = graph_of(c, text), *original = graph_of(c, text);
        assert_int_equal(rebatch(g, batches[i], &old), OK);
        assert_int_equal(graph_result(g, 0)->type->dims[0], batches[i]);
        assert_int_equal(rebatch_prove(g, original, 1), OK);
    }
    return OK;
}

/* Batch times heads, as PyTorch's MultiheadAttention has it, and positions times batch. */
static Status multiplied(void *context)
{
    static const char text[] = "graph @f(%x: f32[2,5,4]) -> (%z) {\n"
                               "    param %heads: i64[3] = [5, 4, 2]\n"
                               "    param %rows: i64[2] = [10, 4]\n"
                               "    param %back: i64[3] = [5, 2, 4]\n"
                               "    %t: f32[5,2,4] = transpose(%x, perm=[1, 0, 2])\n"
                               "    %h: f32[5,4,2] = reshape(%t, %heads) !1\n"
                               "    %q: f32[4,5,2] = transpose(%h, perm=[1, 0, 2])\n"
                               "    %k: f32[4,2,5] = transpose(%h, perm=[1, 2, 0])\n"
                               "    %s: f32[4,5,5] = matmul(%q, %k) !2\n"
                               "    %o: f32[4,5,2] = matmul(%s, %q) !3\n"
                               "    %p: f32[5,4,2] = transpose(%o, perm=[1, 0, 2])\n"
                               "    %r: f32[10,4] = reshape(%p, %rows) !4\n"
                               "    %e: f32[10,4] = exp(%r)\n"
                               "    %b: f32[5,2,4] = reshape(%e, %back) !5\n"
                               "    %z: f32[2,5,4] = transpose(%b, perm=[1, 0, 2])\n"
                               "}\n";
    Context *c = context;
    int64_t old;
    for (int64_t batch = 1; batch < 7; batch++) {
        Graph *g = graph_of(c, text), *original = graph_of(c, text);
        assert_int_equal(rebatch(g, batch, &old), OK);
        assert_int_equal(graph_result(g, 0)->type->dims[0], batch);
        assert_int_equal(rebatch_prove(g, original, 1), OK);
    }
    return OK;
}

/* Dropout and norms in training form are judged as they are deployed; initial states that are parameters are not made
 * larger. */
static Status judged_as_deployed(void *context)
{
    static const char text[] = "graph @f(%x: f32[2,3]) -> (%z) {\n"
                               "    const %half: f32[] = 0.5\n"
                               "    const %yes: bool[] = true\n"
                               "    param %s: f32[3] = [1, 2, 3]\n"
                               "    param %m: f32[3] = [0.5, 0, 1]\n"
                               "    param %v: f32[3] = [1, 2, 1]\n"
                               "    %t: (f32[2,3], f32[3], f32[3]) = batch_normalization(%x, %s, %s, %m, %v,"
                               " training_mode=true)\n"
                               "    %y: f32[2,3] = part(%t, index=0)\n"
                               "    %z: f32[2,3] = dropout(%y, %half, %yes)\n"
                               "}\n";
    static const char learned[] = "graph @f(%x: f32[2,3]) -> (%z) {\n"
                                  "    param %h0: f32[2,3] = [0, 0, 0, 0, 0, 0]\n"
                                  "    %z: f32[2,3] = add(%x, %h0) !1\n"
                                  "}\n";
    Context *c = context;
    int64_t old;
    Graph *g = graph_of(c, text), *original = graph_of(c, text);
    assert_int_equal(rebatch(g, 4, &old), OK);
    assert_int_equal(rebatch_prove(g, original, 1), OK);
    assert_int_equal(rebatch(graph_of(c, learned), 4, &old), UNSUPPORTED);
    return OK;
}

static Status entangled(void *context)
{
    Context *c = context;
    int64_t old;
    Graph *g = graph_of(c, "graph @f(%x: f32[2,3]) -> (%z) {\n"
                           "    param %s: i64[2] = [3, 2]\n"
                           "    %z: f32[3,2] = reshape(%x, %s) !1 node=\"/head/Reshape\"\n"
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

static void multiples_of_it_follow(void **state)
{
    (void)state;
    with_context(multiplied);
}

static void what_was_computed_from_it_follows(void **state)
{
    (void)state;
    with_context(computed);
}

static void training_form_is_judged_as_deployed(void **state)
{
    (void)state;
    with_context(judged_as_deployed);
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
        cmocka_unit_test(constants_follow_the_batch),        cmocka_unit_test(multiples_of_it_follow),
        cmocka_unit_test(what_was_computed_from_it_follows), cmocka_unit_test(training_form_is_judged_as_deployed),
        cmocka_unit_test(an_entangled_batch_is_named),       cmocka_unit_test(the_proof_finds_what_inference_cannot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
