#include "api/hall/lower.h"

#include <string.h>

#include "api/hall/words.h"
#include "codegen/program.h"
#include "ir/verify.h"
#include "passes/engine/trial.h"
#include "passes/lower/plan_memory.h"
#include "passes/pipelines.h"

/* Lowering walks a graph many times, and what has more nodes than this has little to gain. */
enum { MOST_NODES = 1 << 17 };

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

static Lowered refused(const char *why, const Node *where)
{
    return (Lowered){ .why = why, .where = where };
}

/* Values that a plan has no place for as they stand although all inputs state their sizes: what nodes ask for sizes while
 * they run, as an exporter's norms and heads do, and sequences, as it writes splits. */
static bool has_open_values(const Graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (!type_known(g->inputs[i]->type))
            return false;
    for (const Node *n = g->first; n; n = n->next)
        if (n->type->kind == TYPE_SEQ || (n->type->kind == TYPE_TENSOR && !type_known(n->type)))
            return true;
    return false;
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
    changed = changed || has_open_values(g);
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

/* The passes, and where the values lie then; false where that cannot be said. */
static bool lower_and_plan(Lowered *l, Graph *g, Remat remat, Arena *arena, Ear *ear)
{
    static const char *const pipelines[REMATS] = { "lower", "lower-small", "lower-blocks", "lower-least" };
    *ear = (Ear){ .arena = arena }; /* what was remarked of another try is not about this one */
    *l = (Lowered){ .graph = g, .remat = remat };
    if (pipeline_run(pipeline_find(pipelines[remat]), g, NULL) != OK) {
        *l = refused("a call that cannot be lowered", NULL);
        return false;
    }
    l->remarks = ear->list;
    l->n_remarks = ear->n;
    if (plan_memory(g, arena, &l->plan, &l->where))
        return true;
    l->why = "values whose sizes only a run knows";
    return false;
}

static bool has_backward_side(const Graph *g)
{
    for (const Node *n = g->first; n; n = n->next)
        if (n->flags & NODE_BACKWARD)
            return true;
    return false;
}

/* The first that keeps to the bound; where none does, the one with the least arena. */
static bool lower_within(Lowered *l, const Graph *g, const Lowering *how, Arena *arena, Ear *ear)
{
    if (!lower_and_plan(l, graph_copy(g, arena), how->remat, arena, ear))
        return false;
    for (int r = (int)how->remat + 1; r < REMATS && l->plan.arena > how->most; r++) {
        Lowered next;
        if (lower_and_plan(&next, graph_copy(g, arena), (Remat)r, arena, ear) && next.plan.arena < l->plan.arena)
            *l = next;
    }
    return true;
}

static Lowered lower(Graph *g, const Type *const *types, const Lowering *how, Arena *arena, Ear *ear)
{
    Lowered l;
    if (graph_count(g) > MOST_NODES)
        return refused("more nodes than are lowered", NULL);
    const char *wrong = bind_types(g, types);
    if (wrong)
        return refused(wrong, NULL);
    const bool again = has_backward_side(g), bound = again && how->most;
    if (!again && pipeline_run(pipeline_find("serve"), g, NULL) != OK)
        return refused("a call that cannot be lowered", NULL);
    if (!(bound ? lower_within(&l, g, how, arena, ear)
                : lower_and_plan(&l, g, again ? how->remat : REMAT_NONE, arena, ear)))
        return l;
    if ((l.why = too_large(l.graph, &l.plan)))
        return l;
    l.program = program_make(&l.plan, arena, &l.why, &l.where);
    return l;
}

/* What fails here is tried in another way: messages go nowhere, remarks to the ear where they are wanted. */
static Lowered lower_quietly(const Graph *g, const Type *const *types, const Lowering *how, Arena *arena, bool hears)
{
    static const Lowering plain = { .remat = REMAT_NONE };
    Hush h;
    Ear ear = { .arena = arena };
    Graph *copy = graph_copy(g, arena);
    hush_begin(&h, g->ir, g->ir->diag->arena);
    h.none.report = hears ? hear : NULL;
    h.none.user = &ear;
    const Lowered l = lower(copy, types, how ? how : &plain, arena, &ear);
    hush_end(&h);
    return l;
}

Lowered lower_graph_for(const Graph *g, const Type *const *types, const Lowering *how, Arena *arena)
{
    return lower_quietly(g, types, how, arena, false);
}

Lowered lower_graph_heard(const Graph *g, const Lowering *how, Arena *arena)
{
    return lower_quietly(g, NULL, how, arena, true);
}

Lowered lower_graph(const Graph *g, Arena *arena)
{
    return lower_graph_for(g, NULL, NULL, arena);
}

const char *remat_name(Remat r)
{
    static const char *const names[REMATS] = { "none", "cheap", "block", "full" };
    return names[r];
}

const char *remat_text(Remat r)
{
    static const char *const texts[REMATS] = { "nothing is made again", "what rows and casts make is made again",
                                               "blocks are made again",
                                               "blocks and most of their borders are made again" };
    return texts[r];
}

/* It runs all the same: how much memory there is says --memory-limit. */
static void tell_over(const Graph *g, const Lowered *l, const Lowering *how)
{
    Arena *arena = g->ir->diag->arena;
    Message *m = message_new(g->ir->diag, SEVERITY_WARNING, OK, NOWHERE,
                             "@%s needs %s at once, more than the %s of --remat-budget", g->name ? g->name : "graph",
                             bytes_text(arena, l->plan.arena), bytes_text(arena, how->most));
    message_try(m, "a smaller --batch, with --accumulate");
    (void)message_send(m);
}

const Program *lower_for_engine(void *maker, Graph *g, const Type *const *types, bool tells, Arena *arena)
{
    const Lowering *how = maker;
    const Lowered l = lower_graph_for(g, types, how, arena);
    if (!l.program && tells)
        remark(g->ir->diag, "engine", l.where ? node_place(l.where) : NOWHERE, "@%s runs on the evaluator: it has %s",
               g->name ? g->name : "graph", l.why);
    if (l.program && how->most && l.plan.arena > how->most)
        tell_over(g, &l, how);
    else if (l.program && how->most && has_backward_side(g))
        remark(g->ir->diag, "remat", NOWHERE, "@%s: %s (--remat %s): it needs %s at once, --remat-budget has %s",
               g->name ? g->name : "graph", remat_text(l.remat), remat_name(l.remat),
               bytes_text(g->ir->diag->arena, l.plan.arena), bytes_text(g->ir->diag->arena, how->most));
    return l.program;
}

Status lower_refuse(const Graph *g, const Lowered *l)
{
    const Place place = l->where ? node_place(l->where) : NOWHERE;
    Arena *arena = g->ir->diag->arena;
    const char *type = l->where ? arena_printf(arena, ": %s", type_text(arena, l->where->type)) : "";
    Message *m = message_new(g->ir->diag, SEVERITY_ERROR, UNSUPPORTED, place,
                             "@%s has no program, the evaluator runs it: it has %s%s", g->name ? g->name : "graph",
                             l->why, type);
    if (graph_is_open(g))
        message_try(m, "--batch 1, or --dim NAME=N for each dimension that has no size");
    return message_send(m);
}
