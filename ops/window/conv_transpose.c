/* conv_transpose: every element of the data spreads a kernel over the result.
 *
 * A result is the sum over (tap, channel) in that order, as every contraction sums (ops/kernels/panel.h), of the taps
 * that reach it: those whose distance from it is a multiple of the stride.  Where such a tap reaches from outside the
 * data, it brings zeros.  Then the bias is added.  Results that the same taps reach are a convolution of stride 1. */
#include <string.h>

#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/contract/work.h"
#include "ops/window/planes.h"
#include "ops/window/window_access.h"

static const AttrSpec conv_transpose_attrs[] = {
    WINDOW_PLACE_ATTRS(ConvTransposeAttr),
    WINDOW_INTS(ConvTransposeAttr, dilations),
    WINDOW_INTS(ConvTransposeAttr, kernel_shape),
    ATTR(ConvTransposeAttr, group, INT, 1),
    ATTR_OPTIONAL(ConvTransposeAttr, output_padding, INTS),
    ATTR_OPTIONAL(ConvTransposeAttr, output_shape, INTS),
    ATTR_OURS(ConvTransposeAttr, out, DTYPE, 0),
    ATTR_LAST,
};

static const Type *infer_conv_transpose(Infer *q)
{
    const ConvTransposeAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0), *w = x ? infer_tensor(q, 1) : NULL;
    DType dtype;
    if (!w || !infer_filter(q, x, w, at->group) || !infer_contracted(q, at->out, 0, &dtype))
        return NULL;
    if (x->rank < 0 || w->rank < 0)
        return type_unranked(q->types, dtype);

    int64_t m = DIM_UNKNOWN;
    Window win;
    const int64_t c = x->dims[1];
    if (c >= 0 && w->dims[0] >= 0 && c != w->dims[0])
        return infer_fail(q, "data has %" PRId64 " channels, the weights take %" PRId64, c, w->dims[0]);
    if (w->dims[0] >= 0 && w->dims[0] % at->group)
        return infer_fail(q, "%" PRId64 " channels do not split into %" PRId64 " groups", w->dims[0], at->group);
    if (w->dims[1] >= 0 && (__builtin_mul_overflow(w->dims[1], at->group, &m) || m > q->ir->limits.dim))
        return infer_fail(q, "group %" PRId64 " is beyond the limit dim", at->group);
    const char *wrong = window_place_transposed(&win, q->scratch, at, x->rank - 2, x->dims + 2, w->dims + 2);
    if (wrong)
        return infer_fail(q, "%s", wrong);
    if (!infer_bias(q, 2, m))
        return NULL;
    return infer_channels(q, dtype, x->dims[0], m, &win);
}

/* One dimension of a phase: the positions first, first + stride .. of the result, which the taps first_tap,
 * first_tap + tap_step .. reach.  Tap number u brings position j what the data has at start + j + u * distance. */
typedef struct PhaseAxis {
    int64_t first, positions;
    int64_t first_tap, tap_step, taps;
    int64_t start, distance;
} PhaseAxis;

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static PhaseAxis phase_axis(const Window *w, int i, int64_t first)
{
    const int64_t stride = w->stride[i], dilation = w->dilation[i], place = first + w->begin[i];
    PhaseAxis p = { .first = first, .positions = (w->out[i] - first + stride - 1) / stride };
    p.tap_step = stride / common_divisor(stride, dilation);
    while (p.first_tap < p.tap_step && p.first_tap < w->kernel[i] && (place - p.first_tap * dilation) % stride != 0)
        p.first_tap++;
    if (p.first_tap == p.tap_step || p.first_tap >= w->kernel[i])
        return p;
    p.taps = (w->kernel[i] - p.first_tap - 1) / p.tap_step + 1;
    p.start = (place - p.first_tap * dilation) / stride;
    p.distance = -(p.tap_step * dilation / stride);
    return p;
}

/* The part of a result that the same taps reach: a correlation with the data, the last axis of which may be empty of
 * taps.  `tap` gets the taps, ascending. */
static void phase_open(Correlation *c, const Window *w, const int64_t *first, int64_t *tap)
{
    int64_t step = 1, u[MAX_SPATIAL] = { 0 };
    PhaseAxis axis[MAX_SPATIAL];
    c->w = (Window){ .rank = w->rank };
    c->place = 0;
    for (int i = w->rank - 1; i >= 0; i--) {
        axis[i] = phase_axis(w, i, first[i]);
        c->w.in[i] = w->in[i];
        c->w.out[i] = axis[i].positions;
        c->w.kernel[i] = axis[i].taps;
        c->w.stride[i] = 1;
        c->w.dilation[i] = axis[i].distance;
        c->w.begin[i] = -axis[i].start;
        c->place += first[i] * step;
        c->step[i] = w->stride[i] * step;
        step *= w->out[i];
    }
    const int64_t taps = window_product(w->rank, c->w.kernel);
    for (int64_t k = 0; k < taps; k++) {
        tap[k] = 0;
        for (int i = 0; i < w->rank; i++)
            tap[k] = tap[k] * w->kernel[i] + axis[i].first_tap + u[i] * axis[i].tap_step;
        position_next(w->rank, c->w.kernel, u);
    }
}

