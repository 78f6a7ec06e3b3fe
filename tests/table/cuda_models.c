/* label: slow */
/* The kernels of the training steps of stored models, run on this machine thread by thread: the bits of the evaluator.
 * Regions that have the same text run once. */
#include "support/cuda_host.h"
#include "support/lowered_graphs.h"
#include "support/seed.h"

static int64_t graphs, ran, over;
static Map known;

static Status visit(Stored *s, Graph *g, void *user)
{
    CudaHost h;
    TapeCheck w = { .c = &s->c };
    (void)user;
    cuda_host_open(&h, &s->c, "models");
    h.known = &known;
    if (!tape_values(&w, g, seed_of(s->name, 0)))
        return OK;
    cuda_host_add(&h, &w, g);
    cuda_host_run(&h);
    graphs++;
    ran += h.ran;
    over += h.over;
    if (h.wrong || h.refused)
        STORED_SAY(s, "%s\n", g->name);
    return h.wrong || h.refused ? MISMATCH : OK;
}

static void stored_models(void **state)
{
    size_t seen = 0;
    Memory memory;
    Arena arena; /* lives as long as the test */
    (void)state;
    if (!cuda_host_there())
        skip();
    memory_open(&memory, NULL);
    arena_open(&arena, &memory);
    map_open(&known, &arena);
    assert_int_equal(lowered_graphs(visit, NULL, &seen), 0);
    printf("%zu models, %d graphs, %d regions, %d runs over arguments\n", seen, (int)graphs, (int)ran, (int)over);
    assert_true(seen > 50 && graphs > 150 && ran > 400 && over > 400);
    arena_close(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(stored_models) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
