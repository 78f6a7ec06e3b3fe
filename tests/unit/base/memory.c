/* Memory, arenas and heaps: what is asked for is there, what fails jumps to its landing, and all comes back. */
#include "base/arena.h"
#include "base/heap.h"
#include "base/rng.h"

#include <string.h>

#include "unit/check.h"

static void arenas_give_zeroed_aligned_bytes(void **state)
{
    (void)state;
    Memory m;
    Arena a;
    Rng r = { 1 };
    memory_open(&m, NULL);
    arena_open(&a, &m);
    for (int i = 0; i < 2000; i++) {
        const size_t n = (size_t)rng_below(&r, i % 100 ? 300 : 100000);
        unsigned char *p = arena_alloc(&a, n);
        assert_true((uintptr_t)p % 16 == 0);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(p[k], 0);
        memset(p, 0xff, n);
    }
    assert_true(m.used > 1000000);
    arena_close(&a);
    assert_true(m.used == 0);
    assert_true(m.peak > 1000000);
}

static void a_mark_forgets_what_came_behind(void **state)
{
    (void)state;
    Memory m;
    Arena a;
    memory_open(&m, NULL);
    arena_open(&a, &m);
    char *kept = arena_string(&a, "kept");
    const ArenaMark mark = arena_mark(&a);
    const uint64_t used = m.used;
    char *first = arena_alloc(&a, 8);
    for (int i = 0; i < 100; i++)
        arena_alloc(&a, 100000);
    arena_reset(&a, mark);
    assert_true(m.used == used);
    assert_ptr_equal(arena_alloc(&a, 8), first);
    assert_string_equal(kept, "kept");
    arena_close(&a);
    assert_true(m.used == 0);
}

static void growing_arrays_keep_their_elements(void **state)
{
    (void)state;
    Memory m;
    Arena a;
    int *v = NULL;
    size_t n = 0, cap = 0;
    memory_open(&m, NULL);
    arena_open(&a, &m);
    for (int i = 0; i < 10000; i++) {
        GROW(&a, v, n, cap);
        v[n++] = i;
    }
    for (int i = 0; i < 10000; i++)
        assert_int_equal(v[i], i);
    assert_string_equal(arena_printf(&a, "%d-%s", 7, "x"), "7-x");
    arena_close(&a);
}

static void heaps_take_blocks_back_in_any_order(void **state)
{
    (void)state;
    Memory m;
    Heap h;
    Rng r = { 2 };
    void *blocks[64] = { 0 };
    memory_open(&m, NULL);
    heap_open(&h, &m);
    for (int i = 0; i < 5000; i++) {
        const size_t k = (size_t)rng_below(&r, 64);
        heap_free(&h, blocks[k]);
        const size_t n = (size_t)rng_below(&r, 1000);
        blocks[k] = rng_below(&r, 3) ? heap_alloc(&h, n) : NULL;
        assert_true((uintptr_t)blocks[k] % 64 == 0);
        if (blocks[k])
            memset(blocks[k], 0xaa, n);
    }
    heap_close(&h);
    assert_true(m.used == 0);
}

/* ---- where the lack of memory goes ---- */

typedef struct Work {
    Memory m;
    int undone[8], n_undone;
    bool inner, after;
} Work;

static void undo_number(void *thing)
{
    Work *w = *(Work **)thing;
    w->undone[w->n_undone++] = (int)(((void **)thing)[1] != NULL);
}

static Status inner(void *arg)
{
    Work *w = arg;
    Arena a;
    Cleanup c;
    void *thing[2] = { w, NULL };
    arena_open(&a, &w->m);
    cleanup_push(&w->m, &c, undo_number, thing);
    w->inner = true;
    arena_alloc(&a, (size_t)1 << 40); /* the budget says no */
    w->after = true;
    return OK;
}

static Status outer(void *arg)
{
    Work *w = arg;
    Arena a;
    Heap h;
    Cleanup c;
    void *thing[2] = { w, w };
    arena_open(&a, &w->m);
    heap_open(&h, &w->m);
    heap_alloc(&h, 100);
    cleanup_push(&w->m, &c, undo_number, thing);
    const Status status = guarded(&w->m, inner, w);
    assert_int_equal(w->n_undone, 1); /* the inner one alone */
    strcpy(arena_alloc(&a, 8), "alive");
    heap_alloc(&h, (size_t)1 << 40);
    return status;
}

static void a_jump_lands_at_the_innermost_guard(void **state)
{
    (void)state;
    Work w = { .after = false };
    memory_open(&w.m, NULL);
    w.m.budget = (uint64_t)1 << 30;
    assert_int_equal(guarded(&w.m, outer, &w), NO_MEMORY);
    assert_true(w.inner && !w.after);
    assert_int_equal(w.n_undone, 2);
    assert_int_equal(w.undone[0], 0);
    assert_int_equal(w.undone[1], 1);
    assert_true(w.m.used == 0);
    assert_null(w.m.landing);
}

