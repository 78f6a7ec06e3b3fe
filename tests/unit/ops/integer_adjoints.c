/* What goes back through words on codes: what goes back through the same call on the numbers that the codes stand
 * for, between dequantizers and a quantizer.  Scales are powers of two and sums short, so that both compute the same
 * numbers, and gradients have the same bits; zero points are even, since a sum of codes and its quotient round ties
 * alike then. */
#include "ir/text/parse.h"
#include "ops/control/reverse.h"
#include "support/calls.h"

/* A call on codes %c of that shape, and the same on numbers, which gives %n; both read what stands before them. */
typedef struct Pair {
    const char *inputs, *before, *shape, *codes, *numbers;
} Pair;

#define QUANTIZE(to, shape, of, s, z) "    %" to ": u8[" shape "] = quantize_linear(%" of ", %" s ", %" z ")\n"
#define NUMBERS(to, shape, of, s, z)  "    %" to ": f32[" shape "] = dequantize_linear(%" of ", %" s ", %" z ")\n"
#define RESULT                        "%u: f32[], %zy: u8[]"
#define DATA(x, shape, s, z)          "%" x ": f32[" shape "], %" s ": f32[], %" z ": u8[], "

static const Pair pairs[] = {
    { DATA("x", "2,2,6,5", "s", "zx") "%w: f32[4,1,3,3], %t: f32[4], %zw: i8[4], %b: f32[4], %zb: i32[4], " RESULT,
      QUANTIZE("p", "2,2,6,5", "x", "s", "zx") "    %q: i8[4,1,3,3] = quantize_linear(%w, %t, %zw, axis=0)\n"
                                               "    %st: f32[4] = mul(%t, %s)\n"
                                               "    %r: i32[4] = quantize_linear(%b, %st, %zb, axis=0)\n",
      "2,4,3,5", "qconv(%p, %s, %zx, %q, %t, %zw, %u, %zy, %r, group=2, pads=[1, 1, 1, 1], strides=[2, 1]",
      NUMBERS("dp", "2,2,6,5", "p", "s", "zx") "    %dq: f32[4,1,3,3] = dequantize_linear(%q, %t, %zw, axis=0)\n"
                                               "    %dr: f32[4] = dequantize_linear(%r, %st, %zb, axis=0)\n"
                                               "    %n: f32[2,4,3,5] = conv(%dp, %dq, %dr, group=2, "
                                               "pads=[1, 1, 1, 1], strides=[2, 1])\n" },
    { DATA("x", "3,7", "s", "zx") "%w: f32[4,7], %t: f32[4], %zw: i8[4], %b: f32[4], %zb: i32[4], " RESULT,
      QUANTIZE("p", "3,7", "x", "s", "zx") "    %q: i8[4,7] = quantize_linear(%w, %t, %zw, axis=0)\n"
                                           "    %st: f32[4] = mul(%t, %s)\n"
                                           "    %r: i32[4] = quantize_linear(%b, %st, %zb, axis=0)\n",
      "3,4", "qmatmul(%p, %s, %zx, %q, %t, %zw, %u, %zy, %r, transpose_b=true",
      NUMBERS("dp", "3,7", "p", "s", "zx") "    %dq: f32[4,7] = dequantize_linear(%q, %t, %zw, axis=0)\n"
                                           "    %dr: f32[4] = dequantize_linear(%r, %st, %zb, axis=0)\n"
                                           "    %n: f32[3,4] = gemm(%dp, %dq, %dr, transB=true)\n" },
    { DATA("x", "2,5,3", "s", "zx") DATA("w", "3,4", "t", "zw") RESULT,
      QUANTIZE("p", "2,5,3", "x", "s", "zx") QUANTIZE("q", "3,4", "w", "t", "zw"), "2,5,4",
      "qmatmul(%p, %s, %zx, %q, %t, %zw, %u, %zy",
      NUMBERS("dp", "2,5,3", "p", "s", "zx")
          NUMBERS("dq", "3,4", "q", "t", "zw") "    %n: f32[2,5,4] = matmul(%dp, %dq)\n" },
    { DATA("x", "2,5,3", "s", "zx") DATA("w", "5,1", "t", "zw") RESULT,
      QUANTIZE("p", "2,5,3", "x", "s", "zx") QUANTIZE("q", "5,1", "w", "t", "zw"), "2,5,3",
      "qadd(%p, %s, %zx, %q, %t, %zw, %u, %zy",
      NUMBERS("dp", "2,5,3", "p", "s", "zx")
          NUMBERS("dq", "5,1", "q", "t", "zw") "    %n: f32[2,5,3] = add(%dp, %dq)\n" },
    { DATA("x", "4,1,3", "s", "zx") DATA("w", "5,3", "t", "zw") RESULT,
      QUANTIZE("p", "4,1,3", "x", "s", "zx") QUANTIZE("q", "5,3", "w", "t", "zw"), "4,5,3",
      "qmul(%p, %s, %zx, %q, %t, %zw, %u, %zy",
      NUMBERS("dp", "4,1,3", "p", "s", "zx")
          NUMBERS("dq", "5,3", "q", "t", "zw") "    %n: f32[4,5,3] = mul(%dp, %dq)\n" },
    { DATA("x", "2,3,6,7", "s", "zx") RESULT, QUANTIZE("p", "2,3,6,7", "x", "s", "zx"), "2,3,3,3",
      "qaverage_pool(%p, %s, %zx, %u, %zy, kernel_shape=[2, 2], strides=[2, 2]",
      NUMBERS("dp", "2,3,6,7", "p", "s", "zx") "    %n: f32[2,3,3,3] = average_pool(%dp, kernel_shape=[2, 2], "
                                               "strides=[2, 2])\n" },
    { DATA("x", "5,3,2,4", "s", "zx") RESULT, QUANTIZE("p", "5,3,2,4", "x", "s", "zx"), "5,3,1,1",
      "qglobal_average_pool(%p, %s, %zx, %u, %zy",
      NUMBERS("dp", "5,3,2,4", "p", "s", "zx") "    %n: f32[5,3,1,1] = global_average_pool(%dp)\n" },
};

