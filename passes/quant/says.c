/* What is said of each call: by --quant, over it by tables, line by line, and over them by --quant-op. */
#include "passes/quant/says.h"

#include <string.h>

#include "ops/card/path.h"
#include "passes/recipe/selector.h"

typedef struct Saying {
    Placement *p;
    Node *const *calls;
    size_t n;
    Map paths;
} Saying;

/* Specs that another one was laid over: calls that had one spec have one again, which weights that they share count on. */
typedef struct Layer {
    const QuantSpec **below, **above;
    size_t n, cap_below, cap_above;
} Layer;

static QuantSpec *new_spec(Arena *arena, Layer *l, const QuantSpec *below)
{
    QuantSpec *above = NEW(arena, QuantSpec);
    size_t n = l->n;
    *above = *below;
    GROW(arena, l->below, n, l->cap_below);
    GROW(arena, l->above, n, l->cap_above);
    l->below[l->n] = below;
    l->above[l->n++] = above;
    return above;
}

static const QuantSpec *known_spec(const Layer *l, const QuantSpec *below)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->below[i] == below)
            return l->above[i];
    return NULL;
}

/* ---- which calls a selector means ---- */

enum { MOST_MOVES = 4 };

static bool is_stored(const Node *n)
{
    return n->op == OP_param || n->op == OP_state || n->op == OP_const;
}

static void mean(Facts *meant, const Node *n)
{
    *(bool *)fact(meant, n) = true;
}

/* A parameter that is named means what reads it, also behind a few nodes that only move it. */
static void mean_readers(Facts *meant, const Node *stored)
{
    const Node *value = stored;
    for (int hop = 0; value && hop <= MOST_MOVES; hop++) {
        const Node *moved = NULL;
        for (const Use *u = value->uses; u; u = u->next) {
            mean(meant, u->user);
            if (op_moves(op_of(u->user)))
                moved = u->user;
        }
        value = moved;
    }
}

static void mean_if_taken(Facts *meant, const Selector *selector, const Node *n)
{
    if (!is_stored(n) && selector_takes(selector, n))
        mean(meant, n);
    if (is_stored(n) && selector_names(selector, n))
        mean_readers(meant, n);
}

/* The calls that a selector means, in their order. */
static Node *const *calls_meant(Saying *s, const Selector *selector, size_t *n)
{
    Arena *scratch = s->p->run->scratch;
    Facts meant = facts_open(scratch, sizeof(bool));
    Node **list = NEWS(scratch, Node *, s->n + 1);
    *n = 0;
    for (size_t i = 0; i < s->p->g->n_inputs; i++)
        if (is_stored(s->p->g->inputs[i]))
            mean_if_taken(&meant, selector, s->p->g->inputs[i]);
    for (size_t i = 0; i < s->n; i++)
        mean_if_taken(&meant, selector, s->calls[i]);
    for (size_t i = 0; i < s->n; i++)
        if (*(bool *)fact(&meant, s->calls[i]))
            list[(*n)++] = s->calls[i];
    return list;
}

/* ---- tables ---- */

static bool says_quantizers(const QuantLine *line)
{
    for (size_t i = 0; i < COUNT(line->says); i++)
        if (line->says[i])
            return true;
    return false;
}

static const QuantSpec *spec_by_line(const Placement *p, Layer *l, const QuantLine *line, const QuantSpec *below)
{
    const QuantSpec *known = known_spec(l, below);
    if (known)
        return known;
    QuantSpec *above = new_spec(p->g->arena, l, below);
    for (size_t i = 0; i < COUNT(line->says); i++)
        if (line->says[i]) {
            above->of[i] = line->by[i];
            quantizer_fill_rounding(&above->of[i], (QuantOperand)i, quantization_target(p->recipe));
        }
    return above;
}

/* Whether a line may say what a call does with codes: of what is no table nobody makes one, and what is said of all others
 * leaves alone what only moves elements. */
static bool says_way(const QuantLine *line, QuantWay way, QuantRole role)
{
    return way != WAY_UNSAID && (way != WAY_TABLE || role == QUANT_TABLE) &&
           (line->of.kind != TABLE_LINE_DEFAULT || role != QUANT_AGNOSTIC);
}

static bool may_have_weights(const Node *call)
{
    return quant_multiplies(op_of(call)) || quant_is_recurrent(call) || quant_is_table(call);
}

