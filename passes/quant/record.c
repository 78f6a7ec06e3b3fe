/* What was decided of values and calls, for whoever asks (ledger.h). */
#include "passes/quant/record.h"

#include "ops/contract/work.h"
#include "passes/learned/learned.h"
#include "passes/quant/ledger.h"
#include "passes/recipe/selector.h"

static QuantDecision *decide(Placement *p, QuantKind kind, const Node *value)
{
    QuantLedger *l = p->recipe->ledger;
    GROW(l->arena, l->list, l->n, l->cap);
    l->list[l->n] = (QuantDecision){ .kind = kind,
                                     .src = value->src,
                                     .op = value->op,
                                     .value = value->name,
                                     .where = arena_string(l->arena, node_place(value).where),
                                     .elements = type_known(value->type) ? type_elements(value->type) : 0 };
    return &l->list[l->n++];
}

void quant_record_value(Placement *p, const Node *value)
{
    const QuantValueMark *v = quant_value(p, value);
    if (!p->recipe->ledger)
        return;
    const Node *weight = quant_weight_of((Node *)value);
    QuantDecision *d = decide(p, weight ? QUANTIZED_WEIGHT : QUANTIZED_DATA, weight ? weight : value);
    d->by = v->by;
    d->asked = arena_string(p->recipe->ledger->arena, node_place(v->asked).where);
    d->asker = selector_of(p->recipe->ledger->arena, v->asked);
    d->said = quant_call(p, v->asked)->by;
    d->state = v->state;
    d->floats = quant_call(p, v->asked)->floats && !quant_call(p, v->asked)->ternary;
    d->shared = v->shares != NULL;
    d->stays = v->stays && !v->shares;
    d->within = v->state ? 0 : v->within;
}

/* The data that a product multiplies a weight with, or what it is moved from; null where they are floats. */
static const Node *data_of(Placement *p, const Node *call, int weight)
{
    for (int i = 0; i < call->n_in && i < 2; i++) {
        const Node *number = i == weight ? NULL : in(call, i);
        if (!number || !op_of(number)->quant.dequantizes || !op_of(in(number, 0))->quant.quantizes)
            continue;
        const Node *value = learned_from(in(in(number, 0), 0));
        while (quant_value(p, value)->shares)
            value = quant_value(p, value)->shares;
        return quant_value(p, value)->by ? value : NULL;
    }
    return NULL;
}

void quant_record_product(Placement *p, const Node *call, int i, const Node *weight, const Quantizer *by)
{
    QuantLedger *l = p->recipe->ledger;
    const Node *data = data_of(p, call, i);
    for (size_t k = l ? l->n : 0; k-- > 0;) {
        QuantDecision *d = &l->list[k];
        if (d->kind != QUANTIZED_WEIGHT || d->value != weight->name || !quantizer_same(d->by, by))
            continue;
        d->work += type_known(call->type) ? work_of(call) : 0;
        d->data = data ? data->name : d->data;
        d->data_bits = data ? quant_value(p, data)->by->bits : d->data_bits;
        return;
    }
}

void quant_record_call(Placement *p, const Node *call)
{
    const QuantCallMark *c = quant_call(p, call);
    if (p->recipe->ledger && c->why)
        decide(p, QUANT_STAYS, call)->why = c->why;
    if (p->recipe->ledger && c->left)
        decide(p, QUANT_LEFT, call)->why = c->left;
}
