/* Records what mixed precision decided about each node, for reports. */
#include "ops/card/words.h"
#include "passes/amp/constant.h"
#include "passes/amp/narrow_graph.h"

static int64_t saved_by(const Node *n)
{
    return 2 * (int64_t)amp_elements(n->type);
}

/* The values of a call, and which of them are stored narrow. */
static void add_values(AmpGraph *a, const Node *n, AmpDecision *d)
{
    for (int k = 0; k < type_results(n->type); k++) {
        const Node *value = amp_part(n, k);
        const bool narrow = value && amp_is_value(a, value) && amp_label(a, value) == AMP_NARROW;
        d->gives |= value && amp_is_value(a, value);
        d->narrow |= narrow;
        d->computes |= value && narrow && value->type->dtype != F32;
        d->saved += narrow ? saved_by(value) : 0;
    }
}

/* Classes whose results are wide in any case. */
static bool stays_wide(AmpClass c)
{
    return c == AMP_FO || c == AMP_EX || c == AMP_F || c == AMP_X;
}

/* Whether a backward value was fixed wide though its class follows. */
static bool is_inside(AmpGraph *a, const Node *n)
{
    const AmpClass c = amp_note(a, n)->role.class;
    const int v = amp_note(a, n)->variable;
    return n->flags & NODE_BACKWARD && v && a->problem.variable[v - 1].fixed == AMP_WIDE &&
           (c == AMP_E || c == AMP_S || c == AMP_W || c == AMP_FI);
}

static AmpPin pin_of(AmpGraph *a, const Node *n)
{
    const AmpNote *note = amp_note(a, n);
    if (note->unfit)
        return AMP_PIN_CONSTANT;
    if (!note->pinned)
        return is_inside(a, n) ? AMP_PIN_INSIDE : AMP_PIN_NOTHING;
    if (note->seeded)
        return AMP_PIN_SEED;
    if (amp_eps_guard(n))
        return AMP_PIN_GUARD;
    if (note->large)
        return stays_wide(note->role.class) ? AMP_PIN_NOTHING : AMP_PIN_RANGE;
    return AMP_PIN_GRADIENT;
}

static AmpClass class_of_card(const AmpGraph *a, const Node *n)
{
    const AmpCard *card = &op_of(n)->amp;
    const AmpClass c = a->narrow == F16 ? card->f16 : card->bf16;
    return c == AMP_C ? card->when(n, a->narrow) : c;
}

static int64_t casts_in(Graph *g)
{
    int64_t n = 0;
    for (Node *k = walk_first(g); k; k = walk_next(g, k))
        n += k->op == OP_amp_cast;
    return n;
}

static bool reads_values(AmpGraph *a, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (amp_reading(a, n, i) != AMP_NOT_READ)
            return true;
    return false;
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
                          .title = op_title(ledger->arena, n),
                          .where = arena_string(ledger->arena, node_place(n).where),
                          .backward = n->flags & NODE_BACKWARD,
                          .card = class_of_card(a, n),
                          .role = amp_note(a, n)->role,
                          .pin = pin_of(a, n) };
        add_values(a, n, &d);
        if (!d.gives && !reads_values(a, n))
            continue;
        d.computes |= d.role.class == AMP_T;
        d.work = d.card == AMP_T ? amp_work(n) : 0;
        GROW(ledger->arena, ledger->list, ledger->n, ledger->cap);
        ledger->list[ledger->n++] = d;
    }
    ledger->inserted = casts_in(a->g);
}
