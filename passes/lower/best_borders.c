#include "passes/engine/trial.h"
#include "passes/lower/make_again.h"
#include "passes/lower/plan_memory.h"

/* What is gained is at least 1 / LEAST_GAIN of the arena. */
enum { LEAST_GAIN = 32 };

/* A way to look for borders; the first is to have none. */
typedef struct Look {
    bool twice;
    double share;
} Look;

static const Look looks[] = { { false, -1 }, { false, 1 },  { false, 0.5 }, { false, 0 },
                              { true, 1 },   { true, 0.5 }, { true, 0 } };

static Status make_again(Graph *g, PassRun *run, const Look *look)
{
    Timeline t;
    if (look->share < 0)
        return OK;
    timeline_open(&t, g, run->scratch);
    const Borders borders = borders_find(&t, look->twice, look->share);
    return make_blocks_again(run, &t, &borders);
}

/* What comes behind in the pipeline. */
static bool lower_on(Graph *g)
{
    static const char *const passes[] = { "drop-dead", "grow-fusion", "drop-dead", "order-nodes" };
    for (size_t i = 0; i < COUNT(passes); i++)
        if (pass_run(pass_find(passes[i]), g, NULL) != OK)
            return false;
    return true;
}

/* The bytes of the arena of a graph that is lowered so; of what has no plan, as many as there can be. */
static size_t arena_of(const Graph *g, const PassRun *run, const Look *look)
{
    Arena scratch;
    Hush hush;
    Plan plan = { .arena = SIZE_MAX };
    arena_open(&scratch, g->ir->memory);
    hush_begin(&hush, g->ir, &scratch);
    PassRun trial = { .pass = run->pass, .options = run->options, .diag = &hush.none, .scratch = &scratch };
    Graph *copy = graph_copy(g, &scratch);
    const bool planned =
        make_again(copy, &trial, look) == OK && lower_on(copy) && plan_memory(copy, &scratch, &plan, NULL);
    hush_end(&hush);
    const size_t bytes = planned ? plan.arena : SIZE_MAX;
    arena_close(&scratch);
    return bytes;
}

static bool has_backward_side(const Graph *g)
{
    for (const Node *n = g->first; n; n = n->next)
        if (n->flags & NODE_BACKWARD)
            return true;
    return false;
}

Status make_again_at_best(Graph *g, PassRun *run, bool twice)
{
    const Look *best = &looks[0];
    if (!has_backward_side(g))
        return OK;
    size_t least = arena_of(g, run, best);
    least -= least / LEAST_GAIN;
    for (size_t i = 1; i < COUNT(looks) && least < SIZE_MAX - SIZE_MAX / LEAST_GAIN; i++) {
        const size_t bytes = looks[i].twice && !twice ? SIZE_MAX : arena_of(g, run, &looks[i]);
        if (bytes < least) {
            least = bytes;
            best = &looks[i];
        }
    }
    return make_again(g, run, best);
}
