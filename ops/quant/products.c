#include "ops/quant/products.h"

#include <string.h>

#include "base/parallel.h"
#include "ops/kernels/panel.h"
#include "ops/quant/quantize.h"

enum {
    TILE_ROWS = 264,       /* of a tile, with whose columns they stay in a second-level cache */
    TILE_COLS = 256,       /* or positions of a convolution */
    CHUNK = PANEL_SEGMENT, /* of what is summed over, at most: segments need no joining */
};

bool codes_are_wide(DType a, DType b)
{
    return dtype_bits(a) > 8 || dtype_bits(b) > 8;
}

/* ---- centred codes ---- */

typedef struct Centring {
    const Kernels *kernels;
    const Tensor *from;
    Lanes lanes;
    int64_t zeros; /* how many */
    const void *zero;
    void *to;
} Centring;

/* The zero point of the first element of a line. */
static int64_t zero_of_line(const Centring *c, int64_t line)
{
    const int64_t lanes = c->lanes.across ? c->lanes.width : c->lanes.height;
    if (c->zeros == 1)
        return 0;
    if (c->lanes.across)
        return c->zeros == lanes ? 0 : line / c->lanes.height * lanes;
    return c->zeros == lanes ? line % lanes : line;
}

#define CENTRE(T)                                                                                                      \
    static void centre_##T(void *arg, int64_t begin, int64_t end, int worker)                                          \
    {                                                                                                                  \
        const Centring *c = arg;                                                                                       \
        const int64_t width = c->lanes.width;                                                                          \
        (void)worker;                                                                                                  \
        for (int64_t line = begin; line < end; line++) {                                                               \
            T *v = (T *)c->to + line * width;                                                                          \
            kernels_load_##T(c->kernels, v, c->from, line *width, width);                                              \
            const T *z = c->zero ? (const T *)c->zero + zero_of_line(c, line) : NULL, first = z ? *z : 0;              \
            if (z && c->lanes.across && c->zeros > 1)                                                                  \
                for (int64_t i = 0; i < width; i++)                                                                    \
                    v[i] -= z[i];                                                                                      \
            else if (first != 0)                                                                                       \
                for (int64_t i = 0; i < width; i++)                                                                    \
                    v[i] -= first;                                                                                     \
        }                                                                                                              \
    }
CENTRE(f32)
CENTRE(f64)
#undef CENTRE

/* The largest distance of a code from its zero point. */
static double most_of(const Tensor *codes, const Tensor *zero)
{
    double lo, hi, most = 0;
    if (dtype_is_float(codes->type->dtype))
        return 0;
    code_range(codes->type->dtype, &lo, &hi);
    for (int64_t i = 0, n = zero ? tensor_elements(zero) : 1; i < n; i++) {
        const double z = zero ? tensor_get_f64(zero, i) : 0;
        most = hi - z > most ? hi - z : most;
        most = z - lo > most ? z - lo : most;
    }
    return most;
}

Codes codes_centred(Eval *e, int i, int zero, const Lanes *lanes, bool f64)
{
    const Tensor *t = e->in[i], *z = eval_has(e, zero) ? e->in[zero] : NULL;
    const int64_t n = tensor_elements(t);
    Centring c = { e->kernels, t, *lanes, z ? tensor_elements(z) : 0, NULL, NULL };
    c.to = eval_room(e, (size_t)n, f64 ? sizeof(double) : sizeof(f32));
    if (z)
        c.zero = f64 ? (const void *)eval_f64(e, zero) : eval_f32(e, zero);
    if (n)
        eval_parallel(e, n / lanes->width, f64 ? centre_f64 : centre_f32, &c);
    return (Codes){ c.to, f64, most_of(t, z) };
}

/* How many products may be added up exactly: the sum of so many is below 2^24, or 2^53. */
static int64_t chunk_of(const Codes *a, const Codes *b, int64_t k)
{
    const double exact = a->f64 ? (double)(1ll << 53) : (double)(1ll << 24), product = a->most * b->most;
    const double fits = product > 0 ? (exact - 1) / product : CHUNK;
    const int64_t most = fits < CHUNK ? (int64_t)fits : CHUNK, chunks = k ? (k + most - 1) / most : 1;
    return k ? (k + chunks - 1) / chunks : 1;
}

/* ---- a tile: some rows and columns of a matrix ---- */

/* What a worker works in, at bytes of its room. */
typedef struct Places {
    size_t columns, tile, panel, end; /* the sums come first */
} Places;

