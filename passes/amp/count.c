/* Figures of mixed precision: casts that are left, work that runs narrow. */
#include "ops/contract/work.h"
#include "passes/amp/amp.h"

const char *amp_pin_text(AmpPin pin)
{
    static const char *const texts[] = {
#define AMP_PIN_TEXT(id, text) text,
        AMP_PINS(AMP_PIN_TEXT)
#undef AMP_PIN_TEXT
    };
    return texts[pin];
}

/* ---- casts ---- */

static bool is_narrowing(const Node *cast)
{
    return cast->type->kind == TYPE_TENSOR && (cast->type->dtype == F16 || cast->type->dtype == BF16);
}

static bool is_given(const Node *n)
{
    return node_is_input(n) || n->op == OP_state || n->op == OP_const || n->op == OP_param;
}

/* Whether anything but narrowings reads a value. */
static bool is_kept_wide(const Node *value)
{
    for (const Use *u = value->uses; u; u = u->next)
        if (u->user->op != OP_amp_cast || !is_narrowing(u->user))
            return true;
    return false;
}

static bool leaves(const Node *cast)
{
    for (const Use *u = cast->uses; u; u = u->next)
        if (node_is_return(u->user))
            return true;
    return false;
}

static void count_cast(AmpCasts *c, const Node *cast)
{
    const Node *value = in(cast, 0);
    size_t bytes = 0;
    c->all++;
    if (cast->flags & NODE_UPDATE) {
        c->written++;
        return;
    }
    if (is_narrowing(cast) && !is_given(value) && !is_kept_wide(value)) {
        c->stored++;
        return;
    }
    if (!is_narrowing(cast) && !leaves(cast)) {
        c->loaded++;
        return;
    }
    c->materialised++;
    if (type_known(cast->type) && type_bytes(cast->type, &bytes))
        c->bytes += (double)bytes;
}

AmpCasts amp_casts_of(Graph *g)
{
    AmpCasts c = { 0 };
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        if (n->op == OP_amp_cast)
            count_cast(&c, n);
    return c;
}

/* ---- work ---- */

double amp_work(const Node *n)
{
    return work_of(n);
}

AmpShare amp_share(const AmpLedger *l)
{
    AmpShare s = { 0 };
    for (size_t i = 0; i < l->n; i++) {
        const AmpDecision *d = &l->list[i];
        if (d->card != AMP_T || d->backward)
            continue;
        s.all += d->work;
        s.narrow += d->computes ? d->work : 0;
        s.nodes++;
        s.narrow_nodes += d->computes;
    }
    return s;
}
