/* Rounding by chance with the draws of a step, counted; ms-eden against its formula in f64, and on average over turnings: its
 * numbers have no bias worth speaking of, and err half as much as by chance. */
#include <math.h>

#include "base/rng.h"
#include "ops/card/make.h"
#include "ops/quant/quantize.h"
#include "ops/random/random_draws.h"
#include "passes/lowbit/dynamic_codes.h"
#include "support/calls.h"
#include "support/few_floats.h"

enum { ROWS = 8, COLS = 64, N = ROWS * COLS, BLOCK = 16, TURNS = 2000 };

/* ---- by chance ---- */

enum { DRAWS = 4096, VALUES = 13 };

/* Of each value between two numbers of a format: as many draws go up as it is near the upper one, as far as binomial counts
 * allow: the squares of what is off over what is expected to be are VALUES on average, and 6 deviations of that more at most. */
static void count_ups(Context *c, DType code, QuantFormat format)
{
    static const double values[VALUES] = { 0.01, 0.3, 0.7, 1.1, 1.37, 1.7, 2.2, 2.9, 3.3, 4.7, 5.5, -0.2, -2.6 };
    const QuantizeAttr how = {
        .output_dtype = (int)code + 1, .saturate = true, .rounding = ROUND_SR, .mask = MASK_NONE, .gain = 1
    };
    Build b = fresh(c);
    const FewFloats f = few_floats(format);
    Tensor *x = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 2, (int64_t[]){ DRAWS, VALUES }));
    for (int64_t i = 0; i < DRAWS * VALUES; i++)
        tensor_set_f64(x, i, values[i % VALUES]);
    Node *in[] = { build_const(&b, x), build_scalar(&b, F32, 1), NULL, random_draws(&b, x->type, 7 + (int64_t)code) };
    Node *codes = build_node(&b, OP_quantize_linear, &how, 4, in);
    Tensor *got = value_of(c, build_cast(&b, codes, F32), NULL);
    double chi = 0;
    for (int k = 0; k < VALUES; k++) {
        const double v = fabs((double)(float)values[k]), step = ldexp(1, (int)fmax(ilogb(v), f.least) - f.digits);
        const double below = floor(v / step) * step, part = (v - below) / step;
        int ups = 0;
        for (int i = 0; i < DRAWS; i++) {
            const double one = fabs(at(got, i * VALUES + k));
            require(one == below || one == below + step, "%g became %g\n", v, one);
            ups += one > below;
        }
        const double want = DRAWS * part, spread = DRAWS * part * (1 - part);
        chi += spread > 0 ? (ups - want) * (ups - want) / spread : 1;
    }
    require(chi < VALUES + 6 * sqrt(2.0 * VALUES), "%s: chi-square %g of %d\n", dtype_name(code), chi, VALUES);
    tensor_drop(&c->heap, got);
}

static Status all_counted(void *arg)
{
    count_ups(arg, F8E4M3, FORMAT_E4M3);
    count_ups(arg, F8E5M2, FORMAT_E5M2);
    count_ups(arg, F6E2M3, FORMAT_E2M3);
    count_ups(arg, F6E3M2, FORMAT_E3M2);
    count_ups(arg, F4E2M1, FORMAT_E2M1);
    return OK;
}

static void draws_of_a_step_have_no_bias(void **state)
{
    (void)state;
    with_context(all_counted);
}

/* ---- ms-eden ---- */

/* A quantizer whose draws are inputs, evaluated over and over. */
typedef struct Turner {
    Context *c;
    Graph *g;
    Node *number;
    Tensor *draws, *flips;
    Tensor *x;
    double signs[BLOCK]; /* of the last turning */
    Rng rng;
} Turner;