static Places places_of(bool f64, const Panel *most, size_t gathered)
{
    const size_t element = f64 ? sizeof(double) : sizeof(f32), tile = most->m * most->n;
    Places p = { .columns = (tile * sizeof(i32) + 63) / 64 * 64 };
    p.tile = p.columns + (gathered * element + 63) / 64 * 64;
    p.panel = p.tile + (tile * element + 63) / 64 * 64;
    p.end = p.panel + (panel_room(most) * element + 63) / 64 * 64;
    return p;
}

/* Adds what a chunk gives to the sums of a tile. */
#define ADD_f32(n) kernels_codes(level)->add(n, tile, sums)
#define ADD_f64(n)                                                                                                     \
    for (size_t i = 0; i < (n); i++)                                                                                   \
    sums[i] += (u32)(i64)tile[i]
#define ADD_CHUNK(T)                                                                                                   \
    static void add_chunk_##T(const Kernels *level, const Panel *p, const T *a, const T *b, const Places *at,          \
                              char *room, bool fresh)                                                                  \
    {                                                                                                                  \
        u32 *sums = (u32 *)(void *)room;                                                                               \
        T *tile = (T *)(void *)(room + at->tile);                                                                      \
        panel_##T(level, p, a, b, tile, (T *)(void *)(room + at->panel));                                              \
        if (fresh)                                                                                                     \
            memset(sums, 0, p->m * p->n * sizeof *sums);                                                               \
        ADD_##T(p->m * p->n);                                                                                          \
    }
ADD_CHUNK(f32)
ADD_CHUNK(f64)
#undef ADD_CHUNK
#undef ADD_f32
#undef ADD_f64

static void add_chunk(const Kernels *level, bool f64, const Panel *p, const void *a, const void *b, const Places *at,
                      char *room, bool fresh)
{
    if (f64)
        add_chunk_f64(level, p, a, b, at, room, fresh);
    else
        add_chunk_f32(level, p, a, b, at, room, fresh);
}

static const void *element_at(const Codes *c, int64_t i)
{
    return (const char *)c->v + i * (int64_t)(c->f64 ? sizeof(double) : sizeof(f32));
}

/* Shares of n things, in whole lots, of which `most` is one: as many as keep all threads busy where there are few. */
static int64_t share_of(int64_t n, int64_t most, int64_t whole, int64_t wanted)
{
    int64_t shares = (n + most - 1) / most;
    shares = shares < wanted ? wanted : shares;
    const int64_t share = ((n + shares - 1) / shares + whole - 1) / whole * whole;
    return share < most ? share : most;
}

void sums_keep(const void *tensor, int64_t first, int64_t n, const i32 *sums)
{
    memcpy((i32 *)((const Tensor *)tensor)->data + first, sums, (size_t)n * sizeof *sums);
}

/* ---- stacks of matrices ---- */

static void batch_steps(const Type *t, const Stack *s, int64_t *step)
{
    int64_t stride = 1;
    for (int i = s->rank - 1, at = t->rank - 3; i >= 0; i--, at--) {
        const int64_t n = at >= 0 ? t->dims[at] : 1;
        step[i] = n == 1 ? 0 : stride;
        stride *= n;
    }
}

Stack stack_of_products(const Type *a, const Type *b, const Type *y, bool ta, bool tb)
{
    const bool row = a->rank == 1, column = b->rank == 1;
    Stack s = { .batches = 1 };
    s.m = row ? 1 : a->dims[a->rank - (ta ? 1 : 2)];
    s.k = row ? a->dims[0] : a->dims[a->rank - (ta ? 2 : 1)];
    s.n = column ? 1 : b->dims[b->rank - (tb ? 2 : 1)];
    s.a_row = ta ? 1 : s.k, s.a_col = ta ? s.m : 1;
    s.b_row = tb ? 1 : s.n, s.b_col = tb ? s.k : 1;
    s.rank = y->rank - !row - !column;
    for (int i = 0; i < s.rank; i++)
        s.batches *= s.dims[i] = y->dims[i];
    batch_steps(a, &s, s.a_step);
    batch_steps(b, &s, s.b_step);
    return s;
}

void stack_batch(const Stack *s, int64_t at, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int i = s->rank - 1; i >= 0; i--) {
        const int64_t k = at % s->dims[i];
        at /= s->dims[i];
        *a += k * s->a_step[i];
        *b += k * s->b_step[i];
    }
}

typedef struct StackRun {
    const Kernels *kernels;
    const Stack *s;
    const Codes *a, *b;
    const SumTaker *to;
    int64_t rows, cols, down, across, chunk;
    Places places;
    char *rooms;
} StackRun;

