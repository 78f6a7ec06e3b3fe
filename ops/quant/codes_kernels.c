#include "ops/quant/codes_kernels.h"

#include <inttypes.h>

#include "ops/quant/words.h"
#include "ops/window/window_kernels.h"

#define LD PRId64

typedef struct Writer {
    const Node *n;
    OwnKernels *to;
    const CodesOperands *p;
    Text t;
} Writer;

static bool has(const Writer *w, int operand)
{
    return operand != NO_CODES && operand < w->n->n_in && in(w->n, operand);
}

/* f8 are numbers, and factors of 31 bits are made of parts of floats. */
static bool can(const Writer *w)
{
    const CodesAttr *at = w->p->codes;
    return !dtype_is_float(in(w->n, w->p->a)->type->dtype) && !dtype_is_float(in(w->n, w->p->b)->type->dtype) &&
           !(at && at->factor == FACTOR_Q31) &&
           !(has(w, w->p->y_zero) && dtype_is_float(in(w->n, w->p->y_zero)->type->dtype));
}

/* The element of an operand that belongs to a row or column of a matrix: one for all, one each, or one for each of every matrix. */
static const char *lane(const Writer *w, int operand, const char *matrix, const char *lane, int64_t lanes)
{
    const Type *t = in(w->n, operand)->type;
    if (type_elements(t) == 1)
        return "0";
    return t->rank == 1 ? lane : arena_printf(w->to->arena, "%s * %" PRId64 " + %s", matrix, lanes, lane);
}

static void print_zero(Writer *w, const char *name, int operand, const char *at)
{
    if (has(w, operand))
        text_printf(&w->t, "    const u32 %s = (u32)RAW%d[%s];\n", name, operand, at);
    else
        text_printf(&w->t, "    const u32 %s = 0;\n", name);
}

/* What becomes of `sum` (u32), whose factors have these scales, in this column. */
static void print_result(Writer *w, const char *a_scale, const char *b_scale, const char *column)
{
    const CodesOperands *p = w->p;
    const bool codes = has(w, p->y_scale), biased = has(w, p->bias);
    const bool whole = biased && in(w->n, p->bias)->type->dtype == I32;
    const char *bias = !biased ? "" : type_elements(in(w->n, p->bias)->type) == 1 ? "0" : column;
    double lo, hi;
    if (!p->codes) {
        text_printf(&w->t, "    OUT0(o, (i64)(i32)sum);\n");
        return;
    }
    text_printf(&w->t, "    const f32 product = (f32)IN%d(%s) * (f32)IN%d(%s);\n", p->a_scale, a_scale, p->b_scale,
                b_scale);
    if (codes)
        text_printf(&w->t, "    const f32 factor = product / (f32)IN%d(0);\n", p->y_scale);
    else
        text_printf(&w->t, "    const f32 factor = product;\n");
    if (whole)
        text_printf(&w->t, "    sum += (u32)RAW%d[%s];\n", p->bias, bias);
    text_printf(&w->t, "    const f32 v = (f32)(i32)sum * factor;\n");
    if (!codes && biased && !whole)
        text_printf(&w->t, "    OUT0(o, v + IN%d(%s));\n", p->bias, bias);
    else if (!codes)
        text_printf(&w->t, "    OUT0(o, v);\n");
    if (!codes)
        return;
    code_limits(in(w->n, p->y_zero)->type->dtype, p->codes->least, p->codes->largest, &lo, &hi);
    const char *least = own_f32(w->to, lo);
    text_printf(&w->t, "    const f32 z = (f32)IN%d(0);\n", p->y_zero);
    if (p->codes->relu)
        least = arena_printf(w->to->arena, "%s < z ? z : %s", least, least);
    text_printf(&w->t, "    OUT0(o, (i64)stored_code_f32(v, z, %s, %s));\n", least, own_f32(w->to, hi));
    if (type_results(w->n->type) > 1)
        text_printf(&w->t, "    OUT1(o, v);\n");
}

