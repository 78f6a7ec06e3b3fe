/* What choose-trainable tells of its choices, and ties that no text can state. */
#include <math.h>
#include <string.h>

#include "passes/clean/constant_values.h"
#include "passes/engine/pass.h"
#include "passes/recipe/choices.h"
#include "support/language.h"
#include "unit/check.h"

static Tensor *matrix(Language *l, int64_t rows, int64_t columns)
{
    return tensor_new(&l->arena, type_tensor(&l->ir.types, F32, 2, (int64_t[]){ rows, columns }));
}

typedef struct Want {
    const char *name, *path;
    ChoiceKind kind;
    const char *reason; /* a part of it */
} Want;

static Graph *chosen(Language *l, const char *text, Recipe *recipe)
{
    Module *m = language_parse(l, text, NULL);
    check_that(m != NULL, "%s", text_get(&l->messages));
    const PassOptions options = { .recipe = recipe };
    PassRun run = { .options = &options, .allowed = -1 };
    check_that(pass_run(pass_find("choose-trainable"), m->graphs[0], &run) == OK, "%s", text_get(&l->messages));
    return m->graphs[0];
}

static const char some_of_each[] =
    "graph @f(%x: f32[4,2], %ids: i64[4]) -> (%z, %e) {\n"
    "    param %\"onnx::Gemm_7\": f32[2,2] = kaiming(seed=1)\n"
    "    param %fc.bias: f32[2] = zeros\n"
    "    param %mean: f32[2] = [0.5, 0.25]\n"
    "    param %m: f32[2] = zeros\n"
    "    param %v: f32[2] = ones\n"
    "    param %freq: f32[2] = [1, 0.1]\n"
    "    param %shape: i64[2] = [4, 1]\n"
    "    param %eps: f32[] = 1e-06\n"
    "    param %unused: f32[2] = ones\n"
    "    param %half: f32[] = 0.5 !9\n"
    "    %c: f32[4,2] = sub(%x, %mean) !1\n"
    "    %h: f32[4,2] = gemm(%c, %\"onnx::Gemm_7\", %fc.bias) !2 node=\"/net/fc/Gemm\"\n"
    "    %n: f32[4,2] = batch_normalization(%h, %fc.bias, %fc.bias, %m, %v) !3 node=\"/bn/BatchNormalization\"\n"
    "    %g: f32[4,2] = mul(%n, %half) !4\n"
    "    %s: f32[4,2] = add(%g, %eps) !5\n"
    "    %z: f32[4,2] = sqrt(%s) !6\n"
    "    %f: f32[4] = cast(%ids, to=f32) !7\n"
    "    %r: f32[4,1] = reshape(%f, %shape) !8\n"
    "    %e: f32[4,2] = mul(%r, %freq) !9\n"
    "}\n";

static void choices_have_reasons(void **state)
{
    static const Want wants[] = {
        { "onnx::Gemm_7", "net.fc.weight", CHOICE_TRAINED, "weight of node 2 /net/fc/Gemm" },
        { "fc.bias", "fc.bias", CHOICE_TRAINED, "weight of node 2 /net/fc/Gemm" },
        { "mean", "mean", CHOICE_CONSTANT, "normalizes the model's input: node 1" },
        { "m", "m", CHOICE_STATISTIC, "running statistics of node 3 /bn/BatchNormalization" },
        { "v", "v", CHOICE_STATISTIC, "running statistics of node 3 /bn/BatchNormalization" },
        { "freq", "freq", CHOICE_CONSTANT, "normalizes the model's input: node 9" },
        { "shape", "shape", CHOICE_CONSTANT, "i64[2] is not trained" },
        { "eps", "eps", CHOICE_CONSTANT, "keeps node 5 s off zero" },
        { "unused", "unused", CHOICE_CONSTANT, "nothing reads it" },
        { "half", "half", CHOICE_CONSTANT, "a number in a Constant node" },
    };
    Language l;
    Choices choices = { 0 };
    Recipe recipe = { .choices = &choices };
    int64_t elements;
    (void)state;
    language_open(&l);
    chosen(&l, some_of_each, &recipe);
    assert_int_equal(choices.n, COUNT(wants));
    for (size_t i = 0; i < COUNT(wants); i++) {
        const Choice *k = choice_find(&choices, wants[i].name);
        assert_non_null(k);
        assert_string_equal(k->path, wants[i].path);
        assert_int_equal(k->kind, wants[i].kind);
        check_that(strstr(k->reason, wants[i].reason) != NULL, "%s: %s, not %s", k->name, k->reason, wants[i].reason);
    }
    assert_int_equal(choices_count(&choices, CHOICE_TRAINED, &elements), 2);
    assert_int_equal(elements, 6);
    assert_null(choice_find(&choices, "nothing"));
    language_close(&l);
}

