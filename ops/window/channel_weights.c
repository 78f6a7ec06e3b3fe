/* conv_weight_grad of groups of a channel or two: a lane for each group.  Lines of x and dy are turned, so that what the groups
 * have at one position are neighbours, and padded; then each sum walks over all positions in its order (ops/kernels/panel.h),
 * the sums of all taps beside each other. */
#include <string.h>

#include "base/parallel.h"
#include "ops/kernels/panel.h"
#include "ops/window/channels.h"

enum {
    X,
    DY,
    LEAST_GROUPS = 4,        /* that are worth lanes */
    MOST_PAIRS = 4,          /* of a channel and a result in a group */
    MOST_TAPS = 1 << 10,     /* of a window */
    MOST_LINE = 1 << 16,     /* positions of a line, padded, and lines that a window reaches over */
    MOST_TURNED = 1 << 16,   /* elements that are turned at a time, where a line is not more */
    MOST_OF_LINES = 1 << 20, /* elements of what one line of windows sees */
};

typedef struct Run {
    const TapLoops *taps;
    const PackedLoops *packed;
    Window w;                                          /* over two dimensions */
    int64_t images, groups, channels, results, blocks; /* blocks of lanes */
    int64_t n_taps, positions;
    int64_t lines, seen, line; /* of windows at a time; of data that these see, and how long such a line is, padded */
    const size_t *at;          /* of each tap, from the first one of its window */
    const Kernels *kernels;
    const Tensor *operand[2]; /* X and DY */
    bool is_wide;             /* they are f32, else lines are widened as they are wanted: */
    size_t widened;           /* so many elements of a lane at a time */
    f32 *y;
    f32 *rooms;
    size_t room; /* elements */
} Run;

/* Lanes of one pair of a channel and a result of so many groups. */
typedef struct Lane {
    int64_t group, n, channel, result;
} Lane;

