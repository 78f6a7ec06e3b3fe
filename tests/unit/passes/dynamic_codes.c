/* Codes with scales of what is at hand: every bf16 number beside a largest one of any size, in every layout, against the
 * formula in f64; numbers that are none. */
#include "passes/lowbit/dynamic_codes.h"

#include "ops/scalar.h"
#include "support/calls.h"

enum { ALL = 1 << 16 };

static Quantizer quantizer_of(Context *c, const char *text)
{
    Quantizer q = { 0 };
    assert_int_equal(quantizer_read_one(&q, OPERAND_A, NOWHERE, "here", text, &c->arena, &c->diag), OK);
    return q;
}

/* What comes of a value, evaluated; null where there is no such thing. */
typedef struct Got {
    Tensor *codes, *scale, *number;
} Got;

static Got quantized(Context *c, Build *b, Node *x, const char *text, int axis, Node *draw)
{
    const Quantizer q = quantizer_of(c, text);
    DynamicCodes of;
    Tensor *out[3] = { 0 };
    assert_int_equal(dynamic_codes(b, x, &q, axis, draw, &of), OK);
    Node *all[] = { of.codes, of.number, of.scale };
    graph_return(b->graph, of.scale ? 3 : 2, all, NULL);
    assert_int_equal(evaluate(b->graph, NULL, &c->heap, NULL, out), OK);
    return (Got){ .codes = out[0], .number = out[1], .scale = out[2] };
}

static void drop(Context *c, Got *got)
{
    Tensor *all[] = { got->codes, got->scale, got->number };
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i])
            tensor_drop(&c->heap, all[i]);
}

/* ---- every input ---- */

/* Every bf16 number up to a largest one, which is there; 0 in place of the others. */
static Node *numbers_up_to(Build *b, double largest)
{
    Tensor *t = tensor_new(b->graph->arena, type_vector(&b->graph->ir->types, BF16, ALL));
    double most = 0;
    for (int i = 0; i < ALL; i++) {
        ((uint16_t *)t->data)[i] = (uint16_t)i;
        if (!(fabs(at(t, i)) <= largest))
            ((uint16_t *)t->data)[i] = 0;
        most = fmax(most, fabs(at(t, i)));
    }
    assert_true(most == largest);
    return build_const(b, t);
}

static const double largest_ones[] = { 1, 127, 1.9921875, 448, 0x1p-40, 0x1.8p-126, 0x1p-133, 0x1.fep127 };

static double int_scale(double largest, double codes)
{
    return (double)(float)((double)(float)fmax(largest, (double)1e-12f) / codes);
}

static double int_code(double x, double s, double least, double most)
{
    return fmin(fmax(rint((double)(float)(x / s)), least), most);
}

static Status every_integer(void *arg)
{
    static const struct {
        const char *text;
        double least, most;
    } formats[] = { { "int8:tensor:dynamic:narrow", -127, 127 },
                    { "int8:tensor:dynamic:full", -128, 127 },
                    { "int4:tensor:dynamic:narrow", -7, 7 },
                    { "int2:tensor:dynamic:narrow", -1, 1 },
                    { "int11:tensor:dynamic:full", -1024, 1023 } };
    Context *c = arg;
    for (size_t f = 0; f < COUNT(formats); f++)
        for (size_t k = 0; k < COUNT(largest_ones); k++) {
            Build b = fresh(c);
            Node *x = numbers_up_to(&b, largest_ones[k]);
            Got got = quantized(c, &b, x, formats[f].text, 0, NULL);
            const double s = int_scale(largest_ones[k], formats[f].most);
            assert_true(at(got.scale, 0) == s);
            for (int i = 0; i < ALL; i++) {
                const double from = at(constant(x), i), want = int_code(from, s, formats[f].least, formats[f].most);
                require(at(got.codes, i) == want, "%s, largest %g: %.9g has the code %g, not %g\n", formats[f].text,
                        largest_ones[k], from, at(got.codes, i), want);
                require(at(got.number, i) == (double)(float)(want * s), "%s: code %g stands for %.9g\n",
                        formats[f].text, want, at(got.number, i));
            }
            drop(c, &got);
        }
    return OK;
}

static void every_input_has_its_code(void **state)
{
    (void)state;
    with_context(every_integer);
}

/* ---- layouts ---- */

static double largest_along(const Tensor *x, int axis, const int64_t *index)
{
    const int64_t *dims = x->type->dims;
    double most = 0;
    for (int64_t k = 0; k < dims[axis]; k++) {
        const int64_t i = axis == 0 ? k : index[0], j = axis == 1 ? k : index[1], l = axis == 2 ? k : index[2];
        most = fmax(most, fabs(at(x, (i * dims[1] + j) * dims[2] + l)));
    }
    return most;
}