static Status some_work(void *arg)
{
    Memory *m = arg;
    Arena a, b;
    Heap h;
    arena_open(&a, m);
    heap_open(&h, m);
    arena_open(&b, m);
    for (int i = 0; i < 20; i++) {
        arena_alloc(&a, 10000);
        arena_alloc(&b, 10);
        heap_alloc(&h, 10);
    }
    arena_close(&a);
    heap_close(&h);
    arena_close(&b);
    return OK;
}

static void every_request_may_fail(void **state)
{
    (void)state;
    Memory m;
    uint64_t failed = 0;
    memory_open(&m, NULL);
    for (;; failed++) {
        m.requests = 0;
        m.fail_at = failed + 1;
        if (guarded(&m, some_work, &m) == OK)
            break;
        assert_true(m.used == 0);
        assert_ptr_equal(m.cleanups.next, &m.cleanups);
    }
    assert_true(failed > 20);
    assert_true(m.used == 0);
}

static Status overflowing(void *arg)
{
    Arena a;
    arena_open(&a, arg);
    arena_array(&a, SIZE_MAX / 2, 3);
    return OK;
}

static void products_that_overflow_are_no_memory(void **state)
{
    (void)state;
    Memory m;
    memory_open(&m, NULL);
    assert_int_equal(guarded(&m, overflowing, &m), NO_MEMORY);
    assert_null(memory_try_block(&m, SIZE_MAX));
    assert_true(m.used == 0);
}

static Status keep_one(void *arg)
{
    Arena *a = arg;
    arena_keep(a);
    arena_string(a, "kept");
    memory_exhausted(a->memory);
}

static Status close_one(void *arg)
{
    Arena *a = arg, own;
    arena_open(&own, a->memory);
    arena_string(&own, "gone");
    arena_close(a);
    memory_exhausted(own.memory);
}

static void what_was_there_before_may_go_inside(void **state)
{
    (void)state;
    Memory m;
    Arena older, a;
    memory_open(&m, NULL);
    arena_open(&older, &m);
    arena_string(&older, "stays");
    const uint64_t used = m.used;
    arena_open(&a, &m);
    arena_string(&a, "goes");
    assert_int_equal(guarded(&m, close_one, &a), NO_MEMORY);
    assert_true(m.used == used);
    arena_close(&older);
    assert_true(m.used == 0);
}

static void what_is_kept_survives_a_jump(void **state)
{
    (void)state;
    Memory m;
    Arena a;
    memory_open(&m, NULL);
    arena_open(&a, &m);
    assert_int_equal(guarded(&m, keep_one, &a), NO_MEMORY);
    assert_true(m.used > 0);
    arena_close(&a);
    assert_true(m.used == 0);
}

/* ---- a host's own allocator ---- */

typedef struct Host {
    uint64_t blocks, bytes;
    _Alignas(64) char pool[1 << 16];
    size_t at;
} Host;

static void *host_take(void *user, size_t size)
{
    Host *h = user;
    const size_t need = (size + 63) / 64 * 64;
    if (need > sizeof h->pool - h->at)
        return NULL;
    h->at += need;
    h->blocks++;
    h->bytes += size;
    return h->pool + h->at - need;
}

static void host_give(void *user, void *block, size_t size)
{
    Host *h = user;
    (void)block;
    h->blocks--;
    h->bytes -= size;
}

static void hosts_see_every_block_come_back(void **state)
{
    (void)state;
    static Host host;
    Memory m;
    Arena a;
    memory_open(&m, &(Allocator){ host_take, host_give, &host });
    arena_open(&a, &m);
    arena_alloc(&a, 100);
    arena_alloc(&a, 10000);
    assert_int_equal(host.blocks, 2);
    assert_true(host.bytes == m.used);
    arena_close(&a);
    assert_int_equal(host.blocks, 0);
    assert_int_equal(host.bytes, 0);
}

static Status stumble(void *arg)
{
    BUG_IF(arg, true);
    return OK;
}

static void mistakes_of_ours_are_answered(void **state)
{
    Memory m;
    (void)state, (void)stumble;
#ifdef QCC_DEBUG
    (void)m;
    skip(); /* debug builds abort */
#else
    memory_open(&m, NULL);
    assert_int_equal(guarded(&m, stumble, &m), INTERNAL);
    assert_non_null(strstr(m.mistake, "tests/unit/base/memory.c:"));
    assert_true(m.mistake[0] != '/');
#endif
}

