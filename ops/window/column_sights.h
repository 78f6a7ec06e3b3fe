/* What the taps of windows over two dimensions see, column by column of the taps: those of a column see the same lines of the data, a
 * few lines on, so that these are gathered once for all of them. */
#ifndef OPS_WINDOW_COLUMN_SIGHTS_H
#define OPS_WINDOW_COLUMN_SIGHTS_H

#include "ops/window/window.h"

/* Some positions of one image: the first of them is element `first` of line 0 of those that are gathered, which begin at element
 * `line` of a column. */
typedef struct ColumnPiece {
    int64_t at, n, first, line;
} ColumnPiece;

/* Those of a block, and how the columns of taps see them: the runs of column k, those of each phase of the steps, from k * most on. */
typedef struct ColumnSights {
    SightRun *runs;
    size_t *n, most;
    ColumnPiece *pieces;
    int64_t n_pieces, column; /* elements of a column */
} ColumnSights;

/* Whether it is worth it, and the lines of n positions fit into a cache. */
bool columns_suit(const Window *w, int64_t n);

/* As window_sights, and elements of the columns of one channel. */
ColumnSights column_sights(const Window *w, int64_t begin, int64_t n, int64_t image, void *room);
size_t column_sights_bytes(const Window *w, int64_t n);
size_t column_room(const Window *w, int64_t n);

/* What all columns see of a channel; of that, what a tap sees. */
void columns_see(const Window *w, const ColumnSights *s, const u16 *x, u16 *columns);
void columns_tap(const Window *w, const ColumnSights *s, const u16 *columns, int64_t tap, u16 *to);

#endif
