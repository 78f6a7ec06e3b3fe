/* Data into the planes of a correlation: between its padding, parted by the steps of the window. */
#include <stdlib.h>
#include <string.h>

#include "ops/window/plane_parts.h"

/* How far the taps of dimension i reach; the distance of taps may be negative. */
static int64_t reach(const Window *w, int i)
{
    return llabs((w->kernel[i] - 1) * w->dilation[i]);
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
        plane_copy(to + from, x + row * cols + from - before, end - from);
        clear(to + end, width - end);
    }
}

/* Every other element of a line to `even`, those between them to `odd`. */
static void part_pairs(const f32 *x, int64_t n, f32 *even, f32 *odd)
{
    typedef f32 Four __attribute__((vector_size(4 * sizeof(f32)), aligned(sizeof(f32)), may_alias));
    int64_t i = 0;
    for (; 2 * i + 8 <= n; i += 4) {
        const Four a = *(const Four *)(x + 2 * i), b = *(const Four *)(x + 2 * i + 4);
        *(Four *)(even + i) = __builtin_shufflevector(a, b, 0, 2, 4, 6);
        *(Four *)(odd + i) = __builtin_shufflevector(a, b, 1, 3, 5, 7);
    }
    for (; 2 * i < n; i++) {
        even[i] = x[2 * i];
        if (2 * i + 1 < n)
            odd[i] = x[2 * i + 1];
    }
}

/* The four planes of a channel that steps of two make, from lines which begin `above` lines and `before` elements behind
 * theirs; `before` is not negative. */
static void fill_pairs(const Correlation *c, const f32 *x, int64_t lines, int64_t above, int64_t before, f32 *to)
{
    const int64_t width = c->planes.extent[1], rows = c->w.in[0], cols = c->w.in[1], first = before % 2;
    const int64_t room = 2 * width - before, n = within(cols, 0, room < 0 ? 0 : room);
    const int64_t at[2] = { before / 2, (before + 1) / 2 }, count[2] = { (n + 1) / 2, n / 2 };
    for (int64_t i = 0; i < 2 * lines; i++) {
        f32 *line = to + i % 2 * 2 * c->planes.plane + i / 2 * width;
        f32 *part[2] = { line + first * c->planes.plane, line + (1 - first) * c->planes.plane };
        const int64_t row = i - above;
        if (row < 0 || row >= rows || n == 0) {
            clear(part[0], width);
            clear(part[1], width);
            continue;
        }
        for (int k = 0; k < 2; k++) {
            clear(part[k], at[k]);
            clear(part[k] + at[k] + count[k], width - at[k] - count[k]);
        }
        part_pairs(x + row * cols, n, part[0] + at[0], part[1] + at[1]);
    }
}

/* A channel as far as some lines of positions see it: where it is, or loaded to where it would be in its own plane. */
static const f32 *channel_of(const Correlation *c, int64_t channel, int64_t first, int64_t lines, const PlaneRoom *room)
{
    const Window *w = &c->w;
    const int64_t line = c->in / w->in[0], back = w->dilation[0] < 0 ? reach(w, 0) : 0,
                  seen = (lines - 1) * w->stride[0] + reach(w, 0) + 1;
    if (!c->data)
        return (const f32 *)c->x + channel * c->in;
    const int64_t above = first * w->stride[0] - w->begin[0] - back;
    const int64_t from = c->planes.meets ? 0 : within(above, 0, w->in[0]),
                  end = c->planes.meets ? w->in[0] : within(above + seen, from, w->in[0]);
    f32 *to = room->data + from * line;
    kernels_load_f32(c->kernels, to, c->data, channel * c->in + from * line, (end - from) * line);
    if (c->zero != 0)
        kernels_row_fixed(c->kernels, ROW_sub, ARITH_F32, 1)((size_t)((end - from) * line), to, to, &c->zero, NULL,
                                                             (const double[2]){ 0 });
    return room->data;
}

void planes_fill(const Correlation *c, int64_t plane, int64_t first, int64_t lines, const PlaneRoom *room)
{
    f32 *to = room->planes;
    const PlanePlan *p = &c->planes;
    Window g = { .rank = c->w.rank };
    for (int i = 0; i < g.rank; i++) {
        g.in[i] = c->w.in[i];
        g.stride[i] = c->w.stride[i];
        g.dilation[i] = 1;
        g.begin[i] = c->w.begin[i] + (c->w.dilation[i] < 0 ? reach(&c->w, i) : 0) + p->before[i];
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
        if (g.rank == 2 && g.stride[0] == 2 && g.stride[1] == 2 && g.begin[1] >= 0) {
            fill_pairs(c, x, g.out[0], g.begin[0], g.begin[1], to);
            to += p->phases * p->plane;
            continue;
        }
        for (int64_t f = 0; f < p->phases; f++, to += p->plane, position_next(g.rank, g.stride, phase))
            window_gather_f32(&g, x, phase, 0, g.out[0] * p->pitch[0], to);
    }
}
