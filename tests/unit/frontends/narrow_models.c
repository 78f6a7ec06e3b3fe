/* Models in one narrower float type: what becomes narrow, what stays, what is refused. */
#include "frontends/onnx/narrow.h"
#include "frontends/onnx/write/encode.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "support/samples.h"
#include "testing.h"

typedef struct Case {
    const char *what, *text, *want; /* null: refused */
    const char *says;               /* part of the message */
    const char *keep;
    DType to;
    bool rounds;
} Case;

static const Case cases[] = {
    { "everything of a model is narrow",
      "graph @f(%x: f32[2,4], %n: i64[2]) -> (%y, %n) {\n"
      "    param %w: f32[4,3] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0.1]\n"
      "    %y: f32[2,3] = matmul(%x, %w)\n"
      "}\n",
      "graph @f(%x: f16[2,4], %n: i64[2]) -> (%y, %n) {\n"
      "    param %w: f16[4,3] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0.1]\n"
      "    %y: f16[2,3] = matmul(%x, %w)\n"
      "}\n" },
    { "kept values have a cast each, and their names",
      "graph @f(%x: f32[2,2], %z: f32[2,2]) -> (%y, %u) {\n"
      "    %y: f32[2,2] = add(%x, %z)\n"
      "    %u: f32[2,2] = tanh(%y)\n"
      "}\n",
      "graph @f(%x: f32[2,2], %z: bf16[2,2]) -> (%y, %u) {\n"
      "    %x.bf16: bf16[2,2] = cast(%x, to=bf16)\n"
      "    %y.bf16: bf16[2,2] = add(%x.bf16, %z)\n"
      "    %u: bf16[2,2] = tanh(%y.bf16)\n"
      "    %y: f32[2,2] = cast(%y.bf16, to=f32)\n"
      "}\n",
      .keep = "x y", .to = BF16 },
    { "scales of Resize stay, and constants with readers of both kinds come twice",
      "graph @f(%x: f32[1,1,2,4]) -> (%y, %z) {\n"
      "    param %s: f32[4] = [1, 1, 2, 2]\n"
      "    %y: f32[1,1,4,8] = resize(%x, _, %s)\n"
      "    %z: f32[1,1,2,4] = add(%x, %s)\n"
      "}\n",
      "graph @f(%x: f16[1,1,2,4]) -> (%y, %z) {\n"
      "    param %s.f32: f32[4] = [1, 1, 2, 2]\n"
      "    param %s: f16[4] = [1, 1, 2, 2]\n"
      "    %y: f16[1,1,4,8] = resize(%x, _, %s.f32)\n"
      "    %z: f16[1,1,2,4] = add(%x, %s)\n"
      "}\n" },
    { "shapes and positions keep their bits",
      "graph @f(%x: f32[?,4]) -> (%y) {\n"
      "    param %two: f32[] = 2\n"
      "    %shape: i64[2] = shape(%x)\n"
      "    %wide: f32[2] = cast(%shape, to=f32)\n"
      "    %more: f32[2] = mul(%wide, %two)\n"
      "    %size: i64[2] = cast(%more, to=i64)\n"
      "    %r: f32[?,?] = expand(%x, %size)\n"
      "    %y: f32[?,?] = mul(%r, %two)\n"
      "}\n",
      "graph @f(%x: f16[?,4]) -> (%y) {\n"
      "    param %two.f32: f32[] = 2\n"
      "    param %two: f16[] = 2\n"
      "    %shape: i64[2] = shape(%x)\n"
      "    %wide: f32[2] = cast(%shape, to=f32)\n"
      "    %more: f32[2] = mul(%wide, %two.f32)\n"
      "    %size: i64[2] = cast(%more, to=i64)\n"
      "    %r: f16[?,?] = expand(%x, %size)\n"
      "    %y: f16[?,?] = mul(%r, %two)\n"
      "}\n" },
    { "attributes that name a type follow, others stay",
      "graph @f(%x: f32[2,4], %k: i32[2,4]) -> (%y) {\n"
      "    param %s: f32[4] = [1, 1, 1, 1]\n"
      "    %n: f32[2,4] = layer_normalization(%x, %s, epsilon=1e-12)\n"
      "    %r: f32[2,4] = random_normal_like(%k, dtype=f32)\n"
      "    %c: f32[2,4] = cast(%k, to=f32)\n"
      "    %e: f32[2,4] = eye_like(%k, dtype=f32)\n"
      "    %a: f32[2,4] = add(%n, %r)\n"
      "    %b: f32[2,4] = add(%a, %c)\n"
      "    %y: f32[2,4] = add(%b, %e)\n"
      "}\n",
      "graph @f(%x: f16[2,4], %k: i32[2,4]) -> (%y) {\n"
      "    param %s: f16[4] = [1, 1, 1, 1]\n"
      "    %n: f16[2,4] = layer_normalization(%x, %s, epsilon=1e-12)\n"
      "    %r: f16[2,4] = random_normal_like(%k, dtype=f16)\n"
      "    %c: f16[2,4] = cast(%k, to=f16)\n"
      "    %e: f16[2,4] = eye_like(%k, dtype=f16)\n"
      "    %a: f16[2,4] = add(%n, %r)\n"
      "    %b: f16[2,4] = add(%a, %c)\n"
      "    %y: f16[2,4] = add(%b, %e)\n"
      "}\n" },
    { "a filled tensor is filled with the type",
      "graph @f(%x: f32[2,4]) -> (%y) {\n"
      "    %s: i64[2] = shape(%x)\n"
      "    %z: f32[2,4] = constant_of_shape(%s)\n"
      "    %o: f32[2,4] = constant_of_shape(%s, value=f32[1] [1])\n"
      "    %a: f32[2,4] = add(%z, %o)\n"
      "    %y: f32[2,4] = add(%x, %a)\n"
      "}\n",
      "graph @f(%x: f16[2,4]) -> (%y) {\n"
      "    %s: i64[2] = shape(%x)\n"
      "    %z: f16[2,4] = constant_of_shape(%s, value=f16[1] [0])\n"
      "    %o: f16[2,4] = constant_of_shape(%s, value=f16[1] [1])\n"
      "    %a: f16[2,4] = add(%z, %o)\n"
      "    %y: f16[2,4] = add(%x, %a)\n"
      "}\n" },
    { "what bodies carry is narrow with what they are given",
      "graph @f(%c: bool[], %x: f32[2]) -> (%y) {\n"
      "    %y: f32[2] = if(%c, %x) { (%a: f32[2]) -> (%b)\n"
      "        %b: f32[2] = tanh(%a)\n"
      "    } { (%a1: f32[2]) -> (%b1)\n"
      "        param %half: f32[] = 0.5\n"
      "        %b1: f32[2] = mul(%a1, %half)\n"
      "    }\n"
      "}\n",
      "graph @f(%c: bool[], %x: f16[2]) -> (%y) {\n"
      "    %y: f16[2] = if(%c, %x) { (%a: f16[2]) -> (%b)\n"
      "        %b: f16[2] = tanh(%a)\n"
      "    } { (%a1: f16[2]) -> (%b1)\n"
      "        param %half: f16[] = 0.5\n"
      "        %b1: f16[2] = mul(%a1, %half)\n"
      "    }\n"
      "}\n" },
    { "what stands between the model's own casts and meets no weight stays",
      "graph @f(%x: f32[2,4]) -> (%y) {\n"
      "    %wide: f32[2,4] = cast(%x, to=f32)\n"
      "    %s: f32[2,4] = mul(%wide, %wide)\n"
      "    %t: f32[2,4] = cast(%s, to=f32)\n"
      "    %y: f32[2,4] = tanh(%t)\n"
      "}\n",
      "graph @f(%x: f16[2,4]) -> (%y) {\n"
      "    %wide: f32[2,4] = cast(%x, to=f32)\n"
      "    %s: f32[2,4] = mul(%wide, %wide)\n"
      "    %t: f16[2,4] = cast(%s, to=f16)\n"
      "    %y: f16[2,4] = tanh(%t)\n"
      "}\n" },
    { "Einsum, which has bf16 in the newest opset alone, is a product",
      "graph @f(%x: f32[2,4], %w: f32[4,3]) -> (%y) {\n"
      "    %y: f32[2,3] = einsum(%x, %w, equation=\"ij,jk->ik\")\n"
      "}\n",
      NULL, "matmul(", .to = BF16 },
    { "SwiGLU, which the newest opset brought, stays",
      "graph @f(%x: f32[2,4], %w: f32[2,4]) -> (%y) {\n"
      "    %y: f32[2,4] = swiglu(%x, %w)\n"
      "}\n",
      NULL, "f16[2,4] = swiglu(" },
    { "so does attention through windows",
      "graph @f(%q: f32[1,1,4,2], %k: f32[1,1,4,2]) -> (%y) {\n"
      "    %y: f32[1,1,4,2] = attention(%q, %k, %k, left_window_size=1)\n"
      "}\n",
      NULL, "f16[1,1,4,2] = attention(" },
    { "operators without the type are named, all of them",
      "graph @f(%x: f32[4,2]) -> (%y) {\n"
      "    %a: f32[4,2] = shrink(%x) node=\"/pick\"\n"
      "    %y: f32[4,2] = shrink(%a, lambd=1) node=\"/turn\"\n"
      "}\n",
      NULL,
      "2 operators have no form with bf16\n  at: node /pick, Shrink, node /turn, Shrink\n"
      "  try: --dtype fp16\n",
      .to = BF16 },
    { "a mask that would become infinite is refused",
      "graph @f(%x: f32[2]) -> (%y) {\n"
      "    param %m: f32[2] = [0, -1e9]\n"
      "    %y: f32[2] = add(%x, %m)\n"
      "}\n",
      NULL,
      "1 constant would not survive as fp16\n  at: m: -1e+09 is beyond fp16 and becomes infinite (1 of 2)\n"
      "  try: --dtype bf16\n  try: --round-constants" },
    { "the largest number that rounds down is none",
      "graph @f(%x: f32[2]) -> (%y) {\n"
      "    param %m: f32[2] = [0, -65519]\n"
      "    %y: f32[2] = add(%x, %m)\n"
      "}\n",
      NULL, "param %m: f16[2] = [0, -65504]" },
    { "a mask that bf16 cannot hold either is not sent there",
      "graph @f(%x: f32[2]) -> (%y) {\n"
      "    param %m: f32[2] = [0, -3.4028235e38]\n"
      "    %y: f32[2] = add(%x, %m)\n"
      "}\n",
      NULL, "becomes infinite (1 of 2)\n  try: --round-constants" },
    { "an epsilon that would vanish is refused",
      "graph @f(%x: f32[2]) -> (%y) {\n"
      "    param %e: f32[] = 1e-12\n"
      "    %y: f32[2] = add(%x, %e)\n"
      "}\n",
      NULL, "e: 1e-12 is too small for fp16 and becomes 0 (1 of 1)" },
    { "a small number among others is rounded",
      "graph @f(%x: f32[2]) -> (%y) {\n"
      "    param %e: f32[2] = [1, 1e-12]\n"
      "    %y: f32[2] = add(%x, %e)\n"
      "}\n",
      NULL, "param %e: f16[2] = [1, 0]" },
    { "unless it divides",
      "graph @f(%x: f32[2]) -> (%y) {\n"
      "    param %e: f32[2] = [1, 1e-12]\n"
      "    %y: f32[2] = div(%x, %e)\n"
      "}\n",
      NULL, "e: 1e-12 is too small for fp16 and becomes 0 (1 of 2)" },
    { "told to, it rounds",
      "graph @f(%x: f32[2]) -> (%y) {\n"
      "    param %m: f32[2] = [0, -1e9]\n"
      "    %y: f32[2] = add(%x, %m)\n"
      "}\n",
      NULL, "param %m: f16[2] = [0, 0xfc00]", .rounds = true },
    { "what is kept has to be there",
      "graph @f(%x: f32[2]) -> (%y) {\n"
      "    %y: f32[2] = tanh(%x)\n"
      "}\n",
      NULL, "no input or output is called z", .keep = "z" },
};

