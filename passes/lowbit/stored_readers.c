/* Readers of stored weights.  A product reads the codes, cast to its type, and the scale leaves it: where slices of
 * one scale stay apart in the result it multiplies that, where the product adds over them it multiplies the other
 * operand.  A gather takes rows of codes and their scales.  Everybody else reads numbers. */
#include "passes/lowbit/stored_readers.h"

#include <string.h>

#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/card/words.h"
#include "ops/contract/contract.h"
#include "ops/quant/quantize.h"
#include "ops/window/window.h"

/* The weight as somebody reads it: turned, and in a narrower type. */
typedef struct View {
    Node *codes; /* in the state's type, turned as the weight is */
    int axis;
    DType type;
    const struct View *of; /* null: the state itself */
    Node *move;            /* what makes it of that */
} View;

typedef struct Reading {
    Node *reader;
    int operand;
    const View *view;
} Reading;

typedef struct Readings {
    Stored *s;
    Reading *list;
    size_t n, cap;
    Node **gone; /* nobody reads them any more */
    size_t n_gone, cap_gone;
} Readings;

/* ---- what is read ---- */

/* Whether a call gives the weight in a type that holds all codes, and whose products are f32. */
static bool narrows(const Node *n)
{
    const DType to = n->type->kind == TYPE_TENSOR ? n->type->dtype : F64;
    return (n->op == OP_cast || n->op == OP_amp_cast) && (to == F32 || to == F16 || to == BF16);
}

static Build at_start(Graph *g)
{
    Build b = build_at_start(g);
    b.flags = NODE_OURS;
    return b;
}

/* Behind a value that is there: states are before all else. */
static Build behind(Node *value)
{
    Build b = at_start(value->graph);
    if (value->op != OP_state) {
        b.before = value->next;
        b.src = value->src;
        b.label = value->label;
        b.flags |= value->flags & (NODE_BACKWARD | NODE_UPDATE);
    }
    return b;
}

/* Codes as floats, which hold them all. */
static Node *codes_as(Build *b, const View *v, DType type)
{
    return build_cast(b, v->codes, type);
}

/* The dimension along which scales of blocks change, and how many codes share one. */
static int64_t block_of(const Stored *s, int *axis)
{
    const Type *t = s->state->type, *scale = s->scale->type;
    for (*axis = t->rank - 1; *axis > 0 && t->dims[*axis] == scale->dims[*axis]; --*axis)
        ;
    return scale->dims[*axis] ? t->dims[*axis] / scale->dims[*axis] : 0;
}

static Node *numbers_of_state(Stored *s, uint16_t side)
{
    DequantizeAttr at = { .axis = 1 };
    Node **number = &s->number[side != 0];
    int axis;
    if (*number)
        return *number;
    Build b = at_start(s->graph);
    b.flags |= side;
    if (s->axis == STORED_PARTS) {
        at.block_size = block_of(s, &axis);
        at.axis = axis;
        *number = build_node(&b, OP_dequantize_linear, &at, s->zero ? 3 : 2, (Node *[]){ s->state, s->scale, s->zero });
    } else {
        Node *codes = build_cast(&b, s->state, F32);
        if (s->zero)
            codes = CALL(&b, sub, codes, build_cast(&b, s->zero, F32));
        *number = CALL(&b, mul, codes, s->scale);
    }
    return *number;
}

/* The numbers of a view, for one side: those of the state, moved as it is. */
static Node *numbers_of(Stored *s, const View *v, uint16_t side)
{
    int n = 0;
    for (const View *k = v; k->of; k = k->of)
        n++;
    if (!s->scale) {
        Build b = behind(v->codes);
        b.flags |= side;
        return build_cast(&b, v->codes, v->type);
    }
    const View **list = NEWS(s->run->scratch, const View *, n + 1);
    for (int i = n; v->of; v = v->of)
        list[--i] = v;
    Node *number = numbers_of_state(s, side);
    for (int i = 0; i < n && number; i++) {
        Build b = behind(number);
        Node *in[] = { number };
        number = build_node(&b, list[i]->move->op, list[i]->move->attr, 1, in);
    }
    return number;
}

static Status read_numbers(Stored *s, const Reading *r)
{
    Node *number = numbers_of(s, r->view, r->reader->flags & NODE_BACKWARD);
    if (!number)
        return INVALID;
    node_set_in(r->reader, r->operand, number);
    return OK;
}

