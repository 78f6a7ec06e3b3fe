#include "ops/window/planes.h"

#include <stdlib.h>
#include <string.h>

#include "ops/kernels/panel.h"

enum {
    MOST_EXTENT = 1 << 20,    /* of a plane along each dimension */
    IN_CACHE = 1 << 14,       /* elements of planes */
    MOST_PLANES = 1 << 20,    /* elements where one line of positions sees more */
    ALIGN = 64 / sizeof(f32), /* elements of a line of a cache */
};

/* What a worker works in. */
typedef struct Room {
    size_t *at; /* where in the planes (tap, channel) stands */
    f32 *weights, *planes, *sums;
    f32 *data, *taken; /* a channel that is loaded; results on their way to who takes them */
} Room;

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

/* The place of every tap of every channel. */
static void place_taps(const Correlation *c, size_t *at)
{
    const PlanePlan *p = &c->planes;
    const Window *w = &c->w;
    int64_t tap[MAX_SPATIAL] = { 0 };
    for (int64_t t = 0; t < c->taps; t++, position_next(w->rank, w->kernel, tap)) {
        int64_t phase = 0, place = 0;
        for (int i = 0; i < w->rank; i++) {
            const int64_t from = tap[i] * w->dilation[i] + (w->dilation[i] < 0 ? reach(w, i) : 0);
            phase = phase * w->stride[i] + from % w->stride[i];
            place += from / w->stride[i] * p->pitch[i];
        }
        for (int64_t k = 0; k < c->channels; k++)
            *at++ = (size_t)((k * p->phases + phase) * p->plane + place);
    }
}

/* A few elements, without a call. */
static inline void copy(f32 *to, const f32 *from, int64_t n)
{
    enum { MANY = 256, SOME = 8, HALF = 4, PAIR = 2 };
    if (n >= MANY) {
        memcpy(to, from, (size_t)n * sizeof *to);
        return;
    }
    for (; n >= SOME; n -= SOME, to += SOME, from += SOME)
        memcpy(to, from, SOME * sizeof *to);
    if (n & HALF)
        memcpy(to, from, HALF * sizeof *to), to += HALF, from += HALF;
    if (n & PAIR)
        memcpy(to, from, PAIR * sizeof *to), to += PAIR, from += PAIR;
    if (n & 1)
        *to = *from;
}

static inline void clear(f32 *to, int64_t n)
{
    if (n == 1)
        *to = 0;
    else if (n > 1)
        memset(to, 0, (size_t)n * sizeof *to);
}

static int64_t within(int64_t i, int64_t least, int64_t most)
{
    return i < least ? least : i > most ? most : i;
}

/* Lines of data, which lie in `lines` lines of a plane from line `above` on and `before` elements into it; these may be
 * negative. */
static void fill_lines(const Correlation *c, const f32 *x, int64_t lines, int64_t above, int64_t before, f32 *to)
{
    const int64_t width = c->planes.extent[1], rows = c->w.in[0], cols = c->w.in[1];
    const int64_t from = within(before, 0, width), end = within(before + cols, from, width);
    for (int64_t i = 0; i < lines; i++, to += width) {
        const int64_t row = i - above;
        if (row < 0 || row >= rows || from == end) {
            clear(to, width);
            continue;
        }
        clear(to, from);
        copy(to + from, x + row * cols + from - before, end - from);
        clear(to + end, width - end);
    }
}

/* A channel as far as some lines of positions see it: where it is, or loaded to where it would be in its own plane. */
static const f32 *channel_of(const Correlation *c, int64_t channel, int64_t first, int64_t lines, const Room *room)
{
    const Window *w = &c->w;
    const int64_t line = c->in / w->in[0], back = w->dilation[0] < 0 ? reach(w, 0) : 0,
                  seen = (lines - 1) * w->stride[0] + reach(w, 0) + 1;
    if (!c->data)
        return (const f32 *)c->x + channel * c->in;
    const int64_t from = within(first * w->stride[0] - w->begin[0] - back, 0, w->in[0]),
                  end = within(first * w->stride[0] - w->begin[0] - back + seen, from, w->in[0]);
    f32 *to = room->data + from * line;
    kernels_load_f32(c->kernels, to, c->data, channel * c->in + from * line, (end - from) * line);
    if (c->zero != 0)
        kernels_row_fixed(c->kernels, ROW_sub, ARITH_F32, 1)((size_t)((end - from) * line), to, to, &c->zero, NULL,
                                                             (const double[2]){ 0 });
    return room->data;
}

