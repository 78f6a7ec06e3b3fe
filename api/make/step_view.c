#include "api/make/step_view.h"

#include <inttypes.h>
#include <string.h>

#include "api/make/amp_report.h"
#include "api/make/launch_nodes.h"
#include "api/make/launches.h"
#include "api/make/quant_report.h"

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

/* ---- programs ---- */

typedef struct Programs {
    LaunchMap maps[2];
    int n;
} Programs;

static ViewLaunch view_launch(const LaunchMap *m, int i, Arena *arena)
{
    const Program *p = m->low.program;
    const Launch *l = &p->launches[i];
    int first = i;
    while (first > 0 && p->launches[first].beside)
        first--;
    return (ViewLaunch){ .kind = launch_kind(l),
                         .part = step_part_name(l->part),
                         .name = l->node->label ? l->node->label : l->node->name,
                         .what = launch_words(arena, p, i, 1),
                         .nodes = m->list[i].nodes,
                         .n_nodes = m->list[i].n,
                         .reads = launch_bytes(l->in, l->n_in),
                         .writes = launch_bytes(l->out, l->n_out),
                         .first_beside = first,
                         .n_beside = program_wave(p, first) };
}

static ViewProgram view_program_of(const LaunchMap *m, Arena *arena)
{
    const Program *p = m->low.program;
    ViewProgram v = { .graph = m->graph, .why = p ? NULL : m->low.why };
    if (!p)
        return v;
    const size_t *alive = plan_alive(&m->low.plan, arena);
    ViewLaunch *list = NEWS(arena, ViewLaunch, p->n_launches + 1);
    int call = 0;
    for (const Node *n = m->low.plan.graph->first; n; n = n->next, call++)
        for (; v.n < p->n_launches && launch_call(&p->launches[v.n]) == n; v.n++) {
            list[v.n] = view_launch(m, v.n, arena);
            list[v.n].alive = alive[call];
        }
    v.arena = p->arena;
    v.launches = list;
    return v;
}

static ViewRun run_at(void *user, const Node *n)
{
    const Programs *all = user;
    ViewRun run = { .n = 0 };
    for (int i = 0; i < all->n; i++)
        if (all->maps[i].graph == n->graph->root) {
            const NodeLaunches *l = launch_map_node(&all->maps[i], n);
            run = (ViewRun){ l->n, l->launches, l->main, node_run_text(l->run), l->one };
        }
    return run;
}

static void add_programs(ViewFacts *f, const qcc_context *cx, const Module *module, const Graph *model, Arena *arena)
{
    static const char *const of_step[] = { "step", "eval" };
    Programs *all = NEW(arena, Programs);
    ViewProgram *list = NEWS(arena, ViewProgram, COUNT(of_step));
    for (size_t i = 0; i < (model ? 1 : COUNT(of_step)); i++) {
        const Graph *g = model ? model : module_graph(module, of_step[i]);
        if (!g)
            continue;
        all->maps[all->n] = launch_map(g, &cx->lowering, arena);
        list[all->n] = view_program_of(&all->maps[all->n], arena);
        all->n++;
    }
    f->programs = list;
    f->n_programs = all->n;
    f->run = run_at;
    f->runs = all;
}

ViewFacts step_view(const qcc_model *m, const qcc_step *s)
{
    Arena *arena = &m->cx->scratch;
    const char *file = file_name(m->file);
    ViewFacts f = { .title = arena_printf(arena, s ? "%s: training step" : "%s: model", file) };
    if (s) {
        const char *quant = quant_report_line(arena, s), *amp = amp_report_precision(arena, s);
        f.line = quant ? arena_printf(arena, "%s; quantized %s", amp, quant) : amp;
        f.note = note_at;
        f.user = (void *)(uintptr_t)notes_of(arena, s);
    }
    add_programs(&f, m->cx, s ? s->module : NULL, s ? NULL : m->graph, arena);
    return f;
}
