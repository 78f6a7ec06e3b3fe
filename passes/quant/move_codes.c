/* What moves numbers between a dequantizer and a quantizer of the same scale moves codes: numbers of codes are codes
 * again, n * s / s being next to n. */
#include "ops/card/shapes.h"
#include "ops/control/reverse_call.h"
#include "ops/quant/quantize.h"
#include "ops/window/window.h"
#include "passes/quant/integers.h"

enum { MOST_MOVES = 16 };

/* A quantizer, what its numbers are moved by, the last move first, and the dequantizer that they come from. */
typedef struct Way {
    Node *quantizer, *moves[MOST_MOVES], *dequantizer;
    int n;
} Way;

static bool is_one_value(const Node *a, const Node *b)
{
    return a == b ||
           (a && b && a->op == OP_const && b->op == OP_const && tensor_same(node_constant(a, 0), node_constant(b, 0)));
}

static bool is_usual(const QuantizeAttr *at)
{
    return at->rounding == ROUND_RNE && !at->precision && !at->block_size;
}

/* Whether what a quantizer reads is a move that nobody else reads. */
static bool is_moved(const Node *n, const Node *reader)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (u->user != reader)
            return false;
    return reverse_moves_codes(n) && n->type->kind == TYPE_TENSOR && n->type->dtype == F32;
}

static bool find_way(Way *w, Node *quantizer)
{
    Node *reader = quantizer, *n = in(quantizer, 0);
    *w = (Way){ .quantizer = quantizer };
    for (; w->n < MOST_MOVES && is_moved(n, reader); reader = n, n = in(n, 0))
        w->moves[w->n++] = n;
    w->dequantizer = n;
    return w->n && op_of(n)->quant.dequantizes;
}

static void limits_said(const Node *n, int64_t *least, int64_t *largest)
{
    const AttrSpec *specs = op_of(n)->attrs;
    const AttrSpec *lo = attr_find(specs, str("least")), *hi = attr_find(specs, str("largest"));
    *least = lo && lo->kind == ATTR_INT ? *(const int64_t *)attr_at(lo, n->attr) : 0;
    *largest = hi && hi->kind == ATTR_INT ? *(const int64_t *)attr_at(hi, n->attr) : 0;
}

/* Who made codes: through moves, and the parts of a call. */
static const Node *maker_of(const Node *codes)
{
    while (reverse_moves_codes(codes))
        codes = in(codes, 0);
    return codes->op == OP_part && ((const PartAttr *)codes->attr)->index == 0 ? in(codes, 0) : codes;
}

/* Whether all codes are codes of the quantizer, too. */
static bool are_inside(const Way *w)
{
    int64_t least, largest, made_least, made_largest;
    limits_said(w->quantizer, &least, &largest);
    limits_said(maker_of(in(w->dequantizer, 0)), &made_least, &made_largest);
    return (least == 0 && largest == 0) || (least == made_least && largest == made_largest);
}

/* Whether a window may see nothing but padding: it would give the least code of the type. */
static bool sees_padding(const Node *n)
{
    const WindowAttr *at = n->op == OP_max_pool ? &((const PoolAttr *)n->attr)->window : NULL;
    bool pads = at && (at->ceil_mode || at->auto_pad);
    for (int i = 0; at && i < at->pads.n; i++)
        pads = pads || at->pads.v[i] != 0;
    return pads;
}

static bool may_move(const Way *w)
{
    const Node *q = w->quantizer, *d = w->dequantizer;
    int64_t least, largest;
    limits_said(q, &least, &largest);
    for (int i = 0; i < w->n; i++)
        if ((least || largest) && sees_padding(w->moves[i]))
            return false;
    return is_usual(q->attr) && !((const DequantizeAttr *)d->attr)->block_size && d->type->dtype == F32 &&
           q->type->dtype == in(d, 0)->type->dtype && dtype_is_integer(q->type->dtype) &&
           dtype_bits(q->type->dtype) <= 16 && dtype_bits(q->type->dtype) >= 8 && type_elements(in(q, 1)->type) == 1 &&
           in(q, 1)->type->dtype == F32 && is_one_value(in(q, 1), in(d, 1)) && is_one_value(in(q, 2), in(d, 2)) &&
           are_inside(w);
}

static Status move_codes(const Way *w, PassRun *run)
{
    Build b = build_before(w->quantizer);
    Node *codes = in(w->dequantizer, 0);
    for (int i = w->n - 1; i >= 0 && codes; i--) {
        const Node *move = w->moves[i];
        Node **ins = NEWS(run->scratch, Node *, move->n_in + 1);
        for (int k = 1; k < move->n_in; k++)
            ins[k] = in(move, k);
        ins[0] = codes;
        b.src = move->src;
        b.label = move->label;
        codes = build_node(&b, move->op, move->attr, move->n_in, ins);
    }
    TRY(b.status);
    stand_in(w->quantizer, codes);
    remove_unread(w->quantizer, run->scratch, NULL, NULL);
    run->changes++;
    return OK;
}

Status quant_move_codes(Graph *graph, PassRun *run)
{
    Way w;
    for (Node *n = graph->first, *next; n; n = next) {
        next = n->next;
        if (op_of(n)->quant.quantizes && !(n->flags & NODE_BACKWARD) && find_way(&w, n) && may_move(&w))
            TRY(move_codes(&w, run));
    }
    return OK;
}