/* The scale, to be multiplied along a dimension that has `behind` dimensions behind it. */
static Node *scale_along(const Stored *s, Build *b, int behind)
{
    int64_t dims[MAX_RANK];
    if (s->axis == STORED_WHOLE)
        return make_reshape(b, s->scale, 0, NULL);
    dims[0] = s->state->type->dims[s->axis];
    for (int i = 0; i < behind; i++)
        dims[1 + i] = 1;
    return make_reshape(b, s->scale, behind + 1, dims);
}

/* ---- products ---- */

/* Where slices of one scale end up. */
typedef struct Along {
    bool kept, summed;
    int behind; /* dimensions behind that of the slices, in the result or in the other operand */
} Along;

static Along along_matmul(const Node *n, int operand, int axis, bool ta, bool tb)
{
    const Type *own = in(n, operand)->type, *other = in(n, 1 - operand)->type;
    const bool turned = operand ? tb : ta, other_turned = operand ? ta : tb;
    int from_end = own->rank - 1 - axis;
    if (own->rank < 2 || other->rank < 2)
        return (Along){ .kept = false };
    if (axis == STORED_WHOLE)
        return (Along){ .kept = true };
    if (from_end > 1)
        return (Along){ .kept = false };
    from_end = turned ? 1 - from_end : from_end;
    if (from_end == (operand ? 0 : 1))
        return (Along){ .kept = true, .behind = operand ? 0 : 1 };
    return (Along){ .summed = true, .behind = (operand ? 0 : 1) ^ (int)other_turned };
}

/* Filters keep dimension 0 of a convolution apart and add over dimension 1; transposed ones the other way round.  In
 * groups dimension 1 is one of several. */
static Along along_filter(const Node *n, int axis, bool transposed, int64_t group)
{
    const int rank = n->type->rank, kept = transposed ? 1 : 0, summed = 1 - kept;
    if (axis == STORED_WHOLE)
        return (Along){ .kept = true };
    if ((axis == 1 && group != 1) || axis > 1 || rank < 2)
        return (Along){ .kept = false };
    return (Along){ .kept = axis == kept, .summed = axis == summed, .behind = rank - 2 };
}

static Along along(const Reading *r)
{
    const Node *n = r->reader;
    const int axis = r->view->axis;
    if (axis == STORED_PARTS)
        return (Along){ .kept = false };
    if (n->op == OP_matmul && r->operand < 2) {
        const MatmulAttr *at = n->attr;
        return along_matmul(n, r->operand, axis, at->ta, at->tb);
    }
    if (n->op == OP_gemm && r->operand < 2) {
        const GemmAttr *at = n->attr;
        if (at->alpha == 1 && (at->beta == 1 || !in(n, 2)))
            return along_matmul(n, r->operand, axis, at->transA, at->transB);
    }
    if (n->op == OP_conv && r->operand == 1)
        return along_filter(n, axis, false, ((const ConvAttr *)n->attr)->group);
    if (n->op == OP_conv_transpose && r->operand == 1)
        return along_filter(n, axis, true, ((const ConvTransposeAttr *)n->attr)->group);
    return (Along){ .kept = false };
}

/* The product of codes, in f32, without what is added to it. */
static Node *product(Build *b, const Reading *r, Node *codes)
{
    const Node *n = r->reader;
    const OpDef *def = op_of(n);
    const AttrSpec *out = attr_find(def->attrs, str("out"));
    void *attr = attrs_copy(b->graph->arena, def->attrs, n->attr);
    Node *ins[] = { in(n, 0), in(n, 1) };
    ins[r->operand] = codes;
    *(int *)attr_at(out, attr) = r->view->type == F32 ? 0 : (int)F32 + 1;
    return build_node(b, n->op, attr, 2, ins);
}

/* y = f32(x q) s + b, rounded once to what the call gives. */
static Status scale_result(Stored *s, const Reading *r, int behind)
{
    Node *n = r->reader, *addend = in(n, 2);
    Build b = build_before(n);
    b.flags |= NODE_OURS;
    Node *y = product(&b, r, codes_as(&b, r->view, r->view->type));
    y = CALL(&b, mul, y, scale_along(s, &b, behind));
    if (addend) {
        addend = make_cast(&b, addend, F32);
        if (n->op != OP_gemm)
            addend = make_channels(&b, addend, n->type->dims[1], n->type->rank);
        y = CALL(&b, add, y, addend);
    }
    y = y ? make_cast(&b, y, n->type->dtype) : NULL;
    TRY(b.status);
    stand_in(n, y);
    return OK;
}

