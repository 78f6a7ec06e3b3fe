/* label: slow */
/* Every rounding by chance that there is against the formula in f64: 16 numbers between two neighbours each, 100,000 draws
 * of each number, and how often the farther neighbour came. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/card/eval.h"
#include "ops/scalar.h"
#include "support/language.h"
#include "unit/check.h"

enum { NUMBERS = 16, DRAWS = 100000, EDGE = 4, WIDE = DRAWS + EDGE };

/* What rounds: a graph of %x, numbers that are to be rounded, f32[17,100004], and of %c, codes of zeros but for the ends.
 * Numbers have neighbours on integers, or on floats of so many digits and no finer than 2^low. */
typedef struct Chance {
    const char *name, *codes, *rounds; /* rounds gives %y */
    double edge;                       /* of the last columns, and the last row: what makes the scale 1 */
    int digits, low;                   /* 0: integers */
    double bases[4];                   /* the neighbours nearer to 0 */
    double factor, zero;               /* of %x in the graph; the code of 0 */
    bool positive;
} Chance;

#define SHAPE "[17,100004]"
#define DRAW  "%r: f32" SHAPE " = random_uniform(shape=[17, 100004], stream=77)\n"
#define LINEAR(type, more)                                                                                             \
    DRAW "const %s: f32[] = 1\n%y: " type SHAPE " = quantize_linear(%x, %s, _, %r, output_dtype=" type more            \
         ", rounding=sr)\n"
#define SGD_OF "%x, %one, %t, _, _, _, _, %s"
#define ONE    "const %one: f32[] = 1\nconst %t: i64[] = 1\n"

static const Chance all[] = {
    { "quantize_linear to i8", "i8", LINEAR("i8", ", least=-127, largest=127"), 127, 0, 0, { 0, 1, 60, 120 }, 1 },
    { "quantize_linear to u8", "i8", LINEAR("u8", ""), 127, 0, 0, { 0, 1, 60, 250 }, 1, 0, true },
    { "quantize_linear to i4", "i8", LINEAR("i4", ", least=-7, largest=7"), 7, 0, 0, { 0, 1, 3, 6 }, 1 },
    { "quantize_linear to e4m3", "i8", LINEAR("f8e4m3", ""), 448, 4, -9, { 0, 0.015625, 1.125, 416 }, 1 },
    { "quantize_linear to e5m2", "i8", LINEAR("f8e5m2", ""), 57344, 3, -16, { 0, 0x1p-14, 1.25, 49152 }, 1 },
    { "quantize_linear to e2m3", "i8", LINEAR("f6e2m3", ""), 7.5, 4, -3, { 0, 1, 1.875, 7 }, 1 },
    { "quantize_linear to e3m2", "i8", LINEAR("f6e3m2", ""), 28, 3, -4, { 0, 0.25, 1.25, 24 }, 1 },
    { "quantize_linear to e2m1", "i8", LINEAR("f4e2m1", ""), 6, 2, -1, { 0, 0.5, 1.5, 4 }, 1 },
    { "quantize_both, by rows",
      "i8",
      DRAW "%q: (i8" SHAPE ", f32[17,1], i8" SHAPE ", f32[1,100004]) = quantize_both(%x, %r, rounding=sr)\n"
           "%y: i8" SHAPE " = part(%q, index=0)\n",
      127,
      0,
      0,
      { 0, 1, 60, 120 },
      1 },
    { "quantize_both, by columns",
      "i8",
      DRAW "%q: (i8" SHAPE ", f32[17,1], i8" SHAPE ", f32[1,100004]) = quantize_both(%x, %r, rounding=sr)\n"
           "%y: i8" SHAPE " = part(%q, index=2)\n",
      127,
      0,
      0,
      { 0, 1, 60, 120 },
      1 },
    { "an update of i8",
      "i8",
      DRAW ONE "const %s: f32[17,1] = ones\n%u: (i8" SHAPE
               ", f32[17,1]) = update_sgd(%c, %x, %one, %t, _, _, _, _, %s, "
               "_, %r, least=-127, largest=127, rounding=sr)\n%y: i8" SHAPE " = part(%u, index=0)\n",
      127,
      0,
      0,
      { 0, 1, 60, 120 },
      -1 },
    { "an update of i4",
      "i4",
      DRAW ONE "const %s: f32[17,1] = ones\n%u: (i4" SHAPE
               ", f32[17,1]) = update_sgd(%c, %x, %one, %t, _, _, _, _, %s, "
               "_, %r, least=-7, largest=7, rounding=sr)\n%y: i4" SHAPE " = part(%u, index=0)\n",
      7,
      0,
      0,
      { 0, 1, 3, 6 },
      -1 },
    { "an update of u4 with zero points",
      "u4",
      DRAW ONE "const %s: f32[17,1] = ones\nconst %z: u4[17,1] = [7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7]\n"
               "%u: (u4" SHAPE ", f32[17,1], u4[17,1]) = update_sgd(%c, %x, %one, %t, _, _, _, _, %s, %z, %r, "
               "largest=15, rounding=sr)\n%y: u4" SHAPE " = part(%u, index=0)\n",
      7,
      0,
      0,
      { 0, 1, 3, 6 },
      -1,
      7 },
    { "an update of bf16",
      "bf16",
      DRAW ONE "%y: bf16" SHAPE " = update_sgd(%c, %x, %one, %t, _, _, _, _, _, _, %r, rounding=sr)\n",
      1,
      8,
      -133,
      { 0x1p-20, 0.0078125, 1.0078125, 200 },
      -1 },
    { "stochastic_bf16",
      "i8",
      DRAW "%y: f32" SHAPE " = stochastic_bf16(%x, %r)\n",
      1,
      8,
      -133,
      { 0x1p-20, 0.0078125, 1.0078125, 200 },
      1 },
};

