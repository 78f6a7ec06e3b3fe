#include "ops/window/window_access.h"

enum { BIAS = 2 };

/* The axes of a space: images, groups, results of a group, positions, taps, channels of a group. */
typedef struct ConvAxes {
    int image, group, result, at, tap, channel;
} ConvAxes;

static const int64_t *dims_of(const Node *n, int i)
{
    return in(n, i)->type->dims;
}

static bool begin(const Node *n, Arena *arena, Iteration *to, int x, int w)
{
    return type_known(in(n, x)->type) && type_known(in(n, w)->type) && iteration_open(to, n, arena, 0, NULL);
}

static int axes(Iteration *it, int rank, const int64_t *extent, bool folded)
{
    const int first = it->rank;
    for (int i = 0; i < rank; i++)
        folded ? iteration_fold(it, extent[i]) : iteration_axis(it, extent[i]);
    return first;
}

/* A dimension that counts what the groups have, one group behind the other. */
static void reach_groups(const Iteration *it, Access *a, int d, int group, int one)
{
    reach_along(it, a, d, group, it->extent[one]);
    reach_along(it, a, d, one, 1);
}

/* [images, groups * channels (or results), positions..] */
static Access *reach_data(const Iteration *it, Arena *arena, Access *a, const ConvAxes *axis, int channel, int rank)
{
    reach_affine(it, arena, a, 2 + rank);
    reach_along(it, a, 0, axis->image, 1);
    reach_groups(it, a, 1, axis->group, channel);
    for (int i = 0; i < rank; i++)
        reach_along(it, a, 2 + i, axis->at + i, 1);
    return a;
}

/* The spatial coordinates of what a window's taps see; padding lies outside. */
static void reach_taps(const Iteration *it, Access *a, const Window *w, const ConvAxes *axis, Guard outside)
{
    a->guard = outside;
    for (int i = 0; i < w->rank; i++) {
        a->base[2 + i] = -w->begin[i];
        reach_along(it, a, 2 + i, axis->at + i, w->stride[i]);
        reach_along(it, a, 2 + i, axis->tap + i, w->dilation[i]);
    }
}

/* Weights [groups * first, second, taps..]. */
static void reach_filter(const Iteration *it, Arena *arena, Access *a, const ConvAxes *axis, int first, int second,
                         int rank)
{
    reach_affine(it, arena, a, 2 + rank);
    reach_groups(it, a, 0, axis->group, first);
    reach_along(it, a, 1, second, 1);
    for (int i = 0; i < rank; i++)
        reach_along(it, a, 2 + i, axis->tap + i, 1);
}

/* One number a channel of the result. */
static void reach_bias(const Node *n, Arena *arena, Iteration *to, int bias)
{
    if (in(n, bias))
        reach_beside(n, arena, &to->in[bias], in(n, bias)->type, 2);
}

static bool iterate_convolution(const Node *n, Arena *arena, Iteration *to, int x, int w, int bias)
{
    const ConvAttr *at = n->attr;
    Window win;
    if (!begin(n, arena, to, x, w))
        return false;
    const int64_t *data = dims_of(n, x), *filter = dims_of(n, w);
    const int rank = in(n, x)->type->rank - 2;
    if (window_place(&win, arena, &at->window, rank, data + 2, filter + 2))
        return false;
    ConvAxes axis;
    axis.image = iteration_axis(to, data[0]);
    axis.group = iteration_axis(to, at->group);
    axis.result = iteration_axis(to, filter[0] / at->group);
    axis.at = axes(to, rank, win.out, false);
    axis.tap = axes(to, rank, win.kernel, true);
    axis.channel = iteration_fold(to, filter[1]);
    reach_taps(to, reach_data(to, arena, &to->in[x], &axis, axis.channel, rank), &win, &axis, GUARD_FILL);
    reach_filter(to, arena, &to->in[w], &axis, axis.result, axis.channel, rank);
    reach_data(to, arena, &to->out[0], &axis, axis.result, rank);
    to->order = dtype_is_float(in(n, x)->type->dtype) ? ORDER_FMA : ORDER_ANY;
    reach_bias(n, arena, to, bias);
    reach_rest(n, to);
    return true;
}

bool iterate_conv(const Node *n, Arena *arena, Iteration *to)
{
    return iterate_convolution(n, arena, to, 0, 1, BIAS);
}

bool iterate_conv_integer(const Node *n, Arena *arena, Iteration *to)
{
    return iterate_convolution(n, arena, to, 0, 1, n->n_in);
}

bool iterate_qlinear_conv(const Node *n, Arena *arena, Iteration *to)
{
    enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, QLINEAR_BIAS };
    return iterate_convolution(n, arena, to, X, W, QLINEAR_BIAS);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Every element of the data, and zeros around it as far as taps reach from there, is sent along the taps: to where an
 * element of the result is, or nowhere. */
