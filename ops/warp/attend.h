/* Attention by tensor cores: what the kernels of ops/attend/attend_tensor.c are made of.
 *
 * A block has four warps and a tile of 64 rows, sixteen a warp, of one side of a score matrix: of queries, or of keys where the
 * matrix is walked the other way.  It walks the other side in pieces, which lie in the memory that it shares, and nobody keeps
 * more of the matrix than the piece that is worked on: N x 8 scores of a warp are f32 s[N][4], as sums of ops/warp.h lie.
 *
 * The queries of all heads that share a head of keys are rows below each other: row r is query r % queries of head
 * r / queries.  Rows of a head in shared memory are SIZE numbers, a multiple of 16, zeros behind the last, and 16 bytes that
 * nobody reads: so a row is an odd number of 16 bytes, eight rows that one instruction reads at the same place lie in banks 4 i
 * apart, i odd, and that are 32 different ones. */
#ifndef QCC_OPS_WARP_ATTEND_H
#define QCC_OPS_WARP_ATTEND_H

#include "ops/warp/copy.h"

enum { ATTEND_THREADS = 128, ATTEND_TILE = 64 };

template <int SIZE> struct HeadRow {
    Quad part[SIZE / 8 + 1];
};

/* Where the n rows of an operand lie: row r at r / steps * head + r % steps * step, `size` numbers. */
typedef struct HeadPlace {
    i32 n, steps, size;
    i64 head, step;
} HeadPlace;

/* Rows first, .. of an operand begin their way to a piece; behind the last one there are zeros.  Those that do not lie at
 * multiples of 16 bytes are there at once. */
template <int ROWS, int SIZE>
Q_FN void rows_fetch(Copies *c, HeadRow<SIZE> *to, const u16 *x, const HeadPlace *p, i32 first)
{
    const bool whole = (((u64)x | (u64)(2 * p->head) | (u64)(2 * p->step) | (u64)(2 * p->size)) & 15) == 0;
#pragma unroll(SIZE > 64 ? 1 : 8) /* addresses of wide rows would take the registers of their sums */
    for (u32 k = 0; k < (ROWS * SIZE / 8 + ATTEND_THREADS - 1) / ATTEND_THREADS; k++) {
        const u32 i = k * ATTEND_THREADS + threadIdx.x, row = i / (SIZE / 8), part = i % (SIZE / 8);
        const i32 r = first + (i32)row, left = r < p->n ? p->size - 8 * (i32)part : 0;
        const u16 *const from = left > 0 ? x + r / p->steps * p->head + r % p->steps * p->step + 8 * part : x;
        if (row >= ROWS)
            break;
        if (whole)
            copy_begin(c, &to[row].part[part], from, left > 0);
        else
            to[row].part[part] = quad_of(from, left);
    }
}

/* The first of the two rows of a tile that a thread has sums of; the other one is the eighth behind it. */
Q_FN i32 attend_line()
{
    return (i32)(threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4);
}

/* The sixteen rows of a warp of a tile, as the left matrix of products. */
template <int SIZE> Q_FN void warp_hold(u32 (*a)[4], const HeadRow<SIZE> *tile)
{
    const u32 lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane % 16;
#pragma unroll
    for (u32 k = 0; k < SIZE / 16; k++)
        warp_load(a[k], &tile[row].part[2 * k + lane / 16]);
}

/* s = the rows of a warp by those of a piece. */
template <class H, int N, int SIZE> Q_FN void warp_scores(f32 (*s)[4], const u32 (*a)[4], const HeadRow<SIZE> *piece)
{
    const H *const h = 0;
    const u32 lane = threadIdx.x % 32, row = lane / 16 * 8 + lane % 8;
#pragma unroll
    for (u32 c = 0; c < N / 8; c++)
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            s[c][i] = 0;
#pragma unroll
    for (u32 k = 0; k < SIZE / 16; k++)
#pragma unroll
        for (u32 c = 0; c < N / 8; c += 2) {
            u32 b[4];
            warp_load(b, &piece[8 * c + row].part[2 * k + lane / 8 % 2]);
            warp_product(s[c], a[k], b, h, h);
            warp_product(s[c + 1], a[k], b + 2, h, h);
        }
}