/* What windows see along dimension i, `n` of them side by side. */
static int64_t reach(const Window *w, int i, int64_t n)
{
    return (n - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
}

/* So many elements of an operand in each lane, those of the first from element `first` on: where the lanes lie *row apart. */
static const f32 *lanes_of(const Run *r, int operand, const Lane *l, int64_t first, int64_t n, size_t *row, f32 *room)
{
    const Tensor *from = r->operand[operand];
    if (r->is_wide)
        return (const f32 *)from->data + first;
    for (int64_t i = 0; i < l->n; i++)
        kernels_load_f32(r->kernels, room + (size_t)i * r->widened, from, first + i * (int64_t)*row, n);
    *row = r->widened;
    return room;
}

/* Lines of data, those of the windows from `first` on, into place: between padding, which is zeros. */
static void turn_data(const Run *r, const Lane *l, int64_t image, int64_t first, int64_t lines, f32 *to, f32 *wide)
{
    const Window *w = &r->w;
    const int64_t plane = w->in[0] * w->in[1], lanes = (int64_t)r->taps->lanes;
    const int64_t room = r->line - w->begin[1], n = room < w->in[1] ? room : w->in[1];
    const int64_t seen = reach(w, 0, lines), above = first * w->stride[0] - w->begin[0];
    const int64_t begin = above < 0 ? 0 : above, end = above + seen < w->in[0] ? above + seen : w->in[0];
    const int64_t channel = (image * r->groups + l->group) * r->channels + l->channel;
    size_t row = (size_t)(r->channels * plane);
    const f32 *x = begin < end && n > 0
                       ? lanes_of(r, X, l, channel * plane + begin * w->in[1], (end - begin) * w->in[1], &row, wide)
                       : NULL;
    for (int64_t i = 0; i < seen && n > 0; i++) {
        const int64_t at = above + i;
        f32 *line = to + (i * r->line + w->begin[1]) * lanes;
        if (at >= begin && at < end)
            r->packed->turn((size_t)l->n, (size_t)n, x + (at - begin) * w->in[1], row, line, (size_t)lanes);
        else
            memset(line, 0, (size_t)(n * lanes) * sizeof *line);
    }
}

static void turn_results(const Run *r, const Lane *l, int64_t image, int64_t first, int64_t lines, f32 *to, f32 *wide)
{
    const int64_t width = r->w.out[1], plane = r->w.out[0] * width;
    const int64_t result = (image * r->groups + l->group) * r->results + l->result;
    size_t row = (size_t)(r->results * plane);
    const f32 *dy = lanes_of(r, DY, l, result * plane + first * width, lines * width, &row, wide);
    r->packed->turn((size_t)l->n, (size_t)(lines * width), dy, row, to, r->taps->lanes);
}

/* Adds a line of windows to the sums; `done` positions were added before. */
static void add_line(const Run *r, const f32 *x, const f32 *dy, int64_t done, f32 *sums, f32 *digits)
{
    const size_t lanes = r->taps->lanes, all = (size_t)r->n_taps * lanes, step = (size_t)r->w.stride[1] * lanes;
    const int64_t end = done + r->w.out[1];
    for (int64_t n; done < end; done += n) {
        const int64_t left = PANEL_SEGMENT - done % PANEL_SEGMENT;
        n = left < end - done ? left : end - done;
        r->taps->add((size_t)r->n_taps, r->at, (size_t)n, x, step, dy, sums);
        x += (size_t)n * step, dy += (size_t)n * lanes;
        const bool last = done + n == r->positions;
        if (n < left && !last)
            continue;
        panel_join_f32(sums, 1, all, all, digits, (size_t)(done / PANEL_SEGMENT), last);
        if (!last)
            memset(sums, 0, all * sizeof *sums);
    }
}

static void add_lanes(const Run *r, const Lane *l, f32 *room)
{
    const Window *w = &r->w;
    const int64_t lanes = (int64_t)r->taps->lanes;
    f32 *x = room, *dy = x + r->seen * r->line * lanes, *sums = dy + r->lines * w->out[1] * lanes,
        *digits = sums + r->n_taps * lanes, *wide = room + r->room - lanes * (int64_t)r->widened;
    memset(room, 0, (size_t)(digits - room) * sizeof *room);
    for (int64_t image = 0; image < r->images; image++)
        for (int64_t first = 0, lines; first < w->out[0]; first += lines) {
            lines = w->out[0] - first < r->lines ? w->out[0] - first : r->lines;
            turn_data(r, l, image, first, lines, x, wide);
            turn_results(r, l, image, first, lines, dy, wide);
            for (int64_t i = 0; i < lines; i++)
                add_line(r, x + i * w->stride[0] * r->line * lanes, dy + i * w->out[1] * lanes,
                         (image * w->out[0] + first + i) * w->out[1], sums, digits);
        }
    for (int64_t i = 0; i < l->n; i++) {
        f32 *y = r->y + (((l->group + i) * r->results + l->result) * r->channels + l->channel) * r->n_taps;
        for (int64_t t = 0; t < r->n_taps; t++)
            y[t] = sums[t * lanes + i];
    }
}

static void run_lanes(void *arg, int64_t begin, int64_t end, int worker)
{
    const Run *r = arg;
    const int64_t lanes = (int64_t)r->taps->lanes;
    for (int64_t i = begin; i < end; i++) {
        const int64_t pair = i / r->blocks;
        Lane l = { .group = i % r->blocks * lanes, .channel = pair % r->channels, .result = pair / r->channels };
        l.n = r->groups - l.group < lanes ? r->groups - l.group : lanes;
        add_lanes(r, &l, r->rooms + (size_t)worker * r->room);
    }
}

/* One dimension as the last of two. */
static Window in_plane(const Window *w)
{
    Window p = *w;
    if (w->rank == 2)
        return p;
    p = (Window){ .rank = 2, .in = { 1 }, .kernel = { 1 }, .stride = { 1 }, .dilation = { 1 }, .out = { 1 } };
    p.in[1] = w->in[0], p.kernel[1] = w->kernel[0], p.stride[1] = w->stride[0], p.dilation[1] = w->dilation[0];
    p.begin[1] = w->begin[0], p.end[1] = w->end[0], p.out[1] = w->out[0];
    return p;
}

/* As many lines of windows at a time as stay in cache; false: one is too much. */
static bool split_lines(Run *r)
{
    const Window *w = &r->w;
    const int64_t lanes = (int64_t)r->taps->lanes;
    r->line = reach(w, 1, w->out[1]);
    if (r->n_taps > MOST_TAPS || r->line > MOST_LINE || reach(w, 0, 1) > MOST_LINE ||
        reach(w, 0, 1) * r->line * lanes > MOST_OF_LINES)
        return false;
    r->lines = 1;
    while (r->lines < w->out[0] && reach(w, 0, r->lines + 1) * r->line * lanes <= MOST_TURNED)
        r->lines++;
    r->seen = reach(w, 0, r->lines);
    return true;
}

/* Where the taps of a window stand among turned lines. */
static const size_t *places(Eval *e, const Run *r)
{
    size_t *at = NEWS(e->scratch, size_t, r->n_taps);
    for (int64_t t = 0; t < r->n_taps; t++) {
        const int64_t row = t / r->w.kernel[1] * r->w.dilation[0], col = t % r->w.kernel[1] * r->w.dilation[1];
        at[t] = (size_t)(row * r->line + col) * r->taps->lanes;
    }
    return at;
}

bool channels_are_few(int64_t groups, int64_t channels, int64_t results)
{
    return groups >= LEAST_GROUPS && channels <= MOST_PAIRS && results <= MOST_PAIRS &&
           channels * results <= MOST_PAIRS;
}

bool channel_weights(Eval *e, const Window *w, int64_t groups, const Type *x, const Type *dy)
{
    Run r = { .taps = kernels_taps(e->kernels), .packed = kernels_packed(e->kernels, ARITH_F32), .groups = groups };
    r.channels = x->dims[1] / groups, r.results = dy->dims[1] / groups;
    if (w->rank > 2 || !channels_are_few(groups, r.channels, r.results) || tensor_elements(e->in[DY]) == 0)
        return false;
    r.w = in_plane(w);
    r.n_taps = window_product(2, r.w.kernel);
    if (!split_lines(&r))
        return false;
    const size_t lanes = r.taps->lanes, threads = (size_t)parallel_threads(e->pool);
    r.images = x->dims[0];
    r.positions = r.images * r.w.out[0] * r.w.out[1];
    r.blocks = (groups + (int64_t)lanes - 1) / (int64_t)lanes;
    r.at = places(e, &r);
    r.kernels = e->kernels;
    r.operand[X] = e->in[X], r.operand[DY] = e->in[DY], r.y = eval_out_f32(e, 0);
    r.is_wide = x->dtype == F32;
    const int64_t of_x = r.seen * r.w.in[1], of_dy = r.lines * r.w.out[1];
    r.widened = r.is_wide ? 0 : (size_t)(of_x > of_dy ? of_x : of_dy);
    r.room = ((size_t)(r.seen * r.line + r.lines * r.w.out[1]) +
              (size_t)r.n_taps * (1 + panel_digits((size_t)r.positions)) + r.widened) *
             lanes;
    r.rooms = eval_room(e, threads * r.room, sizeof(f32));
    eval_parallel(e, r.blocks * r.channels * r.results, run_lanes, &r);
    return true;
}