static Status every_layout(void *arg)
{
    Context *c = arg;
    Rng rng = { 5 };
    for (int axis = 0; axis < 3; axis++) {
        Build b = fresh(c);
        Node *x = DRAW(&b, &rng, F32, 3, 7, 5);
        Got got = quantized(c, &b, x, "int8:row:dynamic:narrow", axis, NULL);
        const Tensor *from = constant(x);
        assert_int_equal(got.scale->type->rank, 3);
        for (int i = 0; i < 3; i++)
            assert_int_equal(got.scale->type->dims[i], i == axis ? 1 : from->type->dims[i]);
        for (int64_t i = 0, n = 0; i < 3; i++)
            for (int64_t j = 0; j < 7; j++)
                for (int64_t k = 0; k < 5; k++, n++) {
                    const double s = int_scale(largest_along(from, axis, (int64_t[]){ i, j, k }), 127);
                    assert_true(at(got.codes, n) == int_code(at(from, n), s, -127, 127));
                    assert_true(at(got.number, n) == (double)(float)(at(got.codes, n) * s));
                }
        drop(c, &got);
    }
    return OK;
}

static void rows_are_all_but_the_sum(void **state)
{
    (void)state;
    with_context(every_layout);
}

/* ---- numbers that are none ---- */

static Status none_and_nothing(void *arg)
{
    Context *c = arg;
    static const double rows[4][3] = { { 0, -0.0, 0 }, { 1, NAN, 2 }, { 1, -INFINITY, 0 }, { 0x1p-149, 0, 0 } };
    Build b = fresh(c);
    Tensor *x = tensor_new(b.graph->arena, type_tensor(&c->ir.types, F32, 2, (int64_t[]){ 4, 3 }));
    for (int i = 0; i < 12; i++)
        tensor_set_f64(x, i, rows[i / 3][i % 3]);
    Got got = quantized(c, &b, build_const(&b, x), "int8:row:dynamic", 1, NULL);
    for (int i = 0; i < 12; i++) {
        const bool none = i / 3 == 1 || i / 3 == 2;
        require(none ? isnan(at(got.number, i)) : at(got.number, i) == 0, "element %d stands for %g\n", i,
                at(got.number, i));
        assert_true(at(got.codes, i) == 0);
    }
    assert_true(at(got.scale, 0) == at(got.scale, 3) && at(got.scale, 0) > 0);
    drop(c, &got);
    return OK;
}

static void no_number_is_lost(void **state)
{
    (void)state;
    with_context(none_and_nothing);
}

/* ---- by chance ---- */

/* Draws side by side over [0, 1): as many go up as the fraction says, to one. */
static Status by_chance(void *arg)
{
    enum { DRAWS = 4096 };
    static const double x[] = { 127, 0.5, -0.25, 3.75, -126.9375, 0, 1 };
    Context *c = arg;
    Build b = fresh(c);
    const Type *type = type_tensor(&c->ir.types, F32, 2, (int64_t[]){ DRAWS, COUNT(x) });
    Tensor *v = tensor_new(b.graph->arena, type), *u = tensor_new(b.graph->arena, type);
    double sum[COUNT(x)] = { 0 };
    for (int i = 0; i < DRAWS * (int)COUNT(x); i++) {
        tensor_set_f64(v, i, x[i % (int)COUNT(x)]);
        tensor_set_f64(u, i, (double)(i / (int)COUNT(x)) / DRAWS);
    }
    Got got = quantized(c, &b, build_const(&b, v), "int8:row:dynamic:narrow:sr", 1, build_const(&b, u));
    for (int i = 0; i < DRAWS * (int)COUNT(x); i++)
        sum[i % (int)COUNT(x)] += at(got.codes, i);
    for (size_t k = 0; k < COUNT(x); k++)
        require(fabs(sum[k] / DRAWS - x[k]) <= 1.0 / DRAWS, "%g became %g\n", x[k], sum[k] / DRAWS);
    drop(c, &got);
    return OK;
}

static void chance_has_no_bias(void **state)
{
    (void)state;
    with_context(by_chance);
}

/* ---- what has none ---- */

static Status all_refused(void *arg)
{
    static const struct {
        const char *text, *why;
    } refused[] = {
        { "uint8:row:dynamic", "signed integers" },
        { "int8:row:ema", "scales of what is at hand" },
        { "int8:row:dynamic:asym", "0 with the code 0" },
        { "int8:row:dynamic:ceil", "to the nearest, or by chance" },
        { "int8:row:dynamic:bits=learned", "bits that are said" },
    };
    Context *c = arg;
    Rng rng = { 5 };
    for (size_t i = 0; i < COUNT(refused); i++) {
        const Quantizer q = quantizer_of(c, refused[i].text);
        Build b = fresh(c);
        DynamicCodes of;
        Node *x = DRAW(&b, &rng, F32, 3, 7);
        assert_int_equal(dynamic_codes(&b, x, &q, 1, NULL, &of), UNSUPPORTED);
        require(c->last && strstr(c->last, refused[i].why), "%s: %s\n", refused[i].text, c->last ? c->last : "");
    }
    return OK;
}

static void others_are_refused(void **state)
{
    (void)state;
    with_context(all_refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_input_has_its_code), cmocka_unit_test(rows_are_all_but_the_sum),
        cmocka_unit_test(no_number_is_lost),        cmocka_unit_test(chance_has_no_bias),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
