/* Maps keep what was put into them, in the order it came. */
#include "base/map.h"
#include "base/rng.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#include "unit/check.h"

static void words_and_numbers_live_side_by_side(void **state)
{
    (void)state;
    Memory memory;
    Arena a;
    Map m;
    bool fresh;
    memory_open(&memory, NULL);
    arena_open(&a, &memory);
    map_open(&m, &a);
    assert_null(map_find(&m, "a"));
    map_put(&m, "a", &fresh)->value.i = 1;
    assert_true(fresh);
    map_put_u64(&m, 97, &fresh)->value.i = 2;
    assert_true(fresh);
    map_put(&m, "", &fresh)->value.i = 3;
    map_put_u64(&m, 0, &fresh)->value.i = 4;
    assert_true(fresh);
    map_put(&m, "a", &fresh)->value.i += 10;
    assert_false(fresh);
    assert_int_equal(map_find(&m, "a")->value.i, 11);
    assert_int_equal(map_find_u64(&m, 97)->value.i, 2);
    assert_int_equal(map_find_n(&m, "xyz", 0)->value.i, 3);
    assert_int_equal(map_find_u64(&m, 0)->value.i, 4);
    assert_null(map_find_n(&m, "a", 0)->key == NULL ? &m : NULL);
    assert_int_equal(m.n, 4);
    arena_close(&a);
}

/* Against a plain table: keys of all lengths, bytes of all kinds. */
static void agrees_with_a_table(void **state)
{
    (void)state;
    enum { KEYS = 3000, ROUNDS = 20000 };
    Memory memory;
    Arena a;
    Map m;
    Rng r = { 5 };
    struct {
        char bytes[24];
        size_t n;
        int64_t value;
        bool there;
    } * table;
    memory_open(&memory, NULL);
    arena_open(&a, &memory);
    table = arena_array(&a, KEYS, sizeof *table);
    map_open(&m, &a);
    for (int i = 0; i < KEYS; i++) {
        const int n = snprintf(table[i].bytes, sizeof table[i].bytes, "%d", i);
        table[i].n = (size_t)n + (size_t)(i % 10); /* zero bytes behind the digits count */
    }
    size_t count = 0;
    for (int k = 0; k < ROUNDS; k++) {
        const int64_t i = rng_below(&r, KEYS);
        if (rng_below(&r, 2)) {
            bool fresh;
            map_put_n(&m, table[i].bytes, table[i].n, &fresh)->value.i = k;
            assert_true(fresh == !table[i].there);
            count += fresh;
            table[i].there = true;
            table[i].value = k;
        }
        const MapEntry *e = map_find_n(&m, table[i].bytes, table[i].n);
        assert_true((e != NULL) == table[i].there);
        assert_true(!e || e->value.i == table[i].value);
    }
    assert_true(m.n == count && count > 2000);
    arena_close(&a);
}

static void entries_stay_in_order(void **state)
{
    (void)state;
    Memory memory;
    Arena a;
    Map m;
    memory_open(&memory, NULL);
    arena_open(&a, &memory);
    map_open(&m, &a);
    for (uint64_t i = 0; i < 1000; i++)
        map_put_u64(&m, i * i * 7919 % 10007, NULL)->value.u = i;
    uint64_t last = 0;
    for (size_t i = 0; i < m.n; i++) {
        assert_true(i == 0 || m.entries[i].value.u > last || m.entries[i].value.u >= i);
        last = m.entries[i].value.u;
    }
    for (uint64_t i = 0; i < 1000; i++)
        assert_non_null(map_find_u64(&m, i * i * 7919 % 10007));
    arena_close(&a);
}

static void equal_names_are_one_pointer(void **state)
{
    (void)state;
    Memory memory;
    Arena a;
    Names names;
    char text[16] = "weight.1";
    memory_open(&memory, NULL);
    arena_open(&a, &memory);
    names_open(&names, &a);
    const char *first = name_of(&names, text, 6);
    assert_string_equal(first, "weight");
    const char *whole = name_of(&names, text, 8);
    text[0] = 'X';
    assert_string_equal(first, "weight");
    assert_ptr_equal(name_of(&names, "weight", 6), first);
    assert_ptr_equal(name_of(&names, "weight.1", 8), whole);
    assert_ptr_not_equal(whole, first);
    arena_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_numbers_live_side_by_side),
        cmocka_unit_test(agrees_with_a_table),
        cmocka_unit_test(entries_stay_in_order),
        cmocka_unit_test(equal_names_are_one_pointer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
