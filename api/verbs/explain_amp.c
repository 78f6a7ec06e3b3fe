/* explain of mixed precision: what became of each node, and what the plan costs. */
#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/make/amp_report.h"
#include "api/verbs/explain.h"

static void tell_costs(Text *t, Arena *arena, const qcc_step *s)
{
    const AmpLedger *l = s->recipe.precision.ledger;
    text_label(t, "plan");
    text_printf(t, "%s moved a step by %s, %s by the walk, %s in f32\n", bytes_text(arena, (uint64_t)l->cost),
                s->recipe.precision.walks ? "the walk" : "the cut", bytes_text(arena, (uint64_t)l->walk_cost),
                bytes_text(arena, (uint64_t)l->wide_cost));
    const AmpCasts c = amp_casts_of(module_graph(s->module, "step"));
    text_label(t, "casts");
    text_printf(t,
                "%" PRId64 " inserted, %" PRId64 " left: copies %" PRId64 " (%s), on store %" PRId64
                ", on load %" PRId64 ", by the update %" PRId64 "\n",
                l->inserted, c.all, c.materialised, bytes_text(arena, (uint64_t)c.bytes), c.stored, c.loaded,
                c.written);
}

/* "12.7 k of 12.7 k multiply-adds forward run narrow, by an estimate". */
static void tell_work(Text *t, Arena *arena, const AmpLedger *l)
{
    const AmpShare share = amp_share(l);
    text_label(t, "work");
    text_printf(t, "%s of %s multiply-adds forward run narrow, by an estimate\n",
                count_text(arena, (uint64_t)share.narrow), count_text(arena, (uint64_t)share.all));
}

/* Why results are wide whose classes would follow, and how many. */
static void tell_pins(Text *t, const AmpLedger *l)
{
    size_t n[AMP_PIN_COUNT] = { 0 };
    bool any = false;
    for (size_t i = 0; i < l->n; i++)
        n[l->list[i].pin]++;
    for (int k = AMP_PIN_NOTHING + 1; k < AMP_PIN_COUNT; k++) {
        if (!n[k])
            continue;
        text_label(t, any ? "" : "kept wide");
        any = true;
        text_printf(t, "%zu: %s\n", n[k], amp_pin_text((AmpPin)k));
    }
}

void explain_precision(Text *t, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    const Precision *p = &s->recipe.precision;
    size_t left = 0;
    if (s->facts.silent)
        return;
    text_label(t, "precision");
    text_printf(t, "%s\n", amp_report_precision(arena, s));
    if (!p->ledger)
        return;
    tell_costs(t, arena, s);
    tell_work(t, arena, p->ledger);
    tell_pins(t, p->ledger);
    for (size_t i = 0; i < p->ledger->n; i++) {
        const AmpDecision *d = &p->ledger->list[i];
        if (d->backward && s->cx->verbosity < 1) {
            left++;
            continue;
        }
        text_label(t, "");
        text_printf(t, "%-5s %-5s %s %s%s: ", amp_report_stored(p, d), amp_report_computes(p, d),
                    name_text(arena, d->where), d->title, d->backward ? ", backward" : "");
        amp_report_reason(t, p, d);
        if (d->saved)
            text_printf(t, "; saves %s", bytes_text(arena, (uint64_t)d->saved));
        text_char(t, '\n');
    }
    if (left) {
        text_label(t, "");
        text_printf(t, "and %zu backward nodes (-v)\n", left);
    }
}

static bool is_of(const AmpDecision *d, const Node *n)
{
    return n->label ? d->label && strcmp(d->label, n->label) == 0 : n->src && d->src == n->src;
}

static bool stands_for(const Node *k, const Node *n)
{
    return n->label ? k->label && strcmp(k->label, n->label) == 0 : n->src && k->src == n->src;
}

/* amp_casts that feed a node of the step, or read it. */
static void count_edges(const Node *k, size_t *down, size_t *up)
{
    for (int i = 0; i < k->n_in; i++)
        if (in(k, i) && in(k, i)->op == OP_amp_cast)
            (*(in(k, i)->type->dtype == F32 ? up : down))++;
    for (const Use *u = k->uses; u; u = u->next)
        if (u->user->op == OP_amp_cast)
            (*(u->user->type->dtype == F32 ? up : down))++;
}

void explain_widths(Text *t, const qcc_step *s, const Node *n)
{
    Arena *arena = &s->cx->scratch;
    const Precision *p = &s->recipe.precision;
    size_t down = 0, up = 0;
    bool any = false;
    for (size_t i = 0; p->ledger && i < p->ledger->n; i++) {
        const AmpDecision *d = &p->ledger->list[i];
        if (!is_of(d, n))
            continue;
        text_label(t, any ? "" : "precision");
        any = true;
        text_printf(t, "%s%s: ", d->title, d->backward ? ", backward" : "");
        amp_report_reason(t, p, d);
        text_printf(t, "; stored as %s, computes in %s", amp_report_stored(p, d), amp_report_computes(p, d));
        if (d->saved)
            text_printf(t, "; saves %s", bytes_text(arena, (uint64_t)d->saved));
        text_char(t, '\n');
    }
    if (!any)
        return;
    Graph *g = module_graph(s->module, "step");
    for (Node *k = walk_first(g); k; k = walk_next(g, k))
        if (stands_for(k, n) && k->op != OP_amp_cast)
            count_edges(k, &down, &up);
    text_label(t, "casts");
    text_printf(t, "%zu narrow, %zu widen on the edges of its nodes in the step\n", down, up);
}