static const char *text_of(Context *c, const Graph *g)
{
    Text t;
    text_open(&t, &c->arena);
    assert_int_equal(print_graph(&t, g, NULL), OK);
    return text_get(&t);
}

static int go(Context *c, const Case *k)
{
    char kept[8];
    const char *list[4];
    NarrowOptions o = { .to = k->to == BF16 ? BF16 : F16, .keep = list, .rounds = k->rounds };
    snprintf(kept, sizeof kept, "%s", k->keep ? k->keep : "");
    for (char *word = strtok(kept, " "); word; word = strtok(NULL, " "))
        list[o.n_keep++] = word;
    Module *m;
    c->last = "";
    if (parse_module(&c->ir, &c->arena, str(k->text), "t.qir", NULL, NULL, &m) != OK)
        return print_error("%s: %s\n", k->what, c->last), 1;
    Graph *g = m->graphs[0];
    const Status status = onnx_narrow(g, &c->diag, &o);
    const char *got = status == OK ? text_of(c, g) : c->last;
    if (k->want ? strcmp(got, k->want) == 0 : strstr(got, k->says) != NULL)
        return 0;
    print_error("%s\nwanted:\n%s\ngot:\n%s\n%s\n", k->what, k->want ? k->want : k->says, got, c->last);
    return 1;
}