static void print_matrices(Writer *w, const Stack *s)
{
    const char *const names[] = { "ma", "mb" };
    const int64_t *const steps[] = { s->a_step, s->b_step };
    for (int i = 0; i < 2; i++) {
        int64_t below = 1;
        text_printf(&w->t, "    const i64 %s = 0", names[i]);
        for (int d = s->rank - 1; d >= 0; d--) {
            if (steps[i][d])
                text_printf(&w->t, " + batch / %" PRId64 " %% %" PRId64 " * %" PRId64, below, s->dims[d], steps[i][d]);
            below *= s->dims[d];
        }
        text_printf(&w->t, ";\n");
    }
}

static void print_zeros(Writer *w, const Stack *s)
{
    const CodesOperands *p = w->p;
    print_zero(w, "za", p->a_zero, has(w, p->a_zero) ? lane(w, p->a_zero, "ma", "row", s->m) : "");
    print_zero(w, "zb", p->b_zero, has(w, p->b_zero) ? lane(w, p->b_zero, "mb", "column", s->n) : "");
}

static void print_product_result(Writer *w, const Stack *s)
{
    const CodesOperands *p = w->p;
    print_result(w, p->codes ? lane(w, p->a_scale, "ma", "row", s->m) : "",
                 p->codes ? lane(w, p->b_scale, "mb", "column", s->n) : "", "column");
}

/* ---- by tensor cores (ops/warp.h) ---- */

enum {
    TILE_THREADS = 256,
    TILE_UNIT = 32,    /* rows and columns of a block for each square of a thread's */
    TILE_LEAST = 8,    /* rows or columns that are worth one */
    TILE_ENOUGH = 128, /* blocks of the larger tiles, each of which wants a processor */
    TILE_PIECE = 64,   /* k of a piece of both matrices */
    SPLIT_LEAST = 256, /* k that is worth a block */
};

static bool is_byte(const Writer *w, int operand)
{
    const DType d = in(w->n, operand)->type->dtype;
    return d == U8 || d == I8;
}

static int64_t parts(int64_t n, int64_t each)
{
    return (n + each - 1) / each;
}

/* How the sums of some products of an m x k and a k x n matrix are shared out: squares of a thread; where there are few tiles, blocks
 * for parts of k, whose sums lie in the scratch till all are added.  They wrap, so that their order does not show. */
typedef struct Tiles {
    int64_t m, n, k, batches, results;
    int squares;
    int64_t side, across, down, parts, part; /* of k: how many, and how long */
} Tiles;

static int64_t blocks_of(const Tiles *t, int squares)
{
    return parts(t->m, TILE_UNIT * squares) * parts(t->n, TILE_UNIT * squares) * t->batches;
}

/* False where a thread for each element does as well. */
static bool cut(const Writer *w, Tiles *t)
{
    if (!is_byte(w, w->p->a) || !is_byte(w, w->p->b) || t->m < TILE_LEAST || t->n < TILE_LEAST || !t->k)
        return false;
    const bool large = t->m > 2 * TILE_UNIT && t->n > 2 * TILE_UNIT && blocks_of(t, 4) >= TILE_ENOUGH;
    t->squares = large ? 4 : 2;
    t->side = TILE_UNIT * t->squares;
    t->across = parts(t->n, t->side);
    t->down = parts(t->m, t->side);
    const int64_t wanted = parts(TILE_ENOUGH, blocks_of(t, t->squares)), most = t->k / SPLIT_LEAST;
    const int64_t several = wanted < most ? wanted : most;
    t->part = several < 2 ? t->k : parts(parts(t->k, several), TILE_PIECE) * TILE_PIECE;
    t->parts = parts(t->k, t->part);
    return true;
}

/* Whether a zero point is any but 0: then what the other operand's codes sum to is taken away. */
static const char *is_wanted(const Writer *w, int zero)
{
    if (!has(w, zero))
        return "false";
    return type_elements(in(w->n, zero)->type) == 1 ? arena_printf(w->to->arena, "RAW%d[0] != 0", zero) : "true";
}

/* The digit of a number that goes on at every `below` and counts to `extent` (0: the last one). */
static const char *digit(const Writer *w, const char *number, int64_t below, int64_t extent)
{
    if (extent == 1)
        return "0";
    const char *over = below > 1 ? arena_printf(w->to->arena, "%s / %" PRId64, number, below) : number;
    return extent ? arena_printf(w->to->arena, "%s %% %" PRId64, over, extent) : over;
}

