#include "api/hall/lower.h"

#include <string.h>

#include "codegen/program.h"
#include "ir/verify.h"
#include "passes/lower/plan_memory.h"
#include "passes/pipelines.h"

/* Lowering walks a graph many times, and what has more nodes than this has little to gain. */
enum { MOST_NODES = 1 << 17 };

/* Messages go nowhere for a while: what fails here is tried in another way. */
typedef struct Hush {
    Diag *diag, before;
    Cleanup cleanup;
} Hush;

static void unhush(void *thing)
{
    const Hush *h = thing;
    Arena *arena = h->diag->arena;
    *h->diag = h->before;
    h->diag->arena = arena;
}

/* What is remarked meanwhile. */
typedef struct Ear {
    Arena *arena;
    LowerRemark *list;
    size_t n, cap;
} Ear;

static const char *copied(Arena *arena, const char *text)
{
    return text ? arena_copy(arena, text, strlen(text)) : NULL;
}

static void hear(void *user, const Message *m)
{
    Ear *ear = user;
    if (m->severity != SEVERITY_REMARK || !m->topic || strcmp(m->topic, "fusion") != 0)
        return;
    GROW(ear->arena, ear->list, ear->n, ear->cap);
    LowerRemark *r = &ear->list[ear->n++];
    *r = (LowerRemark){ .place = m->place, .text = copied(ear->arena, m->text) };
    r->place.where = copied(ear->arena, m->place.where);
}

/* A null ear hears nothing. */
static void hush(Hush *h, const Graph *g, Ear *ear)
{
    h->diag = g->ir->diag;
    h->before = *h->diag;
    cleanup_push(g->ir->memory, &h->cleanup, unhush, h);
    h->diag->report = ear ? hear : NULL;
    h->diag->user = ear;
    h->diag->warnings_are_errors = false;
}

static void unhush_now(Hush *h)
{
    cleanup_drop(&h->cleanup);
    unhush(h);
}

static Lowered refused(const char *why, const Node *where)
{
    return (Lowered){ .why = why, .where = where };
}

/* A graph that states no types that could not be: what runs by them checks nothing any more. */
static const char *bind_types(Graph *g, const Type *const *types)
{
    const Pipeline *shapes = pipeline_find("shapes");
    bool changed = false;
    for (size_t i = 0; i < g->n_inputs && types; i++) {
        changed = changed || (types[i] && types[i] != g->inputs[i]->type);
        if (types[i] && !type_agrees(types[i], g->inputs[i]->type))
            return "values that are not of the types of its inputs";
        g->inputs[i]->type = types[i] ? types[i] : g->inputs[i]->type;
    }
    if (changed && pipeline_run(shapes, g, NULL) != OK)
        return "types that do not follow from those of its inputs";
    return changed && verify(g, NULL) != OK ? "types that contradict those of its inputs" : NULL;
}

/* What the evaluator refuses it is to refuse: it says at which node. */
static const char *too_large(const Graph *g, const Plan *plan)
{
    const Memory *memory = g->ir->memory;
    for (int i = 0; i < plan->n_buffers; i++)
        if (plan->buffers[i].bytes > (size_t)g->ir->limits.eval_bytes)
            return "a value larger than the limit eval_bytes";
    return memory->budget && plan->arena > memory->budget - memory->used ? "more values at once than memory may hold"
                                                                         : NULL;
}

static Lowered lower(Graph *g, const Type *const *types, Arena *arena)
{
    Lowered l = { .graph = g };
    if (graph_count(g) > MOST_NODES)
        return refused("more nodes than are lowered", NULL);
    const char *wrong = bind_types(g, types);
    if (wrong)
        return refused(wrong, NULL);
    if (pipeline_run(pipeline_find("lower"), g, NULL) != OK)
        return refused("a call that cannot be lowered", NULL);
    if (!plan_memory(g, arena, &l.plan, &l.where)) {
        l.why = "values whose sizes only a run knows";
        return l;
    }
    if ((l.why = too_large(g, &l.plan)))
        return l;
    l.program = program_make(&l.plan, arena, &l.why, &l.where);
    return l;
}

static Lowered lower_quietly(const Graph *g, const Type *const *types, Arena *arena, Ear *ear)
{
    Hush h;
    Graph *copy = graph_copy(g, arena);
    hush(&h, g, ear);
    Lowered l = lower(copy, types, arena);
    unhush_now(&h);
    if (ear) {
        l.remarks = ear->list;
        l.n_remarks = ear->n;
    }
    return l;
}

Lowered lower_graph_for(const Graph *g, const Type *const *types, Arena *arena)
{
    return lower_quietly(g, types, arena, NULL);
}

Lowered lower_graph_heard(const Graph *g, Arena *arena)
{
    Ear ear = { .arena = arena };
    return lower_quietly(g, NULL, arena, &ear);
}

Lowered lower_graph(const Graph *g, Arena *arena)
{
    return lower_graph_for(g, NULL, arena);
}

const Program *lower_for_session(void *maker, Graph *g, Arena *arena)
{
    (void)maker;
    const Lowered l = lower_graph(g, arena);
    if (!l.program)
        remark(g->ir->diag, "engine", l.where ? node_place(l.where) : NOWHERE, "@%s runs on the evaluator: it has %s",
               g->name ? g->name : "graph", l.why);
    return l.program;
}

static bool is_open(const Graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (!type_known(g->inputs[i]->type))
            return true;
    return false;
}

Status lower_refuse(const Graph *g, const Lowered *l)
{
    const Place place = l->where ? node_place(l->where) : NOWHERE;
    Arena *arena = g->ir->diag->arena;
    const char *type = l->where ? arena_printf(arena, ": %s", type_text(arena, l->where->type)) : "";
    Message *m = message_new(g->ir->diag, SEVERITY_ERROR, UNSUPPORTED, place,
                             "@%s has no program, the evaluator runs it: it has %s%s", g->name ? g->name : "graph",
                             l->why, type);
    if (is_open(g))
        message_try(m, "--batch 1, or --dim NAME=N for each dimension that has no size");
    return message_send(m);
}
