/* grid_sample and affine_grid: reading data at places that a grid names, and the grid of an affine map. */
#include <string.h>

#include "ops/sample/grid.h"

const char *const grid_modes[] = { "linear", "nearest", "cubic", NULL };
const char *const grid_paddings[] = { "zeros", "border", "reflection", NULL };

static const AttrSpec grid_attrs[] = {
    ATTR_CHOICE(GridAttr, mode, grid_modes, GRID_LINEAR),
    ATTR_CHOICE(GridAttr, padding_mode, grid_paddings, GRID_ZEROS),
    ATTR(GridAttr, align_corners, BOOL, false),
    ATTR_LAST,
};

static const AttrSpec affine_attrs[] = {
    ATTR(AffineAttr, align_corners, BOOL, false),
    ATTR_LAST,
};

enum { X, GRID };

static bool agree(int64_t a, int64_t b)
{
    return a == b || a < 0 || b < 0;
}

static const Type *infer_grid_sample(Infer *q)
{
    const Type *x = infer_tensor(q, X), *g = x ? infer_tensor(q, GRID) : NULL;
    int64_t dims[MAX_RANK];
    if (!g)
        return NULL;
    if (!dtype_is_float(g->dtype) || dtype_bits(g->dtype) < 16)
        return infer_fail(q, "wants a grid of floats, got %s", dtype_name(g->dtype));
    if (x->dtype == STRING || dtype_bits(x->dtype) < 8)
        return infer_fail(q, "cannot sample %s", dtype_name(x->dtype));
    if (!dtype_is_float(x->dtype) && ((const GridAttr *)q->attr)->mode != GRID_NEAREST)
        return infer_fail(q, "interpolates floats, not %s", dtype_name(x->dtype));
    if (x->rank < 0 || g->rank < 0)
        return x->rank < 0 ? x : type_unranked(q->types, x->dtype);
    if (x->rank < 3 || x->rank > 2 + MOST_AXES || g->rank != x->rank)
        return infer_fail(q, "wants data and grid of one rank in 3 .. %d, got %d and %d", 2 + MOST_AXES, x->rank,
                          g->rank);
    if (!agree(x->dims[0], g->dims[0]))
        return infer_fail(q, "has %" PRId64 " images but %" PRId64 " grids", x->dims[0], g->dims[0]);
    if (!agree(g->dims[g->rank - 1], x->rank - 2))
        return infer_fail(q, "wants places of %d coordinates, got %" PRId64, x->rank - 2, g->dims[g->rank - 1]);
    dims[0] = x->dims[0] < 0 ? g->dims[0] : x->dims[0];
    dims[1] = x->dims[1];
    for (int i = 2; i < x->rank; i++)
        dims[i] = g->dims[i - 1];
    return type_tensor(q->types, x->dtype, x->rank, dims);
}

static Sampling sampling_of(const Eval *e)
{
    const Type *x = e->in[X]->type;
    Sampling s = {
        .at = e->attr, .axes = x->rank - 2, .images = x->dims[0], .channels = x->dims[1], .in = 1, .out = 1
    };
    for (int i = 0; i < s.axes; i++) {
        s.dims[i] = x->dims[2 + i];
        s.in *= s.dims[i];
        s.out *= e->in[GRID]->type->dims[1 + i];
    }
    return s;
}

#define T       f32
#define NAME(n) n##_f32
#include "ops/sample/grid_body.h"
#undef T
#undef NAME
#define T       f64
#define NAME(n) n##_f64
#include "ops/sample/grid_body.h"
#undef T
#undef NAME

static Status eval_grid_sample(Eval *e)
{
    const Sampling s = sampling_of(e);
    if (tensor_elements(eval_out(e, 0)) == 0)
        return OK;
    if (s.in == 0 && s.at->padding_mode != GRID_ZEROS)
        return eval_fail(e, "has no element to pad with");
    if (s.at->mode == GRID_NEAREST)
        (eval_is_f64(e) ? pick_f64 : pick_f32)(e, &s);
    else
        (eval_is_f64(e) ? sample_f64 : sample_f32)(e, &s);
    return OK;
}

