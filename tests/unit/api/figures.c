/* Figures of quantizers against the formulas that define them, element by element. */
#include <math.h>
#include <string.h>

#include "api/session/figures.h"
#include "base/rng.h"
#include "support/language.h"
#include "support/seed.h"
#include "unit/check.h"

enum { ROWS = 7, COLUMNS = 190, ALL = ROWS * COLUMNS };

/* One quantizer and what it is given. */
typedef struct Case {
    double least, largest, zero, most;
    bool per_row, lifted, quotients;
} Case;

typedef struct Drawn {
    double x[ALL], scale[ROWS];
    Tensor *numbers, *codes, *scales, *zeros;
} Drawn;

static double scale_at(const Case *k, const Drawn *d, int i)
{
    return d->scale[k->per_row ? i / COLUMNS : 0];
}

static double clamped(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

static void draw(Language *l, Rng *rng, const Case *k, Drawn *d)
{
    const int64_t dims[] = { ROWS, COLUMNS }, rows[] = { ROWS };
    const Type *x = type_tensor(&l->ir.types, F32, 2, dims);
    d->numbers = tensor_new(&l->arena, x);
    d->codes = tensor_new(&l->arena, type_with_dtype(&l->ir.types, x, I16));
    d->scales = tensor_new(&l->arena, type_tensor(&l->ir.types, F32, k->per_row, rows));
    d->zeros = tensor_new(&l->arena, type_tensor(&l->ir.types, I16, 0, NULL));
    tensor_set_i64(d->zeros, 0, (int64_t)k->zero);
    for (int i = 0; i < ROWS; i++) {
        if (k->per_row || i == 0)
            tensor_set_f64(d->scales, i, 0.01 + rng_below(rng, 100) / 1000.0);
        d->scale[i] = tensor_get_f64(d->scales, k->per_row ? i : 0);
    }
    for (int i = 0; i < ALL; i++) {
        const double s = scale_at(k, d, i), v = ((double)rng_below(rng, 4001) - 2000) / 2000 * 2 * k->largest;
        tensor_set_f64(d->numbers, i, k->quotients ? v : v * s);
        const double number = tensor_get_f64(d->numbers, i) * (k->quotients ? s : 1);
        d->x[i] = clamped(number, k->lifted ? 0 : -INFINITY, k->most);
        tensor_set_i64(d->codes, i, (int64_t)clamped(rint(d->x[i] / s) + k->zero, k->least, k->largest));
    }
}

static void look(Language *l, const Case *k, const Drawn *d, QuantFigure *q)
{
    *q = (QuantFigure){ .least = k->least, .largest = k->largest, .clipped_below = k->lifted, .most = k->most };
    q->occurs = NEWS(&l->arena, uint8_t, FIGURE_CODE_BYTES);
    FigureBatch b = { .codes = d->codes, .scales = d->scales, .zeros = d->zeros, .n = ALL };
    b.x = k->quotients ? NULL : d->numbers;
    b.quotients = k->quotients ? d->numbers : NULL;
    b.layout = scale_layout_of(d->numbers->type, d->scales->type, 0, 0);
    figure_add(q, &b);
}

static void check_case(Language *l, Rng *rng, const Case *k)
{
    Drawn d;
    QuantFigure q;
    double signal = 0, noise = 0, least = INFINITY, most = 0;
    int64_t clipped = 0, used = 0, counted = 0;
    bool *seen = NEWS(&l->arena, bool, 1 << 16);
    draw(l, rng, k, &d);
    look(l, k, &d, &q);
    for (int i = 0; i < ALL; i++) {
        const double s = scale_at(k, &d, i), code = (double)tensor_get_i64(d.codes, i);
        const double gone = d.x[i] - (code - k->zero) * s, v = d.x[i] / s + k->zero;
        signal += d.x[i] * d.x[i];
        noise += gone * gone;
        clipped += v < k->least - 0.5 || v > k->largest + 0.5;
        used += !seen[(int)code + 32768];
        seen[(int)code + 32768] = true;
        least = fmin(least, s);
        most = fmax(most, s);
    }
    for (int i = 0; i < FIGURE_BINS; i++)
        counted += q.bins.bin[i];
    assert_int_equal(q.n, ALL);
    assert_int_equal(counted, ALL);
    check_that(fabs(figure_sqnr(&q) - 10 * log10(signal / noise)) < 1e-9, "%g dB, not %g", figure_sqnr(&q),
               10 * log10(signal / noise));
    check_that(figure_clipped(&q) == (double)clipped / ALL, "%g clipped, not %g", figure_clipped(&q),
               (double)clipped / ALL);
    check_that(figure_used(&q) == (double)used / (k->largest - k->least + 1), "%g of the codes", figure_used(&q));
    check_that(q.scale_least == least && q.scale_most == most, "scales %g to %g", q.scale_least, q.scale_most);
    check_that(k->most < INFINITY || clipped > 0, "nothing was clipped: the case looks at nothing");
}

static Status formulas(void *arg)
{
    static const Case cases[] = {
        { -127, 127, 0, INFINITY, false, false, false }, { 0, 255, 100, INFINITY, false, false, false },
        { -7, 7, 0, INFINITY, true, false, false },      { 0, 15, 0, INFINITY, false, true, true },
        { 0, 255, 0, INFINITY, false, true, true },      { 0, 255, 3, 0.5, false, true, true },
        { -1, 1, 0, INFINITY, true, false, false },      { -32768, 32767, 0, INFINITY, false, false, true },
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (uint64_t n = 0; n < 20; n++) {
            Rng rng = { seed_of("figures", i * 100 + n) };
            check_case(arg, &rng, &cases[i]);
        }
    return OK;
}

/* What has no number of dB: nothing seen, nothing lost; and bits by the number of codes. */
static Status ends(void *arg)
{
    Language *l = arg;
    Drawn d;
    QuantFigure q = { .least = -127, .largest = 127 };
    const Case exact = { -127, 127, 0, INFINITY, false, false, false };
    Rng rng = { seed_of("figures of what is exact", 0) };
    assert_true(isnan(figure_sqnr(&q)) && isnan(figure_clipped(&q)) && isnan(figure_used(&q)));
    assert_int_equal(figure_bits(&q), 8);
    q.least = -1, q.largest = 1;
    assert_int_equal(figure_bits(&q), 2);
    q.least = 0;
    assert_int_equal(figure_bits(&q), 1);
    draw(l, &rng, &exact, &d);
    tensor_set_f64(d.scales, 0, 0.5);
    for (int i = 0; i < ALL; i++)
        tensor_set_f64(d.numbers, i, (double)tensor_get_i64(d.codes, i) * 0.5);
    look(l, &exact, &d, &q);
    assert_true(isinf(figure_sqnr(&q)) && figure_clipped(&q) == 0);
    return OK;
}

static void in_language(Status (*body)(void *))
{
    Language l;
    language_open(&l);
    assert_int_equal(guarded(&l.memory, body, &l), OK);
    language_close(&l);
}

static void test_formulas(void **state)
{
    (void)state;
    in_language(formulas);
}

static void test_ends(void **state)
{
    (void)state;
    in_language(ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_formulas), cmocka_unit_test(test_ends) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
