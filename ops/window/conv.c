/* conv: products of weights with windows of the data (ops/window/correlate.h). */
#include <string.h>

#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/contract/work.h"
#include "ops/window/correlate.h"
#include "ops/window/window_access.h"

static const AttrSpec conv_attrs[] = {
    WINDOW_PLACE_ATTRS(ConvAttr),  WINDOW_INTS(ConvAttr, dilations),   WINDOW_INTS(ConvAttr, kernel_shape),
    ATTR(ConvAttr, group, INT, 1), ATTR_OURS(ConvAttr, out, DTYPE, 0), ATTR_LAST,
};

bool infer_filter_rank(Infer *q, const Type *x, const Type *w, int64_t group)
{
    if (x->rank >= 0 && w->rank >= 0 && x->rank != w->rank)
        infer_fail(q, "data has %d dimensions, the weights have %d", x->rank, w->rank);
    else if ((x->rank >= 0 && x->rank < 3) || (w->rank >= 0 && w->rank < 3))
        infer_fail(q, "needs at least 3 dimensions, got %d", x->rank >= 0 ? x->rank : w->rank);
    else if (group < 1)
        infer_fail(q, "group is %" PRId64 ", wanted is at least 1", group);
    else
        return true;
    return false;
}

bool infer_filter(Infer *q, const Type *x, const Type *w, int64_t group)
{
    if (x->dtype == w->dtype && dtype_is_float(x->dtype))
        return infer_filter_rank(q, x, w, group);
    infer_fail(q, "needs floats of one type, got %s and %s", dtype_name(x->dtype), dtype_name(w->dtype));
    return false;
}

bool infer_groups(Infer *q, const Type *x, const Type *w, int64_t group)
{
    const int64_t c = x->dims[1], m = w->dims[0];
    int64_t fed;
    if (__builtin_mul_overflow(w->dims[1], group, &fed) || (c >= 0 && w->dims[1] >= 0 && fed != c))
        infer_fail(q, "data has %" PRId64 " channels, the weights take %" PRId64 " in %" PRId64 " groups", c,
                   w->dims[1], group);
    else if (m >= 0 && m % group)
        infer_fail(q, "%" PRId64 " result channels do not split into %" PRId64 " groups", m, group);
    else
        return true;
    return false;
}

const Type *infer_channels(Infer *q, DType dtype, int64_t n, int64_t m, const Window *w)
{
    int64_t dims[MAX_RANK] = { n, m };
    memcpy(dims + 2, w->out, (size_t)w->rank * sizeof *dims);
    return infer_dims(q, dtype, w->rank + 2, dims);
}

bool infer_bias(Infer *q, int i, int64_t m)
{
    if (!infer_has(q, i))
        return true;
    const Type *b = infer_tensor(q, i);
    if (b && (!dtype_is_float(b->dtype) || (b->rank >= 0 && b->rank != 1) ||
              (b->rank == 1 && b->dims[0] >= 0 && m >= 0 && b->dims[0] != m)))
        b = infer_fail(q, "bias is %s, wanted are %" PRId64 " floats", type_text(q->scratch, b), m);
    return b;
}

static const Type *infer_conv(Infer *q)
{
    const ConvAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0), *w = x ? infer_tensor(q, 1) : NULL;
    DType dtype;
    if (!w || !infer_filter(q, x, w, at->group) || !infer_contracted(q, at->out, 0, &dtype))
        return NULL;
    if (x->rank < 0 || w->rank < 0)
        return type_unranked(q->types, dtype);

    Window win;
    if (!infer_groups(q, x, w, at->group) || !infer_bias(q, 2, w->dims[0]) ||
        !infer_window(q, &at->window, x, w->dims + 2, &win))
        return NULL;
    return infer_channels(q, dtype, x->dims[0], w->dims[0], &win);
}

