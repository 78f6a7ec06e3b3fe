#include "api/make/step_view.h"

#include <inttypes.h>
#include <string.h>

#include "api/hall/lower.h"
#include "api/make/amp_report.h"

/* Decisions about nodes that only their order tells apart. */
typedef struct Chain {
    const AmpDecision *first;
    struct Chain *next;
} Chain;

typedef struct Notes {
    const qcc_step *step;
    Arena *arena;
    Map chains; /* by what decision and node share */
    Map notes;  /* node -> ViewNote */
} Notes;

static const char *key_of(Arena *a, Op op, uint32_t src, bool backward, const char *label, const char *value)
{
    return arena_printf(a, "%d %" PRIu32 " %d %s\n%s", (int)op, src, backward, label ? label : "", value ? value : "");
}

static const char *key_of_node(Arena *a, const Node *n)
{
    return key_of(a, n->op, n->src, n->flags & NODE_BACKWARD, n->label, n->name);
}

static const ViewNote *note_of(const Notes *x, const AmpDecision *d)
{
    const Precision *p = &x->step->recipe.precision;
    ViewNote *note = NEW(x->arena, ViewNote);
    Text why;
    text_open(&why, x->arena);
    amp_report_reason(&why, p, d);
    *note = (ViewNote){ amp_report_stored(p, d), amp_report_computes(p, d), text_get(&why), d->saved };
    return note;
}

static void add_decision(Notes *x, const AmpDecision *d)
{
    bool fresh;
    Chain *c = NEW(x->arena, Chain);
    MapEntry *e = map_put(&x->chains, key_of(x->arena, d->op, d->src, d->backward, d->label, d->value), &fresh);
    *c = (Chain){ .first = d };
    Chain *at = fresh ? NULL : e->value.p;
    while (at && at->next)
        at = at->next;
    if (at)
        at->next = c;
    else
        e->value.p = c;
}

/* The n-th node of a kind has the n-th decision about it. */
static void note_graph(Notes *x, Graph *g)
{
    Map seen;
    map_open(&seen, x->arena);
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        const char *key = key_of_node(x->arena, n);
        const MapEntry *chain = map_find(&x->chains, key);
        if (!chain)
            continue;
        bool fresh;
        MapEntry *e = map_put(&seen, key, &fresh);
        const Chain *at = fresh ? chain->value.p : e->value.p;
        map_put_u64(&x->notes, (uintptr_t)n, NULL)->value.cp = note_of(x, at->first);
        e->value.p = at->next ? at->next : (Chain *)(uintptr_t)at;
    }
}

static const ViewNote *note_at(void *user, const Node *n)
{
    const Notes *x = user;
    const MapEntry *e = map_find_u64(&x->notes, (uintptr_t)n);
    return e ? e->value.cp : NULL;
}

static const Notes *notes_of(Arena *arena, const qcc_step *s)
{
    const AmpLedger *l = s->recipe.precision.ledger;
    Notes *x = NEW(arena, Notes);
    *x = (Notes){ .step = s, .arena = arena };
    map_open(&x->chains, arena);
    map_open(&x->notes, arena);
    for (size_t i = 0; l && i < l->n; i++)
        add_decision(x, &l->list[i]);
    for (size_t i = 0; l && i < s->module->n_graphs; i++)
        note_graph(x, s->module->graphs[i]);
    return x;
}

static const char *file_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "model";
}

/* What a launch is: "forward matmul /fc1/MatMul". */
static const char *launch_text(Arena *arena, const Launch *l)
{
    const char *name = l->node->label ? l->node->label : l->node->name;
    return arena_printf(arena, "%s %s%s%s", step_part_name(l->part),
                        l->kind == LAUNCH_REGION ? "region" : op_of(l->node)->name, name ? " " : "", name ? name : "");
}

/* What lies in the arena at each launch; false: the graph has no program. */
static bool memory_of(const qcc_context *cx, const Graph *g, Arena *arena, ViewMemory *m)
{
    const Lowered l = lower_graph_for(g, NULL, &cx->lowering, arena);
    if (!l.program)
        return false;
    const size_t *alive = plan_alive(&l.plan, arena);
    size_t *at = NEWS(arena, size_t, l.program->n_launches + 1);
    const char **what = NEWS(arena, const char *, l.program->n_launches + 1);
    int call = 0, launch = 0;
    for (const Node *n = l.plan.graph->first; n; n = n->next, call++)
        for (; launch < l.program->n_launches && l.program->launches[launch].node == n; launch++) {
            at[launch] = alive[call];
            what[launch] = launch_text(arena, &l.program->launches[launch]);
        }
    *m = (ViewMemory){ g->name ? g->name : "graph", l.program->arena, launch, at, what };
    return true;
}

static void add_memory(ViewFacts *f, const qcc_context *cx, const Module *module, const Graph *model, Arena *arena)
{
    static const char *const of_step[] = { "step", "eval" };
    ViewMemory *list = NEWS(arena, ViewMemory, COUNT(of_step));
    for (size_t i = 0; i < (model ? 1 : COUNT(of_step)); i++) {
        const Graph *g = model ? model : module_graph(module, of_step[i]);
        f->n_memory += g && memory_of(cx, g, arena, &list[f->n_memory]);
    }
    f->memory = list;
}

ViewFacts step_view(const qcc_model *m, const qcc_step *s)
{
    Arena *arena = &m->cx->scratch;
    const char *file = file_name(m->file);
    ViewFacts f = { .title = arena_printf(arena, s ? "%s: training step" : "%s: model", file) };
    if (s) {
        f.line = amp_report_precision(arena, s);
        f.note = note_at;
        f.user = (void *)(uintptr_t)notes_of(arena, s);
    }
    add_memory(&f, m->cx, s ? s->module : NULL, s ? NULL : m->graph, arena);
    return f;
}