static double spacing(const Chance *c, double base)
{
    int e;
    if (!c->digits)
        return 1;
    frexp(base, &e);
    const int step = e - c->digits;
    return base == 0 || step < c->low ? ldexp(1, c->low) : ldexp(1, step);
}

/* The sign of number k: half of them are below 0, where there are such. */
static double sign_of(const Chance *c, int k)
{
    return c->positive || k / 4 % 2 == 0 ? 1 : -1;
}

static void fill(const Chance *c, Tensor *x, Tensor *codes)
{
    const bool floats = dtype_is_float(codes->type->dtype);
    for (int64_t row = 0; row <= NUMBERS; row++)
        for (int64_t i = 0; i < WIDE; i++) {
            const int64_t at = row * WIDE + i;
            const double base = c->bases[row % 4], far = (double)(row + 1) / (NUMBERS + 1);
            const bool edge = i >= DRAWS || row == NUMBERS;
            const double v = sign_of(c, (int)row) * (base + far * spacing(c, base));
            tensor_set_f64(x, at, edge ? (c->factor < 0 ? 0 : c->edge) : c->factor * v);
            if (floats)
                tensor_set_f64(codes, at, 0);
            else /* the ends, which keep the scale as it is: of codes with zero points both */
                tensor_set_i64(codes, at,
                               !edge              ? (int64_t)c->zero
                               : c->zero && i % 2 ? 0
                                                  : (int64_t)(c->edge + c->zero));
        }
    if (c->zero) /* 15 is 8 above 7: the ends are those of the codes */
        for (int64_t row = 0; row <= NUMBERS; row++)
            tensor_set_i64(codes, row * WIDE + WIDE - 2, 15);
}

/* The chance that a sum of squares of so many normal numbers, an even count, is no less. */
static double chi_square_tail(double x, int n)
{
    double term = exp(-x / 2), sum = term;
    for (int i = 1; i < n / 2; i++)
        sum += term *= x / 2 / i;
    return sum;
}

static void check(const Chance *c, const Tensor *x, const Tensor *y)
{
    double chi = 0;
    for (int64_t row = 0; row < NUMBERS; row++) {
        const double base = c->bases[row % 4], step = spacing(c, base), sign = sign_of(c, (int)row);
        const double v = fabs(tensor_get_f64(x, row * WIDE)), p = (v - base) / step;
        int64_t farther = 0;
        for (int64_t i = 0; i < DRAWS; i++) {
            const double got = sign * (tensor_get_f64(y, row * WIDE + i) - c->zero);
            check_that(got == base || got == base + step, "%s: %g becomes %g", c->name, sign * v, sign * got);
            farther += got != base;
        }
        const double want = DRAWS * p, off = (double)farther - want;
        check_that(p > 0.01 && p < 0.99, "%s: %g lies at %g", c->name, v, p);
        chi += off * off / (want * (1 - p));
    }
    const double tail = chi_square_tail(chi, NUMBERS);
    check_that(tail > 1e-6, "%s: chi-square of %d numbers is %g, and that has a chance of %g", c->name, NUMBERS, chi,
               tail);
}

static void chance_falls_as_the_formula_says(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(all); k++) {
        const Chance *c = &all[k];
        Heap heap;
        Language l;
        Text text;
        Tensor *in[2], *out = NULL;
        language_open(&l);
        heap_open(&heap, &l.memory);
        text_open(&text, &l.arena);
        text_printf(&text, "graph @f(%%x: f32" SHAPE ", %%c: %s" SHAPE ") -> (%%y) {\n", c->codes);
        text_add(&text, c->rounds);
        text_add(&text, "}\n");
        Module *m = language_parse(&l, text_get(&text), NULL);
        check_that(m, "%s: %s", c->name, text_get(&l.messages));
        for (int i = 0; i < 2; i++)
            in[i] = tensor_alloc(&heap, m->graphs[0]->inputs[i]->type);
        fill(c, in[0], in[1]);
        check_that(evaluate(m->graphs[0], NULL, &heap, (const Tensor *const *)in, &out) == OK, "%s: %s", c->name,
                   text_get(&l.messages));
        check(c, in[0], out);
        tensor_drop(&heap, in[0]);
        tensor_drop(&heap, in[1]);
        tensor_drop(&heap, out);
        heap_close(&heap);
        language_close(&l);
    }
}

/* The measure itself: a rounding that is up a hundredth too often is seen. */
static void what_is_off_is_seen(void **state)
{
    (void)state;
    check_that(fabs(chi_square_tail(59.1, NUMBERS) - 7.5e-7) < 1e-7, "the tail is %g", chi_square_tail(59.1, NUMBERS));
    const double p = 0.5, off = 0.01 * DRAWS, chi = NUMBERS * off * off / (DRAWS * p * (1 - p));
    check_that(chi_square_tail(chi, NUMBERS) < 1e-6, "a hundredth too often passes: %g", chi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_off_is_seen),
        cmocka_unit_test(chance_falls_as_the_formula_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
