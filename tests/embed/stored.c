/* A step whose weights are codes, as a host sees it: numbers, and what they are stored as. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "embed/trainee.h"

#define STORED TRAINEE_OPTIONS " --quant int8-weights"

enum { ROWS = 8, COLUMNS = 4 };

static qcc_tensor view(const Trainee *t, const char *name)
{
    qcc_tensor v = { .size = sizeof v };
    assert_int_equal(qcc_view(t->session, name, &v), QCC_OK);
    return v;
}

/* Codes times the scale of their row are the numbers, and the largest of each row has the largest code. */
static void check_weight(const Trainee *t, float w[ROWS][COLUMNS])
{
    int8_t codes[ROWS][COLUMNS];
    qcc_tensor v = view(t, "w1.codes");
    assert_int_equal(v.dtype, QCC_I8);
    memcpy(codes, v.data, sizeof codes);
    v = view(t, "w1");
    assert_int_equal(v.dtype, QCC_F32);
    memcpy(w, v.data, sizeof(float) * ROWS * COLUMNS);
    v = view(t, "w1.scale");
    assert_int_equal(v.rank, 2);
    for (int i = 0; i < ROWS; i++) {
        int most = 0;
        for (int j = 0; j < COLUMNS; j++) {
            const int code = codes[i][j];
            assert_true(code >= -127);
            most = abs(code) > most ? abs(code) : most;
            assert_true(w[i][j] == (float)code * ((const float *)v.data)[i]);
        }
        assert_int_equal(most, 127);
    }
}

static void weights_are_seen_as_numbers(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    float first[ROWS][COLUMNS], later[ROWS][COLUMNS];
    qcc_tensor v = { .size = sizeof v };
    (void)state;
    trainee_open(&t, cx, STORED);
    check_weight(&t, first);
    trainee_run(&t, 0, 5);
    check_weight(&t, later);
    assert_memory_not_equal(first, later, sizeof first);
    assert_int_equal(qcc_view(t.session, "w1.zero", &v), QCC_USAGE);
    assert_int_equal(qcc_view(t.session, "b1.codes", &v), QCC_USAGE);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void what_is_put_is_rounded_to_the_nearest(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    float w[ROWS][COLUMNS], seen[ROWS][COLUMNS];
    int64_t wrong[ROWS][COLUMNS] = { { 0 } };
    qcc_tensor given = { sizeof given, QCC_F32, 2, { ROWS, COLUMNS }, w, sizeof w };
    (void)state;
    trainee_open(&t, cx, STORED);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            w[i][j] = (float)(i + 1) * (j == 1 ? -127 : j == 2 ? 63.4f : j == 3 ? 0.6f : 2);
    assert_int_equal(qcc_put(t.session, "w1", &given), QCC_OK);
    check_weight(&t, seen);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            assert_true(seen[i][j] == (float)(i + 1) * (j == 1 ? -127 : j == 2 ? 63 : j == 3 ? 1 : 2));
    memcpy(w, seen, sizeof w); /* numbers that have codes stay what they are */
    assert_int_equal(qcc_put(t.session, "w1", &given), QCC_OK);
    check_weight(&t, seen);
    assert_memory_equal(seen, w, sizeof w);
    given = (qcc_tensor){ sizeof given, QCC_I64, 2, { ROWS, COLUMNS }, wrong, sizeof wrong };
    assert_int_equal(qcc_put(t.session, "w1", &given), QCC_USAGE);
    assert_non_null(strstr(h.text, "w1: got i64[8,4], wanted f32[8,4]"));
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void all_parameters_are_numbers(void **state)
{
    Host h = { 0 };
    Trainee t, again;
    qcc_context *cx = open_with(&h);
    float flat[FLAT], back[FLAT], w[ROWS][COLUMNS];
    (void)state;
    trainee_open(&t, cx, STORED);
    trainee_run(&t, 0, 3);
    check_weight(&t, w);
    trainee_flat(&t, flat);
    assert_memory_equal(flat, w, sizeof w);
    trainee_open(&again, cx, STORED);
    assert_int_equal(qcc_set_flat(again.session, flat, FLAT), QCC_OK);
    trainee_flat(&again, back);
    assert_memory_equal(flat, back, sizeof flat);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_seen_as_numbers),
        cmocka_unit_test(what_is_put_is_rounded_to_the_nearest),
        cmocka_unit_test(all_parameters_are_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
