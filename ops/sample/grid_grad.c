/* grid_sample_grad and grid_sample_grid_grad: what reaches the data and the grid of grid_sample.
 *
 * An element of the data is the sum of what places bring, in their order, by fused multiply-adds; a coordinate that of
 * what channels bring.  Threads share out channels and places. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/sample/grid.h"

#define GRID_ATTRS                                                                                                     \
    ATTR_CHOICE(GridAttr, mode, grid_modes, GRID_LINEAR),                                                              \
        ATTR_CHOICE(GridAttr, padding_mode, grid_paddings, GRID_ZEROS), ATTR(GridAttr, align_corners, BOOL, false)

static const AttrSpec grid_sample_grad_attrs[] = { GRID_ATTRS, ATTR_REQUIRED(GridGradAttr, extents, INTS), ATTR_LAST };
static const AttrSpec grid_sample_grid_grad_attrs[] = { GRID_ATTRS, ATTR_LAST };
#undef GRID_ATTRS

/* The result of grid_sample over x and grid must be as dy is; false after a complaint. */
static bool infer_sampled(Infer *q, const Type *x, const Type *grid, const Type *dy)
{
    Infer inner = *q;
    inner.in = (const Type *const[]){ x, grid };
    inner.value = (const Tensor *const[]){ NULL, NULL };
    inner.n_in = 2;
    const Type *y = op_grid_sample.infer(&inner);
    if (!y)
        infer_fail(q, "%s", inner.complaint);
    else if (!dtype_is_float(dy->dtype) || !type_agrees(y, type_with_dtype(q->types, dy, y->dtype)))
        infer_fail(q, "%s is no result over %s", type_text(q->scratch, dy), type_text(q->scratch, x));
    else
        return true;
    return false;
}

static const Type *infer_grid_sample_grad(Infer *q)
{
    const Ints extents = ((const GridGradAttr *)q->attr)->extents;
    const Type *dy = infer_tensor(q, 0), *grid = dy ? infer_tensor(q, 1) : NULL;
    int64_t dims[MAX_RANK];
    if (!grid)
        return NULL;
    if (dy->rank < 0)
        return dy;
    if (dy->rank < 3 || extents.n != dy->rank - 2)
        return infer_fail(q, "has %d extents for %d dimensions", extents.n, dy->rank);
    memcpy(dims, dy->dims, 2 * sizeof *dims);
    for (int i = 0; i < extents.n; i++) {
        dims[2 + i] = extents.v[i];
        if (extents.v[i] < 0)
            return infer_fail(q, "extents holds %" PRId64, extents.v[i]);
    }
    const Type *x = infer_dims(q, dy->dtype, dy->rank, dims);
    return x && infer_sampled(q, x, grid, dy) ? x : NULL;
}

static const Type *infer_grid_sample_grid_grad(Infer *q)
{
    const Type *x = infer_tensor(q, 0), *grid = x ? infer_tensor(q, 1) : NULL, *dy = grid ? infer_tensor(q, 2) : NULL;
    if (!dy)
        return NULL;
    if (((const GridAttr *)q->attr)->mode == GRID_NEAREST)
        return infer_fail(q, "has no slope at the nearest element");
    return infer_sampled(q, x, grid, dy) ? grid : NULL;
}

typedef struct GridGradRun {
    Sampling s;
    const void *x, *dy, *grid;
    void *result;
    char *places; /* one for each worker */
    size_t place_bytes;
} GridGradRun;

#define T       f32
#define NAME(n) n##_f32
#include "ops/sample/grid_grad_body.h"
#undef T
#undef NAME
#define T       f64
#define NAME(n) n##_f64
#include "ops/sample/grid_grad_body.h"
#undef T
#undef NAME

static GridGradRun grid_run(Eval *e, const Type *dy, const int64_t *extents)
{
    GridGradRun r = { .s = { .at = e->attr, .axes = dy->rank - 2, .images = dy->dims[0], .channels = dy->dims[1] } };
    r.s.in = r.s.out = 1;
    for (int i = 0; i < r.s.axes; i++) {
        r.s.dims[i] = extents[i];
        r.s.in *= extents[i];
        r.s.out *= dy->dims[2 + i];
    }
    r.place_bytes = sizeof(Place_f64) > sizeof(Place_f32) ? sizeof(Place_f64) : sizeof(Place_f32);
    r.places = eval_scratch(e, (size_t)parallel_threads(e->pool), r.place_bytes);
    return r;
}

static Status eval_grid_sample_grad(Eval *e)
{
    const bool wide = eval_is_f64(e);
    GridGradRun r = grid_run(e, e->in[0]->type, ((const GridGradAttr *)e->attr)->extents.v);
    r.dy = wide ? (const void *)eval_f64(e, 0) : eval_f32(e, 0);
    r.grid = wide ? (const void *)eval_f64(e, 1) : eval_f32(e, 1);
    r.result = wide ? (void *)eval_out_f64(e, 0) : eval_out_f32(e, 0);
    if (tensor_elements(e->out[0]))
        eval_parallel(e, r.s.images * r.s.channels, wide ? spread_channels_f64 : spread_channels_f32, &r);
    return OK;
}

static Status eval_grid_sample_grid_grad(Eval *e)
{
    const bool wide = eval_is_f64(e);
    GridGradRun r = grid_run(e, e->in[2]->type, e->in[0]->type->dims + 2);
    if (tensor_elements(eval_out(e, 0)) && r.s.in == 0) {
        memset(e->out[0]->data, 0, e->out[0]->bytes);
        return OK;
    }
    r.x = wide ? (const void *)eval_f64(e, 0) : eval_f32(e, 0);
    r.grid = wide ? (const void *)eval_f64(e, 1) : eval_f32(e, 1);
    r.dy = wide ? (const void *)eval_f64(e, 2) : eval_f32(e, 2);
    r.result = wide ? (void *)eval_out_f64(e, 0) : eval_out_f32(e, 0);
    eval_parallel(e, r.s.images * r.s.out, wide ? steer_f64 : steer_f32, &r);
    return OK;
}