static void stack_tiles(void *arg, int64_t begin, int64_t end, int worker)
{
    const StackRun *r = arg;
    const Stack *s = r->s;
    char *room = r->rooms + (size_t)worker * r->places.end;
    for (int64_t item = begin; item < end; item++) {
        const int64_t tile = item % (r->down * r->across), batch = item / (r->down * r->across);
        const int64_t row = tile / r->across * r->rows, col = tile % r->across * r->cols;
        const int64_t m = s->m - row < r->rows ? s->m - row : r->rows, n = s->n - col < r->cols ? s->n - col : r->cols;
        int64_t ma, mb;
        stack_batch(s, batch, &ma, &mb);
        const int64_t a = ma * s->m * s->k + row * s->a_row, b = mb * s->k * s->n + col * s->b_col;
        Panel p = { .m = (size_t)m,
                    .n = (size_t)n,
                    .lda = (size_t)s->a_row,
                    .a_step = (size_t)s->a_col,
                    .ldb = (size_t)s->b_row,
                    .b_step = (size_t)s->b_col,
                    .ldc = (size_t)n };
        for (int64_t k = 0; k == 0 || k < s->k; k += r->chunk) {
            p.k = (size_t)(s->k - k < r->chunk ? s->k - k : r->chunk);
            add_chunk(r->kernels, r->a->f64, &p, element_at(r->a, a + k * s->a_col), element_at(r->b, b + k * s->b_row),
                      &r->places, room, k == 0);
        }
        for (int64_t i = 0; i < m; i++)
            r->to->take(r->to->user, (batch * s->m + row + i) * s->n + col, n, (i32 *)(void *)room + i * n);
    }
}

void codes_multiply(Eval *e, const Stack *s, const Codes *a, const Codes *b, const SumTaker *to)
{
    const int64_t threads = parallel_threads(e->pool), each = s->batches ? (2 * threads - 1) / s->batches + 1 : 1;
    StackRun r = { .kernels = e->kernels, .s = s, .a = a, .b = b, .to = to, .chunk = chunk_of(a, b, s->k) };
    if (s->batches * s->m * s->n == 0)
        return;
    const bool tall = s->m >= s->n;
    r.rows = share_of(s->m, TILE_ROWS, MOST_TILE_ROWS, threads > 1 && tall ? each : 1);
    r.cols = share_of(s->n, TILE_COLS, MOST_PANEL_WIDTH, threads > 1 && !tall ? each : 1);
    r.down = (s->m + r.rows - 1) / r.rows;
    r.across = (s->n + r.cols - 1) / r.cols;
    const Panel most = { .m = (size_t)r.rows,
                         .n = (size_t)r.cols,
                         .k = (size_t)r.chunk,
                         .a_step = (size_t)s->a_col,
                         .b_step = (size_t)s->b_col };
    r.places = places_of(a->f64, &most, 0);
    r.rooms = eval_room(e, (size_t)threads, r.places.end);
    eval_parallel(e, s->batches * r.down * r.across, stack_tiles, &r);
}

/* ---- convolutions ---- */

typedef struct ConvRun {
    const Kernels *kernels;
    const CodesConv *c;
    const Codes *x, *filter;
    const SumTaker *to;
    int64_t taps, in, out, depth;
    int64_t rows, parts; /* results of a block, blocks of a group */
    int64_t cols, tiles; /* positions of a block, blocks of an image */
    int64_t span;        /* images of a block: several where they are small */
    int64_t chunk;
    bool direct; /* the data is its own window matrix */
    Places places;
    char *rooms;
} ConvRun;

/* Some results of a group at some positions of some images. */
typedef struct ConvBlock {
    int64_t image, images, group, first, positions, result, rows;
} ConvBlock;

static ConvBlock block_at(const ConvRun *r, int64_t item)
{
    ConvBlock b = { .result = item % r->parts * r->rows };
    item /= r->parts;
    b.first = item % r->tiles * r->cols;
    item /= r->tiles;
    b.group = item % r->c->groups;
    b.image = item / r->c->groups * r->span;
    b.images = r->c->images - b.image < r->span ? r->c->images - b.image : r->span;
    b.positions = r->out - b.first < r->cols ? r->out - b.first : r->cols;
    b.rows = r->c->results - b.result < r->rows ? r->c->results - b.result : r->rows;
    return b;
}

/* The first element of channel c of an image of a block. */
static int64_t plane_of(const ConvRun *r, const ConvBlock *b, int64_t image, int64_t channel)
{
    return (((b->image + image) * r->c->groups + b->group) * r->c->channels + channel) * r->in;
}