static void open_turner(Turner *t, Context *c, const char *text, double tail)
{
    Build b = fresh(c);
    Quantizer q = { 0 };
    DynamicCodes of;
    const Type *type = type_tensor(&c->ir.types, F32, 2, (int64_t[]){ ROWS, COLS });
    const Type *sixteen = type_vector(&c->ir.types, F32, BLOCK);
    *t = (Turner){ .c = c, .g = b.graph, .rng = { 11 } };
    t->x = tensor_new(&c->arena, type);
    t->draws = tensor_new(&c->arena, type);
    t->flips = tensor_new(&c->arena, sixteen);
    for (int i = 0; i < N; i++) {
        const double u = rng_unit(&t->rng) + 1e-9, angle = 6.283185307179586 * rng_unit(&t->rng);
        tensor_set_f64(t->x, i, pow(-2 * log(u), 0.5 + tail) * cos(angle));
    }
    const DynamicDraws draws = { graph_input(b.graph, "draws", type), graph_input(b.graph, "flips", sixteen) };
    assert_int_equal(quantizer_read_one(&q, OPERAND_G, NOWHERE, "here", text, &c->arena, &c->diag), OK);
    assert_int_equal(dynamic_codes(&b, build_const(&b, t->x), &q, 1, &draws, &of), OK);
    t->number = of.number;
    graph_return(b.graph, 1, &t->number, NULL);
}

/* What a turning gives, in turned elements. */
static Tensor *turn(Turner *t)
{
    const Tensor *in[3];
    Tensor *out = NULL;
    for (int i = 0; i < N; i++)
        tensor_set_f64(t->draws, i, (double)(float)(rng_below(&t->rng, 1 << 24) * 0x1p-24));
    for (int i = 0; i < BLOCK; i++)
        tensor_set_f64(t->flips, i, rng_below(&t->rng, 2) * 0.5);
    for (size_t i = 0; i < t->g->n_inputs; i++) {
        const Node *n = t->g->inputs[i];
        const bool signs = n->op == OP_state;
        in[i] = signs                           ? payload_cached(((const StateAttr *)n->attr)->value, &t->c->diag)
                : strcmp(n->name, "draws") == 0 ? t->draws
                                                : t->flips;
        for (int k = 0; k < BLOCK && signs; k++)
            t->signs[k] = at(in[i], k) * (at(t->flips, k) < 0.5 ? -1 : 1);
    }
    assert_int_equal(evaluate(t->g, NULL, &t->c->heap, in, &out), OK);
    return out;
}

/* Turns 16 and back: the matrix is its own inverse. */
static void hadamard(const double *x, double *y)
{
    for (int j = 0; j < BLOCK; j++) {
        y[j] = 0;
        for (int i = 0; i < BLOCK; i++)
            y[j] += (__builtin_parity((unsigned)(i & j)) ? -0.25 : 0.25) * x[i];
    }
}

static double e4m3_by_chance(double v, double draw, bool *near)
{
    const double step = ldexp(1, (int)fmax(ilogb(v), -6) - 3), part = v / step - floor(v / step);
    *near |= fabs(part - draw) < 1e-4;
    return fmin((floor(v / step) + (draw < part)) * step, 448);
}

/* The formula of a block, without a rounding but those that it is about. */
static void expect_block(const Turner *t, const Tensor *got, int at_block, double all, bool e4m3)
{
    double x[BLOCK], y[BLOCK], q[BLOCK], most = 0, own = 0, both = 0;
    bool near = false;
    for (int i = 0; i < BLOCK; i++)
        x[i] = at(t->x, at_block * BLOCK + i) * t->signs[i];
    hadamard(x, y);
    for (int i = 0; i < BLOCK; i++)
        most = fmax(most, fabs(y[i]));
    const double block = e4m3 ? few_floats_nearest(FORMAT_E4M3, fmax(most / 6 / all, 0x1p-9)) : most / 6;
    const double s = e4m3 ? block * all : block;
    for (int i = 0; i < BLOCK; i++) {
        q[i] = few_floats_nearest(FORMAT_E2M1, y[i] / s);
        const double other = few_floats_nearest(FORMAT_E2M1, y[i] / s * (1 + 1e-5));
        near |= other != q[i] || few_floats_nearest(FORMAT_E2M1, y[i] / s * (1 - 1e-5)) != q[i];
        own += y[i] * y[i];
        both += y[i] * q[i] * s;
    }
    const double c = both > 0 ? own / both : 1;
    const double read = e4m3 ? e4m3_by_chance(block * c, at(t->draws, at_block * BLOCK), &near) * all : s * c;
    for (int i = 0; i < BLOCK && !near; i++)
        require(fabs(at(got, at_block * BLOCK + i) - q[i] * read) <= 1e-5 * fabs(q[i] * read),
                "block %d: element %d is %g, not %g\n", at_block, i, at(got, at_block * BLOCK + i), q[i] * read);
}

