/* The kernels of grid_sample, of its gradients and of affine_grid: a thread for each element, in the order of the evaluator, by the
 * functions of ops/sample/grid_look.h. */
#include <inttypes.h>

#include "ops/card/own_kernel.h"
#include "ops/card/reduction.h"
#include "ops/sample/grid.h"

enum { MOST_SPREAD = 64 }; /* neighbours of a place whose weights are kept */

typedef struct Looking {
    OwnKernels *to;
    Sampling s;
    int grid;         /* the operand */
    const char *type; /* of the arithmetic */
    Text t;
} Looking;

/* False where there is nothing to look at. */
static bool look(Looking *l, OwnKernels *to, const GridAttr *at, const Type *x, const Type *grid, DType arithmetic)
{
    *l = (Looking){ .to = to, .grid = 1, .type = arithmetic == F64 ? "f64" : "f32" };
    l->s = (Sampling){ .at = at, .axes = x->rank - 2, .images = x->dims[0], .channels = x->dims[1], .in = 1, .out = 1 };
    for (int i = 0; i < l->s.axes; i++) {
        l->s.dims[i] = x->dims[2 + i];
        l->s.in *= x->dims[2 + i];
        l->s.out *= grid->dims[1 + i];
    }
    return l->s.in && l->s.out && l->s.channels && l->s.images;
}

static void print_attributes(Looking *l)
{
    const GridAttr *at = l->s.at;
    text_printf(&l->t, "    const GridAttr at = { %d, %d, %s };\n", at->mode, at->padding_mode,
                at->align_corners ? "true" : "false");
}

static void print_coordinate(Looking *l, int axis)
{
    text_printf(&l->t, "    const %s x%d = grid_coordinate_%s(at, (%s)IN%d(place * %d + %d), %" PRId64 ", &slope%d);\n",
                l->type, axis, l->type, l->type, l->grid, l->s.axes, l->s.axes - 1 - axis, l->s.dims[axis], axis);
}

/* The neighbours of `place` along each axis: offsets at0, at1, .. and weights w0, w1, .. */
static void print_neighbours(Looking *l)
{
    int64_t stride = l->s.in;
    for (int i = 0; i < l->s.axes; i++) {
        stride /= l->s.dims[i];
        text_printf(&l->t, "    i64 at%d[GRID_TAPS];\n    %s w%d[GRID_TAPS], slope%d;\n", i, l->type, i, i);
        print_coordinate(l, i);
        text_printf(&l->t, "    grid_neighbours_%s(at, x%d, %" PRId64 ", %" PRId64 ", at%d, w%d);\n", l->type, i,
                    l->s.dims[i], stride, i, i);
    }
}

/* The element at `place` that is the nearest one, `from`; -1: none. */
static void print_nearest(Looking *l)
{
    text_add(&l->t, "    i64 from = 0;\n");
    for (int i = 0; i < l->s.axes; i++) {
        text_printf(&l->t, "    %s slope%d;\n", l->type, i);
        print_coordinate(l, i);
        text_printf(&l->t, "    const i64 at%d = grid_element_%s(at, x%d, %" PRId64 ");\n", i, l->type, i,
                    l->s.dims[i]);
        text_printf(&l->t, "    from = from < 0 || at%d < 0 ? -1 : from * %" PRId64 " + at%d;\n", i, l->s.dims[i], i);
    }
}

/* Loops over the neighbours, the last axis innermost; `k` becomes the offset of one, -1: there is none. */
static void open_taps(Looking *l, bool sums)
{
    for (int i = 0; i < l->s.axes; i++) {
        if (sums)
            text_printf(&l->t, "    %s s%d = 0;\n", l->type, i);
        text_printf(&l->t, "    for (int t%d = 0; t%d < %d; t%d++) {\n", i, i, grid_taps(l->s.at->mode), i);
    }
    text_add(&l->t, "        const i64 k = ");
    for (int i = 0; i < l->s.axes; i++)
        text_printf(&l->t, "%sat%d[t%d] < 0", i ? " || " : "", i, i);
    text_add(&l->t, " ? -1 : ");
    for (int i = 0; i < l->s.axes; i++)
        text_printf(&l->t, "%sat%d[t%d]", i ? " + " : "", i, i);
    text_add(&l->t, ";\n");
}

/* What is read of the image that begins at `from`, as s0: the innermost axis is summed first. */
static void print_interpolation(Looking *l)
{
    const int last = l->s.axes - 1;
    open_taps(l, true);
    text_printf(&l->t, "        s%d = fma_%s(w%d[t%d], k < 0 ? 0 : IN0(from + k), s%d);\n    }\n", last, l->type, last,
                last, last);
    for (int i = last - 1; i >= 0; i--)
        text_printf(&l->t, "        s%d = fma_%s(w%d[t%d], s%d, s%d);\n    }\n", i, l->type, i, i, i + 1, i);
}

