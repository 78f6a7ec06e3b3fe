/* resize: sizes, coordinates and weights.  All of it in f64 with + - * / alone, hence the same everywhere. */
#include "ops/sample/resize.h"

#include <math.h>

int resize_axes(const ResizeAttr *at, int rank, int *axes)
{
    bool seen[MAX_RANK] = { false };
    if (!at->axes.v) {
        for (int i = 0; i < rank; i++)
            axes[i] = i;
        return rank;
    }
    for (int i = 0; i < at->axes.n; i++) {
        const int64_t a = at->axes.v[i] < 0 ? at->axes.v[i] + rank : at->axes.v[i];
        if (a < 0 || a >= rank || seen[a])
            return -1;
        seen[a] = true;
        axes[i] = (int)a;
    }
    return at->axes.n;
}

bool resize_keeps(const ResizePlan *p, int axis)
{
    return p->scale[axis] == 1 && p->out[axis] == p->in[axis] && p->start[axis] == 0 && p->end[axis] == 1;
}

static const char *plan_roi(ResizePlan *p, Arena *arena, const Tensor *roi, int n, const int *axes)
{
    if (!roi || tensor_elements(roi) != 2 * n)
        return arena_printf(arena, "needs a roi of %d numbers, got %" PRId64, 2 * n, roi ? tensor_elements(roi) : 0);
    for (int i = 0; i < n; i++) {
        p->start[axes[i]] = tensor_get_f64(roi, i);
        p->end[axes[i]] = tensor_get_f64(roi, n + i);
        if (!(fabs(p->start[axes[i]]) <= 1e6) || !(fabs(p->end[axes[i]]) <= 1e6))
            return arena_printf(arena, "has a roi from %g to %g", p->start[axes[i]], p->end[axes[i]]);
    }
    return NULL;
}

static const char *set_extent(ResizePlan *p, Arena *arena, const Limits *limits, int axis, double extent)
{
    if (!(extent >= 0) || extent > (double)limits->dim)
        return arena_printf(arena, "makes axis %d %g long", axis, extent);
    p->out[axis] = (int64_t)extent;
    if (p->in[axis] == 0 && p->out[axis] > 0)
        return arena_printf(arena, "cannot make %" PRId64 " elements of none along axis %d", p->out[axis], axis);
    return NULL;
}

static const char *plan_scales(ResizePlan *p, Arena *arena, const Limits *limits, const Tensor *scales, int n,
                               const int *axes)
{
    if (tensor_elements(scales) != n)
        return arena_printf(arena, "has %" PRId64 " scales for %d axes", tensor_elements(scales), n);
    for (int i = 0; i < n; i++) {
        const int a = axes[i];
        const double scale = tensor_get_f64(scales, i);
        if (!(scale > 0) || !(scale < HUGE_VAL))
            return arena_printf(arena, "has a scale of %g", scale);
        p->scale[a] = scale;
        if (p->in[a] < 0) {
            p->out[a] = DIM_UNKNOWN;
            continue;
        }
        const char *wrong =
            set_extent(p, arena, limits, a, floor((double)p->in[a] * (p->end[a] - p->start[a]) * scale));
        if (wrong)
            return wrong;
    }
    return NULL;
}

/* One scale for all axes: the least or the largest of those that the sizes ask for; 0 while one is unknown. */
static double common_scale(const ResizePlan *p, int policy, int n, const int *axes)
{
    double common = 0;
    for (int i = 0; i < n; i++) {
        const int a = axes[i];
        if (p->in[a] < 0)
            return 0;
        const bool better = policy == POLICY_NOT_LARGER ? p->scale[a] < common : p->scale[a] > common;
        if (i == 0 || better)
            common = p->scale[a];
    }
    return common;
}

static const char *plan_sizes(ResizePlan *p, Arena *arena, const Limits *limits, const ResizeAttr *at,
                              const Tensor *sizes, int n, const int *axes)
{
    const char *wrong = NULL;
    if (tensor_elements(sizes) != n)
        return arena_printf(arena, "has %" PRId64 " sizes for %d axes", tensor_elements(sizes), n);
    for (int i = 0; i < n && !wrong; i++) {
        const int a = axes[i];
        wrong = set_extent(p, arena, limits, a, (double)tensor_get_i64(sizes, i));
        p->scale[a] = p->in[a] > 0 ? (double)p->out[a] / (double)p->in[a] : 1;
    }
    if (wrong || at->keep_aspect_ratio_policy == POLICY_STRETCH)
        return wrong;
    const double common = common_scale(p, at->keep_aspect_ratio_policy, n, axes);
    for (int i = 0; i < n && !wrong; i++) {
        const int a = axes[i];
        p->scale[a] = common;
        p->out[a] = DIM_UNKNOWN;
        if (common > 0)
            wrong = set_extent(p, arena, limits, a, floor(common * (double)p->in[a] + 0.5));
    }
    return wrong;
}

