/* The data gradient of a window with steps of two: four correlations, each of which makes every other result of every other
 * line.  They see one plane, which is filled once, and their sums become whole lines. */
#include <stdlib.h>

#include "base/parallel.h"
#include "ops/kernels/panel.h"
#include "ops/window/plane_parts.h"

enum {
    PHASES = 4,
    MOST = 1 << 15,           /* elements of planes, which stay in a second-level cache with their sums */
    ALIGN = 64 / sizeof(f32), /* elements of a line of a cache */
};

static int64_t round_up(int64_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* Where the data stands in the plane of one of them, if it has its own. */
static int64_t begin_of(const Correlation *c, int i)
{
    const int64_t reach = llabs((c->w.kernel[i] - 1) * c->w.dilation[i]);
    return c->w.begin[i] + (c->w.dilation[i] < 0 ? reach : 0);
}

bool planes_meet(Correlation *each)
{
    int64_t begin[2] = { INT64_MIN, INT64_MIN }, extent[2] = { 0, 0 };
    for (int k = 0; k < PHASES; k++)
        for (int i = 0; i < 2; i++)
            begin[i] = begin_of(&each[k], i) > begin[i] ? begin_of(&each[k], i) : begin[i];
    for (int k = 0; k < PHASES; k++)
        for (int i = 0; i < 2; i++) {
            const int64_t need = begin[i] - begin_of(&each[k], i) + each[k].planes.extent[i];
            extent[i] = need > extent[i] ? need : extent[i];
            if (each[k].planes.blocks != 1 || need > MOST)
                return false;
        }
    if (each->channels * extent[0] * extent[1] > MOST)
        return false;
    for (int k = 0; k < PHASES; k++) {
        PlanePlan *p = &each[k].planes;
        p->meets = true;
        p->plane = extent[0] * extent[1];
        p->pitch[0] = extent[1];
        for (int i = 0; i < 2; i++) {
            p->before[i] = begin[i] - begin_of(&each[k], i);
            p->extent[i] = extent[i];
        }
    }
    return true;
}

/* Elements of the parts of a room. */
static int64_t of_weights(const Correlation *c)
{
    return round_up(c->channels * c->taps);
}

static int64_t of_planes(const Correlation *c)
{
    return round_up(c->channels * c->planes.plane + MOST_LANES);
}

static int64_t of_sums(const Correlation *c)
{
    return round_up(c->planes.plane + MOST_LANES);
}

/* The rooms of all four: planes, data and results on their way are one. */
static void open_rooms(const Correlation *each, int worker, PlaneRoom room[PHASES])
{
    char *from = each->rooms + (size_t)worker * each->room_bytes;
    f32 *planes = (f32 *)(void *)from, *data = planes + of_planes(each);
    f32 *taken = data + (each->data ? round_up(each->in) : 0),
        *rest = taken + (each->taker.take ? round_up(each->size) : 0);
    for (int k = 0; k < PHASES; k++) {
        room[k] = (PlaneRoom){ .planes = planes, .data = data, .taken = taken, .sums = rest };
        room[k].weights = rest + of_sums(each);
        room[k].at = (size_t *)(void *)(room[k].weights + of_weights(&each[k]));
        rest = (f32 *)(void *)(room[k].at + of_weights(&each[k]));
        planes_place_taps(&each[k], room[k].at);
    }
}

static size_t room_of(const Correlation *each)
{
    int64_t floats =
        of_planes(each) + (each->data ? round_up(each->in) : 0) + (each->taker.take ? round_up(each->size) : 0);
    size_t bytes = 0;
    for (int k = 0; k < PHASES; k++) {
        floats += of_sums(each) + of_weights(&each[k]);
        bytes += (size_t)of_weights(&each[k]) * sizeof(size_t);
    }
    return bytes + (size_t)floats * sizeof(f32);
}

/* A line of two that are every other element of it. */
static void mix_line(const f32 *even, const f32 *odd, int64_t n, f32 *to)
{
    typedef f32 Four __attribute__((vector_size(4 * sizeof(f32)), aligned(sizeof(f32)), may_alias));
    int64_t i = 0;
    for (; 2 * i + 8 <= n; i += 4) {
        const Four a = *(const Four *)(even + i), b = *(const Four *)(odd + i);
        *(Four *)(to + 2 * i) = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        *(Four *)(to + 2 * i + 4) = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    }
    for (; 2 * i < n; i++) {
        to[2 * i] = even[i];
        if (2 * i + 1 < n)
            to[2 * i + 1] = odd[i];
    }
}

/* Results number m of a group: of each line, those of two. */
static void mix(const Correlation *each, const PlaneRoom *room, int64_t result)
{
    const int64_t lines = each[0].w.out[0] + each[2].w.out[0], width = each[0].w.out[1] + each[1].w.out[1];
    const int64_t pitch = each->planes.pitch[0];
    f32 *y = each->taker.take ? room->taken : (f32 *)each->y + result * each->size;
    for (int64_t i = 0; i < lines; i++) {
        const PlaneRoom *of = room + i % 2 * 2;
        mix_line(of[0].sums + i / 2 * pitch, of[1].sums + i / 2 * pitch, width, y + i * width);
    }
    if (each->taker.take)
        each->taker.take(each->taker.user, result * each->size, each->size, room->taken);
}

static void weigh(const Correlation *c, int64_t group, int64_t m, const PlaneRoom *room)
{
    const size_t tile = kernels_packed(c->kernels, ARITH_F32)->rows, k = (size_t)(c->channels * c->taps);
    const f32 *filter = (const f32 *)c->filter + (size_t)group * correlation_rows(c);
    const int64_t n = (c->w.out[0] - 1) * c->planes.pitch[0] + c->w.out[1];
    for (size_t i = 0; i < k; i++)
        room->weights[i] = filter[(size_t)m / tile * tile * k + i * tile + (size_t)m % tile];
    kernels_taps(c->kernels)->weigh(k, room->at, room->weights, (size_t)n, room->planes, room->sums);
}

static void run_planes(void *arg, int64_t begin, int64_t end, int worker)
{
    const Correlation *each = arg;
    PlaneRoom room[PHASES];
    open_rooms(each, worker, room);
    for (int64_t i = begin; i < end; i++) {
        planes_fill(each, i * each->channels, 0, each->planes.lines, room);
        for (int64_t m = 0; m < each->results; m++) {
            for (int k = 0; k < PHASES; k++)
                weigh(&each[k], i % each->groups, m, &room[k]);
            mix(each, room, i * each->results + m);
        }
    }
}

void planes_run_meeting(Eval *e, Correlation *each)
{
    const size_t threads = (size_t)parallel_threads(e->pool);
    each->room_bytes = (room_of(each) + 63) / 64 * 64;
    each->rooms = eval_room(e, threads, each->room_bytes);
    eval_parallel(e, each->images * each->groups, run_planes, each);
}