/* ---- grid_sample ---- */

bool kernels_grid_sample(const Node *n, OwnKernels *to)
{
    const Type *x = in(n, 0)->type, *grid = in(n, 1)->type;
    Looking l;
    if (!look(&l, to, n->attr, x, grid, dtype_is_float(x->dtype) ? x->dtype : grid->dtype))
        return false;
    own_kernel_open(to, &l.t);
    print_attributes(&l);
    text_printf(&l.t, "    const i64 place = o / %" PRId64 " * %" PRId64 " + o %% %" PRId64 ";\n",
                l.s.channels * l.s.out, l.s.out, l.s.out);
    if (l.s.at->mode == GRID_NEAREST) {
        print_nearest(&l);
        text_printf(&l.t,
                    "    if (from < 0)\n        OUT0(o, 0);\n    else\n"
                    "        OUTRAW0[o] = RAW0[o / %" PRId64 " * %" PRId64 " + from];\n",
                    l.s.out, l.s.in);
    } else {
        text_printf(&l.t, "    const i64 from = o / %" PRId64 " * %" PRId64 ";\n", l.s.out, l.s.in);
        print_neighbours(&l);
        print_interpolation(&l);
        text_add(&l.t, "    OUT0(o, s0);\n");
    }
    own_kernel_close(to, "sample", type_elements(n->type), 0, &l.t);
    return true;
}

/* ---- affine_grid ---- */

bool kernels_affine_grid(const Node *n, OwnKernels *to)
{
    const Type *y = n->type;
    const AffineAttr *at = n->attr;
    const int axes = y->rank - 2;
    const char *type = dtype_name(dtype_wide(y->dtype));
    Text t;
    own_kernel_open(to, &t);
    text_printf(&t, "    i64 rest = o / %d;\n    %s where[%d], sum = 0;\n", axes, type, axes);
    for (int k = 0; k < axes; k++) {
        const int64_t extent = y->dims[axes - k];
        text_printf(&t,
                    "    where[%d] = grid_centre_%s(%s, rest %% %" PRId64 ", %" PRId64 ");\n    rest /= %" PRId64 ";\n",
                    k, type, at->align_corners ? "true" : "false", extent, extent, extent);
    }
    text_printf(&t, "    const i64 row = (rest * %d + o %% %d) * %d;\n", axes, axes, axes + 1);
    for (int k = 0; k < axes; k++)
        text_printf(&t, "    sum = fma_%s(IN0(row + %d), where[%d], sum);\n", type, k, k);
    text_printf(&t, "    OUT0(o, sum + IN0(row + %d));\n", axes);
    own_kernel_close(to, "grid", type_elements(y), 0, &t);
    return true;
}

/* ---- what reaches the data ---- */

/* Where things lie in the scratch: of each place its neighbours and their weights, of each element the first place that reads it
 * and the last. */
typedef struct Spread {
    int64_t values; /* neighbours of a place */
    size_t at, weight, first, last;
} Spread;

static void print_scratch(Looking *l, const Spread *s)
{
    text_printf(&l->t,
                "    i64 *const offsets = (i64 *)(scratch + %zu), *const first = (i64 *)(scratch + %zu),\n"
                "        *const last = (i64 *)(scratch + %zu);\n    %s *const weights = (%s *)(scratch + %zu);\n",
                s->at, s->first, s->last, l->type, l->type, s->weight);
}

static void make_places(Looking *l, const Spread *s)
{
    own_kernel_open(l->to, &l->t);
    print_scratch(l, s);
    print_attributes(l);
    text_add(&l->t, "    const i64 place = o;\n");
    if (l->s.at->mode == GRID_NEAREST) {
        print_nearest(l);
        text_add(&l->t, "    offsets[o] = from;\n    weights[o] = 1;\n");
    } else {
        print_neighbours(l);
        text_printf(&l->t, "    i64 number = o * %" PRId64 ";\n", s->values);
        open_taps(l, false);
        text_add(&l->t, "        offsets[number] = k;\n        weights[number++] = ");
        for (int i = 0; i < l->s.axes; i++)
            text_printf(&l->t, "%sw%d[t%d]", i ? " * " : "", i, i);
        text_add(&l->t, ";\n");
        for (int i = 0; i < l->s.axes; i++)
            text_add(&l->t, "    }\n");
    }
    own_kernel_close(l->to, "places", l->s.images * l->s.out, 0, &l->t);
}

