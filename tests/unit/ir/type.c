/* Types: interned, printed, compared where some of them is unknown. */
#include "support/language.h"

#include <string.h>

#include "base/pack.h"
#include "unit/check.h"

static const Type *tensor(Language *l, DType d, int rank, int64_t a, int64_t b)
{
    return type_tensor(&l->ir.types, d, rank, (const int64_t[]){ a, b });
}

static void equal_types_are_one(void **state)
{
    (void)state;
    Language l;
    language_open(&l);
    Types *t = &l.ir.types;
    const Type *a = tensor(&l, F32, 2, 3, 4);
    assert_ptr_equal(a, tensor(&l, F32, 2, 3, 4));
    assert_ptr_not_equal(a, tensor(&l, F32, 2, 4, 3));
    assert_ptr_not_equal(a, tensor(&l, F64, 2, 3, 4));
    assert_ptr_equal(type_tuple(t, 2, (const Type *[]){ a, a }), type_tuple(t, 2, (const Type *[]){ a, a }));
    assert_ptr_not_equal(type_seq(t, a), type_optional(t, a));
    assert_ptr_equal(type_opaque(t, "map"), type_opaque(t, "map"));
    assert_ptr_not_equal(type_opaque(t, "map"), type_opaque(t, "sparse"));
    assert_ptr_equal(type_with_dtype(t, a, BF16), tensor(&l, BF16, 2, 3, 4));
    language_close(&l);
}

static void sizes(void **state)
{
    (void)state;
    Language l;
    size_t bytes;
    language_open(&l);
    assert_int_equal(type_elements(tensor(&l, F32, 2, 3, 4)), 12);
    assert_int_equal(type_elements(tensor(&l, F32, 2, 0, DIM_UNKNOWN)), 0);
    assert_int_equal(type_elements(tensor(&l, F32, 2, 3, DIM_UNKNOWN)), -1);
    assert_int_equal(type_elements(type_unranked(&l.ir.types, F32)), -1);
    assert_int_equal(type_elements(tensor(&l, F32, 2, INT64_MAX, 2)), -1);
    assert_int_equal(type_elements(type_scalar(&l.ir.types, F32)), 1);
    assert_true(type_bytes(tensor(&l, I4, 1, 3, 0), &bytes) && bytes == 2);
    assert_true(type_bytes(tensor(&l, U2, 1, 5, 0), &bytes) && bytes == 2);
    assert_true(type_bytes(tensor(&l, F64, 2, 3, 4), &bytes) && bytes == 96);
    assert_false(type_bytes(tensor(&l, F64, 1, INT64_MAX / 2, 0), &bytes));
    assert_false(type_bytes(type_none(&l.ir.types), &bytes));
    language_close(&l);
}

static void check_pair(Language *l, const Type *a, const Type *b, bool agrees, const Type *meet, const Type *join)
{
    assert_int_equal(type_agrees(a, b), agrees);
    assert_int_equal(type_agrees(b, a), agrees);
    if (agrees)
        assert_ptr_equal(type_meet(&l->ir.types, a, b), meet);
    assert_ptr_equal(type_join(&l->ir.types, a, b), join);
}

static void what_is_unknown_agrees(void **state)
{
    (void)state;
    Language l;
    language_open(&l);
    const Type *known = tensor(&l, F32, 2, 3, 4), *half = tensor(&l, F32, 2, 3, DIM_UNKNOWN),
               *other = tensor(&l, F32, 2, DIM_UNKNOWN, 4), *loose = type_unranked(&l.ir.types, F32),
               *open = tensor(&l, F32, 2, DIM_UNKNOWN, DIM_UNKNOWN);
    check_pair(&l, known, half, true, known, half);
    check_pair(&l, half, other, true, known, open);
    check_pair(&l, known, loose, true, known, loose);
    check_pair(&l, known, tensor(&l, F32, 2, 3, 5), false, NULL, half);
    check_pair(&l, known, tensor(&l, F32, 1, 3, 0), false, NULL, loose);
    check_pair(&l, known, tensor(&l, F16, 2, 3, 4), false, NULL, NULL);
    check_pair(&l, known, type_none(&l.ir.types), false, NULL, NULL);
    assert_true(type_known(known));
    assert_false(type_known(half));
    assert_false(type_known(loose));
    language_close(&l);
}