static double largest_turned(const Turner *t)
{
    double x[BLOCK], y[BLOCK], most = 0;
    for (int k = 0; k < N / BLOCK; k++) {
        for (int i = 0; i < BLOCK; i++)
            x[i] = at(t->x, k * BLOCK + i) * t->signs[i];
        hadamard(x, y);
        for (int i = 0; i < BLOCK; i++)
            most = fmax(most, fabs(y[i]));
    }
    return most;
}

static Status formulas(void *arg)
{
    static const char *const texts[] = { "e2m1:block=16:e4m3:ms-eden:hadamard=16",
                                         "e2m1:block=16:ms-eden:hadamard=16" };
    for (size_t k = 0; k < COUNT(texts); k++) {
        static Turner t;
        open_turner(&t, arg, texts[k], 0.5);
        for (int n = 0; n < 20; n++) {
            Tensor *got = turn(&t);
            const double all = largest_turned(&t) / (256 * 6);
            for (int i = 0; i < N / BLOCK; i++)
                expect_block(&t, got, i, all, k == 0);
            tensor_drop(&t.c->heap, got);
        }
    }
    return OK;
}

static void numbers_are_those_of_the_formula(void **state)
{
    (void)state;
    with_context(formulas);
}

/* What many turnings are off by. */
typedef struct Off {
    double error; /* mean square of what one is off, of that of the numbers */
    double bias;  /* the same of their mean */
    double along; /* what is left of the numbers in their own direction */
} Off;

static Off off_by(Context *c, const char *text)
{
    static Turner t;
    static double sum[N];
    double x[BLOCK], y[BLOCK], size = 0, error = 0, bias = 0, along = 0;
    open_turner(&t, c, text, 0);
    memset(sum, 0, sizeof sum);
    for (int n = 0; n < TURNS; n++) {
        Tensor *got = turn(&t);
        for (int k = 0; k < N / BLOCK; k++) {
            for (int i = 0; i < BLOCK; i++)
                x[i] = at(got, k * BLOCK + i);
            hadamard(x, y);
            for (int i = 0; i < BLOCK; i++) {
                const double v = y[i] * t.signs[i], want = at(t.x, k * BLOCK + i);
                sum[k * BLOCK + i] += v;
                error += (v - want) * (v - want);
            }
        }
        tensor_drop(&c->heap, got);
    }
    for (int i = 0; i < N; i++) {
        const double want = at(t.x, i), mean = sum[i] / TURNS;
        size += want * want;
        bias += (mean - want) * (mean - want);
        along += mean * want;
    }
    return (Off){ error / TURNS / size, bias / size, along / size };
}

static Status averages(void *arg)
{
    const Off eden = off_by(arg, "e2m1:block=16:e4m3:ms-eden:hadamard=16"),
              chance = off_by(arg, "e2m1:block=16:e4m3:sr:hadamard=16"),
              nearest = off_by(arg, "e2m1:block=16:e4m3:hadamard=16");
    print_message("ms-eden: error %.4f, bias %.2g, along %.4f\n", eden.error, eden.bias, eden.along);
    print_message("sr:      error %.4f, bias %.2g, along %.4f\n", chance.error, chance.bias, chance.along);
    print_message("rne:     error %.4f, bias %.2g, along %.4f\n", nearest.error, nearest.bias, nearest.along);
    assert_true(eden.error < 0.55 * chance.error && eden.error < 1.1 * nearest.error);
    assert_true(eden.bias < 2e-5 && fabs(eden.along - 1) < 5e-4);
    assert_true(chance.along < 0.998 && nearest.along < 0.997); /* the largest of a block may be cut off */
    return OK;
}

static void turnings_have_no_bias(void **state)
{
    (void)state;
    with_context(averages);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(draws_of_a_step_have_no_bias),
                                        cmocka_unit_test(numbers_are_those_of_the_formula),
                                        cmocka_unit_test(turnings_have_no_bias) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
