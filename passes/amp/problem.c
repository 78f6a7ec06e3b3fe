/* The choice between two widths as a labelling problem: who reads which value in which width, and where narrowing is
 * of use. */
#include "passes/amp/variables.h"

#include <math.h>

/* Bytes an element that rounding a value counts as for the sake of who reads it. */
static double reading_price(AmpClass reader)
{
    return reader == AMP_FI || reader == AMP_F || reader == AMP_X ? ROUNDS_WEAK : 0;
}

bool amp_rounds_behind(AmpGraph *a, const Node *n, const Node *def)
{
    int found = 0;
    if (n->type->kind != TYPE_TENSOR || amp_elements(n->type) >= amp_elements(def->type))
        return false;
    for (int i = 0; i < n->n_in && found < 2; i++) /* asked of each operand: two are enough to know */
        found += amp_reading(a, n, i) == AMP_WITH_US;
    return found == 1;
}

/* The variable of what a call gives; -1: nothing that is chosen. */
static int result_of(AmpGraph *a, Node *n)
{
    if (n->type->kind == TYPE_TENSOR)
        return amp_is_value(a, n) ? amp_variable(a, n) : -1;
    for (Use *u = n->uses; u; u = u->next)
        if (u->user->op == OP_part && amp_is_value(a, u->user)) {
            int k;
            amp_producer(u->user, &k);
            if (!amp_has(amp_note(a, n)->role.wide_out, k))
                return amp_variable(a, u->user);
        }
    return -1;
}

/* Whether a call gives no floats, but truths or indices: what a rounding turns is turned altogether (C-14). */
static bool decides(const Node *n)
{
    for (int k = 0; k < type_results(n->type); k++) {
        const Type *t = type_result(n->type, k);
        if (t->kind != TYPE_TENSOR || dtype_is_float(t->dtype))
            return false;
    }
    return true;
}

static void read_operands(AmpGraph *a, Node *n)
{
    const AmpRole *r = &amp_note(a, n)->role;
    const double price = reading_price(decides(n) ? AMP_FI : r->class);
    for (int i = 0; i < n->n_in; i++) {
        Node *def = amp_origin(a, in(n, i));
        const AmpReading reading = amp_reading(a, n, i);
        const int result = reading == AMP_WITH_US ? result_of(a, n) : -1;
        if (reading == AMP_NARROWLY)
            amp_read_narrowly(a, def);
        else if (reading == AMP_WITH_US && result >= 0)
            amp_read_with(a, def, result, !amp_rounds_behind(a, n, def));
        else if (reading != AMP_NOT_READ)
            amp_read_as_it_is(a, def, price);
    }
}

/* An update reads gradients and states wide. */
static void read_for_update(AmpGraph *a, const Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        Node *def = in(n, i) ? amp_origin(a, in(n, i)) : NULL;
        if (def && amp_is_value(a, def) && amp_may_change(a, def))
            amp_read_as_it_is(a, def, ROUNDS_RESULT);
    }
}

/* ---- where narrowing is of use: behind a narrow call, and on the way to one ---- */

/* Ties stand about in the order of the nodes: one sweep each way spreads along whole chains. */
static bool spread_use(AmpProblem *p, bool *behind, bool *before)
{
    bool more = false;
    for (size_t i = 0; i < p->n_ties; i++) {
        const AmpTie *t = &p->tie[i];
        const bool on = t->leads && behind[t->a] && !behind[t->b];
        behind[t->b] |= on;
        more |= on;
    }
    for (size_t i = p->n_ties; i-- > 0;) {
        const AmpTie *t = &p->tie[i];
        const AmpVariable *b = &p->variable[t->b];
        const bool back = b->copy_of < 0 && b->moves && before[t->b] && !before[t->a];
        before[t->a] |= back;
        more |= back;
    }
    return more;
}

/* Values that no narrow call gives or takes stay as they are: nothing is rounded for the sake of bytes alone. */
static void leave_useless(AmpProblem *p)
{
    bool *behind = NEWS(p->arena, bool, p->n + 1), *before = NEWS(p->arena, bool, p->n + 1);
    for (size_t i = 0; i < p->n; i++) {
        const AmpVariable *v = &p->variable[i];
        if (v->fixed != AMP_NARROW)
            continue;
        if (v->copy_of < 0)
            behind[i] = true;
        else
            before[v->copy_of] = true;
    }
    while (spread_use(p, behind, before))
        ;
    for (size_t i = 0; i < p->n; i++)
        if (p->variable[i].fixed == AMP_FREE && p->variable[i].copy_of < 0 && !behind[i] && !before[i])
            p->variable[i].fixed = AMP_WIDE;
}

/* ---- the graph ---- */

void amp_state_problem(AmpGraph *a)
{
    for (size_t i = 0; i < a->n; i++) {
        Node *n = a->nodes[i];
        if (n->flags & NODE_UPDATE)
            read_for_update(a, n);
        if (!amp_may_change(a, n) || n->op == OP_amp_cast)
            continue;
        if (amp_has_open_body(n))
            amp_tie_parameters(a, n);
        else
            read_operands(a, n);
        if (amp_is_value(a, n))
            amp_variable(a, n);
    }
    for (size_t i = 0; i < a->n; i++)
        if (amp_may_change(a, a->nodes[i]) && amp_has_open_body(a->nodes[i]))
            amp_tie_results(a, a->nodes[i]);
    for (int i = 0; i < graph_n_results(a->g); i++) {
        Node *def = amp_origin(a, graph_result(a->g, i));
        if (def && amp_is_value(a, def) && amp_may_change(a, def))
            amp_read_as_it_is(a, def, ROUNDS_RESULT);
    }
    leave_useless(&a->problem);
}
