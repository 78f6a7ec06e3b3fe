/* Attention by blocks of queries whose operands are packed: keys and values once for all blocks of a head, so that every
 * product is the micro-kernel's alone.  For calls in f32 arithmetic of which every sum is one segment.
 *
 * Keys that position hides from all rows of a block take part in no product of it.  What they would add are zeros: that
 * shows where an operand is not finite, where a row has no probabilities but NaN, and where a sum is -0.  A block or a head
 * in which any of this is so says that it is wild, and is done again with all keys. */
#ifndef OPS_ATTEND_ATTENTION_PACKED_H
#define OPS_ATTEND_ATTENTION_PACKED_H

#include "ops/attend/attention_blocks.h"

typedef struct Packed {
    Attend a;
    const PackedLoops *loops;
    size_t operand; /* bytes of an element that is packed: of f32, or of bf16 as it lies */
    bool skips;     /* position hides keys, and leaving them out can be told from what comes out */
} Packed;

/* A block, its rows, and which keys products take: whole panels of them. */
typedef struct PackedBlock {
    AttendBlock k;
    int64_t low, high;
    bool whole; /* all of them */
    AttendRow row[ATTEND_ROWS];
} PackedBlock;

/* What a block is worked on in: probabilities, as products read them where that is another type, a row, and tiles. */
typedef struct PackedRoom {
    f32 *scores, *narrow, *row, *tiles;
} PackedRoom;

/* The next n elements of a room whose beginning may be null, for who asks how large it is. */
f32 *packed_take(f32 *room, size_t *used, size_t n);

/* The room of a block. */
PackedRoom packed_room(const Packed *p, f32 *room, size_t *used);

/* How many elements of f32 take n columns of k steps, packed; m rows. */
size_t packed_columns(const Packed *p, size_t n, size_t k);
size_t packed_rows(const Packed *p, size_t m, size_t k);

Packed packed_open(const Attend *a);

/* The block of that number; whole: with all keys. */
PackedBlock packed_block(const Packed *p, int64_t number, bool whole);

/* Element `at` of an operand. */
const void *packed_at(const Packed *p, const void *x, int64_t at);

/* Whether all of some rows of an operand are finite; whether some number is -0 (never of bf16, the sums of which have no
 * bits to keep). */
bool packed_finite(const Packed *p, const void *x, int64_t rows, int64_t step, int64_t n);
bool packed_odd(const Packed *p, const f32 *x, int64_t n);

/* Rows of a block of an operand, one behind the other. */
void packed_stage(const Packed *p, const PackedBlock *k, void *to, const void *from, HeadStrides at, int64_t size);

/* The queries of a block as products read them. */
void packed_queries(const Packed *p, const PackedBlock *k, void *to);

/* Keys or values of a head: as columns of what rows of `size` meet, and as columns that meet rows over keys. */
void packed_across(const Packed *p, const void *x, int64_t step, int64_t size, f32 *to);
void packed_along(const Packed *p, const void *x, int64_t step, int64_t size, f32 *to);

/* scores[rows, keys] of staged rows and columns made by packed_across. */
void packed_inner(const Packed *p, const PackedBlock *k, const void *rows, int64_t size, const f32 *columns,
                  f32 *scores, f32 *tiles);

/* y[rows, size] of scores as products read them and columns made by packed_along. */
void packed_outer(const Packed *p, const PackedBlock *k, const void *scores, int64_t size, const f32 *columns, f32 *y,
                  f32 *tiles);

/* Scores as products read them: in `narrow`, rounded, where the call is narrow. */
const void *packed_narrow(const Packed *p, const PackedBlock *k, f32 *scores, f32 *narrow);

/* 0 in place of what a row may not see; row holds keys 0 .. high - 1. */
void packed_hide(const Packed *p, const PackedBlock *k, int64_t i, f32 *row);

/* The probabilities of a block, of staged queries; false: it is wild. */
bool packed_probabilities(const Packed *p, const PackedBlock *k, const void *q, const f32 *keys, const PackedRoom *r,
                          f32 *tangent);

/* Where what reaches queries, keys and values goes, in f32. */
typedef struct AttendBack {
    void *dq, *dk, *dv;
} AttendBack;

/* fast_attention and fast_attention_grad of a call that packs and has rows. */
Status packed_attention(const Attend *a, void *y);
Status packed_attention_grad(const Attend *a, AttendBack to);

#endif