/* A table [n, d] and a weight [d, n] with its elements transposed, but for one when `broken`; the exporter says who is a parameter when
 * `said`: the table is one. */
static Graph *tied_graph(Language *l, bool broken, bool said)
{
    enum { N = 80, D = 64 };
    Graph *g = graph_new(&l->ir, &l->arena, "f");
    Types *t = &l->ir.types;
    Node *ids = graph_input(g, "ids", type_vector(t, I64, 4));
    Tensor *table = matrix(l, N, D), *head = matrix(l, D, N);
    for (int64_t i = 0; i < N; i++)
        for (int64_t k = 0; k < D; k++) {
            tensor_set_f64(table, i * D + k, (double)(i * D + k) / 1024);
            tensor_set_f64(head, k * N + i, (double)(i * D + k + (broken && i == 3 && k == 5)) / 1024);
        }
    Build b = build_at_end(g);
    Node *words = build_typed(&b, OP_param, &(ValueAttr){ payload_of(&l->arena, table) }, 0, NULL, table->type);
    Node *weight = build_typed(&b, OP_param, &(ValueAttr){ payload_of(&l->arena, head) }, 0, NULL, head->type);
    words->name = name_of(&l->ir.names, "words", 5);
    weight->name = name_of(&l->ir.names, "onnx::MatMul_9", 14);
    words->flags |= said ? NODE_PARAMETER : 0;
    weight->flags |= said ? NODE_FIXED : 0;
    Node *e = CALL(&b, gather, words, ids), *y = CALL(&b, matmul, e, weight);
    assert_int_equal(b.status, OK);
    graph_return(g, 1, &y, NULL);
    return g;
}

static void hold_tie(bool broken, bool said, bool untied)
{
    Language l;
    Choices choices = { 0 };
    const Recipe recipe = { .choices = &choices, .untied = untied };
    const PassOptions options = { .recipe = &recipe };
    PassRun run = { .options = &options, .allowed = -1 };
    const bool apart = broken || untied;
    language_open(&l);
    Graph *g = tied_graph(&l, broken, said);
    assert_int_equal(pass_run(pass_find("choose-trainable"), g, &run), OK);
    const Choice *weight = choice_find(&choices, "onnx::MatMul_9");
    assert_int_equal(weight->kind, !apart ? CHOICE_TIED : said ? CHOICE_CONSTANT : CHOICE_TRAINED);
    assert_int_equal(g->n_inputs, apart && !said ? 3 : 2);
    const Node *read = in(graph_result(g, 0), 1);
    assert_int_equal(read->op, !apart ? OP_transpose : said ? OP_const : OP_state);
    if (!apart) {
        assert_string_equal(weight->tied_to, "words");
        assert_true(weight->transposed);
        assert_ptr_equal(in(read, 0), g->inputs[1]);
        assert_true(read->flags & NODE_OURS);
    }
    language_close(&l);
}

/* A head that is a parameter, and one that the exporter computed from the table. */
static void transposed_ties_are_tied_again(void **state)
{
    (void)state;
    for (int k = 0; k < 8; k++)
        hold_tie(k & 1, k & 2, k & 4);
}