bool iterate_conv_transpose(const Node *n, Arena *arena, Iteration *to)
{
    const ConvTransposeAttr *at = n->attr;
    Window w;
    if (!begin(n, arena, to, 0, 1))
        return false;
    const int64_t *data = dims_of(n, 0), *filter = dims_of(n, 1);
    const int rank = in(n, 0)->type->rank - 2;
    int64_t lowest[MAX_SPATIAL], sent[MAX_SPATIAL];
    if (window_place_transposed(&w, arena, at, rank, data + 2, filter + 2))
        return false;
    for (int i = 0; i < rank; i++) {
        lowest[i] = -floor_div((w.kernel[i] - 1) * w.dilation[i] - w.begin[i], w.stride[i]);
        const int64_t most = floor_div(w.out[i] - 1 + w.begin[i], w.stride[i]) + 1 - lowest[i];
        sent[i] = most > 0 ? most : 0;
    }
    ConvAxes axis;
    axis.image = iteration_axis(to, data[0]);
    axis.group = iteration_axis(to, at->group);
    axis.result = iteration_axis(to, filter[1]);
    axis.tap = axes(to, rank, w.kernel, true);
    axis.at = axes(to, rank, sent, true);
    axis.channel = iteration_fold(to, filter[0] / at->group);
    Access *x = reach_data(to, arena, &to->in[0], &axis, axis.channel, rank);
    Access *y = reach_data(to, arena, &to->out[0], &axis, axis.result, rank);
    reach_taps(to, y, &w, &axis, GUARD_SKIP);
    x->guard = GUARD_FILL;
    for (int i = 0; i < rank; i++) {
        x->base[2 + i] = lowest[i];
        y->base[2 + i] += lowest[i] * w.stride[i];
    }
    reach_filter(to, arena, &to->in[1], &axis, axis.channel, axis.result, rank);
    reach_bias(n, arena, to, BIAS);
    to->order = ORDER_FMA;
    return true;
}

bool iterate_conv_weight_grad(const Node *n, Arena *arena, Iteration *to)
{
    const ConvAttr *at = n->attr;
    Window w;
    if (!begin(n, arena, to, 0, 1))
        return false;
    const int64_t *data = dims_of(n, 0), *back = dims_of(n, 1), *filter = access_result(n, 0)->dims;
    const int rank = in(n, 0)->type->rank - 2;
    if (window_place(&w, arena, &at->window, rank, data + 2, filter + 2))
        return false;
    ConvAxes axis;
    axis.group = iteration_axis(to, at->group);
    axis.result = iteration_axis(to, back[1] / at->group);
    axis.channel = iteration_axis(to, filter[1]);
    axis.tap = axes(to, rank, w.kernel, false);
    axis.image = iteration_fold(to, data[0]);
    axis.at = axes(to, rank, w.out, true);
    reach_taps(to, reach_data(to, arena, &to->in[0], &axis, axis.channel, rank), &w, &axis, GUARD_FILL);
    reach_data(to, arena, &to->in[1], &axis, axis.result, rank);
    reach_filter(to, arena, &to->out[0], &axis, axis.result, axis.channel, rank);
    to->order = dtype_is_float(in(n, 0)->type->dtype) ? ORDER_FMA : ORDER_ANY;
    return true;
}

static bool iterate_pool(const Node *n, Arena *arena, Iteration *to, Order order)
{
    const PoolAttr *at = n->attr;
    Window w;
    if (!type_known(in(n, 0)->type) || !iteration_open(to, n, arena, 0, NULL))
        return false;
    const int64_t *data = dims_of(n, 0);
    const int rank = in(n, 0)->type->rank - 2;
    if (window_place(&w, arena, &at->window, rank, data + 2, NULL))
        return false;
    ConvAxes axis;
    axis.image = iteration_axis(to, data[0]);
    axis.group = iteration_axis(to, 1);
    axis.channel = iteration_axis(to, data[1]);
    axis.at = axes(to, rank, w.out, false);
    axis.tap = axes(to, rank, w.kernel, true);
    reach_taps(to, reach_data(to, arena, &to->in[0], &axis, axis.channel, rank), &w, &axis, GUARD_SKIP);
    for (int i = 0; i < to->n_out; i++)
        reach_data(to, arena, &to->out[i], &axis, axis.channel, rank);
    to->order = order;
    return true;
}

bool iterate_max_pool(const Node *n, Arena *arena, Iteration *to)
{
    return iterate_pool(n, arena, to, ORDER_ANY);
}

bool iterate_mean_pool(const Node *n, Arena *arena, Iteration *to)
{
    return iterate_pool(n, arena, to, ORDER_OWN);
}
