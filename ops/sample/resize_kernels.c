/* The kernels of resize and of its gradient: a table for each axis that changes, made on the device by the functions that the
 * evaluator has, and then the axes, one after the other. */
#include <inttypes.h>

#include "ops/card/own_kernel.h"
#include "ops/card/reduction.h"
#include "ops/sample/resize.h"

enum { X, ROI, SCALES, SIZES, MOST_AXES = 8 };

/* The table of an axis in the scratch: by position and tap the element and its weight, by position whether it lies outside. */
typedef struct Table {
    int64_t taps, in, out;
    size_t at, weight, outside, first, last; /* first, last: by element, the positions that read it */
} Table;

typedef struct Resizing {
    OwnKernels *to;
    const ResizeAttr *at;
    ResizePlan plan;
    const char *type; /* of the arithmetic */
    Table tables[MAX_RANK];
} Resizing;

/* ---- the plan ---- */

/* Older files say "not given" by an empty tensor. */
static bool is_given(const Node *n, int i)
{
    return in(n, i) && type_elements(in(n, i)->type) != 0;
}

/* False where an operand that steers the call is known to a run only, or the call is wrong, which a run says. */
static bool open(Resizing *r, const Node *n, const Type *x)
{
    const Tensor *lists[SIZES + 1] = { NULL };
    const bool crops = r->at->coordinate_transformation_mode == COORD_TF_CROP_AND_RESIZE;
    int axes[MAX_RANK];
    for (int i = ROI; i <= SIZES; i++) {
        if (!is_given(n, i) || (i == ROI && !crops))
            continue;
        lists[i] = node_constant(in(n, i), 0);
        if (!lists[i])
            return false;
    }
    if (x->rank == 0 || (!lists[SCALES] && !lists[SIZES]))
        return false;
    return !resize_plan(&r->plan, r->to->arena, &n->graph->ir->limits, r->at, x, lists[ROI], lists[SCALES],
                        lists[SIZES]) &&
           resize_order(&r->plan, axes) <= MOST_AXES;
}

/* ---- tables ---- */

static void print_weights(Text *t, const Resizing *r, const Table *table, double shrink)
{
    const bool normal = r->at->exclude_outside || shrink < 1;
    text_printf(t, "    const f64 first = ceil_f64(x) - %" PRId64 ", shrink = %s;\n    f64 sum = 0;\n", table->taps / 2,
                own_f64(r->to, shrink));
    text_printf(t, "    for (i64 i = 0; i < %" PRId64 "; i++) {\n", table->taps);
    text_printf(t, "        const f64 pos = first + (f64)i, d = (pos - x) * shrink;\n");
    if (r->at->mode == RESIZE_CUBIC)
        text_printf(t, "        f64 w = resize_cubic_f64(d, %s);\n", own_f64(r->to, (double)r->at->cubic_coeff_a));
    else
        text_printf(t, "        f64 w = resize_linear_f64(d);\n");
    if (r->at->exclude_outside)
        text_printf(t, "        w = pos < 0 || pos > %" PRId64 " ? 0 : w;\n", table->in - 1);
    text_printf(t, "        sum += w;\n        weight[o * %" PRId64 " + i] = w;\n", table->taps);
    text_printf(t, "        at[o * %" PRId64 " + i] = resize_within_f64(pos, %" PRId64 ");\n    }\n", table->taps,
                table->in);
    if (normal)
        text_printf(
            t, "    for (i64 i = 0; sum != 0 && i < %" PRId64 "; i++)\n        weight[o * %" PRId64 " + i] /= sum;\n",
            table->taps, table->taps);
}

static void print_names(Text *t, const Table *table)
{
    text_printf(t, "    i64 *const at = (i64 *)(scratch + %zu);\n", table->at);
    text_printf(t, "    f64 *const weight = (f64 *)(scratch + %zu);\n", table->weight);
    text_printf(t, "    u8 *const outside = scratch + %zu;\n", table->outside);
}

