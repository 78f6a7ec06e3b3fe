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
    const DynamicDraws draws = { draw, NULL };
    assert_int_equal(dynamic_codes(b, x, &q, axis, &draws, &of), OK);
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

/* ---- floats ---- */

/* A format's numbers from 0 up, written down from what its bits mean. */
typedef struct Grid {
    const char *name;
    int exponent, mantissa, n;
    double most;
    int top;
    double v[128];
} Grid;

static const Grid grids[] = {
    { .name = "e4m3", .exponent = 4, .mantissa = 3, .most = 448, .top = 8 },
    { .name = "e5m2", .exponent = 5, .mantissa = 2, .most = 57344, .top = 15 },
    { .name = "e2m3", .exponent = 2, .mantissa = 3, .most = 7.5, .top = 2 },
    { .name = "e3m2", .exponent = 3, .mantissa = 2, .most = 28, .top = 4 },
    { .name = "e2m1", .exponent = 2, .mantissa = 1, .most = 6, .top = 2 },
};

static Grid open_grid(int which)
{
    Grid g = grids[which];
    const int bias = (1 << (g.exponent - 1)) - 1, parts = 1 << g.mantissa;
    for (int code = 0;; code++) {
        const int e = code / parts, m = code % parts;
        g.v[g.n++] = e ? ldexp(1 + (double)m / parts, e - bias) : ldexp((double)m / parts, 1 - bias);
        if (g.v[g.n - 1] == g.most)
            return g;
    }
}

/* The nearest of them, ties to the even code, the largest for what is beyond. */
static double nearest_on(const Grid *g, double x)
{
    const double a = fabs(x);
    int i = 0;
    for (int step = 64; step; step /= 2)
        if (i + step < g->n && g->v[i + step] <= a)
            i += step;
    if (i + 1 < g->n) {
        const double below = a - g->v[i], above = g->v[i + 1] - a;
        i += above < below || (above == below && i % 2);
    }
    return copysign(g->v[i], x);
}

static double f32_of(double v)
{
    return (double)(float)v;
}

static double power_up(double v)
{
    int e;
    return frexp(v, &e) == 0.5 ? ldexp(0.5, e) : ldexp(1, e);
}

static double mx_scale(double largest, int top)
{
    int e;
    frexp(largest, &e);
    return largest == 0 ? 0x1p-127 : fmax(ldexp(1, e - 1 - top), 0x1p-127);
}

/* With one scale in each form. */
static double scale_by(const char *form, double largest, double most, int top)
{
    const double s = f32_of(f32_of(fmax(largest, (double)1e-12f)) / most);
    return strcmp(form, "e8m0") == 0 ? mx_scale(largest, top) : strcmp(form, "pow2") == 0 ? power_up(s) : s;
}

static void check_floats(Context *c, const Grid *g, const char *form, double largest)
{
    Build b = fresh(c);
    Node *x = numbers_up_to(&b, largest);
    const char *text = arena_printf(&c->arena, "%s:tensor:dynamic:%s", g->name, form);
    Got got = quantized(c, &b, x, text, 0, NULL);
    const double s = scale_by(form, largest, g->most, g->top);
    require(at(got.scale, 0) == s, "%s, largest %g: the scale is %g, not %g\n", text, largest, at(got.scale, 0), s);
    for (int i = 0; i < ALL; i++) {
        const double from = at(constant(x), i), want = nearest_on(g, f32_of(from / s));
        require(at(got.codes, i) == want, "%s, largest %g: %.9g has the code %g, not %g\n", text, largest, from,
                at(got.codes, i), want);
        assert_true(at(got.number, i) == f32_of(want * s));
    }
    drop(c, &got);
}

static Status every_float(void *arg)
{
    static const char *const forms[] = { "f32", "pow2", "e8m0" };
    for (int f = 0; f < (int)COUNT(grids); f++) {
        const Grid g = open_grid(f);
        for (size_t k = 0; k < COUNT(largest_ones); k++)
            for (size_t i = 0; i < COUNT(forms); i++)
                check_floats(arg, &g, forms[i], largest_ones[k]);
    }
    return OK;
}

static void every_input_has_its_float(void **state)
{
    (void)state;
    with_context(every_float);
}

/* ---- blocks and tiles ---- */

enum { ROWS = 21, COLUMNS = 40 };

typedef struct Blocks {
    const char *text;
    int grid; /* -1: integers up to 127 */
    int along, wide;
    const char *form;
    bool either; /* the largest becomes 4 or 6 */
} Blocks;

