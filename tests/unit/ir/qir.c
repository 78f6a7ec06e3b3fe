/* The textual form: what is printed is read back, in both directions, and mistakes are located. */
#include "support/language.h"

#include <math.h>
#include <string.h>

#include "unit/check.h"

static void check_canonical(const char *text)
{
    Language l;
    language_open(&l);
    Module *m = language_parse(&l, text, NULL);
    check_that(m, "%s", text_get(&l.messages));
    const char *again = language_print(&l, m, NULL);
    assert_string_equal(again, text);
    language_close(&l);
}

static void check_error(const char *text, const char *message)
{
    Language l;
    language_open(&l);
    Module *m = language_parse(&l, text, NULL);
    check_that(!m, "accepted: %s", text);
    assert_string_equal(text_get(&l.messages), message);
    language_close(&l);
}

static void canonical_text_is_printed_as_it_was(void **state)
{
    (void)state;
    check_canonical("graph @empty() -> () {\n}\n");
    check_canonical("graph @f(%x: f32[2,?], %y: f32[*]) -> (%x, %out = %y, %0) {\n"
                    "    %0: f32[2,?] = same(%x) !17 ours side=backward node=\"/a \\\"b\\\"/c\"\n"
                    "    %1: f32[2,?] = same(%0, _, %x)\n"
                    "}\n"
                    "\n"
                    "graph @\"g 1\"(state %\"onnx::MatMul_123\": f32[] = -0, state %z: f32[3] = zeros,"
                    " %\"12\": i64[0] !3) -> () {\n"
                    "}\n");
}

static void types(void **state)
{
    (void)state;
    check_canonical("graph @f(%a: (f32[], i64[2]), %b: seq(f32[*]), %c: optional(seq(string[?])), %d: none) -> () {\n"
                    "}\n");
    check_canonical("graph @f(%a: opaque(\"map(i64, string)\"), %b: (), %c: ((bool[1], u2[2]), bf16[1099511627776]))"
                    " -> () {\n}\n");
}

static void constants(void **state)
{
    (void)state;
    check_canonical("graph @f() -> () {\n"
                    "    const %a: f32[2] = [1, 0x7fc00000]\n"
                    "    const %b: f32[] = 0.1\n"
                    "    const %c: f32[2,2] = [1e-45, 3.4028235e38, -0, 0xff800000]\n"
                    "    const %d: f16[3] = [0.1, 65504, 0x7c00]\n"
                    "    const %e: u64[1] = [18446744073709551615]\n"
                    "    const %f: i64[2] = [-9223372036854775808, 9223372036854775807]\n"
                    "    const %g: bool[2] = [true, false]\n"
                    "    const %h: f64[1] = [0.1]\n"
                    "    const %i: i4[3] = [-8, 7, -1]\n"
                    "    const %j: f32[0,3] = []\n"
                    "    const %k: f8e4m3[2] = [448, 0x7f]\n"
                    "    const %l: f8e8m0[2] = [9.313226e-10, 0xff]\n"
                    "    const %m: f4e2m1[2] = [0.5, -6]\n"
                    "    const %m2: f6e2m3[5] = [0.1, -7.5, -0, 2.2, 1]\n"
                    "    const %m3: f6e3m2[5] = [0.06, -28, -0, 2.5, 1]\n"
                    "    const %n: u8[66] = hex\"00010203040506070809000102030405060708090001020304050607080900010203"
                    "0405060708090001020304050607080900010203040506070809000102030405\"\n"
                    "    const %o: f32[8,8,8] = kaiming(seed=1)\n"
                    "    const %p: f32[8] = normal(seed=-2, scale=0.02)\n"
                    "    param %q: string[2] = @blob(\"names\")\n"
                    "    param %r: i32[1] = [5]\n"
                    "    param %s: i32[1]\n"
                    "}\n");
}

static void nested_lists_and_blanks(void **state)
{
    (void)state;
    Language l;
    language_open(&l);
    Module *m = language_parse(&l,
                               "# a graph\ngraph @f()->(%k){const %k:i32[2,3]=[[1,0x2,3],\n [4,5,6]] # rows\n"
                               "const %e: i32[2,0] = [[],[]]\n}",
                               NULL);
    check_that(m, "%s", text_get(&l.messages));
    assert_string_equal(language_print(&l, m, NULL), "graph @f() -> (%k) {\n"
                                                     "    const %k: i32[2,3] = [1, 2, 3, 4, 5, 6]\n"
                                                     "    const %e: i32[2,0] = []\n"
                                                     "}\n");
    language_close(&l);
}

