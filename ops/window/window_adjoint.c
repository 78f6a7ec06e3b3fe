/* What reaches the operands of conv and conv_transpose: each is the other's adjoint in the data, and conv_weight_grad
 * serves both for the weights. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/window/window.h"

/* What a kernel spans. */
static int64_t span_of(const Window *w, int i)
{
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

void window_said(const Window *w, StatedWindow *s)
{
    for (int i = 0; i < w->rank; i++) {
        const int64_t reach = (w->out[i] - 1) * w->stride[i] + span_of(w, i), seen = reach - w->begin[i];
        const int64_t end = seen > w->in[i] ? seen - w->in[i] : 0;
        s->pads[i] = w->begin[i];
        s->pads[w->rank + i] = end;
        s->rest[i] = w->in[i] + end - seen;
    }
    s->attr = (WindowAttr){ .kernel_shape = { w->rank, w->kernel },
                            .strides = { w->rank, w->stride },
                            .dilations = { w->rank, w->dilation },
                            .pads = { 2 * w->rank, s->pads } };
}

Node *window_input_grad(Build *b, const Window *w, int64_t group, Node *dy, Node *filter)
{
    StatedWindow s;
    window_said(w, &s);
    const ConvTransposeAttr at = { .window = s.attr, .group = group, .output_padding = { w->rank, s.rest } };
    return CALL_ATTR(b, conv_transpose, at, dy, filter);
}

Node *window_bias_grad(Build *b, Node *dy)
{
    const Type *t = dy->type;
    int64_t axes[MAX_RANK];
    for (int i = 1; i < t->rank; i++)
        axes[i - 1] = i > 1 ? i : 0;
    return make_reshape(b, build_reduce(b, OP_reduce_sum, dy, t->rank - 1, axes), 1, t->dims + 1);
}

void adjoint_conv(Build *b, const Site *s, Node **dx)
{
    const ConvAttr *at = s->attr;
    const Type *x = s->in[0]->type;
    Node *dy = s->dout[0];
    Window w;
    StatedWindow state;
    if (type_elements(dy->type) == 0)
        return;
    BUG_IF(b->graph->ir->memory,
           window_place(&w, b->graph->arena, &at->window, x->rank - 2, x->dims + 2, s->in[1]->type->dims + 2));
    window_said(&w, &state);
    if (s->want[0])
        dx[0] = window_input_grad(b, &w, at->group, dy, s->in[1]);
    if (s->want[1])
        dx[1] = CALL_ATTR(b, conv_weight_grad, ((ConvAttr){ .window = state.attr, .group = at->group }), s->in[0], dy);
    if (site_in(s, 2) && s->want[2])
        dx[2] = window_bias_grad(b, dy);
}

/* The window that leads from the result of a transposed convolution back to its data: what lies behind the last place
 * that the data reaches is cut off from dy.  Null: the data reaches no place at all. */
static Node *reached(Build *b, Node *dy, const Window *w, Window *back)
{
    *back = *w;
    for (int i = 0; i < w->rank; i++) {
        const int64_t seen = (w->in[i] - 1) * w->stride[i] + span_of(w, i) - w->begin[i];
        if (seen <= 0)
            return NULL;
        back->out[i] = w->in[i];
        back->in[i] = seen < w->out[i] ? seen : w->out[i];
        if (back->in[i] < w->out[i])
            dy = make_slice(b, dy, 2 + i, 0, back->in[i], 1);
    }
    return dy;
}

void adjoint_conv_transpose(Build *b, const Site *s, Node **dx)
{
    const ConvTransposeAttr *at = s->attr;
    const Type *x = s->in[0]->type;
    Node *dy = s->dout[0];
    Window w, back;
    StatedWindow state;
    if (type_elements(dy->type) == 0)
        return;
    if (site_in(s, 2) && s->want[2])
        dx[2] = window_bias_grad(b, dy);
    BUG_IF(b->graph->ir->memory,
           window_place_transposed(&w, b->graph->arena, at, x->rank - 2, x->dims + 2, s->in[1]->type->dims + 2));
    if (!(s->want[0] || s->want[1]) || !(dy = reached(b, dy, &w, &back)))
        return;
    window_said(&back, &state);
    const ConvAttr conv = { .window = state.attr, .group = at->group };
    if (s->want[0])
        dx[0] = CALL_ATTR(b, conv, conv, dy, s->in[1]);
    if (s->want[1])
        dx[1] = CALL_ATTR(b, conv_weight_grad, conv, dy, s->in[0]);
}