static void print_tile(Writer *w, const Tiles *t)
{
    const int64_t tiles = t->across * t->down;
    text_printf(&w->t, "    __shared__ TilePiece<%" PRId64 ", true> xs[2], ys[2];\n", t->side);
    text_printf(&w->t, "    const i64 batch = %s;\n", digit(w, "block", tiles * t->parts, t->batches == 1));
    if (t->parts > 1)
        text_printf(&w->t,
                    "    const i64 part = %s, from = part * %" PRId64 ", to = from + %" PRId64 " < %" PRId64
                    " ? from + %" PRId64 " : %" PRId64 ";\n",
                    digit(w, "block", tiles, t->parts), t->part, t->part, t->k, t->part, t->k);
    text_printf(
        &w->t, "    const CodesTile tile = { %" PRId64 ", %" PRId64 ", %" PRId64 ", %s * %" PRId64 ", %s * %" PRId64,
        t->m, t->n, t->k, digit(w, "block", t->across, t->down), t->side, digit(w, "block", 1, t->across), t->side);
    if (t->parts > 1)
        text_add(&w->t, ", from, to");
    else
        text_printf(&w->t, ", 0, %" PRId64, t->k);
    text_printf(&w->t, ", %s, %s };\n", is_wanted(w, w->p->b_zero), is_wanted(w, w->p->a_zero));
    text_printf(&w->t, "    CodesSums<%d> sums = { { { { 0 } } }, { { 0 } }, { { 0 } } };\n", t->squares);
}

/* Each sum of a thread, at `row` and `column` of its matrices. */
static void print_each(Writer *w, const Tiles *t)
{
    const char *const sides[] = { "i", "j" };
    for (int i = 0; i < 2; i++)
        text_printf(&w->t, "#pragma unroll\n    for (u32 %s = 0; %s < %d; %s++) {\n", sides[i], sides[i],
                    2 * t->squares, sides[i]);
    text_printf(&w->t,
                "    const i64 row = tile.row + warp_row<%d>(i), column = tile.column + warp_column<%d>(j);\n"
                "    if (row >= tile.m || column >= tile.n)\n        continue;\n",
                t->squares, t->squares);
}

static void print_sum(Writer *w)
{
    text_add(&w->t,
             "    u32 sum = sums.of_products[i / 2][j / 2][i % 2 * 2 + j % 2] + za * zb * (u32)(tile.to - tile.from);\n"
             "    sum -= zb * sums.of_x[i / 2][i % 2 * 2] + za * sums.of_y[j / 2][j % 2];\n");
}

/* A block's part of the sum of element `o`. */
static void print_part(Writer *w, const Tiles *t)
{
    text_printf(&w->t, "    ((u32 *)scratch)[part * %" PRId64 " + o] = sum;\n", t->results);
}

static void close_tiles(Writer *w, const Tiles *t)
{
    text_add(&w->t, "    }\n    }\n");
    own_kernel_close(w->to, "mma", blocks_of(t, t->squares) * t->parts, TILE_THREADS, &w->t);
    w->to->list[w->to->n - 1].tensor = true;
}

/* Begins a thread for each element that adds the parts of its sum. */
static void open_join(Writer *w, const Tiles *t)
{
    own_scratch(w->to, t->parts * t->results * (int64_t)sizeof(uint32_t));
    own_kernel_open(w->to, &w->t);
    text_printf(&w->t,
                "    u32 sum = 0;\n    for (i64 part = 0; part < %" PRId64 "; part++)\n"
                "        sum += ((const u32 *)scratch)[part * %" PRId64 " + o];\n",
                t->parts, t->results);
}

/* ---- products ---- */

static void print_product_place(Writer *w, const Stack *s)
{
    text_printf(&w->t,
                "    const i64 column = o %% %" PRId64 ", row = o / %" PRId64 " %% %" PRId64 ", batch = o / %" PRId64
                ";\n",
                s->n, s->n, s->m, s->m * s->n);
    print_matrices(w, s);
}

