/* The models of tests/data/exports as training steps, lowered: the same values in every bit, tapes that agree with the evaluator, and a
 * plan in which nothing overlaps and little is wasted. */
#include "api/make/step.h"
#include "passes/engine/trial.h"
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

static int64_t steps, ran_steps, tapes;
static size_t planned, largest_live;

/* What a plan may waste beside what must live at once: 3 %, and 4 KiB that tell in small graphs. */
static bool is_tight(const Plan *p)
{
    return p->arena <= p->live + p->live / 33 + 64 * PLAN_ALIGNMENT;
}

static void check_plan(Case *k, Graph *g)
{
    Plan plan;
    const Node *where = NULL;
    Arena *arena = &k->s->c.arena;
    HOLDS(k, plan_memory(g, arena, &plan, &where), "%s has no plan: %s\n", g->name, op_of(where)->name);
    const char *wrong = plan_check(&plan, arena);
    HOLDS(k, !wrong, "%s: %s\n", g->name, wrong);
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
    check_plan(k, g);
    return OK;
}

/* For time, and for memory. */
static Status check_both(Case *k, Graph *of_step)
{
    TRY(check_graph(k, of_step, "lower"));
    return check_graph(k, of_step, "lower-small");
}

static Status check_graphs(void *thing)
{
    Case *k = thing;
    for (size_t i = 0; i < k->step->module->n_graphs; i++)
        TRY(check_both(k, k->step->module->graphs[i]));
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
    assert_true(seen > 50 && ran_steps > 80 && tapes > 10 * ran_steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(stored_models) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
