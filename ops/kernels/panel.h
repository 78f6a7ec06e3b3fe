/* Matrix products of floats in the one order of contractions.
 *
 * An element of c is the sum over k in segments of 2048: in a segment k ascends, by fused multiply-adds from zero;
 * segment sums join like the digits of a binary counter, the older one on the left (ops/reduce.h), leftover digits from
 * the youngest to the oldest.  So whoever shares out whole segments, one after the other or side by side, gets the same
 * bits. */
#ifndef OPS_KERNELS_PANEL_H
#define OPS_KERNELS_PANEL_H

#include "ops/kernels/kernels.h"

enum { PANEL_SEGMENT = 2048 };

/* Elements of c that are done: rows and columns as `row` and `col` of the product count them.  They lie at c, rows ldc apart. */
typedef struct PanelBlock {
    size_t row, col, rows, cols;
    const void *c;
    size_t ldc;
} PanelBlock;

/* Who is told of blocks of c as they are done, each element once. */
typedef struct PanelWatch {
    void (*done)(void *user, const PanelBlock *b);
    void *user;
} PanelWatch;

/* c[m,n] = a[m,k] b[k,n]; strides in elements. */
typedef struct Panel {
    size_t m, n, k;
    size_t lda, ldb, ldc;  /* of rows */
    size_t a_step, b_step; /* of columns; 0: 1 */
    bool packed;           /* a is packed by PackedLoops.pack_rows, its tiles lda apart: it begins with a tile */
    bool columns_packed;   /* b is packed by panel_pack, its panels ldb apart: it begins with a panel */
    bool is_bf16;          /* for panel_bf16: said already where room is asked for */
    bool onto;       /* sums begin with what c holds, not with zeros: of one segment at most, neither past nor apart */
    bool past;       /* of bf16 whose b is packed: c, of one segment, is written past the caches (copy_past) */
    bool apart;      /* of bf16 whose b is packed: c is null, and blocks of it live only while who watches is told */
    size_t row, col; /* what the first element of c is to who is told */
    const PanelWatch *watch; /* null: nobody is */
} Panel;

/* The elements of room that the product works in: none where k is one segment at most. */
size_t panel_room(const Panel *p);

/* The elements that b takes when it is packed. */
size_t panel_packed(const Panel *p);

/* Elements from panel to panel of b, packed by panel_pack_bf16. */
size_t panel_apart(const Kernels *level, size_t k);

/* Packs b once for many products, of any number of rows, and has the panel say so.  Column j, where a panel begins, then is at
 * j * k of what is packed, k filled up to PackedLoops.depth. */
void panel_pack_f32(const Kernels *level, Panel *p, const f32 *b, f32 *to);
void panel_pack_f64(const Kernels *level, Panel *p, const f64 *b, f64 *to);
void panel_pack_bf16(const Kernels *level, Panel *p, const u16 *b, u16 *to);

/* The product, at a level. */
void panel_f32(const Kernels *level, const Panel *p, const f32 *a, const f32 *b, f32 *c, f32 *room);
void panel_f64(const Kernels *level, const Panel *p, const f64 *a, const f64 *b, f64 *c, f64 *room);

/* The same where the level has loops for it (kernels_packed_bf16), with the roundings of its instruction: its bits do not
 * depend on how rows and columns are shared out.  a is not packed. */
void panel_bf16(const Kernels *level, const Panel *p, const u16 *a, const u16 *b, f32 *c, f32 *room);

/* One of several products of the same a: c[m,n] = a[m,k] b[k,n]. */
typedef struct PanelSide {
    size_t n, ldb, b_step, ldc, col;
    const void *b;
    void *c;
    const PanelWatch *watch;
    bool past;
} PanelSide;

/* Several products of the same a, which is packed once for all: of the panel m, k and what is said of a and of rows count.
 * The room is that of the widest. */
void panel_sides_f32(const Kernels *level, const Panel *p, const f32 *a, const PanelSide *sides, size_t n, f32 *room);
void panel_sides_f64(const Kernels *level, const Panel *p, const f64 *a, const PanelSide *sides, size_t n, f64 *room);
void panel_sides_bf16(const Kernels *level, const Panel *p, const u16 *a, const PanelSide *sides, size_t n, f32 *room);

/* How many digits a counter of the segments of k needs room for. */
size_t panel_digits(size_t k);

/* Joins the sum of segment number `count` (from 0), a matrix, with the digits before it and keeps what comes of it as a
 * digit; of the last segment it becomes the total, in `sum`.  digits: panel_digits matrices without gaps. */
void panel_join_f32(f32 *sum, size_t rows, size_t cols, size_t stride, f32 *digits, size_t count, bool last);
void panel_join_f64(f64 *sum, size_t rows, size_t cols, size_t stride, f64 *digits, size_t count, bool last);

#endif