/* How the result is quantized. */
typedef struct Form {
    const char *attrs; /* of a quantizer, and of the word */
    bool relu, asked;  /* asked: the word gives the quotient, which is otherwise computed again */
} Form;

static const Form forms[] = {
    { "", false, false },
    { ", least=3, largest=40, learned=true, gain=0.3", false, true },
    { ", least=3, largest=40, mask=v, learned=true", false, false },
    { ", mask=pass", false, false },
    { ", largest=40, learned=true", true, true },
    { ", mask=v", true, false },
    { ", mask=pass", true, true },
};

/* Numbers on a grid, some of them far out; scales are powers of two. */
static Tensor *value_for(Context *c, const Node *input, Rng *rng)
{
    Tensor *t = tensor_new(&c->arena, input->type);
    const char *name = input->name + (input->name[0] == (char)37);
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        double v = (double)rng_range(rng, -48, 48) / 16;
        if (name[0] == 's' || name[0] == 't')
            v = name[0] == 's' ? 0.25 : 0.125 * (double)(1 << i % 3);
        else if (name[0] == 'u')
            v = 0.5;
        else if (name[0] == 'z')
            v = name[1] == 'y' ? 10 : name[1] == 'x' ? 6 : name[1] == 'w' ? 4 : 0;
        tensor_set_f64(t, i, v);
    }
    return t;
}

/* A graph with the gradients of its floats; the results are given to `out`, null where nothing arrives. */
static void run(Context *c, const char *text, Tensor **out, size_t *n)
{
    Module *m;
    Rng rng = { 5 };
    require(parse_module(&c->ir, &c->arena, str(text), "pair", NULL, NULL, &m) == OK, "%s%s", text, c->last);
    Graph *g = m->graphs[0];
    Build b = build_at_end(g);
    Node *y = graph_result(g, 0), *results[16];
    const Tensor *x[16];
    Tensor *dy = tensor_new(&c->arena, y->type), *values[16];
    for (int64_t k = 0; k < tensor_elements(dy); k++)
        tensor_set_f64(dy, k, cos(0.3 * (double)(k + 1)));
    Node *arrives = build_const(&b, dy);
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &arrives, .n_x = (int)g->n_inputs, .x = g->inputs };
    ReverseResult r;
    require(reverse(&b, &q, &c->arena, &r) == OK, "%s", c->last);
    int given = 1;
    results[0] = y;
    *n = g->n_inputs + 1;
    for (size_t i = 0; i < g->n_inputs; i++) {
        x[i] = value_for(c, g->inputs[i], &rng);
        if (r.dx[i])
            results[given++] = r.dx[i];
    }
    graph_return(g, given, results, NULL);
    require(evaluate(g, NULL, &c->heap, x, values) == OK, "%s%s", text, c->last);
    given = 0;
    out[0] = values[given++];
    for (size_t i = 0; i < g->n_inputs; i++)
        out[1 + i] = r.dx[i] ? values[given++] : NULL;
}

/* Whether some are 0 and some are not: the mask is seen. */
static bool is_mixed(const Tensor *t)
{
    int64_t zeros = 0;
    for (int64_t i = 0; i < tensor_elements(t); i++)
        zeros += at(t, i) == 0;
    return zeros > 0 && zeros < tensor_elements(t);
}

