/* keep-gates: what the gradient of a recurrent layer would compute again of each step, the layer keeps.
 *
 *     graph @f(%x: f32[5,2,3], %w: f32[1,4,3], %r: f32[1,4,1], %dy: f32[5,1,2,1]) -> (%y, %dw) {
 *         %y: f32[5,1,2,1] = lstm(%x, %w, %r)
 *         %0: (f32[5,2,3], f32[1,4,3], f32[1,4,1], f32[1,8], f32[1,2,1], f32[1,2,1], f32[1,3]) = lstm_grad(%x, %w, %r, _, _, _, _, _, %dy, _, _, %y) side=backward
 *         %dw: f32[1,4,3] = part(%0, index=1) side=backward
 *     }
 *     ==>
 *     graph @f(%x: f32[5,2,3], %w: f32[1,4,3], %r: f32[1,4,1], %dy: f32[5,1,2,1]) -> (%y, %dw) {
 *         %0: (f32[5,1,2,1], f32[1,2,1], f32[1,2,1], f32[1,5,2,4], f32[1,5,2,1]) = lstm_kept(%x, %w, %r, _, _, _, _, _)
 *         %y: f32[5,1,2,1] = part(%0, index=0)
 *         %1: f32[1,5,2,4] = part(%0, index=3) side=backward
 *         %2: f32[1,5,2,1] = part(%0, index=4) side=backward
 *         %3: (f32[5,2,3], f32[1,4,3], f32[1,4,1], f32[1,8], f32[1,2,1], f32[1,2,1], f32[1,3]) = lstm_grad(%x, %w, %r, _, _, _, _, _, %dy, _, _, %y, %1, %2) side=backward
 *         %dw: f32[1,4,3] = part(%3, index=1) side=backward
 *     }
 *
 * Of the eight products of a layer and its way back two are saved, for as many numbers as five states of lstm have, or four of gru, for
 * each step.  What is kept are the numbers that would be computed again, so no bit differs; where that is not so (activations whose slopes
 * do not follow from what they gave, sixteen bits whose rounding is not the same) the gradient computes them again. */
#include "ops/recurrent/recurrent.h"
#include "passes/engine/pass.h"

enum { X, W, R, MOST_BYTES = 1 << 16 };

typedef struct Layer {
    Op grad, forward, kept;
    const Cell *cell;
} Layer;

static const Layer layers[] = {
    { OP_lstm_grad, OP_lstm, OP_lstm_kept, &cell_lstm },
    { OP_gru_grad, OP_gru, OP_gru_kept, &cell_gru },
};

static const Layer *layer_of(const Node *n)
{
    for (size_t i = 0; i < COUNT(layers); i++)
        if (layers[i].grad == n->op)
            return &layers[i];
    return NULL;
}

static bool is_cast(const Node *n)
{
    return n->op == OP_cast || n->op == OP_amp_cast;
}

/* Constants of the same numbers: states that begin with zeros, in the type of the call and in that of the gradient. */
static bool are_equal(const Node *x, const Node *y)
{
    const Tensor *a = node_constant(x, MOST_BYTES), *b = a ? node_constant(y, MOST_BYTES) : NULL;
    bool equal = b && tensor_elements(a) == tensor_elements(b);
    for (int64_t i = 0; equal && i < tensor_elements(a); i++)
        equal = tensor_get_f64(a, i) == tensor_get_f64(b, i);
    return equal;
}

/* Whether the gradient computes with the numbers that the call computes with: the same value or a wider copy of it; or, of what meets in
 * products, which round it to the type of the call, the value that was rounded for it. */
static bool is_same(const Node *call, const Node *grad, int operand, const Cell *cell)
{
    Node *x = in(call, operand), *y = in(grad, operand);
    if (x == y)
        return true;
    if (!x || !y)
        return false;
    const bool is_wider = dtype_bits(y->type->dtype) > dtype_bits(x->type->dtype);
    if ((is_wider && is_cast(y) && in(y, 0) == x) || are_equal(x, y))
        return true;
    const bool multiplied = operand <= R || operand == cell->first_state;
    return multiplied && dtype_is_narrow(x->type->dtype) && is_cast(x) && in(x, 0) == y;
}

/* The call whose gradient it is, if that takes what the call can keep; null: it is not there, or differs. */
static Node *call_of(const Node *grad, const Layer *l, Arena *scratch)
{
    const int n_in = recurrent_operands(l->cell), y = n_in + 1 + l->cell->states;
    Node *call = in(grad, y + 1) ? NULL : in(grad, y);
    if (call && is_cast(call))
        call = in(call, 0);
    if (call && call->op == OP_part)
        call = ((const PartAttr *)call->attr)->index ? NULL : in(call, 0);
    if (!call || (call->op != l->forward && call->op != l->kept) || call->graph != grad->graph)
        return NULL;
    const DType own = in(call, X)->type->dtype;
    DType products = in(grad, X)->type->dtype;
    (void)attr_dtype(((const RecurrentAttr *)grad->attr)->product_type, &products);
    if (!attrs_equal(op_of(call)->attrs, call->attr, grad->attr) || products != own ||
        !recurrent_keeps(l->cell, call->attr, own, scratch))
        return NULL;
    for (int i = 0; i < n_in; i++)
        if (!is_same(call, grad, i, l->cell))
            return NULL;
    return call;
}

static Node *keeping(Build *b, Node *call, const Layer *l)
{
    const int n_in = recurrent_operands(l->cell), n_y = 1 + l->cell->states;
    Node *ins[RECURRENT_OPERANDS] = { NULL };
    for (int i = 0; i < call->n_in; i++)
        ins[i] = in(call, i);
    return build_node_n(b, l->kept, call->attr, n_in, ins, n_y + RECURRENT_KEPT);
}

static Status keep_gates(Graph *g, PassRun *run)
{
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        const Layer *l = layer_of(n);
        Node *call = l ? call_of(n, l, run->scratch) : NULL, *ins[RECURRENT_OPERANDS] = { NULL };
        if (!call)
            continue;
        const int n_y = 1 + l->cell->states, behind = recurrent_operands(l->cell) + n_y + 1;
        Build b = build_before(call);
        Node *kept = call->op == l->kept ? call : keeping(&b, call, l);
        if (kept != call && b.status == OK)
            stand_in(call, call->type->kind == TYPE_TUPLE ? kept : build_part(&b, kept, 0));
        TRY(b.status);
        b = build_before(n);
        for (int i = 0; i < behind; i++)
            ins[i] = in(n, i);
        for (int i = 0; i < RECURRENT_KEPT; i++)
            ins[behind + i] = build_part(&b, kept, n_y + i);
        Node *by = build_node_n(&b, n->op, n->attr, behind + RECURRENT_KEPT, ins, type_results(n->type));
        TRY(b.status);
        stand_in(n, by);
        remove_unread(n, run->scratch, NULL, NULL);
        if (kept != call)
            remove_unread(call, run->scratch, NULL, NULL);
        run->changes++;
    }
    return OK;
}

const Pass pass_keep_gates = { .name = "keep-gates", .needs = TYPED, .may = EXACT, .run = keep_gates };
