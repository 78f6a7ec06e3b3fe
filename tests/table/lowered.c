/* The models of tests/data/exports as training steps, lowered: the same values in every bit, tapes that agree with the evaluator, and a
 * plan in which nothing overlaps and little is wasted; for time, for memory in three ways, and with blocks of any size. */
#include "api/make/step.h"
#include "ir/verify.h"
#include "passes/engine/trial.h"
#include "passes/lower/make_again.h"
#include "passes/lower/plan_memory.h"
#include "passes/pipelines.h"
#include "support/seed.h"
#include "support/stored.h"
#include "support/tape_check.h"

typedef struct Case {
    Stored *s;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
} Case;

#ifdef SWEEP /* lowered_sweep.c: borders in all models */
enum { BORDERS_OF = 1 };
#else
enum { BORDERS_OF = 3 };
#endif

static int64_t steps, ran_steps, tapes, made_again;
static size_t planned, largest_live, smaller;

/* What a plan may waste beside what must live at once: 3 %, and 4 KiB that tell in small graphs. */
static bool is_tight(const Plan *p)
{
    return p->arena <= p->live + p->live / 33 + 64 * PLAN_ALIGNMENT;
}

static void check_plan(Case *k, Graph *g, bool tight)
{
    Plan plan;
    const Node *where = NULL;
    Arena *arena = &k->s->c.arena;
    HOLDS(k, plan_memory(g, arena, &plan, &where), "%s has no plan: %s\n", g->name, op_of(where)->name);
    const char *wrong = plan_check(&plan, arena);
    HOLDS(k, !wrong, "%s: %s\n", g->name, wrong);
    if (!tight)
        return;
    HOLDS(k, is_tight(&plan), "%s takes %zu bytes where %zu live\n", g->name, plan.arena, plan.live);
    planned += plan.arena;
    largest_live += plan.live;
}

static Status check_graph(Case *k, Graph *of_step, const char *pipeline)
{
    const Pipeline *lower = pipeline_find(pipeline);
    const uint64_t seed = seed_of(k->s->name, 0);
    Arena *arena = &k->s->c.arena;
    Graph *g = graph_copy(of_step, arena), *before = graph_copy(of_step, arena);
    bool ran;
    TRY(pipeline_run(lower, g, &(PipelineOptions){ .verify_each = VERIFY_GRAPH }));
    const char *difference = trial_compare(before, g, EXACT, seed, arena, &ran);
    HOLDS(k, !difference, "%s: %s\n", g->name, difference);
    TapeCheck check = { .c = &k->s->c };
    ran_steps += tape_check(&check, g, seed);
    HOLDS(k, !check.wrong, "%s\n", g->name);
    tapes += check.tapes;
    steps++;
    check_plan(k, g, true);
    return OK;
}

/* Borders may lie anywhere, and be kept or not. */
static Status check_borders(Case *k, Graph *of_step)
{
    const Pipeline *lower = pipeline_find("lower-small");
    const uint64_t seed = seed_of(k->s->name, 1);
    Arena *arena = &k->s->c.arena;
    Graph *g = graph_copy(of_step, arena), *before = graph_copy(of_step, arena);
    Rng rng = { seed };
    bool ran;
    for (size_t i = 0; i < lower->n; i++) {
        if (lower->passes[i] == pass_find("grow-fusion")) {
            Timeline t;
            PassRun run = { .diag = &k->s->c.diag, .scratch = arena };
            timeline_open(&t, g, arena);
            Borders borders = { NEWS(arena, Border, t.n_forward + 1), 0 };
            const int64_t one_of = rng_range(&rng, 2, 12);
            for (int at = 0; at + 1 < t.n_forward; at++)
                if (rng_below(&rng, one_of) == 0)
                    borders.at[borders.n++] = (Border){ at, rng_below(&rng, 2) };
            TRY(make_blocks_again(&run, &t, &borders));
            made_again += run.changes;
        }
        TRY(pass_run(lower->passes[i], g, NULL));
    }
    const char *difference = trial_compare(before, g, EXACT, seed, arena, &ran);
    HOLDS(k, !difference, "%s, borders anywhere: %s\n", g->name, difference);
    HOLDS(k, verify(g, NULL) == OK, "%s, borders anywhere: it is no graph\n", g->name);
    check_plan(k, g, false);
    return OK;
}

/* For time, and for memory. */
static Status check_all(Case *k, Graph *of_step)
{
    static const char *const pipelines[] = { "lower", "lower-small", "lower-blocks", "lower-least" };
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < COUNT(pipelines); i++) {
        const size_t before = planned;
        TRY(check_graph(k, of_step, pipelines[i]));
        HOLDS(k, i < 2 || planned - before <= least, "%s: %s takes more than the one before\n", of_step->name,
              pipelines[i]);
        smaller += i >= 2 && planned - before < least;
        least = planned - before;
    }
    return seed_of(k->s->name, 2) % BORDERS_OF ? OK : check_borders(k, of_step);
}

static Status check_graphs(void *thing)
{
    Case *k = thing;
    for (size_t i = 0; i < k->step->module->n_graphs; i++)
        TRY(check_all(k, k->step->module->graphs[i]));
    return OK;
}

static Status visit(void *stored)
{
    Case k = { .s = stored };
    const qcc_context_options options = { .size = sizeof options, .report = stored_report, .user = stored };
    const qcc_source source = qcc_file(k.s->path);
    MUST(&k, qcc_open(&options, &k.cx));
    MUST(&k, qcc_read(k.cx, &source, NULL, &k.model));
    if (qcc_compile(k.model, "--optimizer adamw --lr 1e-3 --batch 2", &k.step) == QCC_OK)
        TRY(guarded(k.step->module->ir->memory, check_graphs, &k));
    qcc_close(k.cx);
    return OK;
}

static void stored_models(void **state)
{
    size_t seen = 0;
    (void)state;
    assert_int_equal(stored_each("/tests/data/exports/*-*.onnx", NULL, NULL, visit, &seen), 0);
    printf("%zu models, %d graphs, %d of them run, %d tapes, %.4f of the bytes that live\n", seen, (int)steps,
           (int)ran_steps, (int)tapes, (double)planned / (double)largest_live);
    printf("%zu graphs smaller by blocks, %d calls made again anywhere\n", smaller, (int)made_again);
    assert_true(seen > 50 && ran_steps > 160 && tapes > 10 * ran_steps && smaller > 8 && made_again > 700 / BORDERS_OF);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(stored_models) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