static bool by_tiles(Writer *w, const Stack *s)
{
    const CodesOperands *p = w->p;
    Tiles t = { s->m, s->n, s->k, s->batches, s->batches * s->m * s->n };
    if (!cut(w, &t))
        return false;
    print_tile(w, &t);
    print_matrices(w, s);
    text_printf(&w->t,
                "    codes_tile<%d>(&sums, &tile, codes_matrix<%s>(RAW%d + ma * %" PRId64
                ", tile.m, tile.depth),\n                  codes_matrix<%s>(RAW%d + mb * %" PRId64
                ", tile.n, tile.depth), xs, ys);\n",
                t.squares, s->a_col == 1 ? "true" : "false", p->a, s->m * s->k, s->b_row == 1 ? "true" : "false", p->b,
                s->k * s->n);
    print_each(w, &t);
    text_add(&w->t, "    const i64 o = (batch * tile.m + row) * tile.n + column;\n");
    print_zeros(w, s);
    print_sum(w);
    if (t.parts == 1)
        print_product_result(w, s);
    else
        print_part(w, &t);
    close_tiles(w, &t);
    if (t.parts == 1)
        return true;
    open_join(w, &t);
    print_product_place(w, s);
    print_product_result(w, s);
    own_kernel_close(w->to, "join", t.results, 0, &w->t);
    return true;
}

bool kernels_codes_product(const Node *n, OwnKernels *to, const CodesOperands *p, bool ta, bool tb)
{
    Writer w = { .n = n, .to = to, .p = p };
    if (!can(&w))
        return false;
    const Stack s = stack_of_products(in(n, p->a)->type, in(n, p->b)->type, access_result(n, 0), ta, tb);
    own_kernel_open(to, &w.t);
    if (by_tiles(&w, &s))
        return true;
    print_product_place(&w, &s);
    print_zeros(&w, &s);
    text_printf(&w.t,
                "    const i64 from_a = ma * %" PRId64 " + row * %" PRId64 ", from_b = mb * %" PRId64
                " + column * %" PRId64 ";\n",
                s.m * s.k, s.a_row, s.k * s.n, s.b_col);
    text_printf(&w.t, "    u32 sum = 0;\n    for (i64 k = 0; k < %" PRId64 "; k++)\n", s.k);
    text_printf(&w.t,
                "        sum += ((u32)RAW%d[from_a + k * %" PRId64 "] - za) * ((u32)RAW%d[from_b + k * %" PRId64
                "] - zb);\n",
                p->a, s.a_col, p->b, s.b_row);
    print_product_result(&w, &s);
    own_kernel_close(to, "product", type_elements(access_result(n, 0)), 0, &w.t);
    return true;
}

/* ---- convolutions ---- */

/* A call, and what there is of each: groups of `channels` each have `each` results, of `plane` places in an image. */
typedef struct Conv {
    Window win;
    int64_t images, all_channels, results, groups, channels, each, plane, taps;
} Conv;

/* What is read of the data for place `row` of all images and step `k`, the taps of a channel beside each other: outside of the data its zero
 * point, which adds nothing. */
static void print_gather(Writer *w, const Conv *c)
{
    const Window *win = &c->win;
    int64_t below = 1, taps = 1, data = 1;
    text_add(&w->t, "    const auto code = [&](i64 row, i64 k) -> u32 {\n");
    text_printf(&w->t, "        i64 at = (%s * %" PRId64 " + batch * %" PRId64 " + %s) * %" PRId64 ";\n",
                c->plane > 1 ? arena_printf(w->to->arena, "row / %" PRId64, c->plane) : "row", c->all_channels,
                c->channels, c->taps > 1 ? arena_printf(w->to->arena, "k / %" PRId64, c->taps) : "k",
                window_product(win->rank, win->in));
    for (int d = win->rank - 1; d >= 0; d--) {
        text_printf(&w->t, "        const i64 x%d = %s * %" PRId64 " - %" PRId64 " + %s * %" PRId64 ";\n", d,
                    digit(w, "row", below, win->out[d]), win->stride[d], win->begin[d],
                    digit(w, "k", taps, win->kernel[d]), win->dilation[d]);
        text_printf(&w->t, "        if (x%d < 0 || x%d >= %" PRId64 ")\n            return za;\n", d, d, win->in[d]);
        text_printf(&w->t, "        at += x%d * %" PRId64 ";\n", d, data);
        below *= win->out[d];
        taps *= win->kernel[d];
        data *= win->in[d];
    }
    text_printf(&w->t, "        return RAW%d[at];\n    };\n", w->p->a);
}