const char *resize_plan(ResizePlan *p, Arena *arena, const Limits *limits, const ResizeAttr *at, const Type *x,
                        const Tensor *roi, const Tensor *scales, const Tensor *sizes)
{
    int axes[MAX_RANK];
    const int n = resize_axes(at, x->rank, axes);
    const char *wrong = NULL;
    p->rank = x->rank;
    for (int i = 0; i < x->rank; i++) {
        p->in[i] = p->out[i] = x->dims[i];
        p->scale[i] = p->end[i] = 1;
        p->start[i] = 0;
    }
    if (n < 0)
        return arena_printf(arena, "names an axis twice or outside [%d, %d)", -x->rank, x->rank);
    if (at->coordinate_transformation_mode == COORD_TF_CROP_AND_RESIZE)
        wrong = plan_roi(p, arena, roi, n, axes);
    if (wrong)
        return wrong;
    return sizes ? plan_sizes(p, arena, limits, at, sizes, n, axes) : plan_scales(p, arena, limits, scales, n, axes);
}

ResizeAxis resize_axis_of(const ResizePlan *p, int axis)
{
    return (ResizeAxis){ (double)p->in[axis], (double)p->out[axis], p->scale[axis], p->start[axis], p->end[axis] };
}

int64_t resize_n_taps(const ResizeAttr *at, const ResizePlan *p, int axis, double *shrink)
{
    const int reach = at->mode == RESIZE_CUBIC ? 2 : 1;
    *shrink = at->antialias && p->scale[axis] < 1 ? p->scale[axis] : 1;
    return at->mode == RESIZE_NEAREST ? 1 : 2 * (int64_t)ceil(reach / *shrink);
}

/* The weights around x: taps / 2 positions on either side; the filter is stretched when `shrink` is below 1. */
static void weigh(const ResizeAttr *at, const ResizePlan *p, int axis, ResizeTaps *t, int64_t k, double x,
                  double shrink)
{
    const int64_t n = p->in[axis];
    const double first = ceil(x) - (double)(t->taps / 2);
    double sum = 0, *w = t->weight + k * t->taps;
    for (int64_t i = 0; i < t->taps; i++) {
        const double pos = first + (double)i, d = (pos - x) * shrink;
        const bool out = pos < 0 || pos > (double)(n - 1);
        w[i] = at->mode == RESIZE_CUBIC ? resize_cubic_f64(d, (double)at->cubic_coeff_a) : resize_linear_f64(d);
        if (out && at->exclude_outside)
            w[i] = 0;
        sum += w[i];
        t->at[k * t->taps + i] = resize_within_f64(pos, n);
    }
    const bool normal = at->exclude_outside || shrink < 1;
    for (int64_t i = 0; normal && sum != 0 && i < t->taps; i++)
        w[i] /= sum;
}

ResizeTaps resize_taps(Eval *e, const ResizeAttr *at, const ResizePlan *p, int axis)
{
    const int64_t n = p->out[axis], in = p->in[axis];
    const bool nearest = at->mode == RESIZE_NEAREST;
    double shrink;
    ResizeTaps t = { .taps = resize_n_taps(at, p, axis, &shrink) };
    t.at = eval_scratch(e, (size_t)n, (size_t)t.taps * sizeof *t.at);
    t.weight = eval_scratch(e, (size_t)n, (size_t)t.taps * sizeof *t.weight);
    t.outside = eval_scratch(e, (size_t)n, sizeof *t.outside);
    for (int64_t k = 0; k < n; k++) {
        const double x = resize_source_f64((ResizeCoordinates)at->coordinate_transformation_mode,
                                           resize_axis_of(p, axis), (double)k);
        t.outside[k] =
            at->coordinate_transformation_mode == COORD_TF_CROP_AND_RESIZE && !(x >= 0 && x <= (double)(in - 1));
        if (nearest) {
            t.at[k] = resize_nearest_f64((ResizeNearest)at->nearest_mode, x, in);
            t.weight[k] = 1;
        } else {
            weigh(at, p, axis, &t, k, x, shrink);
        }
    }
    return t;
}
