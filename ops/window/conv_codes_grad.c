/* What reaches the weights of a convolution of codes: products of dy, whose results are the rows, with the windows of x, whose
 * channels and taps are the columns, over the positions of all images. */
#include <string.h>

#include "base/parallel.h"
#include "ops/window/window.h"
#include "ops/window/window_access.h"

enum {
    X,
    DY,
    TILE_ROWS = 3 * WHOLE_TILES, /* results of a tile of sums */
    TILE_COLS = 128,
    BLOCK = 512, /* positions that are multiplied at a time */
};

typedef struct CodesGrad {
    const CodeProducts *l;
    Window w;
    int64_t groups, channels, results; /* channels and results of a group */
    int64_t taps, in, out;             /* of a kernel; spatial elements of data and result */
    int64_t positions, depth;          /* of all images; columns of a group */
    int64_t rows, down, cols, across;  /* of a tile; tiles of a group */
    const u8 *x, *dy;
    i32 *y;
    const u32 *zeros; /* what is added to codes of columns */
    size_t rows_at, columns_at, lines_at, row_sums_at, column_sums_at,
        room; /* where a worker has what; the sums come first */
    char *rooms;
} CodesGrad;

/* A tile: results and columns of a group from some on. */
typedef struct Tile {
    int64_t group, row, rows, col, cols;
} Tile;

/* Lines of dy, or what columns see, at positions [begin, begin + n): those of an image after those of the one before. */
static void gather_block(const CodesGrad *g, const Tile *t, int64_t begin, int64_t n, bool columns, u8 *to)
{
    int64_t tap[MAX_SPATIAL];
    const int64_t lines = columns ? t->cols : t->rows;
    if (columns)
        position_of(g->w.rank, g->w.kernel, t->col % g->taps, tap);
    for (int64_t i = 0; i < lines; i++) {
        const int64_t channel = t->group * g->channels + (t->col + i) / g->taps;
        for (int64_t at = begin, part; at < begin + n; at += part, to += part) {
            const int64_t image = at / g->out, first = at % g->out;
            part = g->out - first < begin + n - at ? g->out - first : begin + n - at;
            if (columns)
                window_gather_u8(&g->w, g->x + (image * g->groups * g->channels + channel) * g->in, tap, first, part, 0,
                                 to);
            else
                memcpy(to, g->dy + ((image * g->groups + t->group) * g->results + t->row + i) * g->out + first,
                       (size_t)part);
        }
        if (columns)
            position_next(g->w.rank, g->w.kernel, tap);
    }
}

static void sum_tile(const CodesGrad *g, const Tile *t, char *room)
{
    const CodeProducts *l = g->l;
    const size_t panels = ((size_t)t->cols + l->width - 1) / l->width, ldc = panels * l->width;
    i32 *sums = (i32 *)(void *)room, *row_sums = (i32 *)(void *)(room + g->row_sums_at);
    i32 *column_sums = (i32 *)(void *)(room + g->column_sums_at);
    u32 *rows = (u32 *)(void *)(room + g->rows_at), *columns = (u32 *)(void *)(room + g->columns_at);
    u8 *lines = (u8 *)(room + g->lines_at);
    memset(row_sums, 0, (size_t)g->rows * sizeof *row_sums);
    memset(column_sums, 0, ldc * sizeof *column_sums);
    for (int64_t p = 0; p < g->positions; p += BLOCK) {
        const int64_t n = g->positions - p < BLOCK ? g->positions - p : BLOCK;
        const size_t words = code_words(l, (size_t)n);
        CodeLanes lanes = { .type = CODE_I8, .lanes = (size_t)t->rows, .k = (size_t)n, .lane = (size_t)n, .step = 1 };
        gather_block(g, t, p, n, false, lines);
        l->pack_rows(&lanes, lines, rows, words * l->rows, row_sums);
        lanes.lanes = (size_t)t->cols;
        gather_block(g, t, p, n, true, lines);
        l->pack_columns(&lanes, lines, columns, words * l->width, column_sums);
        l->multiply((size_t)t->rows, panels, words, rows, words * l->rows, columns, words * l->width, sums, ldc,
                    p == 0);
    }
    const u32 row_zero = (u32)l->row_shift[CODE_I8];
    for (int64_t i = 0; i < t->rows; i++) {
        i32 *line = sums + (size_t)i * ldc;
        l->correct((size_t)t->cols, (u32)g->positions * row_zero - (u32)row_sums[i], g->zeros, 0u - row_zero,
                   column_sums, line);
        memcpy(g->y + (t->group * g->results + t->row + i) * g->depth + t->col, line, (size_t)t->cols * sizeof *line);
    }
}