/* The weights [channels, results, taps] of each group as [results, taps of the phase, channels]. */
static FilterPack phase_filter(const Correlation *c, int64_t all_taps, const int64_t *tap, const void *from, void *to)
{
    return (FilterPack){ .groups = c->groups,
                         .rows = c->results,
                         .columns = c->channels,
                         .taps = c->taps,
                         .group = c->channels * c->results * all_taps,
                         .row = all_taps,
                         .column = c->results * all_taps,
                         .tap = c->taps == all_taps ? NULL : tap,
                         .f64 = c->f64,
                         .is_bf16 = c->is_bf16,
                         .from = from,
                         .to = to };
}

/* Four phases that make whole lines together, steps of two being the only ones there are; null: they do not. */
static Correlation *plan_meeting(Eval *e, const Correlation *c, const Window *w, int64_t images, int64_t *tap)
{
    enum { PHASES = 4 };
    const int64_t all_taps = window_product(w->rank, w->kernel), phases[2] = { 2, 2 };
    int64_t first[MAX_SPATIAL] = { 0 };
    if (c->f64 || eval_has(e, 2) || w->rank != 2 || w->stride[0] != 2 || w->stride[1] != 2 || w->out[0] < 2 ||
        w->out[1] < 2)
        return NULL;
    Correlation *each = NEWS(e->scratch, Correlation, PHASES);
    for (int k = 0; k < PHASES; k++, position_next(2, phases, first)) {
        each[k] = *c;
        each[k].kernels = e->kernels;
        phase_open(&each[k], w, first, tap + k * all_taps);
        correlation_plan(&each[k], images, parallel_threads(e->pool));
        if (!each[k].planes.lines)
            return NULL;
    }
    return planes_meet(each) ? each : NULL;
}

static void run_meeting(Eval *e, const Correlation *c, Correlation *each, const Window *w, const void *filter,
                        const int64_t *tap)
{
    enum { PHASES = 4 };
    const int64_t all_taps = window_product(w->rank, w->kernel);
    for (int k = 0; k < PHASES; k++) {
        FilterPack part = phase_filter(&each[k], all_taps, tap + k * all_taps, filter, NULL);
        part.to = eval_room(e, filter_room(e, &part), sizeof(f32));
        filter_pack(e, &part);
        each[k].filter = part.to;
        each[k].x = c->x, each[k].data = c->data, each[k].y = c->y, each[k].taker = c->taker;
    }
    planes_run_meeting(e, each);
}

/* All phases, plane by plane, where each of them runs along planes; false: nothing was done. */
static bool run_together(Eval *e, const Correlation *c, const Window *w, int64_t images, const void *filter,
                         const int64_t *phases, int64_t *tap)
{
    enum { MOST = 64 };
    const int64_t all_taps = window_product(w->rank, w->kernel), threads = parallel_threads(e->pool);
    const int64_t n = window_product(w->rank, phases);
    int64_t first[MAX_SPATIAL] = { 0 };
    f32 *packed = (f32 *)(uintptr_t)c->filter;
    size_t room = 0;
    if (n > MOST || n == 1 || c->f64)
        return false;
    Correlation *each = NEWS(e->scratch, Correlation, n);
    for (int64_t k = 0; k < n; k++, position_next(w->rank, phases, first)) {
        each[k] = *c;
        phase_open(&each[k], w, first, tap);
        correlation_plan(&each[k], images, threads);
        if (!each[k].planes.lines)
            return false;
        const FilterPack part = phase_filter(&each[k], all_taps, tap, filter, packed);
        filter_pack(e, &part);
        each[k].filter = packed;
        packed += filter_room(e, &part);
        room = each[k].room_bytes > room ? each[k].room_bytes : room;
    }
    char *rooms = eval_room(e, (size_t)threads, room);
    for (int64_t k = 0; k < n; k++)
        each[k].rooms = rooms, each[k].room_bytes = room;
    planes_run_together(e, each, (size_t)n);
    return true;
}

