/* Convolutions of codes whose groups are small, along planes: codes less their zero points as floats, whose sums are below 2^24 and
 * so exact. */
#include "base/parallel.h"
#include "ops/kernels/quads.h"
#include "ops/quant/products.h"
#include "ops/window/planes.h"

enum { BLOCK = 512, MOST_TERMS = (1 << 24) / (255 * 255) };

/* Who takes floats that are sums, and gives them on. */
typedef struct Taker {
    const QuadLoops *l;
    const SumTaker *to;
} Taker;

static void take_floats(const void *user, int64_t first, int64_t n, const f32 *v)
{
    const Taker *t = user;
    i32 sums[BLOCK];
    for (int64_t at = 0, k; at < n; at += k) {
        k = n - at < BLOCK ? n - at : BLOCK;
        t->l->integers((size_t)k, v + at, sums);
        t->to->take(t->to->user, first + at, k, sums);
    }
}

/* The weights less their zero points, packed. */
static const void *weights_of(Eval *e, const CodesConv *c, const Codes *filter, int64_t taps)
{
    const int64_t row = c->channels * taps, rows = c->groups * c->results;
    f32 *v = eval_room(e, (size_t)(rows * row), sizeof *v);
    FilterPack f = { .groups = c->groups,
                     .rows = c->results,
                     .columns = c->channels,
                     .taps = taps,
                     .group = c->results * row,
                     .row = row,
                     .column = taps,
                     .from = v };
    kernels_load_f32(e->kernels, v, filter->tensor, 0, rows * row);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < row; k++)
            v[i * row + k] -= (f32)filter->zeros[filter->n_zeros == 1 ? 0 : i];
    f.to = eval_room(e, filter_room(e, &f), sizeof(f32));
    filter_pack(e, &f);
    return f.to;
}

bool codes_along_planes(Eval *e, const CodesConv *c, const Codes *x, const Codes *filter, const SumTaker *to)
{
    const int64_t threads = parallel_threads(e->pool), taps = window_product(c->w.rank, c->w.kernel);
    if (c->groups == 1 || codes_are_wide(x, filter) || c->channels * taps > MOST_TERMS)
        return false;
    const Taker taker = { kernels_quads(e->kernels), to };
    Correlation r = { .w = c->w,
                      .groups = c->groups,
                      .channels = c->channels,
                      .results = c->results,
                      .data = x->tensor,
                      .zero = (f32)x->zeros[0],
                      .taker = { take_floats, &taker },
                      .size = window_product(c->w.rank, c->w.out),
                      .kernels = e->kernels };
    correlation_plan(&r, c->images, threads);
    if (!r.planes.lines)
        return false;
    r.filter = weights_of(e, c, filter, taps);
    r.rooms = eval_room(e, (size_t)threads, r.room_bytes);
    correlation_run(e, &r);
    return true;
}