static void print_conv_zero(Writer *w, const Conv *c)
{
    print_zero(w, "zb", w->p->b_zero, has(w, w->p->b_zero) ? lane(w, w->p->b_zero, "0", "result", c->results) : "");
}

static void print_conv_result(Writer *w, const Conv *c)
{
    print_result(w, "0", w->p->codes ? lane(w, w->p->b_scale, "0", "result", c->results) : "", "result");
}

/* Rows are places of all images, columns the results of a group, and nobody makes the matrix of what windows cover. */
static bool conv_by_tiles(Writer *w, const Conv *c)
{
    Tiles t = { c->images * c->plane, c->each, c->channels * c->taps, c->groups, c->images * c->results * c->plane };
    if (!cut(w, &t))
        return false;
    print_tile(w, &t);
    print_zero(w, "za", w->p->a_zero, "0");
    print_gather(w, c);
    text_printf(&w->t,
                "    codes_tile<%d>(&sums, &tile, codes_gather(RAW%d, &code, tile.m, tile.depth),\n"
                "                  codes_matrix<true>(RAW%d + batch * %" PRId64 ", tile.n, tile.depth), xs, ys);\n",
                t.squares, w->p->a, w->p->b, t.n * t.k);
    print_each(w, &t);
    text_printf(&w->t,
                "    const i64 result = batch * %" PRId64 " + column, o = (row / %" PRId64 " * %" PRId64
                " + result) * %" PRId64 " + row %% %" PRId64 ";\n",
                c->each, c->plane, c->results, c->plane, c->plane);
    print_conv_zero(w, c);
    print_sum(w);
    if (t.parts == 1)
        print_conv_result(w, c);
    else
        print_part(w, &t);
    close_tiles(w, &t);
    if (t.parts == 1)
        return true;
    open_join(w, &t);
    text_printf(&w->t, "    const i64 result = %s;\n", digit(w, "o", c->plane, c->results));
    print_conv_result(w, c);
    own_kernel_close(w->to, "join", t.results, 0, &w->t);
    return true;
}

static void print_taps(Writer *w, const Window *win)
{
    int64_t data = 1, filter = 1;
    for (int d = 0; d < win->rank; d++) {
        text_printf(&w->t, "    for (i64 k%d = 0; k%d < %" PRId64 "; k%d++) {\n", d, d, win->kernel[d], d);
        text_printf(&w->t, "    const i64 x%d = a%d * %" PRId64 " - %" PRId64 " + k%d * %" PRId64 ";\n", d, d,
                    win->stride[d], win->begin[d], d, win->dilation[d]);
        text_printf(&w->t, "    if (x%d < 0 || x%d >= %" PRId64 ")\n        continue;\n", d, d, win->in[d]);
    }
    text_printf(&w->t, "    i64 at = first_x, tap = first_w;\n");
    for (int d = win->rank - 1; d >= 0; d--) {
        text_printf(&w->t, "    at += x%d * %" PRId64 ";\n    tap += k%d * %" PRId64 ";\n", d, data, d, filter);
        data *= win->in[d];
        filter *= win->kernel[d];
    }
    text_printf(&w->t,
                "    for (i64 c = 0; c < channels; c++)\n        sum += ((u32)RAW%d[at + c * %" PRId64
                "] - za) * ((u32)RAW%d[tap + c * %" PRId64 "] - zb);\n",
                w->p->a, data, w->p->b, filter);
    for (int d = 0; d < win->rank; d++)
        text_printf(&w->t, "    }\n");
}

