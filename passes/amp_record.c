/* What was decided of each node, for who asks. */
#include "passes/amp_graph.h"

static int64_t saved_by(const Node *n)
{
    return 2 * (int64_t)amp_elements(n->type);
}

/* The values of a call that are stored narrow, and whether the first one is. */
static void add_values(AmpGraph *a, const Node *n, AmpDecision *d)
{
    for (int k = 0; k < type_results(n->type); k++) {
        const Node *value = amp_part(n, k);
        const bool narrow = value && amp_is_value(a, value) && amp_label(a, value) == AMP_NARROW;
        d->narrow |= narrow;
        d->computes |= value && narrow && value->type->dtype != F32;
        d->saved += narrow ? saved_by(value) : 0;
    }
}

static bool is_told(AmpGraph *a, const Node *n)
{
    const AmpClass c = amp_note(a, n)->role.class;
    return amp_may_change(a, n) && c != AMP_N && c != AMP_UNSET && !op_of(n)->structural;
}

void amp_record(AmpGraph *a, AmpLedger *ledger)
{
    if (!ledger)
        return;
    for (size_t i = 0; i < a->n; i++) {
        const Node *n = a->nodes[i];
        if (!is_told(a, n))
            continue;
        AmpDecision d = { .src = n->src,
                          .op = n->op,
                          .value = n->name,
                          .label = n->label,
                          .backward = n->flags & NODE_BACKWARD,
                          .role = amp_note(a, n)->role };
        add_values(a, n, &d);
        d.computes |= d.role.class == AMP_T;
        GROW(ledger->arena, ledger->list, ledger->n, ledger->cap);
        ledger->list[ledger->n++] = d;
    }
    ledger->inserted += a->inserted - a->removed;
}
