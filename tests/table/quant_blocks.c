/* Placed quantizers whose scales are codes, E8M0 or E4M3, or which try 4 and 6 for a block, of weights and of data in products of
 * every kind: each element has the number that the formulas of docs/lowbit.md give it in plain loops, or the quantizer is
 * refused with a reason and with what to write instead; the gradient of a weight is that of its number. */
#include <math.h>

#include "ir/text/parse.h"
#include "ops/control/reverse.h"
#include "ops/quant/quantize.h"
#include "passes/engine/pass.h"
#include "support/calls.h"
#include "support/few_floats.h"

enum { MOST = 20 * 6 * 9 };

/* A product, and where weight and data have what it adds up and what stands beside that. */
typedef struct Product {
    const char *text;
    int sum, channel, data;
} Product;

static const Product products[] = {
    { "graph @f(%x: f32[3,20], state %w: f32[20,6] trained) -> (%y) {\n"
      "    %y: f32[3,6] = matmul(%x, %w)\n}\n",
      0, 1, 1 },
    { "graph @f(%x: f32[2,3,20], state %w: f32[6,20] trained) -> (%y) {\n"
      "    %t: f32[20,6] = transpose(%w)\n"
      "    %y: f32[2,3,6] = matmul(%x, %t)\n}\n",
      0, 1, 2 },
    { "graph @f(%x: f32[3,20], state %w: f32[6,20] trained) -> (%y) {\n"
      "    %y: f32[3,6] = gemm(%x, %w, transB=true)\n}\n",
      1, 0, 1 },
    { "graph @f(%x: f32[1,20,3,3], state %w: f32[6,20,3,3] trained) -> (%y) {\n"
      "    %y: f32[1,6,1,1] = conv(%x, %w)\n}\n",
      1, 0, 1 },
    { "graph @f(%x: f32[1,20,2,2], state %w: f32[20,6,2,2] trained) -> (%y) {\n"
      "    %y: f32[1,6,3,3] = conv_transpose(%x, %w)\n}\n",
      0, 1, 1 },
};

/* So many along the sum, and beside it, share a scale. */
static const struct Grain {
    const char *word;
    int along, beside;
} grains[] = {
    { "block=4", 4, 1 }, { "block=8", 8, 1 }, { "block=32", 32, 1 }, { "group=4", 4, 1 }, { "tile=2x4", 4, 2 }
};

static const char *const formats[] = { "e4m3", "e5m2", "e2m3",      "e3m2",  "e2m1",
                                       "int8", "int4", "int4:full", "uint8", "int1" };
static const char *const scales[] = { "e8m0", "e4m3", "e8m0:4or6", "e4m3:4or6", "f32:4or6", "e8m0:asym", "e8m0:lsq" };

typedef struct Case {
    Context *c;
    const Product *p;
    const struct Grain *grain;
    const char *spec;
    Quantizer q;
    Graph *g;
    int key[MOST], n_keys;
} Case;

static Node *number_of(Graph *g, bool data)
{
    for (Node *n = g->first; n; n = n->next)
        if (op_of(n)->quant.dequantizes && op_of(in(n, 0))->quant.quantizes &&
            (in(in(n, 0), 0)->op == OP_input) == data)
            return n;
    return NULL;
}

static bool place(Case *k, QuantOperand operand)
{
    QuantSpec spec;
    Module *m;
    Context *c = k->c;
    c->last = NULL;
    if (quantizer_read(&spec, "--quant", k->spec, "generic", &c->arena, &c->diag) == OK) {
        assert_int_equal(parse_module(&c->ir, &c->arena, str(k->p->text), "f.qir", NULL, NULL, &m), OK);
        const Recipe recipe = { .quantization = { .spec = &spec, .target = "generic" } };
        const PassOptions options = { .recipe = &recipe };
        k->g = m->graphs[0];
        k->q = spec.of[operand];
        if (pass_run(pass_find("place-quant"), k->g, &(PassRun){ .options = &options, .allowed = -1 }) == OK)
            return true;
    }
    require(c->last && strstr(c->last, "\n  try: "), "%s: \"%s\"\n", k->spec, c->last ? c->last : "");
    return false;
}

