/* Fused graphs: random ones have the values of what they were made from, and every tape the bits of the evaluator, at each
 * level and with any number of threads. */
#include "passes/engine/trial.h"
#include "support/random_graph.h"
#include "support/samples.h"
#include "support/tape_check.h"
#include "testing.h"

enum { GRAPHS = 400 };

/* ---- their tapes ---- */

static Status check_random(void *context)
{
    TapeCheck w = { .c = context };
    const Pass *fuse = pass_find("grow-fusion"), *dead = pass_find("drop-dead");
    int64_t graphs = 0, alone = 0;
    for (uint64_t k = 0; k < GRAPHS; k++) {
        const uint64_t seed = seed_of("tapes", k);
        Graph *g = random_graph(w.c, seed, false);
        if (!g)
            continue;
        Graph *before = graph_copy(g, &w.c->arena);
        TRY(pass_run(fuse, g, NULL));
        TRY(pass_run(dead, g, NULL));
        bool ran;
        Arena scratch;
        arena_open(&scratch, &w.c->memory);
        const char *difference = trial_compare(before, g, EXACT, seed, &scratch, &ran);
        if (difference)
            print_error("graph %d: %s\n", (int)k, difference);
        assert_null(difference);
        arena_close(&scratch);
        if (!ran)
            continue; /* a graph that the evaluator refuses */
        assert_true(tape_check(&w, g, seed));
        graphs++;
        for (const Node *n = g->first; n; n = n->next)
            alone += n->op != OP_fused && n->op != OP_part && n->op != OP_const;
    }
    printf("%d graphs, %d tapes with %d folds over blocks, %d of channels, %d in pieces, %d calls alone\n", (int)graphs,
           (int)w.tapes, (int)w.folded, (int)w.channels, (int)w.pieces, (int)alone);
    assert_false(w.wrong);
    assert_true(graphs > GRAPHS / 2 && w.tapes > graphs && w.folded > 50 && alone < graphs);
    return OK;
}

/* ---- composites, opened and put together anew ---- */

typedef struct Opened {
    CardTour tour;
    int64_t graphs, tapes;
} Opened;

static Status open_composites(void *thing)
{
    static const char *const passes[] = { "expand", "merge-equals", "grow-fusion", "drop-dead" };
    Opened *o = thing;
    Context *c = o->tour.c;
    for (int v = 0; v < o->tour.def->n_variants && o->tour.def->expand; v++) {
        Graph *g = sample_graph(c, o->tour.def, v);
        if (!g)
            continue;
        bool ran;
        Graph *before = graph_copy(g, &c->arena);
        for (size_t i = 0; i < COUNT(passes); i++)
            if (pass_run(pass_find(passes[i]), g, NULL) != OK) {
                print_error("%s, variant %d: %s: %s\n", o->tour.def->name, v, passes[i], c->last);
                return INVALID;
            }
        const char *difference = trial_compare(before, g, EXACT, (uint64_t)v, &c->arena, &ran);
        if (difference)
            print_error("%s, variant %d: %s\n", o->tour.def->name, v, difference);
        if (difference)
            return MISMATCH;
        TapeCheck w = { .c = c };
        if (ran)
            assert_true(tape_check(&w, g, (uint64_t)v));
        if (w.wrong)
            print_error("%s, variant %d\n", o->tour.def->name, v);
        o->graphs += ran;
        o->tapes += w.tapes;
        if (w.wrong)
            return MISMATCH;
    }
    return OK;
}

static void composites(void **state)
{
    Opened o = { .graphs = 0 };
    (void)state;
    assert_int_equal(each_card(&o.tour, open_composites), 0);
    printf("%d composites, %d tapes\n", (int)o.graphs, (int)o.tapes);
    assert_true(o.graphs > 300 && o.tapes > o.graphs);
}

static void random_graphs(void **state)
{
    (void)state;
    with_context(check_random);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_graphs), cmocka_unit_test(composites) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