/* Whether no tap reaches some results of a dimension. */
static bool misses(const Window *w, int i, int64_t phases)
{
    bool all = true;
    for (int64_t first = 0; first < phases; first++)
        all = all && phase_axis(w, i, first).taps > 0;
    return !all;
}

/* Planes of results. */
typedef struct Planes {
    char *y;
    size_t bytes;
} Planes;

static void clear_planes(void *arg, int64_t begin, int64_t end, int worker)
{
    const Planes *p = arg;
    (void)worker;
    memset(p->y + (size_t)begin * p->bytes, 0, (size_t)(end - begin) * p->bytes);
}

/* Clears the result where no tap reaches some of it and there is no bias, so that these phases need not run; false: they do. */
static bool clear_missed(Eval *e, const Correlation *c, const Window *w, int64_t images, const int64_t *phases)
{
    Planes p = { c->y, (size_t)c->size * (c->f64 ? sizeof(f64) : sizeof(f32)) };
    bool any = false;
    for (int i = 0; i < w->rank; i++)
        any = any || misses(w, i, phases[i]);
    if (!any || c->bias || !c->y)
        return false;
    eval_parallel(e, images * c->groups * c->results, clear_planes, &p);
    return true;
}

/* Every phase on its own: as many as a window has steps. */
static void run_phases(Eval *e, Correlation *c, const Window *w, int64_t images, const void *filter)
{
    const int64_t all_taps = window_product(w->rank, w->kernel), threads = parallel_threads(e->pool);
    const size_t element = c->f64 ? sizeof(f64) : sizeof(f32);
    int64_t phases[MAX_SPATIAL], first[MAX_SPATIAL] = { 0 }, *tap = NEWS(e->scratch, int64_t, all_taps);
    const FilterPack all = { .groups = c->groups,
                             .rows = c->results,
                             .columns = c->channels,
                             .taps = all_taps,
                             .f64 = c->f64,
                             .is_bf16 = c->is_bf16 };
    void *packed = eval_room(e, filter_room(e, &all), element);
    size_t room = 0;
    c->filter = packed;
    for (int i = 0; i < w->rank; i++)
        phases[i] = w->stride[i] < w->out[i] ? w->stride[i] : w->out[i];
    const int64_t n = window_product(w->rank, phases);
    if (run_together(e, c, w, images, filter, phases, tap))
        return;
    const bool cleared = clear_missed(e, c, w, images, phases);
    for (int64_t k = 0; k < n && !eval_stopped(e); k++, position_next(w->rank, phases, first)) {
        phase_open(c, w, first, tap);
        if (cleared && window_product(w->rank, c->w.kernel) == 0)
            continue;
        correlation_plan(c, images, threads);
        correlation_widen(e, c);
        const FilterPack part = phase_filter(c, all_taps, tap, filter, packed);
        filter_pack(e, &part);
        if (c->room_bytes > room) {
            room = c->room_bytes;
            c->rooms = eval_room(e, (size_t)threads, room);
        }
        correlation_run(e, c);
    }
}

static Status eval_conv_transpose(Eval *e)
{
    const ConvTransposeAttr *at = e->attr;
    const Type *x = e->in[0]->type, *filter = e->in[1]->type;
    Correlation c = { .groups = at->group, .channels = filter->dims[0] / at->group, .results = filter->dims[1] };
    Window w;
    BUG_IF(e->ir->memory, window_place_transposed(&w, e->scratch, at, x->rank - 2, x->dims + 2, filter->dims + 2));
    c.f64 = eval_is_f64(e);
    if (tensor_elements(eval_out(e, 0)) == 0)
        return OK;
    c.size = window_product(w.rank, w.out);
    for (int i = 0; i < w.rank; i++)
        c.apart = c.apart || w.stride[i] > 1;
    int64_t *taps = NEWS(e->scratch, int64_t, 4 * window_product(w.rank, w.kernel));
    Correlation *each = plan_meeting(e, &c, &w, x->dims[0], taps);
    c.apart = c.apart && !each;
    c.w = w;
    correlation_operands(e, &c, x->dims[0], window_product(w.rank, x->dims + 2));
    if (each) {
        run_meeting(e, &c, each, &w, eval_wide(e, 1, ARITH_F32), taps);
        return OK;
    }
    run_phases(e, &c, &w, x->dims[0], c.is_bf16 ? e->in[1]->data : eval_wide(e, 1, c.f64 ? ARITH_F64 : ARITH_F32));
    return OK;
}

static bool narrows_conv_transpose(const Node *n)
{
    const Type *x = in(n, 0)->type, *f = in(n, 1)->type;
    const int64_t groups = ((const ConvTransposeAttr *)n->attr)->group;
    return type_known(f) && correlation_narrows(x, f, groups, f->dims[0] / groups, f->dims[1]);
}

