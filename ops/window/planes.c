#include "ops/window/plane_parts.h"

#include <stdlib.h>
#include <string.h>

#include "ops/kernels/panel.h"

enum {
    MOST_EXTENT = 1 << 20,    /* of a plane along each dimension */
    IN_CACHE = 1 << 14,       /* elements of planes */
    MOST_PLANES = 1 << 20,    /* elements where one line of positions sees more */
    ALIGN = 64 / sizeof(f32), /* elements of a line of a cache */
};

/* How far the taps of dimension i reach; the distance of taps may be negative. */
static int64_t reach(const Window *w, int i)
{
    return llabs((w->kernel[i] - 1) * w->dilation[i]);
}

/* The planes of so many positions of the first dimension. */
static void set_lines(Correlation *c, int64_t lines)
{
    PlanePlan *p = &c->planes;
    const Window *w = &c->w;
    p->plane = p->phases = 1;
    for (int i = w->rank - 1; i >= 0; i--) {
        p->pitch[i] = p->plane;
        p->extent[i] = (i ? w->out[i] : lines) + reach(w, i) / w->stride[i];
        p->plane *= p->extent[i];
        p->phases *= w->stride[i];
    }
    p->lines = lines;
}

static int64_t of_planes(const Correlation *c)
{
    return c->channels * c->planes.phases * c->planes.plane;
}

/* Whether a plane along each dimension, and all of them in one line of positions, have a size to speak of. */
static bool fits(Correlation *c)
{
    int64_t all = c->channels;
    for (int i = 0; i < c->w.rank; i++) {
        const int64_t extent = (i ? c->w.out[i] : 1) + reach(&c->w, i) / c->w.stride[i];
        if (extent > MOST_EXTENT || c->w.stride[i] > MOST_EXTENT || c->w.kernel[i] == 0)
            return false;
        all *= extent * c->w.stride[i];
        if (all > MOST_PLANES)
            return false;
    }
    return true;
}