static const Blocks all_blocks[] = {
    { "e4m3:block=16:dynamic", 0, 16, 1, "f32", false },
    { "e4m3:block=32:e8m0:dynamic", 0, 32, 1, "e8m0", false },
    { "e5m2:tile=16x16:dynamic:pow2", 1, 16, 16, "pow2", false },
    { "e2m3:block=32:e8m0:dynamic", 2, 32, 1, "e8m0", false },
    { "e3m2:block=32:e8m0:dynamic", 3, 32, 1, "e8m0", false },
    { "e2m1:block=32:e8m0:dynamic", 4, 32, 1, "e8m0", false },
    { "int8:block=32:e8m0:narrow:dynamic", -1, 32, 1, "e8m0", false },
    { "e2m1:block=16:e4m3:dynamic", 4, 16, 1, "e4m3", false },
    { "e2m1:tile=16x16:e4m3:dynamic", 4, 16, 16, "e4m3", false },
    { "e2m1:block=16:e4m3:4or6:dynamic", 4, 16, 1, "e4m3", true },
    { "e2m1:tile=16x16:e4m3:4or6:dynamic", 4, 16, 16, "e4m3", true },
    { "e2m1:row:4or6:dynamic", 4, 1 << 20, 1, "f32", true },
};

/* Where an element of a block stands, the block being along `axis`. */
static int64_t element(int axis, int64_t across, int64_t along)
{
    return axis == 1 ? across * COLUMNS + along : along * COLUMNS + across;
}

typedef struct Block {
    int64_t from, to, across, end;
} Block;

static double code_for(const Blocks *k, const Grid *g, double x, double s)
{
    return k->grid < 0 ? int_code(x, s, -127, 127) : nearest_on(g, f32_of(x / s));
}

static double error_for(const Tensor *x, const Blocks *k, const Grid *g, const Block *q, int axis, double s)
{
    double sum = 0;
    for (int64_t i = q->across; i < q->end; i++)
        for (int64_t j = q->from; j < q->to; j++) {
            const double v = at(x, element(axis, i, j));
            sum += pow(v - code_for(k, g, v, s) * s, 2);
        }
    return sum;
}

/* The scale of a block as the formats have it; 0: the sums of two are so near each other that f32 takes either. */
static double block_scale(const Tensor *x, const Blocks *k, const Grid *g, const Block *q, int axis)
{
    static const Grid ints = { .most = 127, .top = 6 };
    const Grid e4m3 = open_grid(0);
    const Grid *of = k->grid < 0 ? &ints : g;
    double size = 0, all = 0, s[2];
    for (int64_t i = q->across; i < q->end; i++)
        for (int64_t j = q->from; j < q->to; j++)
            size = fmax(size, fabs(at(x, element(axis, i, j))));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        all = fmax(all, fabs(at(x, i)));
    for (int i = 0; i < 2; i++) {
        const double most = i ? 4 : of->most, n = f32_of(all / (k->either ? 1536 : 448 * of->most));
        s[i] = strcmp(k->form, "e4m3") ? scale_by(k->form, size, most, of->top)
                                       : f32_of(nearest_on(&e4m3, fmax(f32_of(f32_of(size / most) / n), 0x1p-9)) * n);
    }
    if (!k->either || s[0] == s[1])
        return s[0];
    const double six = error_for(x, k, g, q, axis, s[0]), four = error_for(x, k, g, q, axis, s[1]);
    return fabs(six - four) <= 1e-5 * six ? 0 : four < six ? s[1] : s[0];
}

static int n_near, n_blocks;

static void check_block(const Got *got, const Tensor *x, const Blocks *k, const Grid *g, const Block *q, int axis)
{
    const double s = block_scale(x, k, g, q, axis);
    n_near += s == 0;
    n_blocks++;
    if (s == 0)
        return;
    for (int64_t i = q->across; i < q->end; i++)
        for (int64_t j = q->from; j < q->to; j++) {
            const int64_t n = element(axis, i, j);
            const double want = code_for(k, g, at(x, n), s);
            require(at(got->codes, n) == want && at(got->number, n) == f32_of(want * s),
                    "%s along %d: %.9g at %d, %d has the code %g for %.9g, not %g by %g\n", k->text, axis, at(x, n),
                    (int)i, (int)j, at(got->codes, n), at(got->number, n), want, s);
        }
}

static void check_blocks(Context *c, const Blocks *k, int axis)
{
    Build b = fresh(c);
    Rng rng = { 17 };
    const Grid g = open_grid(k->grid < 0 ? 0 : k->grid);
    const int64_t along = axis ? COLUMNS : ROWS, across = axis ? ROWS : COLUMNS;
    Tensor *x = tensor_new(b.graph->arena, type_tensor(&c->ir.types, F32, 2, (int64_t[]){ ROWS, COLUMNS }));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        tensor_set_f64(x, i, i / COLUMNS == 7 ? 0 : ldexp(rng_unit(&rng) - 0.5, (int)rng_range(&rng, -9, 3)));
    Got got = quantized(c, &b, build_const(&b, x), k->text, axis, NULL);
    assert_true((got.scale != NULL) == (k->along >= along));
    for (int64_t i = 0; i < across; i += k->wide)
        for (int64_t j = 0; j < along; j += k->along) {
            const Block q = { .across = i,
                              .end = i + k->wide < across ? i + k->wide : across,
                              .from = j,
                              .to = j + k->along < along ? j + k->along : along };
            check_block(&got, x, k, &g, &q, axis);
        }
    drop(c, &got);
}

