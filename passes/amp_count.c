/* Figures of mixed precision: casts that are left, work that runs narrow. */
#include <math.h>

#include "ops/contract.h"
#include "passes/amp.h"

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
    return n->op == OP_input || n->op == OP_state || n->op == OP_const || n->op == OP_param;
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
        if (u->user->op == OP_return)
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

static double elements(const Type *t)
{
    if (t->kind == TYPE_TUPLE && t->n_parts)
        t = t->parts[0];
    return t->kind == TYPE_TENSOR && type_known(t) ? (double)type_elements(t) : 0;
}

static double dim_from_end(const Node *value, int k)
{
    const Type *t = value->type;
    return t->kind == TYPE_TENSOR && t->rank >= k && t->dims[t->rank - k] > 0 ? (double)t->dims[t->rank - k] : 1;
}

/* Elements of a convolution's weight that meet one element of the other side. */
static double per_channel(const Node *weight)
{
    return elements(weight->type) / dim_from_end(weight, weight->type->rank);
}

double amp_work(const Node *n)
{
    const Node *x = in(n, 0), *w = in(n, 1);
    const double y = elements(n->type);
    switch (n->op) {
    case OP_matmul:
        return y * dim_from_end(x, ((const MatmulAttr *)n->attr)->ta && x->type->rank > 1 ? 2 : 1);
    case OP_gemm:
        return y * dim_from_end(x, ((const GemmAttr *)n->attr)->transA ? 2 : 1);
    case OP_conv:
        return y * per_channel(w);
    case OP_conv_transpose:
        return elements(x->type) * per_channel(w);
    case OP_lstm:
    case OP_gru:
    case OP_rnn:
        return elements(x->type) / dim_from_end(x, 1) * (elements(w->type) + elements(in(n, 2)->type));
    case OP_attention:
        return 2 * elements(x->type) * dim_from_end(w, 2);
    default: /* of a product of two matrices it is exactly that */
        return w ? sqrt(elements(x->type) * elements(w->type) * y) : 0;
    }
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