/* Tuples of any width are compared part by part, nests as deep as text allows too. */
static void wide_and_deep(void **state)
{
    (void)state;
    enum { WIDE = 1000, DEEP = 32 };
    Language l;
    language_open(&l);
    const Type *known[WIDE], *open[WIDE];
    for (int i = 0; i < WIDE; i++) {
        known[i] = tensor(&l, F32, 1, i, 0);
        open[i] = tensor(&l, F32, 1, DIM_UNKNOWN, 0);
    }
    const Type *a = type_tuple(&l.ir.types, WIDE, known), *b = type_tuple(&l.ir.types, WIDE, open);
    assert_true(type_agrees(a, b));
    assert_true(type_known(a));
    assert_false(type_known(b));
    known[WIDE - 1] = tensor(&l, F16, 1, 5, 0);
    assert_false(type_agrees(type_tuple(&l.ir.types, WIDE, known), b));
    for (int i = 0; i < DEEP; i++) {
        a = type_tuple(&l.ir.types, 2, (const Type *[]){ a, a });
        b = type_tuple(&l.ir.types, 2, (const Type *[]){ b, b });
        if (i < 4) /* the work doubles with every level */
            assert_true(type_agrees(a, b));
    }
    assert_true(type_agrees(type_seq(&l.ir.types, known[3]), type_seq(&l.ir.types, open[3])));
    language_close(&l);
}

static void text_of_types(void **state)
{
    (void)state;
    Language l;
    language_open(&l);
    Types *t = &l.ir.types;
    const Type *x = tensor(&l, F32, 2, 2, DIM_UNKNOWN), *y = type_unranked(t, I64);
    assert_string_equal(type_text(&l.arena, x), "f32[2,?]");
    assert_string_equal(type_text(&l.arena, type_tuple(t, 2, (const Type *[]){ x, y })), "(f32[2,?], i64[*])");
    assert_string_equal(type_text(&l.arena, type_seq(t, type_optional(t, type_scalar(t, BF16)))),
                        "seq(optional(bf16[]))");
    assert_string_equal(type_text(&l.arena, type_opaque(t, "a \"b\"")), "opaque(\"a \\\"b\\\"\")");
    assert_string_equal(type_text(&l.arena, type_none(t)), "none");
    for (int d = 0; d < DTYPE_COUNT; d++) {
        DType back;
        assert_true(dtype_from_name(str(dtype_name((DType)d)), &back) && back == (DType)d);
        assert_true(dtype_from_onnx(dtype_onnx((DType)d), &back) && back == (DType)d);
    }
    language_close(&l);
}

/* a holds b: every value of b is one of a.  Against what the conversions themselves say, value by value. */
static void inclusion_is_what_conversion_keeps(void **state)
{
    (void)state;
    Language l;
    language_open(&l);
    int pairs = 0;
    for (int from = 0; from < DTYPE_COUNT; from++) {
        const int bits = dtype_bits((DType)from);
        if (from == STRING || bits > 16)
            continue;
        const int64_t n = (int64_t)1 << bits;
        Tensor *all = tensor_new(&l.arena, tensor(&l, (DType)from, 1, from == BOOL ? 2 : n, 0));
        if (bits >= 8) {
            for (int64_t i = 0; i < tensor_elements(all); i++)
                memcpy((char *)all->data + i * bits / 8, &i, (size_t)bits / 8);
        } else {
            for (int64_t i = 0; i < n; i++)
                packed_put_bits(all->data, (size_t)i, (unsigned)bits, (uint8_t)i);
        }
        for (int to = 0; to < DTYPE_COUNT; to++) {
            if (to == STRING || to == from)
                continue;
            bool kept = true;
            Tensor *one = tensor_new(&l.arena, tensor(&l, (DType)to, 1, 1, 0));
            for (int64_t i = 0; kept && i < tensor_elements(all); i++) {
                const double v = tensor_get_f64(all, i);
                tensor_set_f64(one, 0, v);
                const double w = tensor_get_f64(one, 0);
                kept = memcmp(&v, &w, sizeof v) == 0 || (v != v && w != w);
            }
            check_that(dtype_holds((DType)to, (DType)from) == kept, "%s in %s", dtype_name((DType)from),
                       dtype_name((DType)to));
            pairs++;
        }
    }
    assert_true(pairs > 200);
    language_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_types_are_one),    cmocka_unit_test(sizes),
        cmocka_unit_test(what_is_unknown_agrees), cmocka_unit_test(wide_and_deep),
        cmocka_unit_test(text_of_types),          cmocka_unit_test(inclusion_is_what_conversion_keeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
