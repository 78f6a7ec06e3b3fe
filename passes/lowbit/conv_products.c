/* Convolutions of codes: forward, what reaches the data, and what reaches the weights.
 *
 * Forward a scale may differ from image to image, and from one channel of the result to the next.  What reaches the data
 * is a convolution of what arrived, with zeros between its elements where windows had strides, by the weights turned round:
 * a scale an image, and one a channel of the data.  What reaches the weights sums over images and positions: a scale a
 * channel of either. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/window/window.h"
#include "passes/lowbit/products.h"

enum { DATA, FILTER }; /* operands of conv and conv_transpose; conv_weight_grad reads data and what arrived */

static int64_t product_of(const Type *t, int from)
{
    int64_t n = 1;
    for (int i = from; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

static const ConvAttr *conv_of(const Node *call)
{
    return call->attr;
}

static int64_t groups_of(const Node *call)
{
    return call->op == OP_conv_transpose ? ((const ConvTransposeAttr *)call->attr)->group : conv_of(call)->group;
}

static int64_t whole(const Node *call)
{
    return product_way(call)->terms(call);
}

static Node *as_rows(Build *b, Node *x, int64_t rows)
{
    const int64_t n = type_elements(x->type);
    return make_shaped(b, x, 2, (const int64_t[]){ rows, rows ? n / rows : 0 });
}

static Node *like(Build *b, Node *x, const Type *t)
{
    return make_shaped(b, x, t->rank, t->dims);
}

/* [n, 1] as [n, 1, 1 ..], or as [1, n, 1 ..]; one scale for all is a number. */
static Node *along(Build *b, Node *s, int rank, int axis)
{
    int64_t dims[MAX_RANK];
    if (type_elements(s->type) == 1)
        return make_shaped(b, s, 0, NULL);
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? s->type->dims[0] : 1;
    return make_shaped(b, s, rank, dims);
}

static Node *sums_in_f32(Build *b, Node *sums)
{
    return sums ? build_cast(b, sums, F32) : NULL;
}

static Node *round_to_type(Build *b, const Node *call, Node *sums)
{
    return make_cast(b, sums, call->type->dtype);
}

/* ---- forward ---- */

static int64_t terms_forward(const Node *call)
{
    return product_of(in(call, FILTER)->type, 1);
}

/* Images, or channels of the result, with all that is summed behind them. */
static Node *lay_first(Build *b, const Node *call, int operand, Node *x, int *axis)
{
    *axis = 1;
    return as_rows(b, x, in(call, operand)->type->dims[0]);
}

static Node *unlay_first(Build *b, const Node *call, int operand, Node *x)
{
    return like(b, x, in(call, operand)->type);
}

static Node *scale_forward(Build *b, const Node *call, int operand, Node *s)
{
    return along(b, s, call->type->rank, operand);
}

static Node *multiply_forward(Build *b, const Node *call, Node *x, Node *y, int64_t most)
{
    ConvAttr at = *conv_of(call);
    at.out = 0;
    return most ? sums_in_f32(b, CALL_ATTR(b, conv_integer, at, x, y)) : CALL_ATTR(b, conv, at, x, y);
}

static Node *finish_forward(Build *b, const Node *call, Node *sums)
{
    Node *bias = call->n_in > 2 ? in(call, 2) : NULL;
    if (bias)
        sums = CALL(b, add, sums, make_channels(b, make_cast(b, bias, F32), call->type->dims[1], call->type->rank));
    return round_to_type(b, call, sums);
}

const ProductWay way_conv = { .first = DATA,
                              .terms = terms_forward,
                              .least = whole,
                              .lay = lay_first,
                              .unlay = unlay_first,
                              .scale = scale_forward,
                              .multiply = multiply_forward,
                              .finish = finish_forward };

/* ---- what reaches the data ---- */

/* [groups, results, channels, taps] of the weights of a group, or channels first. */
static Node *swap_channels(Build *b, Node *w, int64_t groups, int64_t first, int64_t second)
{
    const int64_t taps = type_elements(w->type) / (groups * first * second);
    Node *split = make_shaped(b, w, 4, (const int64_t[]){ groups, first, second, taps });
    return make_transpose(b, split, 4, (const int64_t[]){ 0, 2, 1, 3 });
}

static int64_t channels_of_group(const Node *call)
{
    return in(call, FILTER)->type->dims[1];
}

static int64_t results_of_group(const Node *call)
{
    return in(call, FILTER)->type->dims[0] / groups_of(call);
}

static int64_t terms_back(const Node *call)
{
    const Type *w = in(call, FILTER)->type;
    return results_of_group(call) * product_of(w, 2);
}

static Node *lay_back(Build *b, const Node *call, int operand, Node *x, int *axis)
{
    const int64_t groups = groups_of(call), channels = channels_of_group(call);
    if (operand == DATA)
        return lay_first(b, call, operand, x, axis);
    *axis = 1;
    return as_rows(b, swap_channels(b, x, groups, results_of_group(call), channels), groups * channels);
}

static Node *unlay_back(Build *b, const Node *call, int operand, Node *x)
{
    if (operand == DATA)
        return unlay_first(b, call, operand, x);
    return like(b, swap_channels(b, x, groups_of(call), channels_of_group(call), results_of_group(call)),
                in(call, operand)->type);
}

/* Zeros between elements, so that windows step by one. */
static Node *spread(Build *b, Node *x, int axis, int64_t step)
{
    const Type *t = x->type;
    int64_t dims[MAX_RANK + 1], none[MAX_RANK + 1] = { 0 }, behind[MAX_RANK + 1] = { 0 };
    const int64_t n = t->dims[axis];
    if (step == 1)
        return x;
    memcpy(dims, t->dims, (size_t)(axis + 1) * sizeof *dims);
    dims[axis + 1] = 1;
    memcpy(dims + axis + 2, t->dims + axis + 1, (size_t)(t->rank - axis - 1) * sizeof *dims);
    behind[axis + 1] = step - 1;
    Node *apart = make_pad(b, make_shaped(b, x, t->rank + 1, dims), t->rank + 1, none, behind);
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    dims[axis] = n * step;
    return make_slice(b, make_shaped(b, apart, t->rank, dims), axis, 0, (n - 1) * step + 1, 1);
}

static Node *turn_round(Build *b, Node *x, int axis)
{
    const int64_t n = x->type->dims[axis];
    int64_t *at = NEWS(b->graph->arena, int64_t, n + 1);
    for (int64_t i = 0; i < n; i++)
        at[i] = n - 1 - i;
    return n == 1 ? x : make_gather(b, x, build_i64s(b, (int)n, at), axis);
}

/* Weights with channels of the data as results, each tap where its mirror image was. */
static Node *turned_filter(Build *b, const Node *call, Node *w)
{
    const Type *t = in(call, FILTER)->type;
    int64_t dims[MAX_RANK];
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    dims[0] = groups_of(call) * channels_of_group(call);
    dims[1] = results_of_group(call);
    Node *turned = swap_channels(b, w, groups_of(call), results_of_group(call), channels_of_group(call));
    turned = make_shaped(b, turned, t->rank, dims);
    for (int i = 2; turned && i < t->rank; i++)
        turned = turn_round(b, turned, i);
    return turned;
}

static int64_t said(const Ints *v, int i, int64_t otherwise)
{
    return v->n > i ? v->v[i] : otherwise;
}

static Node *multiply_back_codes(Build *b, const Node *call, Node *dy, Node *w)
{
    const ConvTransposeAttr *at = call->attr;
    const int rank = call->type->rank - 2;
    int64_t *lists = NEWS(b->graph->arena, int64_t, 5 * MAX_SPATIAL), *kernel = lists, *ones = kernel + MAX_SPATIAL,
            *dilations = ones + MAX_SPATIAL, *pads = dilations + MAX_SPATIAL;
    int64_t before[MAX_RANK] = { 0 }, behind[MAX_RANK] = { 0 };
    bool cuts = false;
    for (int i = 0; i < rank; i++) {
        const int64_t step = said(&at->window.strides, i, 1);
        kernel[i] = in(call, FILTER)->type->dims[2 + i];
        ones[i] = 1;
        dilations[i] = said(&at->window.dilations, i, 1);
        const int64_t reach = (kernel[i] - 1) * dilations[i], have = (in(call, DATA)->type->dims[2 + i] - 1) * step + 1;
        const int64_t begin = reach - said(&at->window.pads, i, 0),
                      end = call->type->dims[2 + i] - have - begin + reach;
        dy = dy ? spread(b, dy, 2 + i, step) : NULL;
        pads[i] = begin > 0 ? begin : 0;
        pads[rank + i] = end > 0 ? end : 0;
        before[2 + i] = begin < 0 ? begin : 0;
        behind[2 + i] = end < 0 ? end : 0;
        cuts = cuts || begin < 0 || end < 0;
    }
    if (dy && cuts)
        dy = make_pad(b, dy, rank + 2, before, behind);
    const ConvAttr conv = { .window = { .kernel_shape = { rank, kernel },
                                        .strides = { rank, ones },
                                        .dilations = { rank, dilations },
                                        .pads = { 2 * rank, pads } },
                            .group = at->group };
    return sums_in_f32(b, CALL_ATTR(b, conv_integer, conv, dy, turned_filter(b, call, w)));
}

static Node *multiply_back(Build *b, const Node *call, Node *x, Node *y, int64_t most)
{
    ConvTransposeAttr at = *(const ConvTransposeAttr *)call->attr;
    at.out = 0;
    return most ? multiply_back_codes(b, call, x, y) : CALL_ATTR(b, conv_transpose, at, x, y);
}

const ProductWay way_conv_data = { .first = DATA,
                                   .terms = terms_back,
                                   .least = whole,
                                   .lay = lay_back,
                                   .unlay = unlay_back,
                                   .scale = scale_forward,
                                   .multiply = multiply_back,
                                   .finish = round_to_type };

/* ---- what reaches the weights ---- */

enum { X, DY };

static int64_t terms_weight(const Node *call)
{
    const Type *dy = in(call, DY)->type;
    return dy->dims[0] * product_of(dy, 2);
}

/* One image. */
static int64_t least_weight(const Node *call)
{
    return product_of(in(call, DY)->type, 2);
}

/* Channels first: what is summed are images and positions. */
static Node *lay_channels(Build *b, const Node *call, int operand, Node *x, int *axis)
{
    const Type *t = in(call, operand)->type;
    *axis = 1;
    x = make_shaped(b, x, 3, (const int64_t[]){ t->dims[0], t->dims[1], product_of(t, 2) });
    return as_rows(b, make_transpose(b, x, 3, (const int64_t[]){ 1, 0, 2 }), t->dims[1]);
}

static Node *unlay_channels(Build *b, const Node *call, int operand, Node *x)
{
    const Type *t = in(call, operand)->type;
    x = make_shaped(b, x, 3, (const int64_t[]){ t->dims[1], t->dims[0], product_of(t, 2) });
    return like(b, make_transpose(b, x, 3, (const int64_t[]){ 1, 0, 2 }), t);
}

/* A weight meets the channels of its own group. */
static Node *scale_weight(Build *b, const Node *call, int operand, Node *s)
{
    const Type *t = call->type;
    const int64_t groups = groups_of(call), results = t->dims[0] / groups;
    int64_t dims[MAX_RANK];
    if (operand == DY || type_elements(s->type) == 1)
        return along(b, s, t->rank, 0);
    if (groups == 1)
        return along(b, s, t->rank, 1);
    s = make_shaped(b, s, 3, (const int64_t[]){ groups, 1, t->dims[1] });
    s = make_expand(b, s, 3, (const int64_t[]){ groups, results, t->dims[1] });
    for (int i = 0; i < t->rank; i++)
        dims[i] = i < 2 ? t->dims[i] : 1;
    return make_shaped(b, s, t->rank, dims);
}

static Node *multiply_weight(Build *b, const Node *call, Node *x, Node *y, int64_t most)
{
    ConvAttr at = *conv_of(call);
    const int64_t images = in(call, DY)->type->dims[0], each = least_weight(call);
    const int64_t together = most && each ? most / each : images;
    Node *sum = NULL;
    at.out = 0;
    if (!most)
        return CALL_ATTR(b, conv_weight_grad, at, x, y);
    for (int64_t from = 0; b->status == OK && (from < images || !sum); from += together) {
        const int64_t to = images - from < together ? images : from + together;
        const bool all = from == 0 && to == images;
        Node *part = CALL_ATTR(b, conv_integer_weight_grad, at, all ? x : make_slice(b, x, 0, from, to, 1),
                               all ? y : make_slice(b, y, 0, from, to, 1));
        part = sums_in_f32(b, part);
        sum = sum ? CALL(b, add, sum, part) : part;
    }
    return sum;
}

const ProductWay way_conv_weight = { .first = DY,
                                     .terms = terms_weight,
                                     .least = least_weight,
                                     .lay = lay_channels,
                                     .unlay = unlay_channels,
                                     .scale = scale_weight,
                                     .multiply = multiply_weight,
                                     .finish = round_to_type };

const ProductWay *product_way(const Node *call)
{
    return call->op == OP_conv               ? &way_conv
           : call->op == OP_conv_transpose   ? &way_conv_data
           : call->op == OP_conv_weight_grad ? &way_conv_weight
                                             : &way_matrix;
}