static void check(Context *c, const Pair *p, const Form *f, int *mixed)
{
    Arena *a = &c->arena;
    Tensor *got[16], *want[16];
    size_t n, same;
    const char *last = f->relu ? "m" : "n";
    const char *lifted = f->relu ? arena_printf(a, "    %%m: f32[%s] = relu(%%n)\n", p->shape) : "";
    const char *end = arena_printf(a, "    %%y: f32[%s] = dequantize_linear(%%c, %%u, %%zy)\n}\n", p->shape);
    const char *left = f->asked ? arena_printf(a, "%%a: (u8[%s], f32[%s])", p->shape, p->shape)
                                : arena_printf(a, "%%c: u8[%s]", p->shape);
    const char *part = f->asked ? arena_printf(a, "    %%c: u8[%s] = part(%%a, index=0)\n", p->shape) : "";
    run(c,
        arena_printf(a, "graph @f(%s) -> (%%y) {\n%s    %s = %s%s%s)\n%s%s", p->inputs, p->before, left, p->codes,
                     f->attrs, f->relu ? ", relu=true" : "", part, end),
        got, &n);
    run(c,
        arena_printf(a, "graph @f(%s) -> (%%y) {\n%s%s%s    %%c: u8[%s] = quantize_linear(%%%s, %%u, %%zy%s)\n%s",
                     p->inputs, p->before, p->numbers, lifted, p->shape, last, f->attrs, end),
        want, &same);
    assert_int_equal(n, same);
    for (size_t i = 0; i < n; i++) {
        require(!got[i] == !want[i], "pair %zu, form %zu: gradient %zu is there once\n", (size_t)(p - pairs),
                (size_t)(f - forms), i);
        if (!got[i])
            continue;
        assert_int_equal(got[i]->bytes, want[i]->bytes);
        for (int64_t k = 0; k < tensor_elements(got[i]); k++)
            require(at(got[i], k) == at(want[i], k), "pair %zu, form %zu: element %d of %zu is %g, not %g\n",
                    (size_t)(p - pairs), (size_t)(f - forms), (int)k, i, at(got[i], k), at(want[i], k));
    }
    assert_non_null(got[1]);
    *mixed += is_mixed(got[1]);
}

static Status gradients_are_those_of_numbers(void *arg)
{
    for (size_t i = 0; i < COUNT(pairs); i++) {
        int mixed = 0;
        for (size_t k = 0; k < COUNT(forms); k++)
            check(arg, &pairs[i], &forms[k], &mixed);
        assert_true(mixed > 0);
    }
    return OK;
}

static void test_gradients_are_those_of_numbers(void **state)
{
    (void)state;
    with_context(gradients_are_those_of_numbers);
}

/* ---- products that give numbers ---- */

#define CODES_OF_BOTH                                                                                                  \
    QUANTIZE("p", "2,2,6,5", "x", "s", "zx") "    %q: i8[4,1,3,3] = quantize_linear(%w, %t, %zw, axis=0)\n"
#define NUMBERS_OF_BOTH                                                                                                \
    NUMBERS("dp", "2,2,6,5", "p", "s", "zx")                                                                           \
    "    %dq: f32[4,1,3,3] = dequantize_linear(%q, %t, %zw, axis=0)\n"
#define CONV_OF_BOTH(words)                                                                                            \
    "graph @f(" DATA("x", "2,2,6,5", "s",                                                                              \
                     "zx") "%w: f32[4,1,3,3], %t: f32[4], %zw: i8[4], %b: f32[4]) -> (%y) {\n" CODES_OF_BOTH words     \
                           ", group=2, pads=[1, 1, 1, 1], strides=[2, 1])\n}\n"

/* A convolution of codes without a scale of its result, and a bias that stays float. */
static Status numbers_go_back_as_numbers(void *arg)
{
    Context *c = arg;
    Tensor *got[16], *want[16];
    size_t n, same;
    run(c, CONV_OF_BOTH("    %y: f32[2,4,3,5] = qconv(%p, %s, %zx, %q, %t, %zw, _, _, %b"), got, &n);
    run(c, CONV_OF_BOTH(NUMBERS_OF_BOTH "    %y: f32[2,4,3,5] = conv(%dp, %dq, %b"), want, &same);
    assert_int_equal(n, same);
    for (size_t i = 0; i < n; i++) {
        require(!got[i] == !want[i], "gradient %zu is there once\n", i);
        for (int64_t k = 0; got[i] && k < tensor_elements(got[i]); k++)
            require(at(got[i], k) == at(want[i], k), "element %d of %zu is %g, not %g\n", (int)k, i, at(got[i], k),
                    at(want[i], k));
    }
    assert_non_null(got[1]); /* data */
    assert_non_null(got[4]); /* weight */
    assert_non_null(got[7]); /* bias */
    return OK;
}

static void test_numbers_go_back_as_numbers(void **state)
{
    (void)state;
    with_context(numbers_go_back_as_numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_gradients_are_those_of_numbers),
                                        cmocka_unit_test(test_numbers_go_back_as_numbers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
