/* A raised attention has the bits of what it was made from, forward and backward. */
#include "ops/control/reverse.h"
#include "passes/engine/pass.h"
#include "support/language.h"
#include "support/samples.h"

#define OPERANDS "graph @f(%q: f32[2,3,70,8], %k: f32[2,3,40,8], %v: f32[2,3,40,5]"
#define TURNED   "    %t: f32[2,3,8,40] = transpose(%k, perm=[0, 1, 3, 2])\n"
#define REST                                                                                                           \
    "    %p: f32[2,3,70,40] = softmax(%s)\n"                                                                           \
    "    %y: f32[2,3,70,5] = matmul(%p, %v)\n}\n"

static const char *const spellings[] = {
    /* scaled_dot_product_attention */
    OPERANDS ") -> (%y) {\n    const %c: f32[] = 0.5946036\n" TURNED "    %a: f32[2,3,70,8] = mul(%q, %c)\n"
             "    %b: f32[2,3,8,40] = mul(%t, %c)\n    %s: f32[2,3,70,40] = matmul(%a, %b)\n" REST,
    /* products divided by a root, a mask that is added */
    OPERANDS ", %m: f32[70,40]) -> (%y) {\n    const %c: f32[] = 2.828427\n" TURNED
             "    %a: f32[2,3,70,40] = matmul(%q, %t)\n    %b: f32[2,3,70,40] = div(%a, %c)\n"
             "    %s: f32[2,3,70,40] = add(%b, %m)\n" REST,
    /* products multiplied, keys that are chosen */
    OPERANDS ", %m: bool[3,1,40]) -> (%y) {\n    const %c: f32[] = 0.3\n    const %low: f32[] = 0xff800000\n" TURNED
             "    %a: f32[2,3,70,40] = matmul(%q, %t)\n    %b: f32[2,3,70,40] = mul(%c, %a)\n"
             "    %s: f32[2,3,70,40] = where(%m, %b, %low)\n" REST,
    /* queries scaled, scores capped */
    OPERANDS ") -> (%y) {\n    const %c: f32[] = 0.35355338\n    const %cap: f32[] = 1.7\n"
             "    %a: f32[2,3,70,8] = mul(%q, %c)\n    %b: f32[2,3,70,40] = matmul(%a, %k, tb=true)\n"
             "    %d: f32[2,3,70,40] = div(%b, %cap)\n    %e: f32[2,3,70,40] = tanh(%d)\n"
             "    %s: f32[2,3,70,40] = mul(%e, %cap)\n" REST,
};

/* The result, and the gradients of queries, keys and values from the same random numbers. */
static Tensor *values_of(Language *l, Heap *heap, Graph *g)
{
    Build b = build_at_end(g);
    Rng rng = { 3 }, inputs = { 4 };
    Graph *drawn = graph_new(&l->ir, &l->arena, NULL);
    Build d = build_at_end(drawn);
    const Tensor *in[4];
    Node *y = graph_result(g, 0);
    Node *dy = sample_tensor(&b, &rng, F32, 4, y->type->dims, -1, 1);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Type *t = g->inputs[i]->type;
        in[i] = node_constant(
            sample_tensor(&d, &inputs, t->dtype, t->rank, t->dims, t->dtype == BOOL ? 0 : -2, t->dtype == BOOL ? 1 : 2),
            0);
    }
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &dy, .n_x = 3, .x = g->inputs };
    ReverseResult r;
    Tensor *out = NULL;
    assert_int_equal(reverse(&b, &q, &l->arena, &r), OK);
    Node *all = build_tuple(&b, 4, (Node *[]){ y, r.dx[0], r.dx[1], r.dx[2] });
    assert_non_null(all);
    graph_return(g, 1, &all, NULL);
    assert_int_equal(evaluate(g, NULL, heap, in, &out), OK);
    return out;
}

static int calls_of(const Graph *g, Op op)
{
    int n = 0;
    for (const Node *k = g->first; k; k = k->next)
        n += k->op == op;
    return n;
}

static Status bits_stay(void *arg)
{
    Language *l = arg;
    for (size_t i = 0; i < COUNT(spellings); i++) {
        Heap heap;
        heap_open(&heap, &l->memory);
        Module *m = language_parse(l, spellings[i], NULL);
        if (!m)
            print_error("%s\n", text_get(&l->messages));
        assert_non_null(m);
        Graph *g = m->graphs[0], *raised = graph_copy(g, &l->arena);
        assert_int_equal(pass_run(pass_find("raise-attention"), raised, NULL), OK);
        assert_int_equal(calls_of(raised, OP_attention), 1);
        assert_int_equal(calls_of(raised, OP_softmax), 0);
        const Tensor *want = values_of(l, &heap, g), *got = values_of(l, &heap, raised);
        assert_int_equal(calls_of(raised, OP_attention_grad), 1);
        for (int k = 0; k < 4; k++) {
            if (!tensor_same(want->items[k], got->items[k]))
                print_error("spelling %d, result %d\n", (int)i, k);
            assert_true(tensor_same(want->items[k], got->items[k]));
        }
        heap_close(&heap);
    }
    return OK;
}

static void test_bits_stay(void **state)
{
    Language l;
    (void)state;
    language_open(&l);
    const Status status = guarded(&l.memory, bits_stay, &l);
    language_close(&l);
    assert_int_equal(status, OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_bits_stay) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
