#include "api/emit/emit_quant.h"

#include <math.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/session/figures.h"
#include "api/train/train.h"
#include "passes/quant/ledger.h"

_Static_assert((int)VIEW_BINS == (int)FIGURE_BINS, "a page shows the bins that were counted");

/* Quantizers by the names of values. */
typedef struct Quants {
    Map by_value;
} Quants;

static const char suffix[] = ".codes";

/* A value, or its codes. */
static const ViewQuant *quant_at(void *user, const Node *n)
{
    const Quants *q = user;
    const size_t tail = sizeof suffix - 1, length = n->name ? strlen(n->name) : 0;
    const MapEntry *e = length ? map_find(&q->by_value, n->name) : NULL;
    if (!e && length > tail && strcmp(n->name + length - tail, suffix) == 0)
        e = map_find_n(&q->by_value, n->name, length - tail);
    return e ? e->value.cp : NULL;
}

static ViewQuant *quant_of(Quants *q, Arena *arena, const char *value)
{
    bool fresh;
    const double none = (double)NAN;
    MapEntry *e = map_put(&q->by_value, value, &fresh);
    if (!fresh)
        return e->value.p;
    ViewQuant *v = NEW(arena, ViewQuant);
    *v = (ViewQuant){
        .value = value, .scale_least = none, .scale_most = none, .sqnr = none, .clipped = none, .used = none
    };
    e->value.p = v;
    return v;
}

static void add_decision(Quants *q, Arena *arena, const QuantDecision *d)
{
    static const char *const kinds[] = { "data", "weight", "bias", "stays" };
    if (!d->by || !d->value || d->kind == QUANTIZED_BIAS)
        return;
    ViewQuant *v = quant_of(q, arena, d->value);
    v->what = kinds[d->kind];
    v->spec = quantizer_text(d->by, arena);
    v->asked = d->asked;
    v->state = d->shared  ? "with the scale of what it is moved from"
               : d->state ? arena_printf(arena, "in %s", d->state)
                          : NULL;
}

static void add_figure(Quants *q, Arena *arena, const QuantFigure *f)
{
    ViewQuant *v = quant_of(q, arena, f->value);
    v->what = f->weight ? "weight" : "data";
    v->bits = figure_bits(f);
    v->least = f->least;
    v->largest = f->largest;
    v->zero = f->zero;
    v->n_scales = f->n_scales;
    v->numbers = f->n;
    v->sqnr = figure_sqnr(f);
    v->clipped = figure_clipped(f);
    v->used = figure_used(f);
    if (f->has_scale) {
        v->scale_least = f->scale_least;
        v->scale_most = f->scale_most;
    }
    v->from = f->bins.from;
    v->width = f->bins.width;
    v->absolute = f->bins.absolute;
    v->bins = f->bins.bin;
}

Status emit_quantizers(qcc_context *cx, const CommandLine *line, Out *o, qcc_step *s, ViewFacts *facts)
{
    Figures *f = NEW(&cx->scratch, Figures);
    Command c = { .cx = cx, .line = *line, .out = o };
    const QuantLedger *l = s->recipe.quantization.ledger;
    TRY(train_figures(&c, s, f));
    if (!f->n && !f->why && !l)
        return OK;
    Quants *q = NEW(&cx->scratch, Quants);
    map_open(&q->by_value, &cx->scratch);
    for (size_t i = 0; l && i < l->n; i++)
        add_decision(q, &cx->scratch, &l->list[i]);
    for (size_t i = 0; i < f->n; i++)
        add_figure(q, &cx->scratch, &f->list[i]);
    facts->quant = quant_at;
    facts->quants = q;
    return OK;
}