static void make_table(Resizing *r, int axis)
{
    const ResizeAxis a = resize_axis_of(&r->plan, axis);
    Table *table = &r->tables[axis];
    double shrink;
    Text t;
    *table = (Table){ .in = r->plan.in[axis],
                      .out = r->plan.out[axis],
                      .taps = resize_n_taps(r->at, &r->plan, axis, &shrink) };
    table->at = own_scratch(r->to, table->out * table->taps * (int64_t)sizeof(i64));
    table->weight = own_scratch(r->to, table->out * table->taps * (int64_t)sizeof(f64));
    table->outside = own_scratch(r->to, table->out);
    own_kernel_open(r->to, &t);
    print_names(&t, table);
    text_printf(&t, "    const ResizeAxis axis = { %s, %s, %s, %s, %s };\n", own_f64(r->to, a.in),
                own_f64(r->to, a.out), own_f64(r->to, a.scale), own_f64(r->to, a.start), own_f64(r->to, a.end));
    text_printf(&t, "    const f64 x = resize_source_f64((ResizeCoordinates)%d, axis, (f64)o);\n",
                r->at->coordinate_transformation_mode);
    text_printf(&t, "    outside[o] = %s;\n",
                r->at->coordinate_transformation_mode == COORD_TF_CROP_AND_RESIZE ? "!(x >= 0 && x <= axis.in - 1)"
                                                                                  : "0");
    if (r->at->mode == RESIZE_NEAREST)
        text_printf(&t, "    at[o] = resize_nearest_f64((ResizeNearest)%d, x, %" PRId64 ");\n    weight[o] = 1;\n",
                    r->at->nearest_mode, table->in);
    else
        print_weights(&t, r, table, shrink);
    own_kernel_close(r->to, arena_printf(r->to->arena, "taps%d", axis), table->out, 0, &t);
}

/* By element the positions from the first to the last that read it. */
static void make_readers(Resizing *r, int axis)
{
    Table *table = &r->tables[axis];
    Text t;
    table->first = own_scratch(r->to, table->in * (int64_t)sizeof(i64));
    table->last = own_scratch(r->to, table->in * (int64_t)sizeof(i64));
    own_kernel_open(r->to, &t);
    print_names(&t, table);
    text_printf(&t, "    i64 first = %" PRId64 ", last = -1;\n", table->out);
    text_printf(&t, "    for (i64 i = 0; i < %" PRId64 "; i++)\n", table->out * table->taps);
    text_printf(&t, "        if (at[i] == o && weight[i] != 0 && !outside[i / %" PRId64 "]) {\n", table->taps);
    text_printf(
        &t, "            first = last < 0 ? i / %" PRId64 " : first;\n            last = i / %" PRId64 ";\n        }\n",
        table->taps, table->taps);
    text_printf(&t, "    ((i64 *)(scratch + %zu))[o] = first;\n    ((i64 *)(scratch + %zu))[o] = last;\n", table->first,
                table->last);
    own_kernel_close(r->to, arena_printf(r->to->arena, "readers%d", axis), table->in, 0, &t);
}

/* ---- nearest ---- */

static void print_filler(Text *t, const Resizing *r, const Node *n)
{
    const DType d = n->type->dtype;
    const double v = (double)r->at->extrapolation_value;
    if (dtype_is_float(d))
        text_printf(t, "(%s)%s", dtype_name(dtype_wide(d)), own_f64(r->to, v));
    else
        text_printf(t, "%" PRId64, (int64_t)v);
}

static void move_elements(Resizing *r, const Node *n)
{
    int64_t inner = 1, stride = 1;
    Text t;
    own_kernel_open(r->to, &t);
    text_add(&t, "    i64 from = 0;\n    bool none = false;\n");
    for (int i = r->plan.rank - 1; i >= 0; i--) {
        const Table *table = &r->tables[i];
        text_printf(&t, "    {\n        const i64 k = o / %" PRId64 " %% %" PRId64 ";\n", inner, r->plan.out[i]);
        if (resize_keeps(&r->plan, i)) {
            text_printf(&t, "        from += k * %" PRId64 ";\n    }\n", stride);
        } else {
            text_printf(&t, "        from += ((i64 *)(scratch + %zu))[k] * %" PRId64 ";\n", table->at, stride);
            text_printf(&t, "        none = none || (scratch + %zu)[k];\n    }\n", table->outside);
        }
        inner *= r->plan.out[i];
        stride *= r->plan.in[i];
    }
    text_add(&t, "    if (none)\n        OUT0(o, ");
    print_filler(&t, r, n);
    text_add(&t, ");\n    else\n        OUTRAW0[o] = RAW0[from];\n");
    own_kernel_close(r->to, "move", type_elements(n->type), 0, &t);
}

/* ---- one axis after the other ---- */

/* What lies between two axes. */
typedef struct Pass {
    const char *from, *to; /* how element `%s` is read, and a value stored as element o */
    int64_t outer, inner;
    bool back;
} Pass;

static const char *read_scratch(const Resizing *r, size_t at, const char *place)
{
    return arena_printf(r->to->arena, "((%s *)(scratch + %zu))[%s]", r->type, at, place);
}

