#include "ops/window/window.h"

#include "base/checked.h"

const char *const auto_pads[] = { "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", NULL };

/* One list of the attributes: `n` numbers of at least `least`, or `otherwise` when it is not given. */
static const char *read_list(int64_t *to, Arena *arena, const char *name, Ints v, int n, int64_t least,
                             int64_t otherwise)
{
    if (v.v && v.n != n)
        return arena_printf(arena, "%s has %d numbers where %d are needed", name, v.n, n);
    for (int i = 0; i < n; i++) {
        to[i] = v.v ? v.v[i] : otherwise;
        if (to[i] < least)
            return arena_printf(arena, "%s holds %" PRId64 ", wanted is at least %" PRId64, name, to[i], least);
        if (to[i] > LIMITS_DEFAULT.dim)
            return arena_printf(arena, "%s holds %" PRId64 ", more than the limit dim (%" PRId64 ")", name, to[i],
                                LIMITS_DEFAULT.dim);
    }
    return NULL;
}

static const char *read_attrs(Window *w, Arena *arena, const WindowAttr *at, int rank, const int64_t *in,
                              const int64_t *kernel)
{
    int64_t pads[2 * MAX_SPATIAL], said[MAX_SPATIAL];
    const char *wrong;
    if (rank < 1 || rank > MAX_SPATIAL)
        return arena_printf(arena, "needs 1 to %d spatial dimensions, got %d", MAX_SPATIAL, rank);
    w->rank = rank;
    if ((wrong = read_list(w->stride, arena, "strides", at->strides, rank, 1, 1)) ||
        (wrong = read_list(w->dilation, arena, "dilations", at->dilations, rank, 1, 1)) ||
        (wrong = read_list(pads, arena, "pads", at->auto_pad == PAD_NOTSET ? at->pads : (Ints){ 0 }, 2 * rank, 0, 0)) ||
        (wrong = read_list(said, arena, "kernel_shape", at->kernel_shape, rank, 1, 1)))
        return wrong;
    if (!kernel && !at->kernel_shape.v)
        return "needs kernel_shape";
    for (int i = 0; i < rank; i++) {
        w->in[i] = in[i];
        w->begin[i] = pads[i];
        w->end[i] = pads[rank + i];
        w->kernel[i] = kernel && (kernel[i] >= 0 || !at->kernel_shape.v) ? kernel[i] : said[i];
        if (at->kernel_shape.v && w->kernel[i] != said[i])
            return arena_printf(arena, "kernel_shape says %" PRId64 " where the weights have %" PRId64, said[i],
                                w->kernel[i]);
        if (w->kernel[i] == 0)
            return "has a kernel without elements";
    }
    return NULL;
}

/* What a kernel spans: (kernel - 1) * dilation + 1; false when that is no number. */
static bool span_of(const Window *w, int i, int64_t *span)
{
    return checked_mul_i64(w->kernel[i] - 1, w->dilation[i], span) && *span < LIMITS_DEFAULT.dim && ++*span;
}

static void split_padding(int auto_pad, int64_t total, int64_t *begin, int64_t *end)
{
    const int64_t all = total > 0 ? total : 0, less = all / 2, more = all - less;
    *begin = auto_pad == PAD_SAME_UPPER ? less : more;
    *end = auto_pad == PAD_SAME_UPPER ? more : less;
}

/* Extents are below 2^40 each (limits), so sums and differences of a few cannot overflow; products are checked. */
static const char *place_axis(Window *w, Arena *arena, const WindowAttr *at, int i)
{
    int64_t span = 1;
    const int64_t in = w->in[i], stride = w->stride[i];
    w->out[i] = DIM_UNKNOWN;
    if (w->kernel[i] >= 0 && !span_of(w, i, &span))
        return "has dilations beyond the limit dim";
    if (in < 0)
        return NULL;
    if (at->auto_pad == PAD_SAME_UPPER || at->auto_pad == PAD_SAME_LOWER) {
        w->out[i] = in / stride + (in % stride != 0);
        if (w->kernel[i] >= 0 && in > 0)
            split_padding(at->auto_pad, (w->out[i] - 1) * stride + span - in, &w->begin[i], &w->end[i]);
        return NULL;
    }
    if (w->kernel[i] < 0)
        return NULL;
    const int64_t room = in + w->begin[i] + w->end[i] - span;
    const bool rounds_up = at->ceil_mode && at->auto_pad == PAD_NOTSET;
    /* Rounding up has a window even where none fits, if it lacks less than a stride. */
    if (room < 0 && !(rounds_up && -room < stride && in + w->begin[i] > 0))
        return arena_printf(arena, "spatial dimension %d: a window of %" PRId64 " does not fit %" PRId64, i, span,
                            in + w->begin[i] + w->end[i]);
    w->out[i] = room < 0 ? 1 : room / stride + 1;
    if (rounds_up && room >= 0) {
        w->out[i] += room % stride != 0;
        /* Rounding up keeps a last window only if it begins inside the data or the padding before it. */
        if ((w->out[i] - 1) * stride >= in + w->begin[i])
            w->out[i]--;
    }
    return NULL;
}