static float value_at(int64_t i)
{
    return (float)(sin(0.7 * (double)i + 0.3) * exp2(floor(6 * sin(0.11 * (double)i))));
}

/* The number of the scale of each element. */
static void find_keys(Case *k, const Type *t, int sum, int beside)
{
    int64_t seen[MOST];
    k->n_keys = 0;
    for (int64_t i = 0; i < type_elements(t); i++) {
        int64_t rest = i, id = 0;
        for (int d = t->rank - 1; d >= 0; d--) {
            const int size = d == sum ? k->grain->along : d == beside ? k->grain->beside : 1;
            id = id * 64 + rest % t->dims[d] / size;
            rest /= t->dims[d];
        }
        for (k->key[i] = 0; k->key[i] < k->n_keys && seen[k->key[i]] != id; k->key[i]++)
            ;
        if (k->key[i] == k->n_keys)
            seen[k->n_keys++] = id;
    }
}

/* ---- the formulas ---- */

static double largest_of(const Quantizer *q)
{
    int64_t least, largest;
    quantizer_codes(q, &least, &largest);
    return quantizer_is_float(q) ? few_floats(q->format).most : (double)largest;
}

static float scale_for(const Quantizer *q, float size, float all, double most)
{
    if (quantizer_says(q, QUANT_SCALE, SCALE_E8M0))
        return (float)exp2(fmax((size > 0 ? ilogb(size) : -4000) - ilogb(largest_of(q)), -127));
    if (!quantizer_says(q, QUANT_SCALE, SCALE_E4M3))
        return fmaxf(size, 1e-12f) / (float)most;
    return (float)few_floats_nearest(FORMAT_E4M3, (double)fmaxf(size / (float)most / all, 0x1p-9f)) * all;
}

static float number_for(const Quantizer *q, float x, float s)
{
    int64_t least, largest;
    quantizer_codes(q, &least, &largest);
    return quantizer_is_float(q) ? (float)few_floats_nearest(q->format, (double)(x / s)) * s
                                 : fminf(fmaxf(rintf(x / s), (float)least), (float)largest) * s;
}

static void expect(const Case *k, const Tensor *got)
{
    static float size[MOST], all;
    static double error[2][MOST];
    const Quantizer *q = &k->q;
    const bool tries = quantizer_says(q, QUANT_CHOICE, CHOICE_4OR6);
    memset(size, 0, sizeof size);
    memset(error, 0, sizeof error);
    all = 0;
    for (int64_t i = 0; i < tensor_elements(got); i++) {
        size[k->key[i]] = fmaxf(size[k->key[i]], fabsf(value_at(i)));
        all = fmaxf(all, size[k->key[i]]);
    }
    all /= (float)(tries ? 384 * 4 : 448 * largest_of(q));
    for (int64_t i = 0; i < tensor_elements(got); i++)
        for (int j = 0; j < 2; j++)
            error[j][k->key[i]] += pow(
                (double)(value_at(i) - number_for(q, value_at(i), scale_for(q, size[k->key[i]], all, j ? 4 : 6))), 2);
    for (int64_t i = 0; i < tensor_elements(got); i++) {
        const int key = k->key[i];
        const bool four = tries && error[1][key] < error[0][key],
                   either = tries && fabs(error[1][key] - error[0][key]) <= 1e-5 * error[0][key];
        const double most = tries ? (four ? 4 : 6) : largest_of(q);
        const double want = (double)number_for(q, value_at(i), scale_for(q, size[key], all, most));
        require(either || at(got, i) == want, "%s: element %d is %.9g, not %.9g\n%s", k->spec, (int)i, at(got, i), want,
                k->p->text);
    }
}

/* ---- both operands ---- */

static Node *gradient_of(Graph *g, Node *number, Node *state)
{
    Build b = build_at_end(g);
    ReverseResult r;
    b.before = g->last;
    Tensor *ones = tensor_new(g->arena, number->type);
    for (int64_t i = 0; i < tensor_elements(ones); i++)
        tensor_set_f64(ones, i, 1 + (double)(i % 5));
    Node *dy = build_const(&b, ones);
    const ReverseQuery q = { .n_y = 1, .y = &number, .dy = &dy, .n_x = 1, .x = &state, .narrow = true };
    assert_int_equal(reverse(&b, &q, g->arena, &r), OK);
    return r.dx[0];
}

