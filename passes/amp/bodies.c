/* Values that enter and leave the bodies of if, loop and scan: of one width in every iteration, inside and outside. */
#include <math.h>

#include "ops/control/control.h"
#include "passes/amp/variables.h"

/* What enters a body by one operand, and leaves it by one result, is of one width in every turn. */
void amp_tie_parameters(AmpGraph *a, const Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        Node *def = amp_origin(a, in(n, i));
        const int k = amp_body_parameter(n, i);
        for (int r = 0; def && k >= 0 && r < n->n_regions; r++) {
            if ((size_t)k >= n->regions[r]->n_inputs || !amp_is_value(a, def))
                continue;
            Node *parameter = n->regions[r]->inputs[k];
            if (!amp_is_value(a, parameter))
                continue;
            const int v = amp_variable(a, parameter), from = amp_variable(a, def);
            amp_read_with(a, def, v, true);
            amp_tie(a, (AmpTie){ .a = from, .b = v, .leads = true });
            if (r)
                amp_keep_equal(a, v, amp_variable(a, n->regions[0]->inputs[k]));
        }
    }
}

static bool adds_operands(const OpDef *def)
{
    return def->combine == COMBINE_SUM && def->row;
}

/* A carried value that is added to in every turn stays wide. */
static bool adds_up(AmpGraph *a, const Node *parameter, Node *next)
{
    next = amp_origin(a, next);
    for (int i = 0; adds_operands(op_of(next)) && i < next->n_in; i++)
        if (amp_origin(a, in(next, i)) == parameter)
            return true;
    return false;
}

/* The variable of result k of a call with bodies: of what is carried, or of what reads it; -1: nobody does. */
static int slot_of(AmpGraph *a, const Node *n, int k)
{
    Node *part = amp_part(n, k), *parameter = amp_carried(a, n, k);
    const int v = part && amp_is_value(a, part) ? amp_variable(a, part) : -1;
    if (!parameter)
        return v;
    const int carried = amp_variable(a, parameter);
    if (adds_up(a, parameter, graph_result(n->regions[0], amp_body_result(n, k))))
        amp_fix(a, carried, AMP_WIDE);
    if (v >= 0)
        amp_keep_equal(a, carried, v);
    return carried;
}

void amp_tie_results(AmpGraph *a, const Node *n)
{
    for (int k = 0; k < type_results(n->type); k++)
        for (int r = 0; r < n->n_regions; r++) {
            const int at = amp_body_result(n, k);
            Node *def = at < graph_n_results(n->regions[r]) ? amp_origin(a, graph_result(n->regions[r], at)) : NULL;
            const int slot = def && amp_is_value(a, def) ? slot_of(a, n, k) : -1;
            if (slot < 0)
                continue;
            amp_read_with(a, def, slot, true);
            amp_tie(a, (AmpTie){ .a = amp_variable(a, def), .b = slot, .leads = true });
        }
}