/* Lets a line speak of a call. */
static void apply_line(Saying *s, Layer *l, const QuantLine *line, const Node *call)
{
    QuantCallMark *c = quant_call(s->p, call);
    const OpDef *def = op_of(call);
    bool any = false;
    if (says_quantizers(line) && may_have_weights(call)) {
        c->spec = spec_by_line(s->p, l, line, c->spec);
        for (unsigned i = 0; i < COUNT(line->says) && line->of.kind != TABLE_LINE_DEFAULT; i++)
            c->said |= (unsigned)line->says[i] << i;
        any = true;
    }
    if (says_way(line, line->in, def->quant.in[0])) {
        c->in = line->in;
        c->out = WAY_UNSAID; /* a line that lets codes in lets them out again */
        any = true;
    }
    if (says_way(line, line->out, def->quant.out[0])) {
        c->out = line->out;
        any = true;
    }
    if (any)
        c->by = line->reason ? arena_printf(s->p->g->arena, "%s, %s", line->of.shown, line->reason) : line->of.shown;
}

static void apply_to_ops(Saying *s, const QuantTable *t, const QuantLine *line)
{
    Layer layer = { .n = 0 };
    for (size_t i = 0; i < s->n; i++)
        if (table_line_takes(&line->of, t->named, s->calls[i], s->p->run->scratch))
            apply_line(s, &layer, line, s->calls[i]);
}

static Status apply_to_names(Saying *s, const QuantLine *line)
{
    Selector selector;
    Layer layer = { .n = 0 };
    size_t n;
    TRY(selector_open(&selector, s->p->g, s->p->run->scratch, &s->paths, line->of.shown, line->of.names));
    Node *const *meant = calls_meant(s, &selector, &n);
    for (size_t i = 0; i < n; i++)
        apply_line(s, &layer, line, meant[i]);
    selector_close(&selector);
    if (n || *line->of.told)
        return OK;
    *line->of.told = true;
    return warn(s->p->run->diag, (Place){ .where = line->of.shown, .byte = -1 }, "'%s' matches no node",
                line->of.names);
}

/* What is said of all the others comes first, then line by line. */
static Status apply_table(Saying *s, const QuantTable *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->lines[i].of.kind == TABLE_LINE_DEFAULT)
            apply_to_ops(s, t, &t->lines[i]);
    for (size_t i = 0; i < t->n; i++)
        if (t->lines[i].of.kind == TABLE_LINE_OP)
            apply_to_ops(s, t, &t->lines[i]);
        else if (t->lines[i].of.kind == TABLE_LINE_NAMES)
            TRY(apply_to_names(s, &t->lines[i]));
    return OK;
}

/* ---- --quant-op ---- */

static void apply_spec(Saying *s, Layer *layer, const QuantOverride *o, const Node *call)
{
    QuantCallMark *c = quant_call(s->p, call);
    const QuantSpec *known = known_spec(layer, c->spec);
    if (!known) {
        QuantSpec *above = new_spec(s->p->g->arena, layer, c->spec);
        quantizer_lay_over(above, o->spec);
        known = above;
    }
    c->spec = known;
    for (unsigned k = 0; k < QUANT_OPERAND_COUNT; k++)
        c->said |= (unsigned)(strcmp(o->spec->of[k].from, "default") != 0) << k;
    c->by = arena_printf(s->p->g->arena, "%s '%s'", o->from, o->selector);
}

static Status apply_override(Saying *s, const QuantOverride *o)
{
    Selector selector;
    Layer layer = { .n = 0 };
    size_t n;
    TRY(selector_open(&selector, s->p->g, s->p->run->scratch, &s->paths, o->from, o->selector));
    Node *const *meant = calls_meant(s, &selector, &n);
    for (size_t i = 0; i < n; i++)
        apply_spec(s, &layer, o, meant[i]);
    const Status status = n ? OK : selector_missed(&selector, s->p->g, false);
    selector_close(&selector);
    return status;
}

Status quant_says(Placement *p)
{
    const Quantization *r = p->recipe;
    Node **calls = NEWS(p->run->scratch, Node *, graph_count(p->g) + 1);
    size_t n = 0;
    for (Node *k = p->g->first; k; k = k->next)
        if (!(k->flags & NODE_BACKWARD))
            calls[n++] = k;
    Saying s = { .p = p, .calls = calls, .n = n, .paths = path_names(p->g, p->run->scratch) };
    for (size_t i = 0; i < n; i++)
        quant_call(p, calls[i])->spec = r->spec;
    for (size_t i = 0; i < r->n_tables; i++)
        TRY(apply_table(&s, r->tables[i]));
    for (size_t i = 0; i < r->n_overrides; i++)
        TRY(apply_override(&s, &r->overrides[i]));
    return OK;
}