/* Straight through: of each element what arrives at its number. */
static void expect_gradient(const Case *k, const Tensor *got)
{
    double sum = 0, want = 0;
    for (int64_t i = 0; i < tensor_elements(got); i++)
        sum += at(got, i), want += 1 + (double)(i % 5);
    require(fabs(sum - want) < 1e-6, "%s: gradients add up to %g, not %g\n", k->spec, sum, want);
}

static bool runs(Case *k, bool data)
{
    if (!place(k, data ? OPERAND_A : OPERAND_W))
        return false;
    Graph *g = k->g;
    Node *number = number_of(g, data), *both[2] = { number, NULL };
    const Tensor *inputs[8] = { NULL };
    Tensor *out[2] = { NULL };
    require(number != NULL, "%s: it stays as it is\n", k->spec);
    for (size_t i = 0; i < g->n_inputs; i++) {
        Tensor *t = tensor_new(&k->c->arena, g->inputs[i]->type);
        for (int64_t e = 0; e < tensor_elements(t); e++)
            tensor_set_f64(t, e, (double)value_at(e));
        inputs[i] = t;
        if (g->inputs[i]->op == OP_state && !data)
            graph_return(g, 1, both, NULL), both[1] = gradient_of(g, number, g->inputs[i]);
    }
    graph_return(g, data ? 1 : 2, both, NULL);
    assert_int_equal(evaluate(g, NULL, &k->c->heap, inputs, out), OK);
    if (in(in(number, 0), 0)->op != OP_transpose) { /* which has the elements of the weight in other places */
        find_keys(k, number->type, data ? k->p->data : k->p->sum, data ? -1 : k->p->channel);
        expect(k, out[0]);
    }
    if (!data)
        expect_gradient(k, out[1]);
    for (int i = 0; i < 2; i++)
        if (out[i])
            tensor_drop(&k->c->heap, out[i]);
    return true;
}

/* Which of them have to run: signed codes with 0 in the middle, 6 bits of weights alone, 4 or 6 of e2m1 without powers of two. */
static bool must(const char *format, const char *scale, bool data, bool tile)
{
    const bool six_bits = strcmp(format, "e2m3") == 0 || strcmp(format, "e3m2") == 0;
    if ((data && (tile || six_bits)) || format[0] == 'u' || strcmp(format, "int1") == 0 || strstr(scale, "asym") ||
        strstr(scale, "lsq"))
        return false;
    return !strstr(scale, "4or6") || (strcmp(format, "e2m1") == 0 && strncmp(scale, "e8m0", 4) != 0);
}

static Status every_one(void *arg)
{
    int run = 0, refused = 0;
    for (size_t i = 0; i < 2 * COUNT(products) * COUNT(grains) * COUNT(formats) * COUNT(scales); i++) {
        size_t rest = i / 2;
        const bool data = i % 2;
        static Case k;
        const char *scale = scales[rest % COUNT(scales)], *format = formats[(rest /= COUNT(scales)) % COUNT(formats)];
        k = (Case){ .c = arg, .grain = &grains[(rest /= COUNT(formats)) % COUNT(grains)] };
        k.p = &products[rest / COUNT(grains)];
        k.spec = arena_printf(&k.c->arena, data ? "w=int8:block=8,a=%s:%s:%s" : "w=%s:%s:%s,a=off", format,
                              k.grain->word, scale);
        const bool ran = runs(&k, data), wanted = must(format, scale, data, k.grain->beside > 1);
        require(ran == wanted, "%s %s: %s\n%s", k.spec, ran ? "runs" : "is refused", ran ? "" : k.c->last, k.p->text);
        run += ran;
        refused += !ran;
    }
    print_message("%d run, %d refused\n", run, refused);
    return OK;
}

static void blocks_have_the_numbers_of_their_formulas(void **state)
{
    (void)state;
    with_context(every_one);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(blocks_have_the_numbers_of_their_formulas) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