static Status every_case(void *context)
{
    int bad = 0;
    for (size_t i = 0; i < COUNT(cases); i++)
        bad += go(context, &cases[i]);
    assert_int_equal(bad, 0);
    return OK;
}

static void models_become_narrow(void **state)
{
    (void)state;
    with_context(every_case);
}

/* ---- every operator ---- */

typedef struct Sample {
    Context *c;
    const OpDef *def;
    DType to;
    int narrow, refused;
} Sample;

/* A sample alone in a graph; null where no result is f32, or the operator is no ONNX model's. */
static Graph *float_sample(Sample *s, int variant, int *result)
{
    Node *y = sample_of(s->c, s->def, variant);
    if (!y || !encode_is_standard(y, ONNX_OPSET_NEWEST))
        return NULL;
    Graph *g = y->graph;
    Build b = build_at_end(g);
    for (int i = 0; i < type_results(y->type); i++) {
        const Type *type = type_result(y->type, i);
        if (type->kind != TYPE_TENSOR || type->dtype != F32)
            continue;
        Node *out = build_part(&b, y, i);
        graph_return(g, 1, &out, NULL);
        *result = i;
        return g;
    }
    return NULL;
}

/* Narrow and still standard, or refused in words. */
static int narrow_sample(Sample *s, int variant)
{
    const NarrowOptions o = { .to = s->to, .rounds = true };
    int result;
    Graph *g = float_sample(s, variant, &result);
    if (!g)
        return 0;
    s->c->last = "";
    const Status status = onnx_narrow(g, &s->c->diag, &o);
    if (status == UNSUPPORTED && strstr(s->c->last, "no form with")) {
        s->refused++;
        return 0;
    }
    bool good = status == OK && graph_result(g, 0)->type->dtype == s->to;
    for (Node *n = walk_first(g); good && n; n = walk_next(g, n))
        good = op_of(n)->structural || n->op == OP_tuple || encode_is_standard(n, ONNX_OPSET_NEWEST);
    s->narrow += good;
    if (!good)
        print_error("%s, variant %d, %s: %s\n%s\n", s->def->name, variant, dtype_name(s->to), s->c->last,
                    text_of(s->c, g));
    return !good;
}