bool kernels_codes_conv(const Node *n, OwnKernels *to, const CodesOperands *p)
{
    Writer w = { .n = n, .to = to, .p = p };
    const ConvAttr *at = n->attr;
    const Type *x = in(n, p->a)->type, *f = in(n, p->b)->type;
    Conv c = { .images = x->dims[0], .all_channels = x->dims[1], .results = f->dims[0], .groups = at->group };
    if (!can(&w) || window_place(&c.win, to->arena, &at->window, x->rank - 2, x->dims + 2, f->dims + 2))
        return false;
    c.channels = f->dims[1];
    c.each = c.results / c.groups;
    c.plane = window_product(c.win.rank, c.win.out);
    c.taps = window_product(c.win.rank, c.win.kernel);
    own_kernel_open(to, &w.t);
    if (conv_by_tiles(&w, &c))
        return true;
    int64_t below = 1;
    for (int d = c.win.rank - 1; d >= 0; d--) {
        text_printf(&w.t, "    const i64 a%d = o / %" PRId64 " %% %" PRId64 ";\n", d, below, c.win.out[d]);
        below *= c.win.out[d];
    }
    text_printf(&w.t, "    const i64 result = o / %" PRId64 " %% %" PRId64 ", image = o / %" PRId64 ";\n", c.plane,
                c.results, c.plane * c.results);
    text_printf(&w.t, "    const i64 channels = %" PRId64 ", group = result / %" PRId64 ";\n", c.channels, c.each);
    text_printf(&w.t, "    const i64 first_x = (image * %" PRId64 " + group * channels) * %" PRId64 ";\n",
                c.all_channels, window_product(c.win.rank, c.win.in));
    text_printf(&w.t, "    const i64 first_w = result * channels * %" PRId64 ";\n", c.taps);
    print_zero(&w, "za", p->a_zero, "0");
    print_conv_zero(&w, &c);
    text_printf(&w.t, "    u32 sum = 0;\n");
    print_taps(&w, &c.win);
    print_conv_result(&w, &c);
    own_kernel_close(to, "conv", type_elements(access_result(n, 0)), 0, &w.t);
    return true;
}

/* ---- sums, products and averages of codes ---- */

static bool can_shift(const Node *n, const CodesAttr *at, int x, int y_zero)
{
    return at->factor != FACTOR_Q31 && !dtype_is_float(in(n, x)->type->dtype) &&
           !dtype_is_float(in(n, y_zero)->type->dtype);
}

/* z, lo and hi of the result. */
static void print_range(Text *t, OwnKernels *to, const Node *n, const CodesAttr *at, int y_zero)
{
    double lo, hi;
    code_limits(in(n, y_zero)->type->dtype, at->least, at->largest, &lo, &hi);
    const char *least = own_f32(to, lo);
    text_printf(t, "    const f32 z = (f32)IN%d(0), hi = %s;\n", y_zero, own_f32(to, hi));
    text_printf(t, at->relu ? "    const f32 lo = %s < z ? z : %s;\n" : "    const f32 lo = %s;\n%.0s", least,
                at->relu ? least : "");
}

/* The code of `u`, to which the zero point was added before, and what it was rounded from (codes_put_shifted). */
static void print_shifted(Text *t, const Node *n)
{
    text_add(t, "    OUT0(o, (i64)shifted_code_f32(u, z, lo, hi));\n");
    if (type_results(n->type) > 1)
        text_add(t,
                 "    const f32 v = u - z, code = rint_f32(u) - z;\n"
                 "    OUT1(o, v != v || rint_f32(v) == code ? v : float_of(bits_of(v) + ((code > v) == (v > 0) ? 1u : "
                 "-1u)));\n");
}

/* Where the element of an operand lies that belongs to element `o` of the result. */
static const char *place_of(OwnKernels *to, const Type *x, const Type *y)
{
    int64_t below = 1, step = 1;
    Text t;
    text_open(&t, to->arena);
    text_add(&t, "0");
    for (int d = y->rank - 1; d >= 0; d--) {
        const int at = d - (y->rank - x->rank);
        if (at >= 0 && x->dims[at] > 1) {
            text_printf(&t, " + o / %" LD " %% %" LD " * %" LD, below, y->dims[d], step);
            step *= x->dims[at];
        }
        below *= y->dims[d];
    }
    return text_get(&t);
}