static size_t room_conv_transpose(const Node *n)
{
    const Type *f = in(n, 1)->type;
    const int64_t groups = ((const ConvTransposeAttr *)n->attr)->group;
    return filter_bytes(f, groups, f->dims[1], f->dims[0] / groups, window_product(f->rank - 2, f->dims + 2));
}

/* Cuts the result at its borders, or says how large it is: somewhat less or more than what is reached. */
static void sample_frame(Rng *rng, Arena *arena, int rank, const int64_t *x, const int64_t *w, ConvTransposeAttr *at)
{
    int64_t *shape = NEWS(arena, int64_t, rank), *pads = NEWS(arena, int64_t, 2 * rank), least = INT64_MAX;
    const bool says = rng_below(rng, 2);
    for (int i = 0; i < rank; i++) {
        const WindowAttr *a = &at->window;
        const int64_t stride = a->strides.v ? a->strides.v[i] : 1, dilation = a->dilations.v ? a->dilations.v[i] : 1;
        const int64_t reached = stride * (x[i] - 1) + (w[i] - 1) * dilation + 1;
        least = reached < least ? reached : least;
        shape[i] = rng_range(rng, reached > 2 ? reached - 2 : 1, reached + 2);
        pads[i] = rng_below(rng, 2);
        pads[rank + i] = rng_below(rng, 2);
    }
    if (says) {
        at->output_padding = (Ints){ 0 };
        at->output_shape = (Ints){ rank, shape };
    } else if (least > 2 && at->window.auto_pad == PAD_NOTSET) {
        at->window.pads = (Ints){ 2 * rank, pads };
    }
}

static Node *sample_conv_transpose(Build *b, Rng *rng, int variant)
{
    int64_t x[MAX_RANK], w[MAX_RANK], m;
    const int rank = 1 + variant % 3;
    const DType dtype = sample_float(rng);
    ConvTransposeAttr at = { .group = rng_range(rng, 1, 3) };
    x[0] = rng_below(rng, 8) ? rng_range(rng, 1, 2) : 0;
    x[1] = w[0] = rng_range(rng, 1, 3) * at.group;
    w[1] = rng_range(rng, 1, 3);
    m = w[1] * at.group;
    for (int i = 0; i < rank; i++)
        x[2 + i] = rng_range(rng, 2, 5);
    sample_window(rng, b->graph->arena, rank, x + 2, w + 2, &at.window);
    at.window.pads = (Ints){ 0 };
    if (at.window.strides.v && rng_below(rng, 2)) {
        int64_t *more = NEWS(b->graph->arena, int64_t, rank);
        for (int i = 0; i < rank; i++)
            more[i] = rng_below(rng, at.window.strides.v[i]);
        at.output_padding = (Ints){ rank, more };
    }
    if (rng_below(rng, 2))
        sample_frame(rng, b->graph->arena, rank, x + 2, w + 2, &at);
    Node *data = sample_tensor(b, rng, dtype, rank + 2, x, -2, 2),
         *filter = sample_tensor(b, rng, dtype, rank + 2, w, -2, 2);
    if (rng_below(rng, 2))
        return CALL_ATTR(b, conv_transpose, at, data, filter);
    return CALL_ATTR(b, conv_transpose, at, data, filter, sample_tensor(b, rng, dtype, 1, &m, -1, 1));
}

/* With groups, slice j belongs to channel j of each of them. */
static int channels_of_filter(const Node *n, int operand)
{
    (void)n;
    return operand == 1 ? 1 : QUANT_WHOLE;
}

const OpDef op_conv_transpose = {
    .name = "conv_transpose",
    .min_in = 2,
    .max_in = 3,
    .attrs = conv_transpose_attrs,
    .infer = infer_conv_transpose,
    .eval = eval_conv_transpose,
    .sample = sample_conv_transpose,
    .n_variants = 60,
    .adjoint = adjoint_conv_transpose,
    .differentiable = 7,
    .trainable = 6,
    .weight = 40,
    .work = work_conv_transpose,
    .room = room_conv_transpose,
    .narrows = narrows_conv_transpose,
    .access.kind = ACCESS_CONTRACT,
    .access.iterate = iterate_conv_transpose,
    .amp = { AMP_T, AMP_T, 4, REASON_NONE, NULL },
    .quant = { .in = { QUANT_INPUT, QUANT_WEIGHT, QUANT_BIAS },
               .out = { QUANT_INPUT },
               .weight_axis = channels_of_filter },
    .onnx = { "ConvTranspose", 22, NULL },
};