static void attributes(void **state)
{
    (void)state;
    check_canonical(
        "graph @f() -> () {\n"
        "    %0: f32[] = every(needed=1)\n"
        "    %1: f32[] = every(%0, _, i=-1, f=0x7fc00000, b=false, s=\"a\\n\\x01\", e=red, d=bf16,"
        " is=[1, -2], fs=[0.1, 0x7f800000], ss=[\"x\", \"\"], p=f32[2] [1, 2], t=(f32[2], none), needed=0)\n"
        "    %2: (f32[], i64[]) = every(s=none, e=\"deep blue\", is=[], fs=[], ss=[],"
        " p=f32[100] uniform(seed=3), needed=5)\n"
        "    %3: i64[] = part(%2, index=1)\n"
        "}\n");
}

static void regions(void **state)
{
    (void)state;
    check_canonical("graph @f(%x: f32[2]) -> (%y) {\n"
                    "    %y: f32[2] = both(%x) { (%a: f32[2]) -> (%b)\n"
                    "        %b: f32[2] = same(%a)\n"
                    "        %0: f32[2] = both(%a) { () -> ()\n"
                    "        } { (%1: f32[2]) -> (%1)\n"
                    "            %2: f32[2] = same(%1)\n"
                    "        } !5\n"
                    "    } { (%a: f32[2]) -> (%q = %a)\n"
                    "    } ours\n"
                    "    %3: f32[2] = same(%y)\n"
                    "}\n");
}

static void long_signatures_are_broken(void **state)
{
    (void)state;
    check_canonical("graph @f(\n"
                    "        %a_name_that_is_rather_long: f32[2,3,4,5,6],\n"
                    "        %another_name_that_is_rather_long: f32[2,3,4,5,6],\n"
                    "        state %w: f32[2,3]) -> (\n"
                    "        %a_name_that_is_rather_long) {\n"
                    "}\n");
}

static void mistakes_are_located(void **state)
{
    (void)state;
    check_error("graph @f(%x: f32[2]) -> (%y) {\n"
                "    %y: f32[2] = sane(%x)\n"
                "}\n",
                "test.qir:2:18: no operator is called sane\n"
                "        %y: f32[2] = sane(%x)\n"
                "                     ^\n"
                "  try: same\n");
    check_error("graph @f(%xu: f32[2]) -> (%y) {\n\t%y: f32[2] = same(%xv) # hm\n}",
                "test.qir:2:20: no value %xv so far\n"
                "    \\x09%y: f32[2] = same(%xv) # hm\n"
                "                       ^\n"
                "  try: %xu\n");
}

static void the_same_seed_draws_the_same(void **state)
{
    (void)state;
    Language l;
    language_open(&l);
    Module *m = language_parse(&l,
                               "graph @f(state %a: f32[1000] = normal(seed=1), state %b: f32[1000] = normal(seed=1),"
                               " state %c: f32[1000] = normal(seed=2)) -> () {}",
                               NULL);
    check_that(m, "%s", text_get(&l.messages));
    const Tensor *t[3];
    for (int i = 0; i < 3; i++) {
        const ValueAttr *attr = m->graphs[0]->inputs[i]->attr;
        t[i] = payload_cached(attr->value, &l.diag);
        assert_non_null(t[i]);
    }
    assert_true(tensor_same(t[0], t[1]));
    assert_false(tensor_same(t[0], t[2]));
    double sum = 0, squares = 0;
    for (int i = 0; i < 1000; i++) {
        const double v = tensor_get_f64(t[0], i);
        sum += v;
        squares += v * v;
    }
    assert_true(fabs(sum / 1000) < 0.1);
    assert_true(fabs(squares / 1000 - 1) < 0.1);
    language_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(canonical_text_is_printed_as_it_was),
        cmocka_unit_test(types),
        cmocka_unit_test(constants),
        cmocka_unit_test(nested_lists_and_blanks),
        cmocka_unit_test(attributes),
        cmocka_unit_test(regions),
        cmocka_unit_test(long_signatures_are_broken),
        cmocka_unit_test(mistakes_are_located),
        cmocka_unit_test(the_same_seed_draws_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
