/* What the taps of windows see, gathered column by column. */
#include <string.h>

#include "ops/window/window.h"

enum { MOST_ROOM = 1 << 15, ALIGN = 32 }; /* elements of the columns of a channel; of a line of a cache */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* The line of the data that row u of the taps sees for line 0, by the steps of the window; how many lines more the last row sees than
 * the first one. */
static int64_t line_of(const Window *w, int64_t u)
{
    return floor_div(u * w->dilation[0] - w->begin[0], w->stride[0]);
}

static int64_t reach(const Window *w)
{
    return line_of(w, w->kernel[0] - 1) - line_of(w, 0);
}

static int64_t columns_of(const Window *w)
{
    return w->kernel[1] * w->stride[0];
}

static int64_t most_pieces(const Window *w, int64_t n)
{
    return n / (w->out[0] * w->out[1]) + 2;
}

/* Lines that are gathered for n positions, at most: two of each piece may be cut. */
static int64_t most_lines(const Window *w, int64_t n)
{
    return n / w->out[1] + most_pieces(w, n) * (2 + reach(w));
}

static int64_t column_elements(const Window *w, int64_t n)
{
    return (most_lines(w, n) * w->out[1] + ALIGN - 1) / ALIGN * ALIGN;
}

bool columns_suit(const Window *w, int64_t n)
{
    return w->rank == 2 && w->dilation[0] > 0 && w->kernel[0] > w->stride[0] &&
           columns_of(w) * column_elements(w, n) <= MOST_ROOM;
}

size_t column_room(const Window *w, int64_t n)
{
    return (size_t)(columns_of(w) * column_elements(w, n));
}

/* Runs of a column at most: those of a line and what is padding at its ends. */
static size_t most_runs(const Window *w, int64_t n)
{
    enum { OF_LINE = 3, OF_PIECE = 4 };
    return (size_t)(OF_LINE * most_lines(w, n) + OF_PIECE * most_pieces(w, n));
}

size_t column_sights_bytes(const Window *w, int64_t n)
{
    const size_t columns = (size_t)columns_of(w), line = 64;
    const size_t bytes = columns * (most_runs(w, n) * sizeof(SightRun) + sizeof(size_t)) +
                         (size_t)most_pieces(w, n) * sizeof(ColumnPiece);
    return (bytes + line - 1) / line * line;
}

/* The runs of one column and phase that see the lines of a piece, which begin with line `line` of positions. */
static size_t see_piece(const Window *w, int64_t column, int64_t line, int64_t lines, int64_t data, int64_t to,
                        SightRun *runs)
{
    const int64_t tap[MAX_SPATIAL] = { 0, column / w->stride[0] };
    Window of = *w;
    of.kernel[0] = 1;
    of.out[0] = lines;
    of.begin[0] = -((line + line_of(w, 0)) * w->stride[0] + column % w->stride[0]);
    const size_t n = window_sight(&of, tap, 0, lines * w->out[1], 0, runs);
    for (size_t i = 0; i < n; i++) {
        runs[i].from += runs[i].from < 0 ? 0 : data;
        runs[i].to += (i32)to;
    }
    return n;
}

ColumnSights column_sights(const Window *w, int64_t begin, int64_t n, int64_t image, void *room)
{
    const int64_t columns = columns_of(w), width = w->out[1], out = w->out[0] * width;
    ColumnSights s = { .runs = room, .most = most_runs(w, n), .column = column_elements(w, n) };
    int64_t line = 0, piece;
    s.n = (size_t *)(s.runs + (size_t)columns * s.most);
    s.pieces = (ColumnPiece *)(void *)(s.n + columns);
    memset(s.n, 0, (size_t)columns * sizeof *s.n);
    for (int64_t at = 0; at < n; at += piece) {
        const int64_t first = (begin + at) % out, left = out - first;
        piece = left < n - at ? left : n - at;
        const int64_t top = first / width, lines = (first + piece - 1) / width - top + 1 + reach(w);
        for (int64_t k = 0; k < columns; k++)
            s.n[k] +=
                see_piece(w, k, top, lines, (begin + at) / out * image, line, s.runs + (size_t)k * s.most + s.n[k]);
        s.pieces[s.n_pieces++] = (ColumnPiece){ at, piece, first - top * width, line };
        line += lines * width;
    }
    return s;
}

void columns_see(const Window *w, const ColumnSights *s, const u16 *x, u16 *columns)
{
    for (int64_t k = 0; k < columns_of(w); k++)
        window_see_u16(w, s->runs + (size_t)k * s->most, s->n[k], x, columns + k * s->column);
}

void columns_tap(const Window *w, const ColumnSights *s, const u16 *columns, int64_t tap, u16 *to)
{
    const int64_t u = tap / w->kernel[1], line = line_of(w, u),
                  phase = u * w->dilation[0] - w->begin[0] - line * w->stride[0];
    const u16 *from =
        columns + (tap % w->kernel[1] * w->stride[0] + phase) * s->column + (line - line_of(w, 0)) * w->out[1];
    for (int64_t i = 0; i < s->n_pieces; i++) {
        const ColumnPiece *p = &s->pieces[i];
        memcpy(to + p->at, from + p->line + p->first, (size_t)p->n * sizeof *to);
    }
}