/* y += s, rounded, by a piece: the sums of a product are the left matrix of the next one as they lie. */
template <class H, int N, int SIZE> Q_FN void warp_mix(f32 (*y)[4], const f32 (*s)[4], const HeadRow<SIZE> *piece)
{
    const H *const h = 0;
    const u32 lane = threadIdx.x % 32;
#pragma unroll
    for (u32 k = 0; k < N / 16; k++) {
        const f32 *const left = s[2 * k], *const right = s[2 * k + 1];
        const u32 a[4] = { warp_pack(left[0], left[1], h), warp_pack(left[2], left[3], h),
                           warp_pack(right[0], right[1], h), warp_pack(right[2], right[3], h) };
#pragma unroll
        for (u32 d = 0; d < SIZE / 8; d += 2) {
            u32 b[4];
            warp_load_turned(b, &piece[16 * k + lane % 16].part[d + lane / 16]);
            warp_product(y[d], a, b, h, h);
            warp_product(y[d + 1], a, b + 2, h, h);
        }
    }
}

/* Two powers of two; of an argument below -126 it may be 0. */
Q_FN f32 attend_exp2(f32 x)
{
#ifdef __CUDA_ARCH__
    f32 y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2_f32(x);
#endif
}

/* What the four threads that share a row have, added or the largest of it. */
Q_FN f32 quad_sum(f32 v)
{
    const u32 lane = threadIdx.x % 32;
    v += __shfl_sync(WARP_ALL, v, lane ^ 1);
    return v + __shfl_sync(WARP_ALL, v, lane ^ 2);
}

Q_FN f32 quad_max(f32 v)
{
    const u32 lane = threadIdx.x % 32;
    const f32 near = __shfl_sync(WARP_ALL, v, lane ^ 1), both = v > near ? v : near;
    const f32 far = __shfl_sync(WARP_ALL, both, lane ^ 2);
    return both > far ? both : far;
}

/* ---- what position lets queries see ---- */

typedef struct Sight {
    i32 rows, queries;
    i32 left, right;   /* keys before and behind a query's own; below 0: all */
    i32 length, shift; /* keys that there are; how far the own key of a query is from its number */
} Sight;

Q_FN i32 sight_from(const Sight *s, i32 query)
{
    const i32 from = query + s->shift - s->left;
    return s->left >= 0 && from > 0 ? from : 0;
}

Q_FN i32 sight_to(const Sight *s, i32 query)
{
    const i32 to = query + s->shift + s->right + 1;
    return s->right >= 0 && to < s->length ? to : s->length;
}

Q_FN bool sight_has(const Sight *s, i32 query, i32 key)
{
    return key >= sight_from(s, query) && key < sight_to(s, query);
}

/* The keys that some row of a tile may see, and those that every one sees. */
typedef struct TileSight {
    i32 from, to, all_from, all_to;
} TileSight;

Q_FN TileSight sight_tile(const Sight *s, i32 first, i32 n)
{
    const i32 last = first + n < s->rows ? first + n - 1 : s->rows - 1;
    const bool one = first / s->queries == last / s->queries;
    const i32 low = one ? first % s->queries : 0, high = one ? last % s->queries : s->queries - 1;
    const TileSight t = { sight_from(s, low), sight_to(s, high), sight_from(s, high), sight_to(s, low) };
    return t;
}

/* The first tile of n rows from `first` on of which some row sees one of the keys. */
Q_FN i32 sight_next(const Sight *s, i32 first, i32 n, i32 from, i32 to)
{
    for (; first < s->rows; first += n) {
        const TileSight t = sight_tile(s, first, n);
        if (t.from < to && t.to > from && t.from < t.to)
            break;
    }
    return first;
}

/* ---- the softmax of a row, piece by piece ---- */

/* Of the two rows of a thread: the largest score so far; the thread's share of the sum of exponentials, and of what else is
 * summed with them as weights; whether it saw a key. */
typedef struct RowsSoftmax {
    f32 most[2], sum[2], mixed[2];
    bool any[2];
} RowsSoftmax;

/* What is known of a row when all keys were seen: its probabilities are 2^(score * factor - base) * share, and `mean` is what reached
 * them, mixed by them. */
typedef struct RowStats {
    f32 base, share, mean;
} RowStats;

Q_FN RowsSoftmax softmax_begin()
{
    const RowsSoftmax m = { { -Q_INF, -Q_INF }, { 0, 0 }, { 0, 0 }, { false, false } };
    return m;
}

