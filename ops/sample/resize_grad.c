/* resize_grad: what reaches the data of resize, which is linear in it: the map of every axis transposed, in the reverse
 * order.  An element is the sum of what positions bring, in their order and, in them, taps, by fused multiply-adds; what
 * the extrapolation value stands at brings nothing. */
#include <string.h>

#include "ops/card/shapes.h"
#include "ops/sample/resize.h"

typedef struct ResizeGradAttr {
    ResizeAttr resize;
    Ints extents; /* of the data, every dimension */
} ResizeGradAttr;

static const AttrSpec resize_grad_attrs[] = {
    RESIZE_ATTRS,
    ATTR_OPTIONAL(ResizeGradAttr, extents, INTS),
    ATTR_LAST,
};

enum { DY, ROI, SCALES, SIZES, OPERANDS };

/* resize itself says whether dy is what it gives. */
static const Type *infer_resize_grad(Infer *q)
{
    const Ints extents = ((const ResizeGradAttr *)q->attr)->extents;
    const Type *dy = infer_tensor(q, DY), *in[OPERANDS];
    const Tensor *value[OPERANDS];
    if (!dy)
        return NULL;
    if (!dtype_is_float(dy->dtype))
        return infer_fail(q, "needs floats, got %s", type_text(q->scratch, dy));
    for (int i = 0; i < extents.n; i++)
        if (extents.v[i] < 0)
            return infer_fail(q, "extents holds %" PRId64, extents.v[i]);
    const Type *x = infer_dims(q, dy->dtype, extents.n, extents.v);
    if (!x)
        return NULL;
    for (int i = 0; i < OPERANDS; i++) {
        in[i] = i == DY ? x : infer_has(q, i) ? q->in[i] : NULL;
        value[i] = i == DY || !infer_has(q, i) ? NULL : infer_known(q, i);
    }
    Infer inner = *q;
    inner.in = in;
    inner.value = value;
    const Type *y = op_resize.infer(&inner);
    if (!y)
        return infer_fail(q, "%s", inner.complaint);
    return type_agrees(y, dy)
               ? x
               : infer_fail(q, "%s is no result over %s", type_text(q->scratch, dy), type_text(q->scratch, x));
}

/* One axis: [outer, out, inner] becomes [outer, in, inner]. */
typedef struct ResizeBack {
    ResizeTaps taps;
    int64_t in, out, inner;
    const void *dy;
    void *dx;
} ResizeBack;