static void print_axis(Resizing *r, int axis, const Pass *pass)
{
    const Table *table = &r->tables[axis];
    const int64_t made = pass->back ? table->in : table->out;
    Text t;
    own_kernel_open(r->to, &t);
    print_names(&t, table);
    text_printf(&t, "    const i64 i = o %% %" PRId64 ", k = o / %" PRId64 " %% %" PRId64 ", u = o / %" PRId64 ";\n",
                pass->inner, pass->inner, made, made * pass->inner);
    if (!pass->back) {
        text_printf(&t, "    %s v = outside[k] ? (%s)%s : 0;\n", r->type, r->type,
                    own_f64(r->to, (double)r->at->extrapolation_value));
        text_printf(&t, "    for (i64 n = k * %" PRId64 "; n < (k + 1) * %" PRId64 " && !outside[k]; n++) {\n",
                    table->taps, table->taps);
        text_printf(&t, "        const i64 place = (u * %" PRId64 " + at[n]) * %" PRId64 " + i;\n", table->in,
                    pass->inner);
        text_printf(&t, "        const %s w = (%s)weight[n];\n", r->type, r->type);
    } else {
        text_printf(
            &t,
            "    %s v = 0;\n    const i64 first = ((i64 *)(scratch + %zu))[k], last = ((i64 *)(scratch + %zu))[k];\n",
            r->type, table->first, table->last);
        text_printf(&t, "    for (i64 n = first * %" PRId64 "; n < (last + 1) * %" PRId64 "; n++) {\n", table->taps,
                    table->taps);
        text_printf(&t, "        const i64 place = (u * %" PRId64 " + n / %" PRId64 ") * %" PRId64 " + i;\n",
                    table->out, table->taps, pass->inner);
        text_printf(&t, "        const %s w = at[n] == k && !outside[n / %" PRId64 "] ? (%s)weight[n] : 0;\n", r->type,
                    table->taps, r->type);
    }
    text_printf(&t, "        if (w != 0)\n            v = fma_%s(w, %s, v);\n    }\n    %s;\n", r->type, pass->from,
                pass->to);
    own_kernel_close(r->to, arena_printf(r->to->arena, "axis%d", axis), pass->outer * made * pass->inner, 0, &t);
}

/* All axes that change, in the order of the evaluator. */
static void print_axes(Resizing *r, bool back)
{
    const char *const store = "OUT0(o, v)";
    int axes[MAX_RANK];
    int64_t now[MAX_RANK];
    size_t lies = 0;
    const int n = resize_order(&r->plan, axes);
    for (int i = 0; i < r->plan.rank; i++)
        now[i] = back ? r->plan.out[i] : r->plan.in[i];
    for (int i = 0; i < n; i++) {
        const int axis = axes[back ? n - 1 - i : i];
        Pass pass = { .back = back };
        resize_around(r->plan.rank, now, axis, &pass.outer, &pass.inner);
        now[axis] = back ? r->plan.in[axis] : r->plan.out[axis];
        pass.from = i ? read_scratch(r, lies, "place") : "IN0(place)";
        if (i + 1 < n)
            lies = own_scratch(r->to, pass.outer * now[axis] * pass.inner * (int64_t)sizeof(f64));
        pass.to = i + 1 < n ? arena_printf(r->to->arena, "%s = v", read_scratch(r, lies, "o")) : store;
        print_axis(r, axis, &pass);
    }
}

static void copy_elements(Resizing *r, const Node *n)
{
    Text t;
    own_kernel_open(r->to, &t);
    text_add(&t, "    OUT0(o, IN0(o));\n");
    own_kernel_close(r->to, "copy", type_elements(n->type), 0, &t);
}

static bool make(Resizing *r, const Node *n, bool back)
{
    bool any = false;
    for (int i = 0; i < r->plan.rank; i++) {
        if (resize_keeps(&r->plan, i))
            continue;
        any = true;
        make_table(r, i);
        if (back)
            make_readers(r, i);
    }
    if (r->at->mode == RESIZE_NEAREST && !back)
        move_elements(r, n);
    else if (any)
        print_axes(r, back);
    else
        copy_elements(r, n);
    return true;
}

bool kernels_resize(const Node *n, OwnKernels *to)
{
    Resizing r = { .to = to, .at = n->attr };
    const Type *x = in(n, X)->type;
    if ((r.at->mode != RESIZE_NEAREST && !dtype_is_float(x->dtype)) || !open(&r, n, x))
        return false;
    r.type = dtype_name(dtype_wide(x->dtype));
    return make(&r, n, false);
}

bool kernels_resize_grad(const Node *n, const ResizeAttr *at, OwnKernels *to)
{
    Resizing r = { .to = to, .at = at };
    if (!open(&r, n, n->type))
        return false;
    r.type = dtype_name(dtype_wide(n->type->dtype));
    return make(&r, n, true);
}