const char *window_place(Window *w, Arena *arena, const WindowAttr *at, int rank, const int64_t *in,
                         const int64_t *kernel)
{
    const char *wrong = read_attrs(w, arena, at, rank, in, kernel);
    for (int i = 0; !wrong && i < rank; i++)
        wrong = place_axis(w, arena, at, i);
    return wrong;
}

/* Whether rounding up may find a window that begins in the padding behind the data, and leaves it out. */
static bool may_leave_out(const Window *w, int i)
{
    int64_t span = 1;
    if (w->kernel[i] < 0 || !span_of(w, i, &span))
        return true;
    const int64_t room = w->in[i] + w->begin[i] + w->end[i] - span;
    if (w->in[i] < 0)
        return w->stride[i] + w->end[i] > span;
    return room >= 0 && room % w->stride[i] != 0 && (room / w->stride[i] + 1) * w->stride[i] >= w->in[i] + w->begin[i];
}

int window_least_version(const Node *n)
{
    enum { SAYS_SO = 22 };
    Window w;
    const WindowAttr *at = n->attr;
    const Type *x = in(n, 0)->type;
    if (!at->ceil_mode)
        return 0;
    if (at->auto_pad != PAD_NOTSET || x->rank < 3 ||
        read_attrs(&w, n->graph->arena, at, x->rank - 2, x->dims + 2, NULL))
        return SAYS_SO;
    for (int i = 0; i < w.rank; i++)
        if (may_leave_out(&w, i))
            return SAYS_SO;
    return 0;
}

/* What is left of stride * (in - 1) + more + span when it becomes `out` is the padding. */
static const char *place_axis_transposed(Window *w, Arena *arena, int auto_pad, int i, int64_t more, int64_t wanted)
{
    int64_t span = 1, full;
    w->out[i] = wanted;
    if (w->kernel[i] >= 0 && !span_of(w, i, &span))
        return "has dilations beyond the limit dim";
    if (w->in[i] < 0 || w->kernel[i] < 0)
        return NULL;
    if (!checked_mul_i64(w->in[i] - 1, w->stride[i], &full) || full > LIMITS_DEFAULT.dim)
        return "has strides beyond the limit dim";
    full += more + span;
    const bool same = auto_pad == PAD_SAME_UPPER || auto_pad == PAD_SAME_LOWER;
    if (wanted < 0 && same)
        w->out[i] = w->in[i] * w->stride[i];
    if (w->out[i] >= 0)
        split_padding(auto_pad, full - w->out[i], &w->begin[i], &w->end[i]);
    else
        w->out[i] = full - w->begin[i] - w->end[i];
    if (w->out[i] < 0 || w->in[i] == 0)
        return arena_printf(arena,
                            "spatial dimension %d has %" PRId64 " elements, pads %" PRId64 " and %" PRId64
                            " leave nothing of them",
                            i, w->in[i], w->begin[i], w->end[i]);
    return NULL;
}

const char *window_place_transposed(Window *w, Arena *arena, const ConvTransposeAttr *at, int rank, const int64_t *in,
                                    const int64_t *kernel)
{
    int64_t more[MAX_SPATIAL], wanted[MAX_SPATIAL];
    const char *wrong = read_attrs(w, arena, &at->window, rank, in, kernel);
    Ints shape = at->output_shape;
    if (shape.v && shape.n == rank + 2) /* N and C in front: some exporters say them */
        shape = (Ints){ rank, shape.v + 2 };
    if (wrong || (wrong = read_list(more, arena, "output_padding", at->output_padding, rank, 0, 0)) ||
        (wrong = read_list(wanted, arena, "output_shape", shape, rank, shape.v ? 0 : DIM_UNKNOWN, DIM_UNKNOWN)))
        return wrong;
    for (int i = 0; !wrong && i < rank; i++) {
        if (more[i] >= w->stride[i] && more[i] >= w->dilation[i])
            return arena_printf(arena, "output_padding %" PRId64 " is not below stride or dilation", more[i]);
        wrong = place_axis_transposed(w, arena, at->window.auto_pad, i, more[i], wanted[i]);
    }
    return wrong;
}

bool infer_window(Infer *q, const WindowAttr *at, const Type *x, const int64_t *kernel, Window *w)
{
    const char *wrong = window_place(w, q->scratch, at, x->rank - 2, x->dims + 2, kernel);
    if (wrong)
        infer_fail(q, "%s", wrong);
    return !wrong;
}

void eval_window(Eval *e, const WindowAttr *at, int operand, const int64_t *kernel, Window *w)
{
    const Type *x = e->in[operand]->type;
    BUG_IF(e->ir->memory, window_place(w, e->scratch, at, x->rank - 2, x->dims + 2, kernel));
}

int64_t window_product(int rank, const int64_t *extents)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= extents[i];
    return n;
}

