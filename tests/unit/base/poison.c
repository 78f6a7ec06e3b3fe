/* What AddressSanitizer sees of memory that is handed out in parts: exactly the bytes that were asked for may be touched,
 * and only until they are given back. */
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/heap.h"
#include "base/poison.h"
#include "unit/check.h"

#ifdef POISONS

static bool open_bytes(const void *p, size_t n)
{
    return !__asan_region_is_poisoned((void *)(uintptr_t)p, n);
}

/* Whether none of these bytes may be touched. */
static bool closed(const void *p, size_t n)
{
    const char *at = p;
    for (size_t i = 0; i < n; i++)
        if (!__asan_address_is_poisoned(at + i))
            return false;
    return true;
}

static void arenas_give_exactly_what_was_asked_for(void **state)
{
    (void)state;
    Memory m;
    Arena a;
    memory_open(&m, NULL);
    arena_open(&a, &m);
    for (size_t n = 0; n < 70; n++) {
        char *p = arena_alloc(&a, n), *room = arena_room(&a, n);
        assert_true(open_bytes(p, n) && closed(p + n, RED_ZONE));
        assert_true(open_bytes(room, n) && closed(room + n, RED_ZONE));
    }
    char *large = arena_alloc(&a, 3 << 20);
    assert_true(open_bytes(large, 3 << 20) && closed(large + (3 << 20), RED_ZONE));
    arena_close(&a);
}

static void an_arena_that_forgets_closes_what_it_gave(void **state)
{
    (void)state;
    Memory m;
    Arena a;
    memory_open(&m, NULL);
    arena_open(&a, &m);
    arena_reuse(&a);
    char *kept = arena_alloc(&a, 21);
    const ArenaMark mark = arena_mark(&a);
    char *gone = arena_alloc(&a, 100), *far = arena_alloc(&a, 50000), *behind = arena_alloc(&a, 60000);
    arena_reset(&a, mark);
    assert_true(open_bytes(kept, 21) && closed(kept + 21, RED_ZONE));
    assert_true(closed(gone, 100) && closed(far, 50000) && closed(behind, 60000)); /* freed, or waiting for the next */
    char *again = arena_alloc(&a, 100);
    assert_ptr_equal(again, gone);
    assert_true(open_bytes(again, 100) && closed(again + 100, 32));
    arena_close(&a);
}

static void an_array_that_grew_is_closed_where_it_was(void **state)
{
    (void)state;
    Memory m;
    Arena a;
    int *list = NULL;
    size_t n = 0, cap = 0;
    memory_open(&m, NULL);
    arena_open(&a, &m);
    for (; n < 8; n++) {
        GROW(&a, list, n, cap);
        list[n] = (int)n;
    }
    const int *old = list;
    GROW(&a, list, n, cap);
    assert_ptr_not_equal(old, list);
    assert_true(closed(old, n * sizeof *old) && open_bytes(list, cap * sizeof *list));
    arena_close(&a);
}

static void blocks_of_a_heap_are_closed_when_they_come_back(void **state)
{
    (void)state;
    Memory m;
    Heap h;
    for (int reuses = 0; reuses < 2; reuses++) {
        memory_open(&m, NULL);
        heap_open(&h, &m);
        if (reuses)
            heap_reuse(&h);
        for (size_t n = 1; n < 100000; n = n * 3 + 1) {
            char *one = heap_alloc(&h, n), *two = heap_alloc(&h, n);
            assert_true(open_bytes(one, n) && closed(one + n, 16) && closed(one - 16, 16));
            heap_free(&h, one);
            heap_free(&h, two);
            assert_true(closed(one, n) && closed(two, n));
            char *next = heap_alloc(&h, n);
            assert_ptr_not_equal(next, two); /* what was freed last stays closed longest */
            assert_true(open_bytes(next, n) && closed(next + n, 16));
            heap_free(&h, next);
        }
        heap_close(&h);
    }
}

static void blocks_of_the_host_have_the_size_that_was_asked_for(void **state)
{
    (void)state;
    Memory m;
    memory_open(&m, NULL);
    for (size_t n = 1; n < 200; n++) {
        char *block = memory_block(&m, n);
        assert_true(open_bytes(block, n) && closed(block + n, 8) && (uintptr_t)block % 64 == 0);
        memory_release(&m, block, n);
        assert_true(closed(block, n));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arenas_give_exactly_what_was_asked_for),
        cmocka_unit_test(an_arena_that_forgets_closes_what_it_gave),
        cmocka_unit_test(an_array_that_grew_is_closed_where_it_was),
        cmocka_unit_test(blocks_of_a_heap_are_closed_when_they_come_back),
        cmocka_unit_test(blocks_of_the_host_have_the_size_that_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void only_address_sanitizer_poisons(void **state)
{
    (void)state;
    char bytes[8];
    poison(bytes, sizeof bytes); /* nothing */
    memset(bytes, 1, sizeof bytes);
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(only_address_sanitizer_poisons) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