static Status narrow_samples(void *arg)
{
    Sample *s = arg;
    int bad = 0;
    for (int v = 0; v < s->def->n_variants; v++)
        bad += narrow_sample(s, v);
    return bad ? INVALID : OK;
}

static void every_operator_is_narrow_or_named(void **state)
{
    static const DType types[] = { F16, BF16 };
    int bad = 0, narrow[2] = { 0 }, refused[2] = { 0 };
    (void)state;
    for (size_t i = 0; i < 2 * ops_table.n; i++) {
        Context c;
        Sample s = { .c = &c, .def = ops_table.defs[i / 2], .to = types[i % 2] };
        if (!s.def->sample)
            continue;
        context_open(&c);
        bad += guarded(&c.memory, narrow_samples, &s) != OK;
        narrow[i % 2] += s.narrow;
        refused[i % 2] += s.refused;
        context_close(&c);
    }
    for (int k = 0; k < 2; k++)
        print_message("%s: %d samples narrow, %d refused\n", dtype_name(types[k]), narrow[k], refused[k]);
    assert_int_equal(bad, 0);
    assert_true(narrow[0] > 300 && narrow[1] > 200 && refused[0] > 0 && refused[1] > refused[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(models_become_narrow),
                                        cmocka_unit_test(every_operator_is_narrow_or_named) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
