/* What reaches the signals of dft and stft, and the window of stft: spectra are linear, and the transform back is, but
 * for a factor, the transform transposed. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/signal/spectrum.h"
#include "ops/window/window.h"

/* x cut off or filled up with zeros to n elements along an axis. */
static Node *to_extent(Build *b, Node *x, int axis, int64_t n)
{
    const Type *t = x->type;
    int64_t dims[MAX_RANK];
    if (t->dims[axis] >= n)
        return t->dims[axis] == n ? x : make_slice(b, x, axis, 0, n, 1);
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    dims[axis] = n - t->dims[axis];
    return make_concat(b, axis, 2, (Node *[]){ x, make_zeros(b, t->dtype, t->rank, dims) });
}

static Node *transform(Build *b, Node *x, int axis, DftAttr at)
{
    return CALL_ATTR(b, dft, at, x, NULL, build_scalar(b, I64, axis));
}

static Node *times(Build *b, Node *x, double factor)
{
    return CALL(b, mul, x, build_scalar(b, x->type->dtype, factor));
}

/* What reaches n numbers of `parts` parts along an axis from what reaches their spectrum, which may be one-sided: the
 * transform back lacks its factor 1 / n. */
static Node *back_from_spectrum(Build *b, Node *dy, int axis, int64_t n, int64_t parts)
{
    const int last = dy->type->rank - 1;
    Node *x = transform(b, to_extent(b, dy, axis, n), axis, (DftAttr){ .inverse = true });
    return x ? to_extent(b, times(b, x, (double)n), last, parts) : NULL;
}

/* The real numbers that a one-sided spectrum stands for depend on both sides: all bins but the first and, of an even
 * number, the middle one count twice. */
static Node *back_to_one_side(Build *b, Node *dy, int axis, int64_t n)
{
    const int64_t bins = n / 2 + 1;
    int64_t dims[MAX_RANK];
    for (int i = 0; i < dy->type->rank; i++)
        dims[i] = i == axis ? bins : 1;
    Tensor *share =
        tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, dy->type->dtype, dy->type->rank, dims));
    for (int64_t k = 0; k < bins; k++)
        tensor_set_f64(share, k, (k == 0 || 2 * k == n ? 1.0 : 2.0) / (double)n);
    return CALL(b, mul, transform(b, dy, axis, (DftAttr){ .onesided = true }), build_const(b, share));
}

/* The number in operand i, `otherwise` where it is absent. */
static bool known_number(Build *b, const Site *s, int i, int64_t otherwise, int64_t *v)
{
    const Tensor *t = site_in(s, i) ? make_known(b, s, i) : NULL;
    *v = t ? tensor_get_i64(t, 0) : otherwise;
    return t || !site_in(s, i);
}

void adjoint_dft(Build *b, const Site *s, Node **dx)
{
    const DftAttr *at = s->attr;
    const Type *x = s->in[0]->type;
    Node *dy = s->dout[0], *back;
    int64_t said, n;
    if (type_elements(x) == 0 || type_elements(dy->type) == 0 || !known_number(b, s, 2, -2, &said))
        return;
    const int axis = (int)(said < 0 ? said + x->rank : said);
    if (!known_number(b, s, 1, dft_length(at, x->dims[axis]), &n))
        return;
    if (!at->inverse)
        back = back_from_spectrum(b, dy, axis, n, x->dims[x->rank - 1]);
    else if (at->onesided)
        back = back_to_one_side(b, dy, axis, n);
    else
        back = to_extent(b, times(b, transform(b, dy, axis, (DftAttr){ 0 }), 1 / (double)n), x->rank - 1,
                         x->dims[x->rank - 1]);
    dx[0] = back ? to_extent(b, back, axis, x->dims[axis]) : NULL;
}

enum { SIGNAL, STEP, WINDOW, LENGTH };

/* frames [B, F, n, parts], each added to the signal where it was cut from. */
static Node *frames_added(Build *b, Node *frames, const Type *signal, int64_t step)
{
    const int64_t *d = frames->type->dims, size = signal->dims[1];
    const Col2imAttr at = { .window = { .strides = { 1, &step } } };
    Node *turned = make_transpose(b, frames, 4, (int64_t[]){ 0, 3, 2, 1 });
    Node *columns = make_reshape(b, turned, 3, (int64_t[]){ d[0] * d[3], d[2], d[1] });
    Node *added = CALL_ATTR(b, col2im, at, columns, build_i64s(b, 1, &size), build_i64s(b, 1, &d[2]));
    return make_transpose(b, make_reshape(b, added, 3, (int64_t[]){ d[0], d[3], size }), 3, (int64_t[]){ 0, 2, 1 });
}

/* The signal's frames [B, F, n, parts]. */
static Node *frames_of(Build *b, Node *signal, int64_t frames, int64_t n, int64_t step)
{
    const int64_t dims[] = { frames, n };
    Tensor *at = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, I64, 2, dims));
    for (int64_t i = 0; i < frames * n; i++)
        tensor_set_i64(at, i, i / n * step + i % n);
    return make_gather(b, signal, build_const(b, at), 1);
}

void adjoint_stft(Build *b, const Site *s, Node **dx)
{
    const Type *x = s->in[SIGNAL]->type;
    Node *dy = s->dout[0], *window = site_in(s, WINDOW);
    int64_t step, n;
    if (type_elements(x) == 0 || type_elements(dy->type) == 0 || !known_number(b, s, STEP, 1, &step) ||
        !known_number(b, s, LENGTH, window ? window->type->dims[0] : x->dims[1], &n))
        return;
    Node *frames = back_from_spectrum(b, dy, 2, n, x->dims[2]);
    if (!frames)
        return;
    if (s->want[SIGNAL]) {
        Node *seen = window ? CALL(b, mul, frames, make_reshape(b, window, 2, (int64_t[]){ n, 1 })) : frames;
        dx[SIGNAL] = frames_added(b, seen, x, step);
    }
    if (window && s->want[WINDOW]) {
        Node *product = CALL(b, mul, frames, frames_of(b, s->in[SIGNAL], dy->type->dims[1], n, step));
        dx[WINDOW] = make_reshape(b, build_reduce(b, OP_reduce_sum, product, 3, (int64_t[]){ 0, 1, 3 }), 1, &n);
    }
}