static void make_readers(Looking *l, const Spread *s)
{
    const int64_t values = l->s.out * s->values;
    own_kernel_open(l->to, &l->t);
    print_scratch(l, s);
    text_printf(&l->t,
                "    const i64 *const of = offsets + o / %" PRId64 " * %" PRId64 ";\n    const i64 e = o %% %" PRId64
                ";\n",
                l->s.in, values, l->s.in);
    text_printf(&l->t, "    i64 from = %" PRId64 ", to = -1;\n    for (i64 i = 0; i < %" PRId64 "; i++)\n", l->s.out,
                values);
    text_printf(&l->t,
                "        if (of[i] == e) {\n            from = to < 0 ? i / %" PRId64 " : from;\n"
                "            to = i / %" PRId64 ";\n        }\n    first[o] = from;\n    last[o] = to;\n",
                s->values, s->values);
    own_kernel_close(l->to, "readers", l->s.images * l->s.in, 0, &l->t);
}

static void make_sums(Looking *l, const Spread *s)
{
    own_kernel_open(l->to, &l->t);
    print_scratch(l, s);
    text_printf(&l->t,
                "    const i64 plane = o / %" PRId64 ", e = o %% %" PRId64 ", image = plane / %" PRId64
                ", of = image * %" PRId64 " + e;\n    %s sum = 0;\n",
                l->s.in, l->s.in, l->s.channels, l->s.in, l->type);
    text_printf(&l->t, "    for (i64 i = first[of] * %" PRId64 "; i < (last[of] + 1) * %" PRId64 "; i++) {\n",
                s->values, s->values);
    text_printf(&l->t, "        const i64 k = image * %" PRId64 " + i;\n", l->s.out * s->values);
    text_printf(&l->t,
                "        if (offsets[k] == e)\n            sum = fma_%s(weights[k], IN0(plane * %" PRId64
                " + i / %" PRId64 "), sum);\n    }\n    OUT0(o, sum);\n",
                l->type, l->s.out, s->values);
    own_kernel_close(l->to, "sums", l->s.images * l->s.channels * l->s.in, 0, &l->t);
}

bool kernels_grid_sample_grad(const Node *n, OwnKernels *to)
{
    const Type *dx = n->type;
    const GridGradAttr *at = n->attr;
    Looking l;
    Spread s = { .values = 1 };
    if (!look(&l, to, &at->grid, dx, in(n, 1)->type, dx->dtype))
        return false;
    for (int i = 0; i < l.s.axes && at->grid.mode != GRID_NEAREST; i++)
        s.values *= grid_taps(at->grid.mode);
    if (s.values > MOST_SPREAD)
        return false;
    s.at = own_scratch(to, l.s.images * l.s.out * s.values * (int64_t)sizeof(i64));
    s.weight = own_scratch(to, l.s.images * l.s.out * s.values * (int64_t)sizeof(f64));
    s.first = own_scratch(to, l.s.images * l.s.in * (int64_t)sizeof(i64));
    s.last = own_scratch(to, l.s.images * l.s.in * (int64_t)sizeof(i64));
    make_places(&l, &s);
    make_readers(&l, &s);
    make_sums(&l, &s);
    return true;
}

/* ---- what reaches the grid ---- */

bool kernels_grid_sample_grid_grad(const Node *n, OwnKernels *to)
{
    const Type *x = in(n, 0)->type, *grid = n->type;
    Looking l;
    if (!look(&l, to, n->attr, x, grid, x->dtype) || (x->dtype == F64 && dtype_bits(grid->dtype) < 32))
        return false; /* f64 to a narrow type: kernels would round twice */
    own_kernel_open(to, &l.t);
    print_attributes(&l);
    text_printf(&l.t, "    const i64 place = o / %d, image = place / %" PRId64 ";\n", l.s.axes, l.s.out);
    print_neighbours(&l);
    for (int i = 0; i < l.s.axes; i++)
        text_printf(&l.t, "    if (o %% %d == %d)\n        grid_slopes_%s(at, x%d - floor_%s(x%d), slope%d, w%d);\n",
                    l.s.axes, l.s.axes - 1 - i, l.type, i, l.type, i, i, i);
    text_printf(&l.t,
                "    %s sum = 0;\n    for (i64 c = image * %" PRId64 "; c < (image + 1) * %" PRId64
                "; c++) {\n    const i64 from = c * %" PRId64 ";\n",
                l.type, l.s.channels, l.s.channels, l.s.in);
    print_interpolation(&l);
    text_printf(&l.t, "    sum = fma_%s(IN2(c * %" PRId64 " + place %% %" PRId64 "), s0, sum);\n    }\n", l.type,
                l.s.out, l.s.out);
    text_printf(&l.t, "    OUT0(o, (%s)sum);\n", dtype_name(dtype_wide(grid->dtype)));
    own_kernel_close(to, "steer", type_elements(grid), 0, &l.t);
    return true;
}