bool kernels_codes_binary(const Node *n, OwnKernels *to, const CodesAttr *at, bool adds)
{
    enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };
    const Type *y = type_result(n->type, 0);
    Text t;
    if (!can_shift(n, at, A, Y_ZERO) || !can_shift(n, at, B, Y_ZERO))
        return false;
    own_kernel_open(to, &t);
    print_range(&t, to, n, at, Y_ZERO);
    text_printf(&t, "    const f32 a = (f32)IN%d(%s), b = (f32)IN%d(%s);\n", A, place_of(to, in(n, A)->type, y), B,
                place_of(to, in(n, B)->type, y));
    text_printf(&t, "    const f32 za = (f32)IN%d(0), zb = (f32)IN%d(0);\n", A_ZERO, B_ZERO);
    text_printf(&t, "    const f32 sa = (f32)IN%d(0), sb = (f32)IN%d(0), sy = (f32)IN%d(0);\n", A_SCALE, B_SCALE,
                Y_SCALE);
    if (adds)
        text_add(&t, "    const f32 ra = sa / sy, rb = sb / sy, base = z - fma_f32(ra, za, rb * zb);\n"
                     "    const f32 u = fma_f32(a, ra, fma_f32(b, rb, base));\n");
    else
        text_add(&t, "    const f32 both = sa * sb, m = both / sy;\n    const f32 u = (a - za) * (b - zb) * m + z;\n");
    print_shifted(&t, n);
    own_kernel_close(to, adds ? "sum" : "product", type_elements(y), 0, &t);
    return true;
}

bool kernels_qaverage_pool(const Node *n, OwnKernels *to)
{
    const QpoolAttr *at = n->attr;
    const Type *x = in(n, QPOOL_X)->type;
    Window w;
    Text t;
    if (!can_shift(n, &at->codes, QPOOL_X, QPOOL_Y_ZERO) ||
        window_place(&w, to->arena, &at->pool.window, x->rank - 2, x->dims + 2, NULL))
        return false;
    own_kernel_open(to, &t);
    text_add(&t, "    typedef f32 T;\n");
    print_range(&t, to, n, &at->codes, QPOOL_Y_ZERO);
    text_printf(&t, "    const f32 zero = (f32)IN%d(0), sx = (f32)IN%d(0), sy = (f32)IN%d(0);\n", QPOOL_X_ZERO,
                QPOOL_X_SCALE, QPOOL_Y_SCALE);
    window_print_mean(&t, &w, at->pool.count_include_pad, "((f32)IN0(at_of_data) - zero) * sx");
    text_add(&t, "    const f32 u = mean / sy + z;\n");
    print_shifted(&t, n);
    own_kernel_close(to, "mean", type_elements(type_result(n->type, 0)), 0, &t);
    return true;
}

bool kernels_qglobal_average_pool(const Node *n, OwnKernels *to)
{
    const CodesAttr *at = &((const QglobalAttr *)n->attr)->codes;
    const int64_t planes = type_elements(type_result(n->type, 0)), each = type_elements(in(n, QPOOL_X)->type) / planes;
    Text t;
    if (!can_shift(n, at, QPOOL_X, QPOOL_Y_ZERO))
        return false;
    own_kernel_open(to, &t);
    print_range(&t, to, n, at, QPOOL_Y_ZERO);
    text_printf(&t, "    const i64 zero = (i64)IN%d(0);\n    i64 sum = 0;\n", QPOOL_X_ZERO);
    text_printf(
        &t, "    for (i64 i = thread; i < %" LD "; i += 32)\n        sum += (i64)IN%d(block * %" LD " + i) - zero;\n",
        each, QPOOL_X, each);
    text_add(&t, "    for (int lane = 16; lane > 0; lane >>= 1)\n"
                 "        sum += __shfl_down_sync(0xffffffffu, sum, lane);\n    if (thread)\n        return;\n");
    text_printf(&t, "    const f32 all = (f32)IN%d(0) * %s, m = (f32)IN%d(0) / all;\n", QPOOL_Y_SCALE,
                own_f32(to, (double)(f32)each), QPOOL_X_SCALE);
    text_add(&t, "    const f32 v = (f32)(i32)sum * m;\n    OUT0(block, (i64)stored_code_f32(v, z, lo, hi));\n");
    if (type_results(n->type) > 1)
        text_add(&t, "    OUT1(block, v);\n");
    own_kernel_close(to, "mean", planes, 32, &t);
    return true;
}