static int64_t round_up(int64_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* Elements of the parts of a room. */
static int64_t of_weights(const Correlation *c)
{
    return round_up(c->channels * c->taps);
}

static int64_t of_sums(const Correlation *c)
{
    return round_up(c->planes.lines * c->planes.pitch[0] + MOST_LANES);
}

static int64_t of_data(const Correlation *c)
{
    return c->data ? round_up(c->in) : 0;
}

static int64_t of_taken(const Correlation *c)
{
    return c->taker.take ? round_up(c->planes.lines * (c->out / c->w.out[0])) : 0;
}

void planes_plan(Correlation *c)
{
    c->planes.lines = 0;
    if (c->f64 || c->groups == 1 || c->channels > PLANES_MOST || c->results > PLANES_MOST || c->out == 0 ||
        c->channels == 0 || c->channels * c->taps > PANEL_SEGMENT || !fits(c))
        return;
    set_lines(c, 1);
    const int64_t least = of_planes(c), line = c->channels * c->planes.phases * c->planes.pitch[0];
    const int64_t more = IN_CACHE > least ? (IN_CACHE - least) / line : 0;
    set_lines(c, more + 1 < c->w.out[0] ? more + 1 : c->w.out[0]);
    c->planes.blocks = (c->w.out[0] + c->planes.lines - 1) / c->planes.lines;
    c->room_bytes = (size_t)of_weights(c) * (sizeof(size_t) + sizeof(f32)) +
                    (size_t)(round_up(of_planes(c) + MOST_LANES) + of_sums(c) + of_data(c) + of_taken(c)) * sizeof(f32);
}

int64_t planes_blocks(const Correlation *c)
{
    return c->images * c->groups * c->planes.blocks;
}

void planes_place_taps(const Correlation *c, size_t *at)
{
    const PlanePlan *p = &c->planes;
    const Window *w = &c->w;
    int64_t tap[MAX_SPATIAL] = { 0 };
    for (int64_t t = 0; t < c->taps; t++, position_next(w->rank, w->kernel, tap)) {
        int64_t phase = 0, place = 0;
        for (int i = 0; i < w->rank; i++) {
            const int64_t from = tap[i] * w->dilation[i] + (w->dilation[i] < 0 ? reach(w, i) : 0) + p->before[i];
            phase = phase * w->stride[i] + from % w->stride[i];
            place += from / w->stride[i] * p->pitch[i];
        }
        for (int64_t k = 0; k < c->channels; k++)
            *at++ = (size_t)((k * p->phases + phase) * p->plane + place);
    }
}

/* The sums of some lines of positions to where they stand. */
static void place(const Correlation *c, const f32 *sums, int64_t first, int64_t lines, const f32 *bias, f32 *y)
{
    const int last = c->w.rank - 1;
    const f32 more = bias ? *bias : 0;
    const int64_t run = last ? c->w.out[last] : lines, step = c->apart ? c->step[last] : 1;
    int64_t at[MAX_SPATIAL] = { 0 }, dims[MAX_SPATIAL];
    memcpy(dims, c->w.out, sizeof dims);
    dims[0] = lines;
    for (int64_t n = window_product(last, dims); n > 0; n--, position_next(last, dims, at)) {
        const f32 *from = sums;
        int64_t to = 0, where = c->place;
        for (int i = 0; i <= last; i++) {
            const int64_t here = (i < last ? at[i] : 0) + (i ? 0 : first);
            from += i < last ? at[i] * c->planes.pitch[i] : 0;
            to = to * c->w.out[i] + here;
            where += here * c->step[i];
        }
        f32 *row = y + (c->apart ? where : to);
        for (int64_t i = 0; i < run; i++)
            row[i * step] = bias ? from[i] + more : from[i];
    }
}

/* The same in the usual case: planes whose lines follow each other. */
static void place_lines(const Correlation *c, const f32 *sums, int64_t first, int64_t lines, const f32 *bias, f32 *y)
{
    const int64_t width = c->w.out[1];
    const f32 more = bias ? *bias : 0;
    for (int64_t i = 0; i < lines; i++, sums += c->planes.pitch[0]) {
        f32 *restrict to = y + (first + i) * width;
        if (!bias)
            plane_copy(to, sums, width);
        for (int64_t k = 0; bias && k < width; k++)
            to[k] = sums[k] + more;
    }
}

static void run_block(const Correlation *c, int64_t at, int64_t first, const PlaneRoom *room)
{
    const PlanePlan *p = &c->planes;
    const size_t tile = kernels_packed(c->kernels, ARITH_F32)->rows, k = (size_t)(c->channels * c->taps);
    const int64_t group = at % c->groups, lines = c->w.out[0] - first < p->lines ? c->w.out[0] - first : p->lines;
    const f32 *filter = (const f32 *)c->filter + (size_t)group * correlation_rows(c);
    int64_t n = 1;
    for (int i = 0; i < c->w.rank; i++)
        n += ((i ? c->w.out[i] : lines) - 1) * p->pitch[i];
    const int64_t line = c->out / c->w.out[0], where = c->taker.take ? 0 : first;
    planes_fill(c, at * c->channels, first, lines, room);
    for (int64_t m = 0; m < c->results; m++) {
        for (size_t i = 0; i < k; i++)
            room->weights[i] = filter[(size_t)m / tile * tile * k + i * tile + (size_t)m % tile];
        kernels_taps(c->kernels)->weigh(k, room->at, room->weights, (size_t)n, room->planes, room->sums);
        const f32 *bias = c->bias ? (const f32 *)c->bias + group * c->results + m : NULL;
        const int64_t result = (at * c->results + m) * c->size;
        f32 *y = c->taker.take ? room->taken : (f32 *)c->y + result;
        if (c->w.rank == 2 && !c->apart)
            place_lines(c, room->sums, where, lines, bias, y);
        else
            place(c, room->sums, where, lines, bias, y);
        if (c->taker.take)
            c->taker.take(c->taker.user, result + first * line, lines * line, room->taken);
    }
}

static PlaneRoom open_room(const Correlation *c, int worker)
{
    char *from = c->rooms + (size_t)worker * c->room_bytes;
    PlaneRoom room = { .at = (size_t *)(void *)from };
    room.weights = (f32 *)(void *)(from + (size_t)of_weights(c) * sizeof(size_t));
    room.planes = room.weights + of_weights(c);
    room.sums = room.planes + round_up(of_planes(c) + MOST_LANES);
    room.data = room.sums + of_sums(c);
    room.taken = room.data + of_data(c);
    planes_place_taps(c, room.at);
    return room;
}

void planes_run(void *arg, int64_t begin, int64_t end, int worker)
{
    const Correlation *c = arg;
    const PlaneRoom room = open_room(c, worker);
    for (int64_t i = begin; i < end; i++)
        run_block(c, i / c->planes.blocks, i % c->planes.blocks * c->planes.lines, &room);
}

typedef struct Together {
    const Correlation *each;
    size_t n;
} Together;

static void run_together(void *arg, int64_t begin, int64_t end, int worker)
{
    const Together *t = arg;
    for (int64_t i = begin; i < end; i++)
        for (size_t k = 0; k < t->n; k++) {
            const Correlation *c = t->each + k;
            const PlaneRoom room = open_room(c, worker);
            for (int64_t b = 0; b < c->planes.blocks; b++)
                run_block(c, i, b * c->planes.lines, &room);
        }
}

void planes_run_together(Eval *e, const Correlation *each, size_t n)
{
    Together t = { each, n };
    eval_parallel(e, each->images * each->groups, run_together, &t);
}