static void sum_tiles(void *arg, int64_t begin, int64_t end, int worker)
{
    const CodesGrad *g = arg;
    for (int64_t item = begin; item < end; item++) {
        Tile t = { .group = item / (g->down * g->across),
                   .row = item / g->across % g->down * g->rows,
                   .col = item % g->across * g->cols };
        t.rows = g->results - t.row < g->rows ? g->results - t.row : g->rows;
        t.cols = g->depth - t.col < g->cols ? g->depth - t.col : g->cols;
        sum_tile(g, &t, g->rooms + (size_t)worker * g->room);
    }
}

/* Tiles of a size, and of columns so many as keep all threads busy. */
static void split(CodesGrad *g, int64_t threads)
{
    const int64_t width = (int64_t)g->l->width, rows = (int64_t)g->l->rows;
    g->rows = g->results < TILE_ROWS ? (g->results + rows - 1) / rows * rows : TILE_ROWS;
    g->down = (g->results + g->rows - 1) / g->rows;
    int64_t across = (g->depth + TILE_COLS - 1) / TILE_COLS;
    while (threads > 1 && g->groups * g->down * across % threads && across * width < g->depth)
        across++;
    g->cols = ((g->depth + across - 1) / across + width - 1) / width * width;
    g->across = (g->depth + g->cols - 1) / g->cols;
}

static void make_room(Eval *e, CodesGrad *g)
{
    const size_t rows = (size_t)g->rows, cols = (size_t)g->cols, words = code_words(g->l, BLOCK);
    u32 *zeros = eval_room(e, cols, sizeof *zeros);
    for (size_t i = 0; i < cols; i++)
        zeros[i] = (u32)g->l->column_shift[CODE_I8];
    g->zeros = zeros;
    g->rows_at = rows * cols * sizeof(i32);
    g->columns_at = g->rows_at + rows * words * sizeof(u32);
    g->row_sums_at = g->columns_at + cols * words * sizeof(u32);
    g->column_sums_at = g->row_sums_at + rows * sizeof(i32);
    g->lines_at = g->column_sums_at + cols * sizeof(i32);
    g->room = (g->lines_at + (rows > cols ? rows : cols) * BLOCK + 63) / 64 * 64;
    g->rooms = eval_room(e, (size_t)parallel_threads(e->pool), g->room);
}

Status eval_conv_integer_weight_grad(Eval *e)
{
    const ConvAttr *at = e->attr;
    const Type *x = e->in[X]->type, *dy = e->in[DY]->type;
    CodesGrad g = { .l = kernels_code_products(e->kernels, CODE_I8, CODE_I8), .groups = at->group };
    g.x = e->in[X]->data, g.dy = e->in[DY]->data;
    g.y = eval_out(e, 0)->data;
    eval_window(e, &at->window, X, NULL, &g.w);
    g.channels = x->dims[1] / at->group;
    g.results = dy->dims[1] / at->group;
    g.taps = window_product(g.w.rank, g.w.kernel);
    g.in = window_product(g.w.rank, g.w.in);
    g.out = window_product(g.w.rank, g.w.out);
    g.depth = g.channels * g.taps;
    g.positions = x->dims[0] * g.out;
    if (g.groups * g.results * g.depth == 0)
        return OK;
    if (g.positions == 0) {
        memset(g.y, 0, (size_t)(g.groups * g.results * g.depth) * sizeof *g.y);
        return OK;
    }
    split(&g, parallel_threads(e->pool));
    make_room(e, &g);
    eval_parallel(e, g.groups * g.down * g.across, sum_tiles, &g);
    return OK;
}
