/* The calls that give the gradients of lstm, gru and rnn: their types, and where they come from (what they compute is in
 * ops/recurrent/recurrent_grad.c). */
#include "ops/card/make.h"
#include "ops/recurrent/recurrent.h"

const Type *infer_recurrent_grad(Infer *q, const Cell *cell)
{
    const int n_in = recurrent_operands(cell), n_y = 1 + cell->states;
    const int n_dx = 4 + cell->states + (cell->peephole >= 0);
    const int asked = q->n_out;
    q->n_out = n_y;
    const Type *y = infer_recurrent(q, cell);
    q->n_out = asked;
    if (!y)
        return NULL;
    if (q->in[0]->dtype != F32 && q->in[0]->dtype != F64)
        return infer_fail(q, "works in f32 and f64, not in %s", dtype_name(q->in[0]->dtype));
    if (!infer_tensor(q, n_in + n_y))
        return NULL;
    for (int i = 0; i <= n_y; i++) {
        const Type *given = infer_has(q, n_in + i) ? q->in[n_in + i] : NULL, *wanted = y->parts[i < n_y ? i : 0];
        if (given && !type_agrees(given, wanted))
            return infer_fail(q, "operand %d is %s, wanted is %s", n_in + i, type_text(q->scratch, given),
                              type_text(q->scratch, wanted));
    }
    const Type *w = q->in[1], *r = q->in[2], *kept[RECURRENT_KEPT];
    recurrent_kept_types(q->types, q->attr, cell, q->in[0], r, kept);
    for (int i = 0; i < RECURRENT_KEPT; i++) {
        const int at = n_in + n_y + 1 + i;
        if (infer_has(q, at) != infer_has(q, n_in + n_y + 1))
            return infer_fail(q, "has one of the operands that keep what entered its gates, but not the other");
        if (!infer_has(q, at))
            continue;
        if (!recurrent_keeps(cell, q->attr, F32, q->scratch))
            return infer_fail(q, "cannot take what such gates gave: their slopes do not follow from it");
        if (!type_agrees(q->in[at], kept[i]))
            return infer_fail(q, "operand %d is %s, wanted is %s", at, type_text(q->scratch, q->in[at]),
                              type_text(q->scratch, kept[i]));
    }
    const int64_t d = w->rank == 3 ? w->dims[0] : DIM_UNKNOWN, hidden = r->rank == 3 ? r->dims[2] : DIM_UNKNOWN;
    const int64_t wide = hidden < 0 ? hidden : cell->gates * hidden;
    const Type *state = y->parts[1], *t = q->in[0];
    const Type *results[7] = { q->in[0], w,
                               r,        infer_shaped(q, 0, 2, (const int64_t[]){ d, wide < 0 ? wide : 2 * wide }),
                               state,    state };
    results[4 + cell->states] =
        type_tensor(q->types, t->dtype, 2, (const int64_t[]){ d, hidden < 0 ? hidden : 3 * hidden });
    return infer_results(q, n_dx, results);
}

/* Of the gradient of a call: what was narrow in its products is narrow in those, too. */
static RecurrentAttr attr_back(const Node *call)
{
    RecurrentAttr at = { .product_type = type_result(call->type, 0)->dtype == BF16 ? BF16 + 1 : 0 };
    for (const AttrSpec *spec = op_of(call)->attrs; spec->kind != ATTR_END; spec++)
        attr_copy_field(spec, &at, call->attr);
    return at;
}

void adjoint_recurrent(Build *b, const Site *s, Node **dx, Op grad, const Cell *cell)
{
    enum { LENGTHS = 4 };
    const int n_in = recurrent_operands(cell);
    Node *ins[RECURRENT_OPERANDS] = { NULL };
    for (int i = 0; i < s->n_in; i++)
        ins[i] = s->in[i];
    for (int i = 0; i < s->n_out; i++)
        ins[n_in + i] = s->dout[i];
    ins[n_in + 1 + cell->states] = s->y[0];
    const RecurrentAttr at = attr_back(s->call);
    Node *call = build_node_n(b, grad, &at, n_in + 2 + cell->states, ins, n_in - 1);
    for (int i = 0; i < s->n_in; i++)
        if (s->want[i])
            dx[i] = build_part(b, call, i < LENGTHS ? i : i - 1);
}

Node *sample_recurrent_kept(Build *b, Rng *rng, int variant, Op op, Op forward, const Cell *cell)
{
    Node *y = sample_recurrent(b, rng, variant, forward, cell), *ins[RECURRENT_OPERANDS] = { NULL };
    if (!y)
        return NULL;
    RecurrentAttr at = attr_back(y);
    at.product_type = 0;
    at.activations = (Strs){ 0 };
    at.clip = 0;
    at.linear_before_reset = true;
    const bool wide = !recurrent_keeps(cell, &at, in(y, 0)->type->dtype, b->graph->arena);
    for (int i = 0; i < y->n_in; i++)
        ins[i] = wide && in(y, i) && dtype_is_float(in(y, i)->type->dtype) ? make_cast(b, in(y, i), F32) : in(y, i);
    return build_node_n(b, op, &at, recurrent_operands(cell), ins, 1 + cell->states + RECURRENT_KEPT);
}

/* What the forward call would have kept: of some calls that can. */
static void sample_kept(Build *b, Rng *rng, const RecurrentAttr *at, const Cell *cell, Node **ins)
{
    const int n_in = recurrent_operands(cell), n_y = 1 + cell->states;
    const Op op = cell == &cell_lstm ? OP_lstm_kept : OP_gru_kept;
    if (!recurrent_keeps(cell, at, F32, b->graph->arena) || rng_below(rng, 2))
        return;
    RecurrentAttr forward = *at;
    forward.product_type = 0;
    Node *call = build_node_n(b, op, &forward, n_in, ins, n_y + RECURRENT_KEPT);
    for (int i = 0; i < RECURRENT_KEPT; i++)
        ins[n_in + n_y + 1 + i] = build_part(b, call, n_y + i);
}

Node *sample_recurrent_grad(Build *b, Rng *rng, int variant, Op op, Op forward, const Cell *cell)
{
    Node *y = sample_recurrent(b, rng, variant, forward, cell), *ins[RECURRENT_OPERANDS] = { NULL };
    if (!y)
        return NULL;
    const DType width = make_width(in(y, 0)->type->dtype);
    const int n_in = recurrent_operands(cell), n_y = type_results(y->type);
    for (int i = 0; i < y->n_in; i++)
        ins[i] = in(y, i) && dtype_is_float(in(y, i)->type->dtype) ? make_cast(b, in(y, i), width) : in(y, i);
    for (int i = 0; i < n_y; i++) {
        const Type *t = type_result(y->type, i);
        if (rng_below(rng, 4))
            ins[n_in + i] = sample_tensor(b, rng, width, t->rank, t->dims, -1, 1);
    }
    ins[n_in + 1 + cell->states] = make_cast(b, build_part(b, y, 0), width);
    const RecurrentAttr at = attr_back(y);
    sample_kept(b, rng, &at, cell, ins);
    const int n_kept = ins[n_in + 2 + cell->states] ? RECURRENT_KEPT : 0;
    return build_node_n(b, op, &at, n_in + 2 + cell->states + n_kept, ins, n_in - 1);
}