#define RESIZE_BACK(T)                                                                                                 \
    static void resize_back_##T(void *arg, int64_t begin, int64_t end, int worker)                                     \
    {                                                                                                                  \
        const ResizeBack *r = arg;                                                                                     \
        const ResizeTaps *t = &r->taps;                                                                                \
        (void)worker;                                                                                                  \
        for (int64_t o = begin; o < end; o++) {                                                                        \
            const T *from = (const T *)r->dy + o * r->out * r->inner;                                                  \
            T *to = (T *)r->dx + o * r->in * r->inner;                                                                 \
            memset(to, 0, (size_t)(r->in * r->inner) * sizeof(T));                                                     \
            for (int64_t k = 0; k < r->out; k++, from += r->inner)                                                     \
                for (int64_t n = k * t->taps; n < (k + 1) * t->taps && !t->outside[k]; n++) {                          \
                    const T w = (T)t->weight[n];                                                                       \
                    T *at = to + t->at[n] * r->inner;                                                                  \
                    for (int64_t i = 0; w != 0 && i < r->inner; i++)                                                   \
                        at[i] = q_fma(w, from[i], at[i]);                                                              \
                }                                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void resize_axes_back_##T(Eval *e, const ResizeAttr *a, const ResizePlan *p)                                \
    {                                                                                                                  \
        const T *dy = eval_##T(e, DY);                                                                                 \
        T *dx = eval_out_##T(e, 0);                                                                                    \
        int axes[MAX_RANK];                                                                                            \
        int64_t now[MAX_RANK], outer;                                                                                  \
        memcpy(now, p->out, (size_t)p->rank * sizeof *now);                                                            \
        for (int n = resize_order(p, axes), i = n - 1; i >= 0; i--) {                                                  \
            const int axis = axes[i];                                                                                  \
            ResizeBack r = { .taps = resize_taps(e, a, p, axis), .in = p->in[axis], .out = p->out[axis], .dy = dy };   \
            resize_around(p->rank, now, axis, &outer, &r.inner);                                                       \
            now[axis] = p->in[axis];                                                                                   \
            r.dx = i ? eval_scratch(e, (size_t)(outer * r.in), (size_t)r.inner * sizeof(T)) : dx;                      \
            eval_parallel(e, outer, resize_back_##T, &r);                                                              \
            dy = r.dx;                                                                                                 \
        }                                                                                                              \
        if (dy != dx)                                                                                                  \
            memcpy(dx, dy, (size_t)tensor_elements(e->out[0]) * sizeof(T));                                            \
    }
RESIZE_BACK(f32)
RESIZE_BACK(f64)
#undef RESIZE_BACK

static Status eval_resize_grad(Eval *e)
{
    const ResizeGradAttr *at = e->attr;
    const Tensor *lists[OPERANDS] = { NULL };
    ResizePlan p;
    for (int i = ROI; i < OPERANDS; i++) /* older files say "not given" by an empty tensor */
        lists[i] = eval_has(e, i) && tensor_elements(e->in[i]) ? e->in[i] : NULL;
    if (at->extents.n == 0) {
        eval_give(e, 0, e->in[DY]);
        return OK;
    }
    if (tensor_elements(eval_out(e, 0)) == 0)
        return OK;
    const char *wrong = resize_plan(&p, e->scratch, &e->ir->limits, &at->resize, e->out[0]->type, lists[ROI],
                                    lists[SCALES], lists[SIZES]);
    if (wrong)
        return eval_fail(e, "%s", wrong);
    (eval_is_f64(e) ? resize_axes_back_f64 : resize_axes_back_f32)(e, &at->resize, &p);
    return OK;
}

static bool kernels_of_grad(const Node *n, OwnKernels *to)
{
    return kernels_resize_grad(n, &((const ResizeGradAttr *)n->attr)->resize, to);
}

void adjoint_resize(Build *b, const Site *s, Node **dx)
{
    const Type *x = s->in[DY]->type;
    const ResizeGradAttr at = { *(const ResizeAttr *)s->attr, { x->rank, x->dims } };
    Node *ins[OPERANDS] = { s->dout[0], site_in(s, ROI), site_in(s, SCALES), site_in(s, SIZES) };
    dx[0] = build_node(b, OP_resize_grad, &at, OPERANDS, ins);
}

/* It is linear in dy, as resize is in the data where nothing is extrapolated. */
static void adjoint_resize_grad(Build *b, const Site *s, Node **dx)
{
    ResizeAttr at = ((const ResizeGradAttr *)s->attr)->resize;
    Node *ins[OPERANDS] = { s->dout[0], site_in(s, ROI), site_in(s, SCALES), site_in(s, SIZES) };
    at.extrapolation_value = 0;
    dx[0] = build_node(b, OP_resize, &at, OPERANDS, ins);
}

/* A call of resize, and something that reaches its result. */
static Node *sample_resize_grad(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F64, F16, BF16 };
    const Node *y = op_resize.sample(b, rng, variant);
    const Type *x = in(y, 0)->type;
    const ResizeGradAttr at = { *(const ResizeAttr *)y->attr, { x->rank, x->dims } };
    Node *ins[OPERANDS] = { sample_tensor(b, rng, types[variant % 4], y->type->rank, y->type->dims, -2, 2) };
    for (int i = ROI; i < OPERANDS; i++)
        ins[i] = in(y, i);
    return build_node(b, OP_resize_grad, &at, OPERANDS, ins);
}

const OpDef op_resize_grad = {
    .name = "resize_grad",
    .min_in = 1,
    .max_in = 4,
    .attrs = resize_grad_attrs,
    .infer = infer_resize_grad,
    .eval = eval_resize_grad,
    .sample = sample_resize_grad,
    .n_variants = 54,
    .adjoint = adjoint_resize_grad,
    .differentiable = 1,
    .weight = 10,
    .access.kind = ACCESS_WINDOW,
    .access.kernels = kernels_of_grad,
    .amp = { AMP_S, AMP_S, 1u << ROI | 1u << SCALES, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_FLOAT, QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .brief = "What reaches the data of resize, from what reaches its result.",
};