static const Type *infer_affine_grid(Infer *q)
{
    const Type *theta = infer_tensor(q, 0), *size = theta ? infer_tensor(q, 1) : NULL;
    if (!size)
        return NULL;
    if (!dtype_is_float(theta->dtype) || dtype_bits(theta->dtype) < 16)
        return infer_fail(q, "wants maps of floats, got %s", dtype_name(theta->dtype));
    if (size->dtype != I64 || (size->rank >= 0 && size->rank != 1))
        return infer_fail(q, "wants a list of i64 as size, got %s", type_text(q->scratch, size));
    if (theta->rank >= 0 && theta->rank != 3)
        return infer_fail(q, "wants maps [N, 2, 3] or [N, 3, 4], got rank %d", theta->rank);
    int64_t n = size->rank == 1 ? size->dims[0] : DIM_UNKNOWN;
    if (n < 0 && theta->rank == 3 && theta->dims[1] >= 0)
        n = theta->dims[1] + 2;
    if (n < 0)
        return type_unranked(q->types, theta->dtype);
    if (n != 4 && n != 5)
        return infer_fail(q, "wants 4 or 5 sizes, got %" PRId64, n);
    if (theta->rank == 3 && (!agree(theta->dims[1], n - 2) || !agree(theta->dims[2], n - 1)))
        return infer_fail(q, "has %" PRId64 " sizes but maps %s", n, type_text(q->scratch, theta));
    const int64_t *v = infer_ints(q, 1, &n);
    int64_t dims[5] = { theta->rank == 3 ? theta->dims[0] : DIM_UNKNOWN };
    for (int i = 1; i < n - 1; i++)
        dims[i] = v ? v[i + 1] : DIM_UNKNOWN;
    for (int i = 0; v && i < n; i++)
        if (v[i] < 0 || v[i] > q->ir->limits.dim)
            return infer_fail(q, "has a size of %" PRId64, v[i]);
    if (v && !agree(dims[0], v[0]))
        return infer_fail(q, "has %" PRId64 " maps for %" PRId64 " grids", dims[0], v[0]);
    if (v)
        dims[0] = v[0];
    dims[n - 1] = n - 2;
    return type_tensor(q->types, theta->dtype, (int)n, dims);
}

static Status eval_affine_grid(Eval *e)
{
    (eval_is_f64(e) ? affine_f64 : affine_f32)(e);
    return OK;
}

static const DType real_types[] = { F32, F16, BF16, F64 };

static Node *sample_grid_sample(Build *b, Rng *rng, int variant)
{
    static const DType any[] = { F32, F64, F16, I64, U8, BOOL, BF16 };
    int64_t dims[MAX_RANK], grid[MAX_RANK];
    const int axes = 1 + variant / 9 % 3;
    const GridAttr at = { .mode = variant % 3, .padding_mode = variant / 3 % 3, .align_corners = rng_below(rng, 2) };
    sample_dims(rng, 2, 3, dims);
    sample_dims(rng, axes + 1, 4, grid);
    grid[0] = dims[0];
    for (int i = 0; i < axes; i++)
        dims[2 + i] = rng_range(rng, 1, 5);
    grid[axes + 1] = axes;
    const DType dtype = at.mode == GRID_NEAREST ? any[rng_below(rng, COUNT(any))] : real_types[rng_below(rng, 4)];
    Node *ins[] = { sample_tensor(b, rng, dtype, axes + 2, dims, 0, 9),
                    sample_tensor(b, rng, real_types[rng_below(rng, 4)], axes + 2, grid, -2.5, 2.5) };
    return build_node(b, OP_grid_sample, &at, 2, ins);
}

static Node *sample_affine_grid(Build *b, Rng *rng, int variant)
{
    const AffineAttr at = { .align_corners = variant & 1 };
    const int axes = variant & 2 ? 3 : 2;
    int64_t size[5];
    sample_dims(rng, 2 + axes, 4, size);
    const int64_t theta[] = { size[0], axes, axes + 1 };
    Node *ins[] = { sample_tensor(b, rng, real_types[rng_below(rng, 4)], 3, theta, -1, 1),
                    build_i64s(b, 2 + axes, size) };
    return build_node(b, OP_affine_grid, &at, 2, ins);
}

const OpDef op_grid_sample = {
    .name = "grid_sample",
    .min_in = 2,
    .max_in = 2,
    .attrs = grid_attrs,
    .infer = infer_grid_sample,
    .eval = eval_grid_sample,
    .sample = sample_grid_sample,
    .n_variants = 54,
    .adjoint = adjoint_grid_sample,
    .differentiable = 1u << X | 1u << GRID,
    .weight = 10,
    .access.kind = ACCESS_WINDOW,
    .access.kernels = kernels_grid_sample,
    .amp = { AMP_S, AMP_S, 1u << GRID, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "GridSample", 22, NULL },
};

const OpDef op_affine_grid = {
    .name = "affine_grid",
    .min_in = 2,
    .max_in = 2,
    .attrs = affine_attrs,
    .infer = infer_affine_grid,
    .eval = eval_affine_grid,
    .sample = sample_affine_grid,
    .n_variants = 16,
    .adjoint = adjoint_affine_grid,
    .differentiable = 1,
    .weight = 2,
    .access.kind = ACCESS_FOLD,
    .access.kernels = kernels_affine_grid,
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .access.steer = 2,
    .onnx = { "AffineGrid", 20, NULL },
};
