/* What stands around a value that could be codes.  What only puts elements somewhere else: codes may go through it, and one
 * scale with them; what lays values side by side, which has codes of a scale of its own of codes of others; what stays
 * between a product and its quantizer; and what a target adds to a product on the way. */
#include "ops/card/words.h"
#include "passes/quant/placement.h"

static bool is_f32(const Node *n)
{
    return n && n->type->kind == TYPE_TENSOR && n->type->dtype == F32;
}

static bool is_plain(const Node *n)
{
    return !op_of(n)->row && op_of(n)->mode == MODE_PURE && !n->n_regions && n->n_in && is_f32(in(n, 0)) &&
           op_of(n)->quant.in[0] == QUANT_AGNOSTIC && op_of(n)->quant.out[0] == QUANT_AGNOSTIC;
}

Node *quant_moved_from(const Node *n)
{
    const bool part = n->op == OP_part;
    const Node *call = part ? in(n, 0) : n;
    if (!is_f32(n) || !is_plain(call) || (part && !op_moves(op_of(call))))
        return NULL;
    for (int i = 1; i < call->n_in; i++)
        if (in(call, i) && quant_role(&op_of(call)->quant, i) != QUANT_NEVER)
            return NULL;
    return in(call, 0);
}

bool quant_is_side_by_side(const Node *n)
{
    if (!is_f32(n) || !op_moves(op_of(n)) || !is_plain(n) || n->n_in < 2)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (!is_f32(in(n, i)) || quant_role(&op_of(n)->quant, i) != QUANT_AGNOSTIC)
            return false;
    return true;
}

bool quant_is_open(Placement *p, const Node *n)
{
    const Node *call = n->op == OP_part ? in(n, 0) : n;
    const QuantCallMark *c = quant_call(p, call);
    return c->in != WAY_OFF && (c->out != WAY_OFF || quant_multiplies(op_of(call)));
}

Node *quant_behind_rows(Placement *p, Node *n)
{
    for (;;) {
        Node *reader = n->uses ? n->uses->user : NULL;
        if (!reader || node_n_uses(n) != 1 || node_is_return(reader) || in(reader, 0) != n ||
            op_of(reader)->quant.in[0] != QUANT_AGNOSTIC || !is_f32(reader) ||
            (!op_of(reader)->row && op_of(reader)->mode == MODE_PURE) || !quant_is_open(p, reader))
            return n;
        for (int i = 1; i < reader->n_in; i++)
            if (in(reader, i) && !quant_weight_of(in(reader, i)))
                return n;
        n = reader;
    }
}

/* ---- sums that are part of a product ---- */

void quant_find_depths(Placement *p)
{
    for (Node *n = p->g->first; n; n = n->next)
        for (int i = 0; i < n->n_in; i++) {
            const int depth = in(n, i) ? quant_call(p, in(n, i))->depth + 1 : 0;
            if (depth > quant_call(p, n)->depth)
                quant_call(p, n)->depth = depth;
        }
}

/* Whether a value is what a product of codes gives, to this sum alone. */
static bool is_summed(Placement *p, const Node *n)
{
    const QuantCallMark *c = quant_call(p, n);
    return c->core && c->data && !c->floats && node_n_uses(n) == 1;
}

int quant_summed_product(Placement *p, const Node *n)
{
    if (!target_has(quantization_target(p->recipe)->fused_sums, op_of(n)->name) || n->n_in != 2 || !is_f32(n) ||
        !quant_is_open(p, n) || in(n, 0) == in(n, 1) || in(n, 0)->type != in(n, 1)->type)
        return -1;
    const bool first = is_summed(p, in(n, 0)), second = is_summed(p, in(n, 1));
    if (first && second)
        return quant_call(p, in(n, 1))->depth > quant_call(p, in(n, 0))->depth;
    return first ? 0 : second ? 1 : -1;
}
