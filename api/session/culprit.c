/* Why a step was not finite: the first value that was not, its class, and the option that would mend it. */
#include <math.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/make/step.h"
#include "ops/card/words.h"
#include "passes/amp/amp.h"

/* ---- looking ---- */

typedef struct Search {
    Culprit first, mask; /* what counts; what holds -inf alone, as masks do */
} Search;

static bool is_float_tensor(const Type *t)
{
    return t->kind == TYPE_TENSOR && dtype_is_float(t->dtype);
}

static void look(void *user, const Node *n, const Tensor *value)
{
    Search *s = user;
    if (s->first.node || !value || !is_float_tensor(value->type))
        return;
    Culprit c = { .node = n, .n = tensor_elements(value) };
    for (int64_t i = 0; i < c.n; i++) {
        const double x = tensor_get_f64(value, i);
        c.nans += isnan(x) != 0;
        c.above += isinf(x) && x > 0;
        c.below += isinf(x) && x < 0;
    }
    if (c.nans || c.above)
        s->first = c;
    else if (c.below && !s->mask.node)
        s->mask = c;
}

Status session_culprit(qcc_session *s, Culprit *c)
{
    Search search = { .first = { 0 } };
    TRY(session_replay(s->run, look, &search));
    *c = search.first.node ? search.first : search.mask;
    return OK;
}

bool culprit_is_forward(const Culprit *c)
{
    return c->node && !(c->node->flags & (NODE_BACKWARD | NODE_UPDATE));
}

/* ---- telling ---- */

/* The node that says what a value is: of a result that of the call, of a cast of ours that of what was cast. */
static const Node *call_of(const Node *n)
{
    while ((n->op == OP_part || n->op == OP_amp_cast) && in(n, 0))
        n = in(n, 0);
    return n;
}

static const AmpDecision *decision_of(const qcc_step *s, const Node *call)
{
    const AmpLedger *l = s->recipe.precision.ledger;
    for (size_t i = 0; l && i < l->n; i++)
        if (l->list[i].src == call->src && l->list[i].op == call->op && call->src)
            return &l->list[i];
    return NULL;
}

static AmpClass class_of(const qcc_step *s, const Node *call)
{
    const AmpDecision *d = decision_of(s, call);
    const AmpCard *card = &op_of(call)->amp;
    const DType narrow = s->recipe.precision.narrow;
    const AmpClass own = narrow == BF16 ? card->bf16 : card->f16;
    return d ? d->role.class : own == AMP_C && card->when ? card->when(call, narrow) : own;
}

/* A selector that takes the nodes of a label. */
static const char *selector_of(Arena *arena, const char *label)
{
    Text t;
    text_open(&t, arena);
    for (const char *p = label; *p; p++) {
        if (strchr("\\^$|?*+()[]{}", *p))
            text_char(&t, '\\');
        text_char(&t, *p);
    }
    return text_get(&t);
}

/* "+inf in 3 of 12 values", "NaN in all 4 values" ... */
static const char *counted_text(Arena *arena, const Culprit *c)
{
    const int64_t bad = c->nans + c->above + c->below;
    const char *what = c->nans                ? c->above || c->below ? "NaN and infinity" : "NaN"
                       : c->above && c->below ? "+-inf"
                       : c->above             ? "+inf"
                                              : "-inf";
    return bad == c->n ? arena_printf(arena, "%s in all of %s", what, grouped(arena, c->n))
                       : arena_printf(arena, "%s in %s of %s", what, grouped(arena, bad), grouped(arena, c->n));
}

static const char *side_text(const Node *n)
{
    return n->flags & NODE_UPDATE ? "update" : n->flags & NODE_BACKWARD ? "backward" : "forward";
}

/* How a value that is too large for its type came to have it, and what gives it another. */
static Status tell_width(Out *out, const qcc_step *s, const Culprit *c, const Node *call)
{
    Arena *arena = &s->cx->scratch;
    const DType t = c->node->type->dtype;
    const AmpDecision *d = decision_of(s, call);
    const char *label = call->label ? call->label : d ? d->label : NULL;
    if (!s->recipe.precision.on || (t != F16 && t != BF16))
        return OK;
    const AmpClass class = class_of(s, call);
    TRY(out_printf(out, ", stored as %s", t == F16 ? "fp16" : "bf16"));
    if (class != AMP_UNSET && class != AMP_N) /* which inputs and constants are */
        TRY(out_printf(out, " (class %s)", amp_word(class)));
    if (label)
        TRY(out_printf(out, "; try --keep-fp32 '%s'", selector_of(arena, label)));
    return t == F16 ? out_printf(out, "%s --amp bf16", label ? " or" : "; try") : OK;
}

Status session_explain(Out *out, qcc_session *s, const Culprit *c)
{
    if (!c->node)
        return OK;
    const Node *call = call_of(c->node);
    const char *where = node_place(call).where, *op = op_of(call)->name;
    const bool says = strcmp(where, op) != 0;
    TRY(out_printf(out, "why      %s%s%s: %s in the %s pass", where, says ? ", " : "", says ? op : "",
                   counted_text(&s->cx->scratch, c), side_text(c->node)));
    TRY(tell_width(out, s->step, c, call));
    return out_printf(out, "\n");
}