void adjoint_grid_sample(Build *b, const Site *s, Node **dx)
{
    const GridAttr *at = s->attr;
    const Type *x = s->in[0]->type;
    if (s->want[0])
        dx[0] =
            CALL_ATTR(b, grid_sample_grad, ((GridGradAttr){ *at, { x->rank - 2, x->dims + 2 } }), s->dout[0], s->in[1]);
    if (s->want[1] && at->mode != GRID_NEAREST)
        dx[1] = build_node(b, OP_grid_sample_grid_grad, at, 3, (Node *[]){ s->in[0], s->in[1], s->dout[0] });
}

/* It is linear in dy, as sampling is in the data. */
static void adjoint_grid_sample_grad(Build *b, const Site *s, Node **dx)
{
    if (s->want[0])
        dx[0] = build_node(b, OP_grid_sample, &((const GridGradAttr *)s->attr)->grid, 2,
                           (Node *[]){ s->dout[0], s->in[1] });
}

/* affine_grid is linear in its map: the gradient of the map is dy times the coordinates that the identity map gives. */
void adjoint_affine_grid(Build *b, const Site *s, Node **dx)
{
    const Type *y = s->type;
    const int axes = y->rank - 2;
    const DType t = s->dout[0]->type->dtype;
    int64_t places = 1, size[MAX_RANK] = { 1, 1 };
    const int64_t map[] = { 1, axes, axes + 1 };
    for (int i = 0; i < axes; i++) {
        size[2 + i] = y->dims[1 + i];
        places *= size[2 + i];
    }
    Tensor *same = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, t, 3, map));
    for (int i = 0; i < axes; i++)
        tensor_set_f64(same, i * (axes + 1) + i, 1);
    Node *identity =
        build_node(b, OP_affine_grid, s->attr, 2, (Node *[]){ build_const(b, same), build_i64s(b, 2 + axes, size) });
    Node *dy = make_reshape(b, s->dout[0], 3, (int64_t[]){ y->dims[0], places, axes });
    Node *turned = make_transpose(b, dy, 3, (int64_t[]){ 0, 2, 1 });
    Node *parts[] = { CALL(b, matmul, turned, make_reshape(b, identity, 2, (int64_t[]){ places, axes })),
                      build_reduce(b, OP_reduce_sum, turned, 1, (int64_t[]){ 2 }) };
    dx[0] = make_concat(b, 2, 2, parts);
}

/* A call on floats, and something that reaches its result. */
static Node *sample_grid(Build *b, Rng *rng, int variant, Node **dy)
{
    const Node *y = op_grid_sample.sample(b, rng, variant);
    GridAttr at = *(const GridAttr *)y->attr;
    const DType dtype = variant % 4 == 3 ? F64 : variant % 4 == 2 ? F16 : F32;
    Node *x = sample_tensor(b, rng, dtype, y->type->rank, in(y, 0)->type->dims, -2, 2);
    *dy = sample_tensor(b, rng, dtype, y->type->rank, y->type->dims, -2, 2);
    return build_node(b, OP_grid_sample, &at, 2, (Node *[]){ x, in(y, 1) });
}

static Node *sample_grid_sample_grad(Build *b, Rng *rng, int variant)
{
    Node *dy, *y = sample_grid(b, rng, variant, &dy);
    const Type *x = in(y, 0)->type;
    const GridGradAttr at = { *(const GridAttr *)y->attr, { x->rank - 2, x->dims + 2 } };
    return CALL_ATTR(b, grid_sample_grad, at, dy, in(y, 1));
}

static Node *sample_grid_sample_grid_grad(Build *b, Rng *rng, int variant)
{
    const int smooth = variant / 2 * 3 + (variant % 2 ? GRID_CUBIC : GRID_LINEAR);
    Node *dy, *y = sample_grid(b, rng, smooth, &dy);
    return build_node(b, OP_grid_sample_grid_grad, y->attr, 3, (Node *[]){ in(y, 0), in(y, 1), dy });
}

const OpDef op_grid_sample_grad = {
    .name = "grid_sample_grad",
    .min_in = 2,
    .max_in = 2,
    .attrs = grid_sample_grad_attrs,
    .infer = infer_grid_sample_grad,
    .eval = eval_grid_sample_grad,
    .sample = sample_grid_sample_grad,
    .n_variants = 54,
    .adjoint = adjoint_grid_sample_grad,
    .differentiable = 1,
    .weight = 10,
    .access.kind = ACCESS_SCATTER,
    .access.kernels = kernels_grid_sample_grad,
    .amp = { AMP_FO, AMP_FO, 2, REASON_RANGE, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "What reaches the data of grid_sample, from what reaches its result.",
};

const OpDef op_grid_sample_grid_grad = {
    .name = "grid_sample_grid_grad",
    .min_in = 3,
    .max_in = 3,
    .attrs = grid_sample_grid_grad_attrs,
    .infer = infer_grid_sample_grid_grad,
    .eval = eval_grid_sample_grid_grad,
    .sample = sample_grid_sample_grid_grad,
    .n_variants = 36,
    .weight = 20,
    .access.kind = ACCESS_WINDOW,
    .access.kernels = kernels_grid_sample_grid_grad,
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "What reaches the grid of grid_sample over x, from what reaches its result.",
};