static Status eval_conv(Eval *e)
{
    const ConvAttr *at = e->attr;
    const Type *x = e->in[0]->type, *filter = e->in[1]->type;
    Correlation c = { .groups = at->group, .channels = filter->dims[1], .results = filter->dims[0] / at->group };
    eval_window(e, &at->window, 0, filter->dims + 2, &c.w);
    c.f64 = eval_is_f64(e);
    if (tensor_elements(eval_out(e, 0)) == 0)
        return OK;
    correlation_operands(e, &c, x->dims[0], window_product(c.w.rank, c.w.in));
    c.filter = filter_packed(e, 1, c.is_bf16, c.groups, c.results, c.channels, window_product(c.w.rank, c.w.kernel));
    c.size = window_product(c.w.rank, c.w.out);
    correlation_plan(&c, x->dims[0], parallel_threads(e->pool));
    correlation_widen(e, &c);
    c.rooms = eval_room(e, (size_t)parallel_threads(e->pool), c.room_bytes);
    correlation_run(e, &c);
    return OK;
}

static bool narrows_conv(const Node *n)
{
    const Type *x = in(n, 0)->type, *f = in(n, 1)->type;
    const int64_t groups = ((const ConvAttr *)n->attr)->group;
    return type_known(f) && correlation_narrows(x, f, groups, f->dims[1], f->dims[0] / groups);
}

static size_t room_conv(const Node *n)
{
    const Type *f = in(n, 1)->type;
    const int64_t groups = ((const ConvAttr *)n->attr)->group;
    return filter_bytes(f, groups, f->dims[0] / groups, f->dims[1], window_product(f->rank - 2, f->dims + 2));
}

static Node *sample_conv(Build *b, Rng *rng, int variant)
{
    int64_t x[MAX_RANK], w[MAX_RANK];
    const int rank = 1 + variant % 3;
    const DType dtype = sample_float(rng);
    ConvAttr at = { .group = rng_range(rng, 1, 3), .out = dtype == F16 && rng_below(rng, 2) ? F32 + 1 : 0 };
    x[0] = rng_below(rng, 8) ? rng_range(rng, 1, 2) : 0;
    w[1] = rng_range(rng, 1, 3);
    x[1] = w[1] * at.group;
    w[0] = rng_range(rng, 1, 3) * at.group;
    for (int i = 0; i < rank; i++)
        x[2 + i] = rng_range(rng, 1, 7);
    sample_window(rng, b->graph->arena, rank, x + 2, w + 2, &at.window);
    Node *data = sample_tensor(b, rng, dtype, rank + 2, x, -2, 2),
         *filter = sample_tensor(b, rng, dtype, rank + 2, w, -2, 2);
    if (rng_below(rng, 2))
        return CALL_ATTR(b, conv, at, data, filter);
    return CALL_ATTR(b, conv, at, data, filter, sample_tensor(b, rng, rng_below(rng, 2) ? dtype : F32, 1, w, -1, 1));
}

static int channels_of_filter(const Node *n, int operand)
{
    (void)n;
    return operand == 1 ? 0 : QUANT_WHOLE;
}

const OpDef op_conv = {
    .name = "conv",
    .min_in = 2,
    .max_in = 3,
    .attrs = conv_attrs,
    .infer = infer_conv,
    .eval = eval_conv,
    .sample = sample_conv,
    .n_variants = 48,
    .adjoint = adjoint_conv,
    .differentiable = 7,
    .trainable = 6,
    .weight = 40,
    .work = work_conv,
    .room = room_conv,
    .narrows = narrows_conv,
    .access.kind = ACCESS_CONTRACT,
    .access.iterate = iterate_conv,
    .amp = { AMP_T, AMP_T, 4, REASON_NONE, NULL },
    .quant = { .in = { QUANT_INPUT, QUANT_WEIGHT, QUANT_BIAS },
               .out = { QUANT_INPUT },
               .weight_axis = channels_of_filter,
               .integer = OP_qconv },
    .onnx = { "Conv", 22, NULL },
};
