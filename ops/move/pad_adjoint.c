/* The adjoint of pad: the gradient of the frame is added to that of the elements which the frame repeats, axis by
 * axis. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/move/move.h"
#include "ops/move/pad.h"

/* The gradient while it is folded. */
typedef struct Fold {
    Build *b;
    Node *g;
    int rank;
    int64_t dims[MAX_RANK];
} Fold;

static Node *sum_along(Build *b, Node *x, int axis)
{
    const int64_t axes = axis;
    return build_reduce(b, OP_reduce_sum, x, 1, &axes);
}

/* Elements from .. to - 1 of the axis, added up. */
static Node *sum_of(Fold *f, int axis, int64_t from, int64_t to)
{
    return sum_along(f->b, make_slice(f->b, f->g, axis, from, to, 1), axis);
}

/* Zeros around one axis. */
static void frame(Fold *f, int axis, int64_t before, int64_t after)
{
    int64_t front[MAX_RANK] = { 0 }, back[MAX_RANK] = { 0 };
    front[axis] = before;
    back[axis] = after;
    f->g = make_pad(f->b, f->g, f->rank, front, back);
    f->dims[axis] += before + after;
}

/* Elements `period` apart, added up; `before` of them stand in front of the first. */
static void fold_period(Fold *f, int axis, int64_t period, int64_t before)
{
    const int64_t front = (period - before % period) % period;
    frame(f, axis, front, (period - (front + f->dims[axis]) % period) % period);
    const int64_t outer = move_count(f->dims, 0, axis), inner = move_count(f->dims, axis + 1, f->rank);
    Node *g = make_reshape(f->b, f->g, 4, (const int64_t[]){ outer, f->dims[axis] / period, period, inner });
    f->dims[axis] = period;
    f->g = make_reshape(f->b, sum_along(f->b, g, 1), f->rank, f->dims);
}

/* Reflection repeats the axis forwards and backwards: in such a period the elements i and period - i are one element
 * of x. */
static void fold_reflected(Fold *f, int axis, int64_t left, int64_t before)
{
    const int64_t period = left > 1 ? 2 * (left - 1) : 1;
    fold_period(f, axis, period, before);
    if (left <= 2)
        return;
    Fold back = *f;
    back.g = make_slice(f->b, f->g, axis, period - 1, left - 1, -1);
    back.dims[axis] = left - 2;
    frame(&back, axis, 1, 1);
    f->g = CALL(f->b, add, make_slice(f->b, f->g, axis, 0, left, 1), back.g);
    f->dims[axis] = left;
}

static void fold_edges(Fold *f, int axis, int64_t left, int64_t before)
{
    const int64_t last = before + left - 1, n = f->dims[axis];
    Node *parts[3];
    int count = 0;
    f->dims[axis] = left;
    if (left == 1) {
        f->g = sum_along(f->b, f->g, axis);
        return;
    }
    parts[count++] = sum_of(f, axis, 0, before + 1);
    if (left > 2)
        parts[count++] = make_slice(f->b, f->g, axis, before + 1, last, 1);
    parts[count++] = sum_of(f, axis, last, n);
    f->g = make_concat(f->b, axis, count, parts);
}

/* The pads of each axis, as a constant call lists them. */
static void constant_pads(const Site *s, int64_t *before, int64_t *after)
{
    const int rank = s->in[0]->type->rank;
    const Tensor *pads = s->value[1], *axes = s->n_in > 3 ? s->value[3] : NULL;
    const int64_t n = axes ? tensor_elements(axes) : rank;
    for (int i = 0; i < rank; i++)
        before[i] = after[i] = 0;
    for (int64_t i = 0; pads && i < n; i++) {
        const int axis = axis_wrap(axes ? tensor_get_i64(axes, i) : i, rank);
        before[axis] = tensor_get_i64(pads, i);
        after[axis] = tensor_get_i64(pads, n + i);
    }
}

static Node *unpad(Build *b, Node *g, int rank, const int64_t *before, const int64_t *after)
{
    int64_t front[MAX_RANK], back[MAX_RANK];
    for (int i = 0; i < rank; i++) {
        front[i] = -before[i];
        back[i] = -after[i];
    }
    return make_pad(b, g, rank, front, back);
}

static Node *unfold(Build *b, const Site *s, int mode, const int64_t *before, const int64_t *after)
{
    const Type *x = s->in[0]->type;
    int64_t front[MAX_RANK], back[MAX_RANK];
    Fold f = { .b = b, .g = s->dout[0], .rank = x->rank };
    for (int i = 0; i < x->rank; i++)
        f.dims[i] = s->dout[0]->type->dims[i];
    for (int i = 0; i < x->rank; i++) {
        front[i] = before[i] < 0 ? -before[i] : 0;
        back[i] = after[i] < 0 ? -after[i] : 0;
        const int64_t left = x->dims[i] - front[i] - back[i], ahead = before[i] > 0 ? before[i] : 0;
        if (before[i] <= 0 && after[i] <= 0)
            continue;
        if (mode == PAD_EDGE)
            fold_edges(&f, i, left, ahead);
        else if (mode == PAD_WRAP)
            fold_period(&f, i, left, ahead);
        else
            fold_reflected(&f, i, left, ahead);
    }
    return make_pad(b, f.g, x->rank, front, back);
}

/* The gradient of the constant: the sum over all elements of the result that are not part of x. */
static Node *of_frame(Build *b, const Site *s, const int64_t *before, const int64_t *after)
{
    const Type *x = s->in[0]->type, *c = s->in[2]->type;
    Node *inner = unpad(b, s->dout[0], x->rank, before, after);
    Node *outer = CALL(b, sub, s->dout[0], make_pad(b, inner, x->rank, before, after));
    return make_reshape(b, make_reduce_all(b, OP_reduce_sum, outer), c->rank, c->dims);
}

void adjoint_pad(Build *b, const Site *s, Node **dx)
{
    const int mode = ((const PadAttr *)s->attr)->mode, rank = s->in[0]->type->rank;
    int64_t before[MAX_RANK], after[MAX_RANK];
    constant_pads(s, before, after);
    if (type_elements(s->dout[0]->type) == 0)
        return;
    if (s->want[0])
        dx[0] = mode == PAD_CONSTANT ? unpad(b, s->dout[0], rank, before, after) : unfold(b, s, mode, before, after);
    if (site_in(s, 2) && s->want[2] && mode == PAD_CONSTANT)
        dx[2] = of_frame(b, s, before, after);
}

void adjoint_center_crop_pad(Build *b, const Site *s, Node **dx)
{
    const Type *x = s->in[0]->type;
    int64_t before[MAX_RANK], after[MAX_RANK];
    center_pads(x, s->dout[0]->type, before, after);
    dx[0] = unpad(b, s->dout[0], x->rank, before, after);
}