/* Scores of a piece become exponentials, base 2, of what they are above the largest so far times `factor`, which is positive;
 * `shrink` is what all before it is to be multiplied with.  A row whose scores are all -inf so far has exponentials of 0. */
template <int N> Q_FN void warp_soften(RowsSoftmax *m, f32 (*s)[4], f32 *shrink, f32 factor)
{
#pragma unroll
    for (u32 r = 0; r < 2; r++) {
        f32 most = m->most[r], sum = 0;
#pragma unroll
        for (u32 c = 0; c < N / 4; c++)
            most = s[c / 2][2 * r + c % 2] > most ? s[c / 2][2 * r + c % 2] : most;
        most = quad_max(most);
        const f32 base = most == -Q_INF ? 0 : most * factor;
        shrink[r] = attend_exp2(fma_f32(m->most[r], factor, -base));
        m->most[r] = most;
#pragma unroll
        for (u32 c = 0; c < N / 4; c++) {
            f32 *const e = &s[c / 2][2 * r + c % 2];
            *e = attend_exp2(fma_f32(*e, factor, -base));
            sum += *e;
        }
        m->sum[r] = fma_f32(m->sum[r], shrink[r], sum);
    }
}

template <int SIZE> Q_FN void warp_shrink(f32 (*y)[4], const f32 *shrink)
{
#pragma unroll
    for (u32 d = 0; d < SIZE / 8; d++)
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            y[d][i] *= shrink[i / 2];
}

/* Adds what is weighted with the exponentials of a piece. */
template <int N> Q_FN void warp_weigh(RowsSoftmax *m, const f32 (*s)[4], const f32 (*d)[4], const f32 *shrink)
{
#pragma unroll
    for (u32 r = 0; r < 2; r++) {
        f32 sum = 0;
#pragma unroll
        for (u32 c = 0; c < N / 4; c++)
            sum = fma_f32(s[c / 2][2 * r + c % 2], d[c / 2][2 * r + c % 2], sum);
        m->mixed[r] = fma_f32(m->mixed[r], shrink[r], sum);
    }
}

/* What there is to know of row r of a thread; of one that saw no key, that its probabilities are 0. */
Q_FN RowStats softmax_end(const RowsSoftmax *m, u32 r, f32 factor)
{
    const f32 sum = quad_sum(m->sum[r]), mixed = quad_sum(m->mixed[r]), any = quad_max(m->any[r]);
    const f32 share = 1 / sum;
    const RowStats none = { 0, 0, 0 }, s = { m->most[r] == -Q_INF ? 0 : m->most[r] * factor, share, mixed * share };
    return any ? s : none;
}

/* Those of a row; a row behind the last one has probabilities of 0. */
Q_FN RowStats stats_of(const RowStats *all, i32 row, i32 rows)
{
    const RowStats none = { 0, 0, 0 };
    return row < rows ? all[row] : none;
}

Q_FN f32 stats_probability(const RowStats *r, f32 score, f32 factor)
{
    return attend_exp2(fma_f32(score, factor, -r->base)) * r->share;
}

/* Stores the rows of a tile that there are, each of its numbers times a factor of the row. */
template <class H, int SIZE>
Q_FN void rows_store(u16 *x, const HeadPlace *p, i32 first, const f32 (*y)[4], const f32 *by)
{
    const H *const h = 0;
#pragma unroll
    for (u32 r = 0; r < 2; r++) {
        const i32 row = first + attend_line() + 8 * (i32)r;
        if (row >= p->n)
            continue;
        u16 *const to = x + row / p->steps * p->head + row % p->steps * p->step;
#pragma unroll
        for (u32 d = 0; d < SIZE / 8; d++) {
            const i32 at = (i32)(8 * d + threadIdx.x % 4 * 2);
            const u32 word = warp_pack(y[d][2 * r] * by[r], y[d][2 * r + 1] * by[r], h);
            if (p->size % 2 == 0 && at < p->size)
                *(u32 *)(to + at) = word;
            if (p->size % 2 && at < p->size)
                to[at] = (u16)word;
            if (p->size % 2 && at + 1 < p->size)
                to[at + 1] = (u16)(word >> 16);
        }
    }
}

#endif
