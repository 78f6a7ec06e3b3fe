/* What is asked to stop: loops that allocate nothing look, kernels leave out what has not begun, undoing goes on. */
#include "base/min_cut.h"
#include "ops/machine/machine.h"
#include "testing.h"

#include <math.h>

#include "unit/check.h"

/* ---- memory ---- */

typedef struct Undone {
    Memory *memory;
    int n;
} Undone;

static void undo(void *thing)
{
    Undone *u = thing;
    Arena a;
    u->n++;
    arena_open(&a, u->memory); /* what undoes may allocate, and is not stopped itself */
    arena_alloc(&a, 100000);
    arena_close(&a);
    u->n++;
}

static Status allocate_forever(void *arg)
{
    Undone *u = arg;
    Cleanup c;
    Arena a;
    arena_open(&a, u->memory);
    cleanup_push(u->memory, &c, undo, u);
    *u->memory->stop = 1;
    arena_alloc(&a, 1);
    return OK;
}

static Status hold_and_allocate(void *arg)
{
    Undone *u = arg;
    Arena a;
    u->memory->held++;
    arena_open(&a, u->memory);
    *u->memory->stop = 1;
    arena_alloc(&a, 100000);
    arena_close(&a);
    u->memory->held--;
    return OK;
}

static void the_next_allocation_ends_the_call(void **state)
{
    (void)state;
    Memory m;
    _Atomic int stop = 0;
    memory_open(&m, NULL);
    m.stop = &stop;
    Undone u = { &m, 0 };
    assert_int_equal(guarded(&m, allocate_forever, &u), INTERRUPTED);
    assert_int_equal(u.n, 2);
    assert_int_equal(m.used, 0);
    assert_int_equal(guarded(&m, hold_and_allocate, &u), OK);
    assert_int_equal(m.held, 0);
    assert_false(memory_stopped(&m)); /* outside of calls nobody is stopped */
}

/* ---- loops ---- */

enum { CHAIN = 1000 };

static Status cut(void *arg)
{
    Arena *a = arg;
    MinCut *c = min_cut_open(a, CHAIN);
    for (size_t i = 0; i + 1 < CHAIN; i++)
        min_cut_edge(c, i, i + 1, 1, 1);
    min_cut_terminal(c, 0, 5, 0);
    min_cut_terminal(c, CHAIN - 1, 0, 5);
    *a->memory->stop = 1;
    a->memory->held = 0;
    min_cut_run(c);
    return OK;
}

static void a_cut_ends(void **state)
{
    (void)state;
    Memory m;
    Arena a;
    _Atomic int stop = 0;
    memory_open(&m, NULL);
    m.stop = &stop;
    arena_open(&a, &m);
    assert_int_equal(guarded(&m, cut, &a), INTERRUPTED);
    arena_close(&a);
}

/* ---- kernels ---- */

typedef struct Pieces {
    _Atomic int stop;
    int begun, stop_at;
    int64_t done;
    bool gap;
} Pieces;

static void one_piece(void *arg, int64_t begin, int64_t end, int worker)
{
    Pieces *p = arg;
    (void)worker;
    p->gap |= begin != p->done;
    p->done = end;
    p->stop = ++p->begun == p->stop_at;
}

static Status run_pieces(Context *c, Pieces *p, int64_t elements)
{
    const EvalOptions options = { .stop = &p->stop };
    const int64_t dims[] = { elements };
    Machine m = { .ir = &c->ir, .options = &options };
    const Tensor *x = tensor_alloc(&c->heap, type_tensor(&c->ir.types, U8, 1, dims));
    Eval e = { .machine = &m, .ir = &c->ir, .n_in = 1, .in = &x };
    eval_parallel(&e, elements, one_piece, p);
    tensor_drop(&c->heap, (Tensor *)(uintptr_t)x);
    return OK;
}

static Status kernels(void *arg)
{
    enum { LARGE = 1 << 20, SMALL = 1000 };
    Context *c = arg;
    Pieces small = { .stop_at = 0 }, large = { .stop_at = 0 }, cut_off = { .stop_at = 5 };
    TRY(run_pieces(c, &small, SMALL));
    assert_true(small.begun == 1 && small.done == SMALL && !small.gap);
    TRY(run_pieces(c, &large, LARGE));
    assert_true(large.begun >= 60 && large.begun <= 70 && large.done == LARGE && !large.gap);
    TRY(run_pieces(c, &cut_off, LARGE));
    assert_int_equal(cut_off.begun, 5);
    assert_true(cut_off.done < LARGE / 10);
    return OK;
}

static void kernels_leave_out_the_rest(void **state)
{
    (void)state;
    with_context(kernels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_allocation_ends_the_call),
        cmocka_unit_test(a_cut_ends),
        cmocka_unit_test(kernels_leave_out_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