/* An Identity of an initializer shares its payload and is a parameter of its own. */
static void aliases_are_parameters_of_their_own(void **state)
{
    Language l;
    (void)state;
    language_open(&l);
    Graph *g = graph_new(&l.ir, &l.arena, "f");
    Types *t = &l.ir.types;
    Node *y = graph_input(g, "x", matrix(&l, 3, 2)->type);
    Tensor *zeros = tensor_new(&l.arena, type_vector(t, F32, 2));
    Payload *p = payload_of(&l.arena, zeros);
    static const char *const names[] = { "a.bias", "b.bias", "c.bias" };
    Tensor *eye = matrix(&l, 2, 2);
    Build b = build_at_end(g);
    y = CALL(&b, matmul, y, build_const(&b, eye));
    for (uint32_t i = 0; i < COUNT(names); i++) {
        b.src = i; /* the first is the initializer */
        Node *bias = build_typed(&b, OP_param, &(ValueAttr){ p }, 0, NULL, p->type);
        bias->name = name_of(&l.ir.names, names[i], strlen(names[i]));
        y = CALL(&b, add, y, bias);
    }
    graph_return(g, 1, &y, NULL);
    assert_int_equal(pass_run(pass_find("choose-trainable"), g, NULL), OK);
    assert_int_equal(g->n_inputs, 1 + COUNT(names));
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_string_equal(g->inputs[i + 1]->name, names[i]);
        assert_true(g->inputs[i + 1]->flags & NODE_TRAINED);
    }
    language_close(&l);
}

/* ---- what is some function of a parameter ---- */

static double random_like(double i)
{
    return sin(12.9898 * i) * 3;
}

static double one_less(double i)
{
    return 1 - random_like(i);
}

static double power(double i)
{
    return exp(random_like(i));
}

static double bowl(double i)
{
    return random_like(i) * random_like(i);
}

static double cut_off(double i)
{
    return random_like(i) > 1 ? 1 : random_like(i);
}

static double another(double i)
{
    return sin(78.233 * i);
}

static double few(double i)
{
    return floor(random_like(i));
}

static Node *numbers(Language *l, Graph *g, int64_t n, double (*of)(double i))
{
    Build b = build_at_end(g);
    Tensor *t = tensor_new(&l->arena, type_vector(&l->ir.types, F32, n));
    for (int64_t i = 0; i < n; i++)
        tensor_set_f64(t, i, of((double)i));
    return build_typed(&b, OP_param, &(ValueAttr){ payload_of(&l->arena, t) }, 0, NULL, t->type);
}

/* Some, as many as a sample has, and more than a window. */
static void functions_of_a_parameter_keep_its_order(void **state)
{
    static const struct {
        double (*of)(double i);
        bool ordered, in_a_line;
    } wants[] = { { random_like, true, true }, { one_less, true, true }, { power, true, false },
                  { cut_off, true, false },    { bowl, false, false },   { another, false, false },
                  { few, false, false } };
    static const int64_t counts[] = { 8, 40, 256, 100000 };
    Language l;
    (void)state;
    language_open(&l);
    Graph *g = graph_new(&l.ir, &l.arena, "f");
    for (size_t k = 0; k < COUNT(counts); k++) {
        const Node *a = numbers(&l, g, counts[k], random_like), *more = numbers(&l, g, counts[k] + 1, random_like);
        const bool enough = counts[k] > 8;
        for (size_t i = 0; i < COUNT(wants); i++) {
            const Node *b = numbers(&l, g, counts[k], wants[i].of);
            check_that(are_ordered_alike(a, b, false) == (enough && wants[i].ordered), "%d of %d", (int)i,
                       (int)counts[k]);
            check_that(are_ordered_alike(a, b, true) == (enough && wants[i].in_a_line), "%d of %d", (int)i,
                       (int)counts[k]);
        }
        assert_false(are_ordered_alike(a, more, false));
    }
    language_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_have_reasons),
        cmocka_unit_test(transposed_ties_are_tied_again),
        cmocka_unit_test(aliases_are_parameters_of_their_own),
        cmocka_unit_test(functions_of_a_parameter_keep_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