static Status every_block(void *arg)
{
    for (size_t i = 0; i < COUNT(all_blocks); i++)
        for (int axis = 0; axis < 2; axis++)
            check_blocks(arg, &all_blocks[i], axis);
    return OK;
}

static void blocks_have_their_scales(void **state)
{
    (void)state;
    with_context(every_block);
    assert_true(n_near * 10 < n_blocks);
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

/* Of floats in blocks of three too: what holds a NaN or an infinity holds one behind that, whatever the form. */
static Status none_of_floats(void *arg)
{
    static const char *const texts[] = { "e4m3:block=3:dynamic",           "e5m2:block=3:e8m0:dynamic",
                                         "e2m1:block=3:e8m0:dynamic",      "e2m1:block=3:e4m3:dynamic",
                                         "e2m1:block=3:e4m3:4or6:dynamic", "e4m3:block=3:pow2:dynamic",
                                         "int8:block=3:e8m0:dynamic",      "e2m3:block=3:e8m0:dynamic:sr" };
    static const double rows[4][3] = { { 0, -0.0, 0 }, { 1, NAN, 2 }, { 1, -INFINITY, 0 }, { 3, 1, -2 } };
    Context *c = arg;
    for (size_t k = 0; k < COUNT(texts); k++) {
        Build b = fresh(c);
        const bool all = strstr(texts[k], ":e4m3") != NULL; /* one number of the tensor */
        Tensor *x = tensor_new(b.graph->arena, type_tensor(&c->ir.types, F32, 2, (int64_t[]){ 4, 3 }));
        Tensor *u = tensor_new(b.graph->arena, x->type);
        for (int i = 0; i < 12; i++) {
            tensor_set_f64(x, i, rows[i / 3][i % 3]);
            tensor_set_f64(u, i, 0.5);
        }
        Got got = quantized(c, &b, build_const(&b, x), texts[k], 1, build_const(&b, u));
        for (int row = 0; row < 4; row++) {
            bool none = false;
            for (int i = 3 * row; i < 3 * row + 3; i++)
                none |= !isfinite(at(got.number, i));
            const bool want = row == 1 || row == 2;
            require(none == want || all, "%s: row %d is%s all numbers\n", texts[k], row, none ? " not" : "");
        }
        drop(c, &got);
    }
    return OK;
}

static void no_number_is_lost(void **state)
{
    (void)state;
    with_context(none_and_nothing);
    with_context(none_of_floats);
}

/* ---- by chance ---- */

enum { DRAWS = 4096, NUMBERS = 8 };

/* Draws side by side over [0, 1): as many go up as what is left says, to one.  The largest makes the scale 1. */
static void check_chance(Context *c, const char *text, const double *x)
{
    Build b = fresh(c);
    const Type *type = type_tensor(&c->ir.types, F32, 2, (int64_t[]){ DRAWS, NUMBERS });
    Tensor *v = tensor_new(b.graph->arena, type), *u = tensor_new(b.graph->arena, type);
    double sum[NUMBERS] = { 0 }, least[NUMBERS], most[NUMBERS];
    for (int i = 0; i < DRAWS * NUMBERS; i++) {
        tensor_set_f64(v, i, x[i % NUMBERS]);
        tensor_set_f64(u, i, (double)(i / NUMBERS) / DRAWS);
    }
    Got got = quantized(c, &b, build_const(&b, v), text, 1, build_const(&b, u));
    for (int i = 0; i < DRAWS * NUMBERS; i++) {
        const int k = i % NUMBERS;
        const double code = at(got.codes, i);
        sum[k] += code;
        least[k] = i < NUMBERS ? code : fmin(least[k], code);
        most[k] = i < NUMBERS ? code : fmax(most[k], code);
    }
    for (int k = 0; k < NUMBERS; k++)
        require(fabs(sum[k] / DRAWS - x[k]) <= (most[k] - least[k]) / DRAWS && least[k] <= x[k] && x[k] <= most[k],
                "%s: %g became %g, from %g to %g\n", text, x[k], sum[k] / DRAWS, least[k], most[k]);
    drop(c, &got);
}

static Status by_chance(void *arg)
{
    static const struct {
        const char *text;
        double x[NUMBERS];
    } all[] = {
        { "int8:row:dynamic:narrow:sr", { 127, 0.5, -0.25, 3.75, -126.9375, 0, 1, 0x1p-7 } },
        { "e4m3:row:dynamic:sr", { 448, 447, -300, 0.3125, -0x1p-10, 17.5, 0x1.08p-6, 0 } },
        { "e5m2:row:dynamic:sr", { 57344, -50000, 1.0625, 3.375, -0x1p-18, 0x1.cp-15, 40, 0 } },
        { "e2m1:row:dynamic:sr", { 6, 5.5, -4.25, 0.125, -0.25, 1.25, 3.5, 0.0625 } },
        { "e2m3:row:dynamic:sr", { 7.5, -7.375, 0.0625, 1.9375, -2.0625, 0.03125, 3, 0 } },
        { "e3m2:row:dynamic:sr", { 28, -27, 0.03125, 0.3125, 5.5, -0.28125, 3.25, 0 } },
    };
    for (size_t i = 0; i < COUNT(all); i++)
        check_chance(arg, all[i].text, all[i].x);
    return OK;
}

static void chance_has_no_bias(void **state)
{
    (void)state;
    with_context(by_chance);
}

/* ---- turned ---- */

enum { TURNED = 48 };

static Node *turned(Build *b, Node *x, const Quantizer *q, int axis)
{
    DynamicCodes of;
    assert_int_equal(dynamic_codes(b, x, q, axis, NULL, &of), OK);
    return of.number;
}

/* What is multiplied with each other is turned alike, along what is added up: the product stays what it is. */
static Status products_stay(void *arg)
{
    Context *c = arg;
    Rng rng = { 3 };
    Build b = fresh(c);
    const Quantizer q = quantizer_of(c, "int16:block=16:dynamic:hadamard=16");
    Node *x = DRAW(&b, &rng, F32, TURNED, 5), *y = DRAW(&b, &rng, BF16, 7, TURNED);
    Node *xs = turned(&b, x, &q, 0), *ys = turned(&b, y, &q, 1);
    Node *both[] = { CALL(&b, matmul, ys, xs), CALL(&b, matmul, build_cast(&b, y, F32), x), xs };
    assert_int_equal((int)b.graph->n_inputs, 1);
    const Node *signs = b.graph->inputs[0];
    const Tensor *said = payload_cached(((const StateAttr *)signs->attr)->value, &c->diag), *in[] = { said };
    Tensor *out[3];
    double sum = 0;
    assert_string_equal(signs->name, "qcc.hadamard");
    for (int i = 0; i < 16; i++) {
        assert_true(fabs(at(said, i)) == 1);
        sum += at(said, i);
    }
    assert_true(fabs(sum) < 16);
    graph_return(b.graph, 3, both, NULL);
    assert_int_equal(evaluate(b.graph, NULL, &c->heap, in, out), OK);
    double apart = 0;
    for (int i = 0; i < 35; i++)
        require(fabs(at(out[0], i) - at(out[1], i)) < 2e-3, "%g is not %g\n", at(out[0], i), at(out[1], i));
    for (int i = 0; i < TURNED * 5; i++)
        apart = fmax(apart, fabs(at(out[2], i) - at(constant(x), i)));
    assert_true(apart > 0.5);
    for (int i = 0; i < 3; i++)
        tensor_drop(&c->heap, out[i]);
    return OK;
}

static void turned_products_stay(void **state)
{
    (void)state;
    with_context(products_stay);
}

/* ---- what has none ---- */

static Status all_refused(void *arg)
{
    static const struct {
        const char *text, *why;
    } refused[] = {
        { "uint8:row:dynamic", "signed integers of 2 to 16 bits, or floats" },
        { "ternary:row:dynamic", "signed integers of 2 to 16 bits, or floats" },
        { "int8:row:ema", "scales of what is at hand" },
        { "int8:row:dynamic:asym", "0 with the code 0" },
        { "int8:row:dynamic:ceil", "to the nearest, by chance, or by ms-eden" },
        { "int8:row:dynamic:bits=learned", "bits that are said" },
        { "e4m3:row:dynamic:ms-eden", "hadamard=16 beside ms-eden" },
        { "e2m1:block=16:e8m0:dynamic:ms-eden:hadamard=16", "scales in f32 or e4m3 beside ms-eden" },
        { "e2m1:block=16:e4m3:4or6:dynamic:ms-eden:hadamard=16", "absmax beside ms-eden" },
        { "e2m1:block=16:e8m0:dynamic:4or6", "scales in f32 or e4m3" },
        { "e2m1:block=16:dynamic:hadamard=16", "a multiple of 16" },
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
        cmocka_unit_test(every_input_has_its_code), cmocka_unit_test(every_input_has_its_float),
        cmocka_unit_test(blocks_have_their_scales), cmocka_unit_test(rows_are_all_but_the_sum),
        cmocka_unit_test(no_number_is_lost),        cmocka_unit_test(chance_has_no_bias),
        cmocka_unit_test(turned_products_stay),     cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