/* What a block sees through (channel, tap) number k and those behind it: a row for each. */
static void gather(const ConvRun *r, const ConvBlock *b, int64_t k, int64_t n, char *to)
{
    const int64_t element = r->x->f64 ? sizeof(double) : sizeof(f32);
    int64_t tap[MAX_SPATIAL];
    position_of(r->c->w.rank, r->c->w.kernel, k % r->taps, tap);
    for (int64_t end = k + n; k < end; k++) {
        for (int64_t m = 0; m < b->images; m++, to += b->positions * element) {
            const void *from = element_at(r->x, plane_of(r, b, m, k / r->taps));
            if (r->x->f64)
                window_gather_f64(&r->c->w, from, tap, b->first, b->positions, (f64 *)(void *)to);
            else
                window_gather_f32(&r->c->w, from, tap, b->first, b->positions, (f32 *)(void *)to);
        }
        position_next(r->c->w.rank, r->c->w.kernel, tap);
    }
}

static void conv_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    const ConvRun *r = arg;
    char *room = r->rooms + (size_t)worker * r->places.end, *columns = room + r->places.columns;
    for (int64_t item = begin; item < end; item++) {
        const ConvBlock b = block_at(r, item);
        const int64_t n = b.images * b.positions, row = b.group * r->c->results + b.result;
        Panel p = { .m = (size_t)b.rows,
                    .n = (size_t)n,
                    .lda = (size_t)r->depth,
                    .ldb = (size_t)(r->direct ? r->in : n),
                    .ldc = (size_t)n };
        for (int64_t k = 0; k == 0 || k < r->depth; k += r->chunk) {
            p.k = (size_t)(r->depth - k < r->chunk ? r->depth - k : r->chunk);
            if (!r->direct)
                gather(r, &b, k, (int64_t)p.k, columns);
            const void *seen = r->direct ? element_at(r->x, plane_of(r, &b, 0, k) + b.first) : columns;
            add_chunk(r->kernels, r->x->f64, &p, element_at(r->filter, row * r->depth + k), seen, &r->places, room,
                      k == 0);
        }
        const i32 *sums = (i32 *)(void *)room;
        for (int64_t i = 0; i < b.rows; i++)
            for (int64_t m = 0; m < b.images; m++, sums += b.positions)
                r->to->take(r->to->user, ((b.image + m) * r->c->groups * r->c->results + row + i) * r->out + b.first,
                            b.positions, sums);
    }
}

/* Images that a block takes together: as many as fit while every thread has some. */
static int64_t span_of(const ConvRun *r, int64_t threads)
{
    const int64_t most = (r->c->images * r->c->groups + threads - 1) / threads;
    int64_t span = TILE_COLS / r->out;
    span = span < most ? span : most;
    span = span < r->c->images ? span : r->c->images;
    return span < 1 ? 1 : span;
}

void codes_convolve(Eval *e, const CodesConv *c, const Codes *x, const Codes *filter, const SumTaker *to)
{
    const int64_t threads = parallel_threads(e->pool);
    ConvRun r = { .kernels = e->kernels, .c = c, .x = x, .filter = filter, .to = to };
    r.taps = window_product(c->w.rank, c->w.kernel);
    r.in = window_product(c->w.rank, c->w.in);
    r.out = window_product(c->w.rank, c->w.out);
    r.depth = r.taps * c->channels;
    if (c->images * c->groups * c->results * r.out == 0)
        return;
    r.chunk = chunk_of(x, filter, r.depth);
    r.cols = share_of(r.out, TILE_COLS, 1, 1);
    r.tiles = (r.out + r.cols - 1) / r.cols;
    r.span = span_of(&r, threads);
    r.direct = window_is_data(&c->w) && r.span == 1;
    const int64_t blocks = (c->images + r.span - 1) / r.span * c->groups * r.tiles;
    r.rows = share_of(c->results, TILE_ROWS, MOST_TILE_ROWS, blocks < threads ? threads : 1);
    r.parts = (c->results + r.rows - 1) / r.rows;
    const Panel most = { .m = (size_t)r.rows, .n = (size_t)(r.span * r.cols), .k = (size_t)r.chunk };
    r.places = places_of(x->f64, &most, r.direct ? 0 : (size_t)r.chunk * most.n);
    r.rooms = eval_room(e, (size_t)threads, r.places.end);
    eval_parallel(e, blocks * r.parts, conv_blocks, &r);
}
