/* C-16, which constants survive in 16 bits, and C-17, which nodes belong to an epsilon guard. */
#include <math.h>

#include "base/half.h"
#include "passes/amp/constant.h"
#include "support/language.h"
#include "unit/check.h"

static const struct {
    double value;
    DType target;
    double rtol;
    AmpFit fit;
} numbers[] = {
    { 65519, F16, 0, AMP_FITS },
    { 65520, F16, 0, AMP_OVERFLOWS },
    { -65520, F16, 0, AMP_OVERFLOWS },
    { -1e9, F16, 0, AMP_OVERFLOWS },
    { -1e9, BF16, 0, AMP_FITS },
    { -3.4e38, F16, 0, AMP_OVERFLOWS },
    { 0x1p-25, F16, 0, AMP_VANISHES },
    { 0x1.8p-25, F16, 0, AMP_FITS },
    { -0x1p-25, F16, 0, AMP_VANISHES },
    { 1e-12, F16, 0, AMP_VANISHES },
    { 1e-12, BF16, 0, AMP_FITS },
    { INFINITY, F16, 0, AMP_FITS },
    { -INFINITY, F16, 1e-9, AMP_FITS },
    { NAN, F16, 1e-9, AMP_FITS },
    { 0.0, F16, 1e-9, AMP_FITS },
    { -0.0, BF16, 1e-9, AMP_FITS },
    { 0x1.FFp127, BF16, 0, AMP_OVERFLOWS },
    { 0x1.FEp127, BF16, 0, AMP_FITS },
    { 0x1p-134, BF16, 0, AMP_VANISHES },
    { 0x1p-133, BF16, 0, AMP_FITS },
    { 0.1, F16, 0x1p-9, AMP_FITS },
    { 0.1, F16, 0x1p-16, AMP_ROUNDS },
    { 0.1, BF16, 0x1p-9, AMP_FITS },
    { 1.00390625, BF16, 0x1p-9, AMP_ROUNDS },
    { 0x1.8p-25, F16, 0x1p-9, AMP_ROUNDS },
};

static void numbers_fit_or_do_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++)
        check_that(amp_number_fit(numbers[i].value, numbers[i].target, numbers[i].rtol) == numbers[i].fit,
                   "%a in %s: %d", numbers[i].value, dtype_name(numbers[i].target),
                   amp_number_fit(numbers[i].value, numbers[i].target, numbers[i].rtol));
}

/* Against the conversions themselves, on numbers of every size. */
static void fits_are_what_conversion_does(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 1u << 31; bits += 40503) {
        const float v = half_f32(bits);
        if (!isfinite(v) || v == 0)
            continue;
        const float h = f16_to_f32(f16_from_f32(v)), b = bf16_to_f32(bf16_from_f32(v));
        check_that((amp_number_fit(v, F16, 0) == AMP_OVERFLOWS) == (isinf(h) != 0), "%a in f16", (double)v);
        check_that((amp_number_fit(v, F16, 0) == AMP_VANISHES) == (h == 0), "%a in f16", (double)v);
        check_that((amp_number_fit(v, BF16, 0) == AMP_OVERFLOWS) == (isinf(b) != 0), "%a in bf16", (double)v);
        check_that((amp_number_fit(v, BF16, 0) == AMP_VANISHES) == (b == 0), "%a in bf16", (double)v);
        if (isfinite(h) && h != 0)
            check_that((amp_number_fit(v, F16, 0x1p-12) == AMP_ROUNDS) ==
                           (fabs((double)h - (double)v) > 0x1p-12 * (double)v),
                       "%a in f16 moves", (double)v);
    }
}

