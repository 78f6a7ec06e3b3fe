/* Split masters: the two halves give every number back; hi is the nearest bf16, half a unit away from zero.
 *
 *     test_unit_master          a sample of all patterns, every tie, both ends
 *     test_unit_master all      all 2^32 patterns */
#include "base/half.h"
#include "ops/card/cards.h"
#include "support/calls.h"

static bool is_nan(uint32_t bits)
{
    return (bits & 0x7fffffff) > 0x7f800000;
}

static bool splits(uint32_t bits)
{
    const SplitMaster m = master_split_f32(half_f32(bits));
    const uint32_t back = half_bits32(master_join_f32(m.hi, m.lo));
    return is_nan(bits) ? is_nan(back) && (m.hi & 0x7fff) > 0x7f80 : back == bits;
}

static void check_pattern(uint32_t bits)
{
    if (splits(bits))
        return;
    print_error("%08x does not come back\n", bits);
    assert_true(false);
}

static void numbers_come_back(void **state)
{
    (void)state;
    for (uint32_t hi = 0; hi < 1 << 16; hi++) {
        static const uint16_t lows[] = { 0, 1, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff };
        for (size_t i = 0; i < COUNT(lows); i++)
            check_pattern(hi << 16 | lows[i]);
        check_pattern(hi << 16 | (hi * 40503 & 0xffff));
    }
}

static void all_numbers_come_back(void **state)
{
    (void)state;
    uint32_t bits = 0;
    do
        check_pattern(bits);
    while (++bits);
}

static void hi_is_the_nearest(void **state)
{
    (void)state;
    for (uint32_t a = 0; a < 0x7f800000; a += 997) {
        const SplitMaster m = master_split_f32(half_f32(a));
        const uint16_t even = bf16_from_f32(half_f32(a));
        const bool tie = (a & 0xffff) == 0x8000;
        assert_int_equal(m.hi, tie ? (a >> 16) + 1 : even);
        assert_int_equal(master_split_f32(half_f32(a | 0x80000000)).hi, m.hi | 0x8000);
    }
    assert_int_equal(master_split_f32(half_f32(0x3f808000)).hi, 0x3f81);
    assert_int_equal(master_split_f32(half_f32(0x3f808000)).lo, -32768);
    assert_int_equal(master_split_f32(half_f32(0x7f7fffff)).hi,
                     0x7f80); /* the largest number: infinite, and comes back */
}

static Status words_do_the_same(void *arg)
{
    Context *c = arg;
    Rng rng = { 1 };
    Build b = fresh(c);
    Node *w = sample_tensor(&b, &rng, F32, 2, (const int64_t[]){ 40, 50 }, -3, 3);
    Node *halves = build_node_n(&b, OP_master_split, NULL, 1, &w, 2);
    Node *hi = build_part(&b, halves, 0), *lo = build_part(&b, halves, 1);
    assert_int_equal(hi->type->dtype, BF16);
    assert_int_equal(lo->type->dtype, I16);
    Tensor *y = value_of(c, CALL(&b, master_join, hi, lo), NULL);
    assert_true(tensor_same(constant(w), y));
    tensor_drop(&c->heap, y);
    expect_refused(c, &b, CALL(&b, master_join, hi, hi), "operand 1 is bf16[40,50], wanted is i16[40,50]");
    expect_refused(c, &b, CALL(&b, master_split, hi), "wanted is f32[..]");
    return OK;
}

static void words_split_and_join(void **state)
{
    (void)state;
    with_context(words_do_the_same);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest some[] = {
        cmocka_unit_test(numbers_come_back),
        cmocka_unit_test(hi_is_the_nearest),
        cmocka_unit_test(words_split_and_join),
    };
    const struct CMUnitTest all[] = { cmocka_unit_test(all_numbers_come_back) };
    if (argc > 1 && strcmp(argv[1], "all") == 0)
        return cmocka_run_group_tests(all, NULL, NULL);
    return cmocka_run_group_tests(some, NULL, NULL);
}
