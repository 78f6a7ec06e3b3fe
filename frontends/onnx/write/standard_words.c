#include "frontends/onnx/write/standard_words.h"

#include <string.h>

#include "frontends/onnx/write/encode.h"
#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/contract/contract.h"
#include "ops/control/reverse.h"
#include "ops/window/window.h"

/* ---- products ---- */

static Node *turned(Build *b, Node *x)
{
    int64_t order[MAX_RANK];
    const int rank = x->type->rank;
    for (int i = 0; i < rank; i++)
        order[i] = i;
    order[rank - 2] = rank - 1;
    order[rank - 1] = rank - 2;
    return make_transpose(b, x, rank, order);
}

static Node *say_matmul(Build *b, const Node *n)
{
    const MatmulAttr *at = n->attr;
    Node *x = in(n, 0), *y = in(n, 1);
    if (x->type->rank < 0 || y->type->rank < 0)
        return NULL;
    if (at->ta && x->type->rank > 1)
        x = turned(b, x);
    if (at->tb && y->type->rank > 1)
        y = turned(b, y);
    return CALL(b, matmul, x, y);
}

/* ---- windows ---- */

static bool window_of(const Node *n, const WindowAttr *at, const Type *x, Window *w)
{
    return x && type_known(x) && x->rank > 2 && !window_place(w, n->graph->arena, at, x->rank - 2, x->dims + 2, NULL);
}

/* [N, g * c, ..] as [c, g * N, ..]: images and channels change places within each group. */
static Node *images_for_channels(Build *b, Node *x, int64_t group)
{
    const Type *t = x->type;
    int64_t apart[MAX_RANK] = { t->dims[0], group, t->dims[1] / group }, order[MAX_RANK] = { 2, 1, 0 };
    int64_t together[MAX_RANK] = { t->dims[1] / group, group * t->dims[0] };
    if (t->rank + 1 > MAX_RANK)
        return NULL;
    for (int i = 2; i < t->rank; i++) {
        apart[i + 1] = together[i] = t->dims[i];
        order[i + 1] = i + 1;
    }
    Node *y = make_transpose(b, make_reshape(b, x, t->rank + 1, apart), t->rank + 1, order);
    return make_reshape(b, y, t->rank, together);
}

/* The gradient of a filter is the convolution of the data with dy, strides and dilations having changed places. */
static Node *say_conv_weight_grad(Build *b, const Node *n)
{
    const ConvAttr *at = n->attr;
    Node *x = in(n, 0), *dy = in(n, 1);
    const Type *t = x->type;
    int64_t order[MAX_RANK] = { 1, 0 }, pads[2 * MAX_SPATIAL];
    Window w;
    if (!window_of(n, &at->window, t, &w) || !type_known(dy->type) || t->dims[1] % at->group)
        return NULL;
    for (int i = 0; i < w.rank; i++) {
        order[2 + i] = 2 + i;
        pads[i] = w.begin[i];
        pads[w.rank + i] = w.end[i];
    }
    const ConvAttr conv = { .window = { .strides = { w.rank, w.dilation },
                                        .dilations = { w.rank, w.stride },
                                        .pads = { 2 * w.rank, pads } },
                            .group = at->group };
    Node *y = CALL_ATTR(b, conv, conv, images_for_channels(b, x, at->group), make_transpose(b, dy, t->rank, order));
    for (int i = 0; y && i < w.rank; i++)
        if (y->type->dims[2 + i] > w.kernel[i])
            y = make_slice(b, y, 2 + i, 0, w.kernel[i], 1);
    return make_transpose(b, y, t->rank, order);
}

/* Each window brings its dy to where its largest element stands; a window in the padding brings nothing. */
static Node *say_max_pool_grad(Build *b, const Node *n)
{
    const PoolAttr at = { .window = ((const PoolAttr *)n->attr)->window };
    const ScatterAttr add = { .reduction = SCATTER_ADD };
    Node *x = in(n, 0), *dy = in(n, 1);
    if (!type_known(x->type) || !type_known(dy->type))
        return NULL;
    const int64_t elements = type_elements(x->type), windows = type_elements(dy->type);
    Node *pooled = build_node_n(b, OP_max_pool, &at, 1, &x, 2);
    if (!pooled)
        return NULL;
    const DType dtype = dy->type->dtype;
    Node *where = make_reshape(b, build_part(b, pooled, 1), 1, &windows), *none = build_scalar(b, I64, 0);
    Node *brought =
        CALL(b, where, CALL(b, less, where, none), build_scalar(b, dtype, 0), make_reshape(b, dy, 1, &windows));
    Node *dx = CALL_ATTR(b, scatter_elements, add,
                         make_filled(b, dtype, 0, type_vector(&b->graph->ir->types, dtype, elements)),
                         CALL(b, max, where, none), brought);
    return make_reshape(b, dx, x->type->rank, x->type->dims);
}

/* What the average at each position divides by; 1 where it sees nothing. */
static Node *counts_of(Build *b, const PoolAttr *at, const Window *w, DType dtype)
{
    int64_t dims[MAX_RANK] = { 1, 1 }, position[MAX_SPATIAL] = { 0 };
    memcpy(dims + 2, w->out, (size_t)w->rank * sizeof *dims);
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, dtype, w->rank + 2, dims));
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        Taps taps;
        const int64_t count = taps_at(&taps, w, position) ? pool_count(at, w, position, &taps) : 1;
        tensor_set_f64(t, i, (double)count);
        position_next(w->rank, w->out, position);
    }
    return build_const(b, t);
}