static void worst_element_counts(void **state)
{
    static const char text[] = "graph @f(%x: f32[2]) -> (%x) {\n"
                               "    const %good: f32[3] = [1, -inf, 0.5]\n"
                               "    const %large: f32[3] = [1, 0x2f800000, 1e9]\n"
                               "    const %small: f32[2] = [0.1, 1e-12]\n"
                               "    const %whole: i32[2] = [1, 2]\n"
                               "    %y: f32[2] = add(%x, %x)\n"
                               "}\n";
    static const struct {
        const char *name;
        AmpFit fit;
    } want[] = { { "good", AMP_FITS },
                 { "large", AMP_OVERFLOWS },
                 { "small", AMP_VANISHES },
                 { "whole", AMP_UNSTATED },
                 { "y", AMP_UNSTATED } };
    Language l;
    (void)state;
    language_open(&l);
    Module *m = language_parse(&l, text, NULL);
    assert_non_null(m);
    for (const Node *n = m->graphs[0]->first; n; n = n->next)
        for (size_t i = 0; i < COUNT(want); i++)
            if (n->name && strcmp(n->name, want[i].name) == 0)
                check_that(amp_constant_fit(n, F16, 0x1p-30) == want[i].fit, "%s: %d", n->name,
                           amp_constant_fit(n, F16, 0x1p-30));
    language_close(&l);
}

/* Names that begin with g belong to a guard; the others do not. */
static const char *const guards[] = {
    "const %e: f32[] = 1e-12\n %g1: f32[2] = add(%x, %e)\n %g2: f32[2] = div(%y, %g1)\n",
    "const %e: f32[] = 1e-12\n %g1: f32[2] = add(%e, %x)\n %g2: f32[2] = sqrt(%g1)\n %g3: f32[2] = div(%y, %g2)\n",
    "const %e: f32[] = 1e-7\n %g1: f32[2] = max(%x, %e)\n %g2: f32[2] = log(%g1)\n",
    "const %e: f32[] = 1e-7\n %g1: f32[2] = clip(%x, %e, _)\n %g2: f32[2] = reciprocal(%g1)\n",
    "const %e: f32[] = 1e-7\n const %p: f32[] = -0.5\n %g1: f32[2] = add(%x, %e)\n %g2: f32[2] = pow(%g1, %p)\n",
    "const %e: f32[] = 1e-7\n const %s: i64[2] = [1, 2]\n %g1: f32[2] = add(%x, %e)\n"
    " %g2: f32[1,2] = reshape(%g1, %s)\n %g3: f32[1,2] = sqrt(%g2)\n %g4: f32[1,2] = div(%y, %g3)\n"
    " %other: f32[2] = sqrt(%g1)\n",
    "const %e: f32[] = 1e-12\n %a: f32[2] = add(%x, %e)\n %b: f32[2] = div(%a, %y)\n", /* the dividend */
    "const %e: f32[] = 0.001\n %a: f32[2] = add(%x, %e)\n %b: f32[2] = div(%y, %a)\n", /* fits anywhere */
    "const %e: f32[] = 0\n %a: f32[2] = add(%x, %e)\n %b: f32[2] = div(%y, %a)\n",
    "const %e: f32[] = -1e-12\n %a: f32[2] = add(%x, %e)\n %b: f32[2] = div(%y, %a)\n",
    "const %e: f32[] = 1e-12\n %a: f32[2] = add(%x, %e)\n %b: f32[2] = sqrt(%a)\n %c: f32[2] = mul(%y, %b)\n",
    "%a: f32[2] = sqrt(%x)\n %b: f32[2] = div(%y, %a)\n %c: f32[2] = log(%b)\n",
};

static void guards_are_found_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(guards); i++) {
        Language l;
        language_open(&l);
        Module *m = language_parse(
            &l, arena_printf(&l.arena, "graph @f(%%x: f32[2], %%y: f32[2]) -> (%%x) {\n%s}\n", guards[i]), NULL);
        check_that(m != NULL, "%s: %s", guards[i], text_get(&l.messages));
        for (const Node *n = m->graphs[0]->first; n; n = n->next)
            check_that(amp_eps_guard(n) == (n->name && n->name[0] == 'g'), "%s: %s", guards[i], n->name);
        language_close(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_fit_or_do_not),
        cmocka_unit_test(fits_are_what_conversion_does),
        cmocka_unit_test(worst_element_counts),
        cmocka_unit_test(guards_are_found_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