bool window_is_data(const Window *w)
{
    for (int i = 0; i < w->rank; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->begin[i] || w->in[i] != w->out[i])
            return false;
    return true;
}

static void taps_run(Taps *t)
{
    const Window *w = t->w;
    t->offset = 0;
    for (int i = 0; i < w->rank; i++)
        t->offset = t->offset * w->in[i] + t->start[i] + t->tap[i] * w->dilation[i];
}

bool taps_at(Taps *t, const Window *w, const int64_t *at)
{
    t->w = w;
    for (int i = 0; i < w->rank; i++) {
        const int64_t d = w->dilation[i], start = at[i] * w->stride[i] - w->begin[i], room = w->in[i] - start;
        int64_t first = 0, last = w->kernel[i];
        if (start < 0 || (last - 1) * d >= room) { /* over an edge */
            first = start < 0 ? (-start + d - 1) / d : 0;
            last = room > 0 ? (room + d - 1) / d : 0;
            last = last < w->kernel[i] ? last : w->kernel[i];
        }
        if (last <= first)
            return false;
        t->start[i] = start;
        t->first[i] = t->tap[i] = first;
        t->count[i] = last - first;
    }
    t->n = t->count[w->rank - 1];
    t->step = w->dilation[w->rank - 1];
    taps_run(t);
    return true;
}

bool taps_next(Taps *t)
{
    for (int i = t->w->rank - 2; i >= 0; i--) {
        if (++t->tap[i] < t->first[i] + t->count[i]) {
            taps_run(t);
            return true;
        }
        t->tap[i] = t->first[i];
    }
    return false;
}

void position_next(int rank, const int64_t *dims, int64_t *at)
{
    for (int i = rank - 1; i >= 0; i--) {
        if (++at[i] < dims[i])
            return;
        at[i] = 0;
    }
}

void position_of(int rank, const int64_t *dims, int64_t index, int64_t *at)
{
    for (int i = rank - 1; i >= 0; i--) {
        at[i] = dims[i] ? index % dims[i] : 0;
        index = dims[i] ? index / dims[i] : 0;
    }
}

void sample_window(Rng *rng, Arena *arena, int rank, const int64_t *in, int64_t *kernel, WindowAttr *at)
{
    int64_t *strides = NEWS(arena, int64_t, rank), *dilations = NEWS(arena, int64_t, rank);
    int64_t *pads = NEWS(arena, int64_t, 2 * rank);
    at->auto_pad = rng_below(rng, 3) ? PAD_NOTSET : (int)rng_below(rng, 4);
    for (int i = 0; i < rank; i++) {
        strides[i] = rng_range(rng, 1, 3);
        kernel[i] = rng_range(rng, 1, in[i] < 3 ? in[i] : 3);
        const int64_t most = kernel[i] > 1 ? (in[i] - 1) / (kernel[i] - 1) : 2;
        dilations[i] = rng_range(rng, 1, most < 2 ? most : 2);
        pads[i] = rng_below(rng, kernel[i]);
        pads[rank + i] = rng_below(rng, kernel[i]);
    }
    if (rng_below(rng, 4))
        at->strides = (Ints){ rank, strides };
    if (rng_below(rng, 2))
        at->dilations = (Ints){ rank, dilations };
    if (at->auto_pad == PAD_NOTSET && rng_below(rng, 4))
        at->pads = (Ints){ 2 * rank, pads };
}

void sample_rounding(Rng *rng, Arena *arena, int rank, const int64_t *in, int64_t *kernel, WindowAttr *at)
{
    int64_t *strides = NEWS(arena, int64_t, rank);
    at->ceil_mode = rng_below(rng, 2);
    if (!at->ceil_mode || at->auto_pad != PAD_NOTSET || rng_below(rng, 4))
        return;
    for (int i = 0; i < rank; i++)
        kernel[i] = strides[i] = in[i] + rng_range(rng, 1, 4);
    at->strides = (Ints){ rank, strides };
    at->dilations = (Ints){ 0 };
}

PlaneWindows window_planar(const Window *w)
{
    PlaneWindows p = { .out = { 0 } };
    if (w->rank != 2 || w->out[0] <= 0 || w->out[1] <= 0)
        return p;
    for (int i = 0; i < 2; i++) {
        p.in[i] = w->in[i], p.out[i] = w->out[i], p.kernel[i] = w->kernel[i];
        p.stride[i] = w->stride[i], p.dilation[i] = w->dilation[i], p.before[i] = w->begin[i];
    }
    const int64_t reach = (w->kernel[1] - 1) * w->dilation[1];
    const bool served = reach < LARGEST_REACH && w->begin[1] >= 0 && w->begin[1] <= reach &&
                        w->out[1] <= LARGEST_PITCH && w->stride[1] <= LARGEST_PITCH &&
                        largest_pitch(&p) <= LARGEST_PITCH;
    return served ? p : (PlaneWindows){ .out = { 0 } };
}
