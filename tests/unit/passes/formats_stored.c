/* Formats of few bits and a layer of BitNet against stored answers of torch's casts and torchao (tests/data/formats.py). */
#include "ir/text/parse.h"
#include "passes/engine/pass.h"
#include "passes/lowbit/dynamic_codes.h"
#include "passes/recipe/recipe.h"
#include "support/calls.h"

enum { ROWS = 4, COLS = 64, N = ROWS * COLS, OUT = 6 };

typedef struct Stored {
    const char *what, *text;
    double number[N];
} Stored;

#include "data/formats.h"

static Tensor *tensor_from(Context *c, const double *v, int64_t rows)
{
    Tensor *t = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 2, (int64_t[]){ rows, COLS }));
    for (int64_t i = 0; i < rows * COLS; i++)
        tensor_set_f64(t, i, v[i]);
    return t;
}

static Status every_format(void *arg)
{
    Context *c = arg;
    for (size_t k = 0; k < COUNT(stored); k++) {
        Quantizer q = { 0 };
        DynamicCodes of;
        Build b = fresh(c);
        Node *x = build_const(&b, tensor_from(c, stored_x, ROWS));
        assert_int_equal(quantizer_read_one(&q, OPERAND_A, NOWHERE, "here", stored[k].text, &c->arena, &c->diag), OK);
        assert_int_equal(dynamic_codes(&b, x, &q, 1, NULL, &of), OK);
        Tensor *got = value_of(c, of.number, NULL);
        for (int i = 0; i < N; i++)
            require(close_to(at(got, i), stored[k].number[i], 3e-7), "%s: %.9g became %.9g, not %.9g\n", stored[k].what,
                    stored_x[i], at(got, i), stored[k].number[i]);
        tensor_drop(&c->heap, got);
    }
    return OK;
}

static void formats_have_their_numbers(void **state)
{
    (void)state;
    with_context(every_format);
}

static const char layer_text[] = "graph @f(%x: f32[4,64], state %w: f32[6,64] trained) -> (%y) {\n"
                                 "    %y: f32[4,6] = gemm(%x, %w, transB=true)\n"
                                 "}\n";

static Node *codes_of(Graph *g, const char *name)
{
    for (Node *n = g->first; n; n = n->next)
        if (n->name && strcmp(n->name, name) == 0)
            return n;
    return NULL;
}

/* The layer as a step trains and evaluates it: codes, scale, and sums of codes. */
static Status bitnet(void *arg)
{
    Context *c = arg;
    SourceMap source;
    Module *m;
    QuantSpec spec;
    assert_int_equal(quantizer_read(&spec, "--quant", "bitnet", "ort", &c->arena, &c->diag), OK);
    assert_int_equal(parse_module(&c->ir, &c->arena, str(layer_text), "f.qir", NULL, &source, &m), OK);
    Graph *g = m->graphs[0];
    const Recipe recipe = { .quantization = { .spec = &spec, .target = "ort" } };
    const PassOptions options = { .recipe = &recipe };
    assert_int_equal(pass_run(pass_find("place-quant"), g, &(PassRun){ .options = &options, .allowed = -1 }), OK);
    assert_int_equal(pass_run(pass_find("train-integers"), g, NULL), OK);
    Node *y = graph_result(g, 0), *all[] = { y, codes_of(g, "w.codes"), codes_of(g, "w.scale") };
    assert_int_equal(y->op, OP_qmatmul);
    graph_return(g, 3, all, NULL);
    const Tensor *inputs[] = { tensor_from(c, stored_x, ROWS), tensor_from(c, stored_w, OUT) };
    Tensor *out[3];
    assert_int_equal(evaluate(g, NULL, &c->heap, inputs, out), OK);
    assert_true(close_to(at(out[2], 0), bitnet_scale, 1e-6));
    for (int i = 0; i < OUT * COLS; i++)
        assert_true(at(out[1], i) == bitnet_codes[i]);
    for (int i = 0; i < ROWS * OUT; i++)
        require(close_to(at(out[0], i), bitnet_y[i], 1e-6), "result %d is %.9g, not %.9g\n", i, at(out[0], i),
                bitnet_y[i]);
    for (int i = 0; i < 3; i++)
        tensor_drop(&c->heap, out[i]);
    return OK;
}

static void a_layer_of_bitnet_is_torchao_s(void **state)
{
    (void)state;
    with_context(bitnet);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(formats_have_their_numbers),
                                        cmocka_unit_test(a_layer_of_bitnet_is_torchao_s) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