static Node *say_average_pool_grad(Build *b, const Node *n)
{
    const PoolAttr *at = n->attr;
    Node *dy = in(n, 0);
    const Type *t = n->type;
    int64_t filter[MAX_RANK];
    Window w;
    if (!type_known(dy->type) || !window_of(n, &at->window, t, &w) || !type_elements(dy->type))
        return NULL;
    filter[0] = t->dims[1];
    filter[1] = 1;
    memcpy(filter + 2, w.kernel, (size_t)w.rank * sizeof *filter);
    const Type *ones = type_tensor(&b->graph->ir->types, t->dtype, t->rank, filter);
    Node *share = CALL(b, div, dy, counts_of(b, at, &w, t->dtype));
    return window_input_grad(b, &w, t->dims[1], share, make_filled(b, t->dtype, 1, ones));
}

/* ---- amp_cast ---- */

static Node *say_amp_cast(Build *b, const Node *n)
{
    return build_cast(b, in(n, 0), n->type->dtype);
}

/* ---- all of them ---- */

static const struct {
    Op op;
    Node *(*say)(Build *b, const Node *n); /* null: not for this call */
} sayings[] = {
    { OP_amp_cast, say_amp_cast },
    { OP_matmul, say_matmul },
    { OP_conv_weight_grad, say_conv_weight_grad },
    { OP_max_pool_grad, say_max_pool_grad },
    { OP_average_pool_grad, say_average_pool_grad },
};

/* A call whose result is wider than its operands is one on wider operands. */
static bool widen(Node *n)
{
    const AttrSpec *s = attr_find(op_of(n)->attrs, str("out"));
    if (!s || s->kind != ATTR_DTYPE || !s->ours || *(const int *)attr_at(s, n->attr) == 0)
        return false;
    Build b = build_before(n);
    void *attr = attrs_copy(n->graph->arena, op_of(n)->attrs, n->attr);
    const DType to = (DType)(*(const int *)attr_at(s, attr) - 1);
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && in(n, i)->type->kind == TYPE_TENSOR && dtype_is_float(in(n, i)->type->dtype))
            node_set_in(n, i, build_cast(&b, in(n, i), to));
    *(int *)attr_at(s, attr) = 0;
    n->attr = attr;
    return true;
}

bool standardize_node(Node *n, Status *status)
{
    for (size_t i = 0; i < COUNT(sayings); i++) {
        if (sayings[i].op != n->op)
            continue;
        Build b = build_before(n);
        Node *y = sayings[i].say(&b, n);
        *status = b.status;
        if (!y)
            return false;
        if (y->type->dtype != n->type->dtype)
            y = build_cast(&b, y, n->type->dtype);
        stand_in(n, y);
        node_remove(n);
        return true;
    }
    return reverse_inline(n, status);
}

/* A narrow call that reads f32 beside narrow operands is one on f32 operands, rounded. */
static bool even_out(Node *n, Status *status)
{
    bool wide = false;
    Node **ins = NEWS(n->graph->arena, Node *, n->n_in + 1);
    Build b = build_before(n);
    if (n->type->kind != TYPE_TENSOR || !dtype_is_narrow(n->type->dtype) || n->n_regions)
        return false;
    for (int i = 0; i < n->n_in; i++) {
        ins[i] = in(n, i);
        wide |= ins[i] && ins[i]->type->kind == TYPE_TENSOR && ins[i]->type->dtype == F32;
    }
    if (!wide)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (ins[i] && ins[i]->type->kind == TYPE_TENSOR && dtype_is_narrow(ins[i]->type->dtype))
            ins[i] = build_cast(&b, ins[i], F32);
    Node *y = build_cast(&b, build_node(&b, n->op, n->attr, n->n_in, ins), n->type->dtype);
    *status = b.status;
    if (!y || y->type != n->type)
        return false;
    stand_in(n, y);
    node_remove(n);
    return true;
}

/* Expansions first: they know which widths lie inside. */
static bool replaced(Node *n, Status *status)
{
    return (op_of(n)->expand && standardize_node(n, status)) || (*status == OK && widen(n)) ||
           (*status == OK && standardize_node(n, status)) || (*status == OK && even_out(n, status));
}

/* What several results expanded to is held together by a tuple that no model has. */
static void drop_tuples(Graph *g)
{
    for (Node *n = walk_first(g), *next; n; n = next) {
        next = walk_next(g, n);
        Node *held = n->op == OP_part ? in(n, 0) : NULL;
        if (!held || held->op != OP_tuple)
            continue;
        graph_replace(n, in(held, (int)((const PartAttr *)n->attr)->index));
        node_remove(n);
        if (!held->uses)
            node_remove(held);
    }
}

Status standardize_graph(Graph *g, Map *left)
{
    Status status = OK;
    for (Node *n = walk_first(g), *before; n;) {
        bool standard = op_of(n)->structural || n->op == OP_tuple || encode_is_standard(n, ONNX_OPSET_NEWEST);
        Graph *at = n->graph;
        before = n->prev;
        if (!standard && replaced(n, &status)) {
            n = before ? before->next : at->first;
            continue;
        }
        TRY(status);
        if (!standard)
            map_put(left, op_of(n)->name, NULL);
        n = walk_next(g, n);
    }
    drop_tuples(g);
    return OK;
}