/* Blocks of many sizes come and go: none is given twice, the host is asked little, and all goes back in the end. */
static void blocks_wait_for_the_next_request(void **state)
{
    (void)state;
    enum { BLOCKS = 40 };
    Memory m;
    Heap h;
    Rng r = { 4 };
    unsigned char *blocks[BLOCKS] = { NULL };
    size_t sizes[BLOCKS] = { 0 };
    memory_open(&m, NULL);
    heap_open(&h, &m);
    blocks[0] = heap_alloc(&h, sizes[0] = 5000); /* from before */
    memset(blocks[0], 1, sizes[0]);
    heap_reuse(&h);
    for (int i = 0; i < 1500; i++) {
        const size_t k = (size_t)rng_below(&r, BLOCKS), n = (size_t)rng_range(&r, 1, 300) * (i % 7 ? 1024 : 1);
        for (size_t at = 0; blocks[k] && at < sizes[k]; at += 61)
            assert_int_equal(blocks[k][at], k + 1);
        heap_free(&h, blocks[k]);
        blocks[k] = heap_alloc(&h, sizes[k] = n);
        assert_int_equal((uintptr_t)blocks[k] % 64, 0);
        memset(blocks[k], (int)k + 1, n);
    }
    assert_true(m.requests < 700);
    m.budget = m.used + 1000; /* what waits makes room for what is asked */
    const uint64_t used = m.used;
    for (size_t k = 0; k < BLOCKS; k++)
        heap_free(&h, blocks[k]);
    assert_true(m.used <= used);
    assert_non_null(heap_alloc(&h, (size_t)used / 2));
    heap_close(&h);
    assert_true(m.used == 0);
}

static void a_chunk_waits_for_the_next_request(void **state)
{
    (void)state;
    Memory m;
    Arena a;
    memory_open(&m, NULL);
    arena_open(&a, &m);
    arena_reuse(&a);
    const ArenaMark mark = arena_mark(&a);
    memset(arena_room(&a, 3 << 20), 0xff, 3 << 20);
    for (int i = 0; i < 100; i++) {
        arena_reset(&a, mark);
        const unsigned char *p = arena_alloc(&a, (size_t)2 << 20);
        for (size_t k = 0; k < (size_t)2 << 20; k += 4096)
            assert_int_equal(p[k], 0);
    }
    assert_int_equal(m.requests, 1);
    arena_close(&a);
    assert_true(m.used == 0);
}

static void several_chunks_come_as_one(void **state)
{
    (void)state;
    Memory m;
    Arena a;
    size_t after_two = 0;
    memory_open(&m, NULL);
    arena_open(&a, &m);
    arena_reuse(&a);
    const ArenaMark mark = arena_mark(&a);
    for (int i = 0; i < 50; i++) {
        memset(arena_room(&a, 2 << 20), 0xff, 2 << 20);
        memset(arena_room(&a, 5 << 20), 0xff, 5 << 20);
        memset(arena_room(&a, 3 << 20), 0xff, 3 << 20);
        assert_true(m.used < (size_t)11 << 20);
        arena_reset(&a, mark);
        after_two = i == 1 ? m.requests : after_two;
    }
    assert_int_equal(m.requests, after_two);
    arena_close(&a);
    assert_true(m.used == 0);
}

/* In pages that are given back and at both ends of them, from anywhere to anywhere, and nothing beside. */
static void what_is_made_zero_is_zero(void **state)
{
    enum { BYTES = 3 << 20 };
    (void)state;
    Memory m;
    Heap h;
    Rng r = { 5 };
    memory_open(&m, NULL);
    heap_open(&h, &m);
    unsigned char *p = heap_alloc(&h, BYTES);
    for (int i = 0; i < 20; i++) {
        const size_t begin = (size_t)rng_below(&r, i % 2 ? BYTES : 9000),
                     end = begin + (size_t)rng_below(&r, BYTES - begin);
        size_t wrong = 0;
        memset(p, 0xff, BYTES);
        memory_zero(&m, p + begin, end - begin);
        for (size_t k = 0; k < BYTES; k++)
            wrong += p[k] != (k >= begin && k < end ? 0 : 0xff);
        assert_int_equal(wrong, 0);
    }
    heap_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_made_zero_is_zero),
        cmocka_unit_test(mistakes_of_ours_are_answered),
        cmocka_unit_test(arenas_give_zeroed_aligned_bytes),
        cmocka_unit_test(a_mark_forgets_what_came_behind),
        cmocka_unit_test(growing_arrays_keep_their_elements),
        cmocka_unit_test(heaps_take_blocks_back_in_any_order),
        cmocka_unit_test(blocks_wait_for_the_next_request),
        cmocka_unit_test(a_chunk_waits_for_the_next_request),
        cmocka_unit_test(several_chunks_come_as_one),
        cmocka_unit_test(a_jump_lands_at_the_innermost_guard),
        cmocka_unit_test(every_request_may_fail),
        cmocka_unit_test(products_that_overflow_are_no_memory),
        cmocka_unit_test(what_is_kept_survives_a_jump),
        cmocka_unit_test(what_was_there_before_may_go_inside),
        cmocka_unit_test(hosts_see_every_block_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