/* The planes of a group at some lines of positions. */
static void fill(const Correlation *c, int64_t plane, int64_t first, int64_t lines, const Room *room)
{
    f32 *to = room->planes;
    const PlanePlan *p = &c->planes;
    Window g = { .rank = c->w.rank };
    for (int i = 0; i < g.rank; i++) {
        g.in[i] = c->w.in[i];
        g.stride[i] = c->w.stride[i];
        g.dilation[i] = 1;
        g.begin[i] = c->w.begin[i] + (c->w.dilation[i] < 0 ? reach(&c->w, i) : 0);
        g.out[i] = p->extent[i];
    }
    g.begin[0] -= first * g.stride[0];
    g.out[0] -= p->lines - lines;
    for (int64_t k = 0; k < c->channels; k++) {
        int64_t phase[MAX_SPATIAL] = { 0 };
        const f32 *x = channel_of(c, plane + k, first, lines, room);
        if (g.rank == 2 && p->phases == 1) {
            fill_lines(c, x, g.out[0], g.begin[0], g.begin[1], to);
            to += p->plane;
            continue;
        }
        for (int64_t f = 0; f < p->phases; f++, to += p->plane, position_next(g.rank, g.stride, phase))
            window_gather_f32(&g, x, phase, 0, g.out[0] * p->pitch[0], to);
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

/* The same in the usual case: planes whose lines follow each other, without a bias. */
static void place_lines(const Correlation *c, const f32 *sums, int64_t first, int64_t lines, f32 *y)
{
    const int64_t width = c->w.out[1];
    for (int64_t i = 0; i < lines; i++)
        copy(y + (first + i) * width, sums + i * c->planes.pitch[0], width);
}

static void run_block(const Correlation *c, int64_t at, int64_t first, const Room *room)
{
    const PlanePlan *p = &c->planes;
    const size_t tile = kernels_packed(c->kernels, ARITH_F32)->rows, k = (size_t)(c->channels * c->taps);
    const int64_t group = at % c->groups, lines = c->w.out[0] - first < p->lines ? c->w.out[0] - first : p->lines;
    const f32 *filter = (const f32 *)c->filter + (size_t)group * correlation_rows(c);
    int64_t n = 1;
    for (int i = 0; i < c->w.rank; i++)
        n += ((i ? c->w.out[i] : lines) - 1) * p->pitch[i];
    const int64_t line = c->out / c->w.out[0], where = c->taker.take ? 0 : first;
    fill(c, at * c->channels, first, lines, room);
    for (int64_t m = 0; m < c->results; m++) {
        for (size_t i = 0; i < k; i++)
            room->weights[i] = filter[(size_t)m / tile * tile * k + i * tile + (size_t)m % tile];
        kernels_taps(c->kernels)->weigh(k, room->at, room->weights, (size_t)n, room->planes, room->sums);
        const f32 *bias = c->bias ? (const f32 *)c->bias + group * c->results + m : NULL;
        const int64_t result = (at * c->results + m) * c->size;
        f32 *y = c->taker.take ? room->taken : (f32 *)c->y + result;
        if (c->w.rank == 2 && !c->apart && !bias)
            place_lines(c, room->sums, where, lines, y);
        else
            place(c, room->sums, where, lines, bias, y);
        if (c->taker.take)
            c->taker.take(c->taker.user, result + first * line, lines * line, room->taken);
    }
}

static Room open_room(const Correlation *c, int worker)
{
    char *from = c->rooms + (size_t)worker * c->room_bytes;
    Room room = { .at = (size_t *)(void *)from };
    room.weights = (f32 *)(void *)(from + (size_t)of_weights(c) * sizeof(size_t));
    room.planes = room.weights + of_weights(c);
    room.sums = room.planes + round_up(of_planes(c) + MOST_LANES);
    room.data = room.sums + of_sums(c);
    room.taken = room.data + of_data(c);
    place_taps(c, room.at);
    return room;
}

void planes_run(void *arg, int64_t begin, int64_t end, int worker)
{
    const Correlation *c = arg;
    const Room room = open_room(c, worker);
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
            const Room room = open_room(c, worker);
            for (int64_t b = 0; b < c->planes.blocks; b++)
                run_block(c, i, b * c->planes.lines, &room);
        }
}

void planes_run_together(Eval *e, const Correlation *each, size_t n)
{
    Together t = { each, n };
    eval_parallel(e, each->images * each->groups, run_together, &t);
}
