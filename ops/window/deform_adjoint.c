/* What reaches the operands of deform_conv: a product of the weights with the window matrix, times a mask. */
#include "ops/card/make.h"
#include "ops/contract/contract.h"
#include "ops/window/deform.h"

/* One call in numbers, and the values several operands need; all made at most once. */
typedef struct DeformBack {
    Build *b;
    const Site *s;
    DeformConvAttr at;
    int64_t images, channels, groups, results, taps, positions; /* results of all groups */
    Node *dy;                                                   /* [N, groups, results, positions] */
    Node *seen;                                                 /* [N, offset groups, channels, taps, positions] */
    Node *reaching;                                             /* the same, of what reaches the masked matrix */
    Node *mask;                                                 /* [N, offset groups, 1, taps, positions] or null */
} DeformBack;

static Node *by_offset_group(const DeformBack *d, Node *x)
{
    const int64_t dims[] = { d->images, d->at.offset_group, d->channels / d->at.offset_group, d->taps, d->positions };
    return make_reshape(d->b, x, 5, dims);
}

static Node *as_columns(const DeformBack *d, Node *x)
{
    return make_reshape(d->b, x, 4, (int64_t[]){ d->images, d->channels, d->taps, d->positions });
}

/* Window matrices of groups: [N, groups, rows, positions]. */
static Node *by_group(const DeformBack *d, Node *x)
{
    const int64_t rows = d->channels / d->groups * d->taps;
    return make_reshape(d->b, x, 4, (int64_t[]){ d->images, d->groups, rows, d->positions });
}

static void open_back(DeformBack *d)
{
    const Site *s = d->s;
    const Type *x = s->in[0]->type, *w = s->in[1]->type, *y = s->type;
    d->at.window.kernel_shape = (Ints){ w->rank - 2, w->dims + 2 };
    d->images = x->dims[0];
    d->channels = x->dims[1];
    d->groups = d->at.group;
    d->results = w->dims[0];
    d->taps = window_product(w->rank - 2, w->dims + 2);
    d->positions = window_product(y->rank - 2, y->dims + 2);
    const int64_t of_group[] = { d->images, d->groups, d->results / d->groups, d->positions };
    d->dy = make_reshape(d->b, s->dout[0], 4, of_group);
    const int64_t steering[] = { d->images, d->at.offset_group, 1, d->taps, d->positions };
    d->mask = site_in(s, 4) ? make_reshape(d->b, s->in[4], 5, steering) : NULL;
    if (s->want[1] || (d->mask && s->want[4]))
        d->seen = by_offset_group(d, build_node(d->b, OP_deform_columns, &d->at, 2, (Node *[]){ s->in[0], s->in[2] }));
    if (s->want[0] || s->want[2] || (d->mask && s->want[4])) {
        const int64_t filter[] = { d->groups, d->results / d->groups, w->dims[1] * d->taps };
        Node *weights = make_reshape(d->b, s->in[1], 3, filter);
        d->reaching = by_offset_group(d, contract_right(d->b, weights, d->dy, false, false));
    }
}

static Node *filter_grad(const DeformBack *d)
{
    const Type *w = d->s->in[1]->type;
    Node *masked = d->mask ? CALL(d->b, mul, d->seen, d->mask) : d->seen;
    Node *each = contract_left(d->b, by_group(d, masked), d->dy, false, false);
    return make_reshape(d->b, build_reduce(d->b, OP_reduce_sum, each, 1, (int64_t[]){ 0 }), w->rank, w->dims);
}

static Node *mask_grad(const DeformBack *d)
{
    const Type *mask = d->s->in[4]->type;
    Node *product = CALL(d->b, mul, d->reaching, d->seen);
    return make_reshape(d->b, build_reduce(d->b, OP_reduce_sum, product, 1, (int64_t[]){ 2 }), mask->rank, mask->dims);
}

void adjoint_deform_conv(Build *b, const Site *s, Node **dx)
{
    DeformBack d = { .b = b, .s = s, .at = *(const DeformConvAttr *)s->attr };
    const Type *x = s->in[0]->type;
    if (type_elements(s->dout[0]->type) == 0)
        return;
    open_back(&d);
    if (s->want[1])
        dx[1] = filter_grad(&d);
    if (site_in(s, 3) && s->want[3])
        dx[3] = window_bias_grad(b, s->dout[0]);
    if (d.mask && s->want[4])
        dx[4] = mask_grad(&d);
    if (!s->want[0] && !s->want[2])
        return;
    Node *reaching = as_columns(&d, d.mask ? CALL(b, mul, d.reaching, d.mask) : d.reaching);
    if (s->want[0])
        dx[0] = CALL_ATTR(b, deform_columns_grad, ((ColumnsAttr){ d.at, { x->rank - 2, x->dims + 2 } }), reaching,
                          s->in[2]);
    if (s->want[2])
        dx[2] = build_node(b, OP_deform_columns_offset_grad, &d.at, 3, (Node *[]){ s->in[0], s->in[2], reaching });
}
