#include "api/make/step_view.h"

#include <inttypes.h>
#include <string.h>

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

ViewFacts step_view(const qcc_model *m, const qcc_step *s)
{
    Arena *arena = &m->cx->scratch;
    const char *file = file_name(m->file);
    if (!s)
        return (ViewFacts){ .title = arena_printf(arena, "%s: model", file) };
    return (ViewFacts){ .title = arena_printf(arena, "%s: training step", file),
                        .line = amp_report_precision(arena, s),
                        .note = note_at,
                        .user = (void *)(uintptr_t)notes_of(arena, s) };
}