/* y = (x s) q: slices of one scale are added up. */
static Status scale_operand(Stored *s, const Reading *r, int behind)
{
    Node *n = r->reader, *other = in(n, 1 - r->operand);
    Build b = build_before(n);
    b.flags |= NODE_OURS;
    Node *scaled = CALL(&b, mul, make_cast(&b, other, F32), scale_along(s, &b, behind));
    scaled = scaled ? make_cast(&b, scaled, other->type->dtype) : NULL;
    Node *codes = codes_as(&b, r->view, r->view->type);
    TRY(b.status);
    node_set_in(n, 1 - r->operand, scaled);
    node_set_in(n, r->operand, codes);
    return OK;
}

/* ---- tables ---- */

static bool picks_rows(const Reading *r)
{
    const Node *n = r->reader;
    return op_of(n)->quant.in[0] == QUANT_GATHER && r->operand == 0 && quant_weight_axis(n, 0) == 0 &&
           r->view->axis == 0 && in(n, 0)->type->rank == 2;
}

/* Rows of codes, and the scale of each. */
static Status pick(Stored *s, const Reading *r)
{
    Node *n = r->reader;
    Build b = build_before(n);
    b.flags |= NODE_OURS;
    Node *codes = build_node(&b, n->op, n->attr, 2, (Node *[]){ r->view->codes, in(n, 1) });
    Node *scale = build_node(&b, n->op, n->attr, 2, (Node *[]){ s->scale, in(n, 1) });
    Node *y = codes ? CALL(&b, mul, build_cast(&b, codes, F32), scale) : NULL;
    y = y ? make_cast(&b, y, n->type->dtype) : NULL;
    TRY(b.status);
    stand_in(n, y);
    return OK;
}

/* ---- all of them ---- */

/* What a reader that only moves the weight gives is another view of it. */
static const View *view_of(const Readings *all, const Reading *r)
{
    const Node *n = r->reader;
    Arena *arena = all->s->run->scratch;
    const bool turns = n->op == OP_transpose;
    if (!turns && !narrows(n))
        return NULL;
    View *v = NEW(arena, View);
    *v = *r->view;
    v->of = r->view;
    v->move = r->reader;
    v->type = n->type->dtype;
    if (!turns || all->s->axis == STORED_PARTS) /* whose numbers alone are read */
        return v;
    const Ints perm = ((const TransposeAttr *)n->attr)->perm;
    Build b = behind(r->view->codes);
    v->codes = build_node(&b, n->op, n->attr, 1, (Node *[]){ r->view->codes });
    for (int i = 0; i < n->type->rank && r->view->axis >= 0; i++)
        if ((perm.v ? perm.v[i] : n->type->rank - 1 - i) == r->view->axis)
            v->axis = i;
    return v;
}

static void add_readers(Readings *all, const View *v, Node *value)
{
    for (Use *u = value->uses; u; u = u->next) {
        GROW(all->s->run->scratch, all->list, all->n, all->cap);
        all->list[all->n++] = (Reading){ u->user, (int)(u - u->user->in), v };
    }
}

/* Whether the weight is another operand of the call, too. */
static bool reads_twice(const Stored *s, const Node *n, int operand)
{
    for (int i = 0; i < n->n_in; i++) {
        const Node *def = in(n, i);
        while (def && (def->op == OP_transpose || narrows(def)))
            def = in(def, 0);
        if (i != operand && def == s->state)
            return true;
    }
    return false;
}

static Status read_codes(Stored *s, const Reading *r)
{
    const Along a = along(r);
    if (!s->scale || s->zero || reads_twice(s, r->reader, r->operand))
        return read_numbers(s, r);
    if (a.kept)
        return scale_result(s, r, a.behind);
    if (a.summed)
        return scale_operand(s, r, a.behind);
    return picks_rows(r) ? pick(s, r) : read_numbers(s, r);
}

static Status read(Readings *all, Reading r)
{
    const View *moved = node_is_return(r.reader) ? NULL : view_of(all, &r);
    if (moved) {
        TRY(moved->codes ? OK : INVALID);
        add_readers(all, moved, r.reader);
    } else {
        TRY(read_codes(all->s, &r));
    }
    GROW(all->s->run->scratch, all->gone, all->n_gone, all->cap_gone);
    all->gone[all->n_gone++] = r.reader;
    all->s->run->changes++;
    return OK;
}

Status stored_readers(Stored *s)
{
    Readings all = { .s = s };
    const View whole = { .codes = s->state, .axis = s->axis, .type = F32 };
    Node *last = NULL;
    add_readers(&all, &whole, s->state);
    for (size_t i = 0; i < all.n; i++) /* more are found on the way */
        TRY(read(&all, all.list[i]));
    while (all.n_gone) {
        Node *n = all.gone[--all.n_gone];
        if (n != last && !node_is_return(n) && !n->uses)
            node_remove(n);
        last = n;
    }
    return OK;
}
