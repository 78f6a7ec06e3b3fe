/* Products of matrices by tensor cores; kernels alone have them.
 *
 * A warp multiplies 16 x 32 codes by 32 x 8 and adds sums of 32 bits, modulo 2^32.  Four codes that follow each other along k
 * are a word, the first one in its lowest byte.  Thread 4 g + t of a warp (g < 8, t < 4) holds
 *
 *     a[0], a[1]    codes 4 t, .. of rows g and g + 8 of the left matrix
 *     a[2], a[3]    codes 16 + 4 t, .. of the same rows
 *     b[0], b[1]    codes 4 t, .. and 16 + 4 t, .. of column g of the right one
 *     c[0], c[1]    the sums of row g in columns 2 t and 2 t + 1
 *     c[2], c[3]    those of row g + 8
 *
 *     warp_product(c, a, b, x, y)     c += a b, of codes of the types that x and y point to; all threads of a warp call it
 *
 * From sm_80 on that is one instruction, on sm_75 four smaller ones; elsewhere, and on a host that runs the threads of a warp
 * in turn, threads show each other what they hold.  Sums are exact, so all of them give the same bits.
 *
 * Of bf16 and f16 it is 16 x 16 by 16 x 8, two numbers a word, with sums of f32: the same layout, with 2 t and 8 + 2 t for
 * 4 t and 16 + 4 t; warp_pack(first, second, x) makes such a word.  The instruction, from sm_80 on, adds the 16 products of a sum
 * in its own way, within the bound of docs/arithmetic.md; without it they are added as everywhere else.  Of floats of eight bits
 * (ops/warp/f8.h) it is that of codes, with sums of f32, from sm_89 on. */
#ifndef QCC_OPS_WARP_H
#define QCC_OPS_WARP_H

#ifdef __CUDACC__

#define WARP_ALL 0xffffffffu

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
/* c += a b by one instruction; a register of a sum is of kind "r" or "f". */
#define WARP_MMA(kind, ptx)                                                                                            \
    asm volatile("mma.sync.aligned." ptx " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"            \
                 : "+" kind(c[0]), "+" kind(c[1]), "+" kind(c[2]), "+" kind(c[3])                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define WARP_PRODUCT(A, B, a_ptx, b_ptx)                                                                               \
    Q_FN void warp_product(u32 *c, const u32 *a, const u32 *b, const A *, const B *)                                   \
    {                                                                                                                  \
        WARP_MMA("r", "m16n8k32.row.col.s32." a_ptx "." b_ptx ".s32");                                                 \
    }
#elif defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 750
#define WARP_PRODUCT(A, B, a_ptx, b_ptx)                                                                               \
    Q_FN void warp_quarter(u32 *c, u32 a, u32 b, const A *, const B *)                                                 \
    {                                                                                                                  \
        asm volatile("mma.sync.aligned.m8n8k16.row.col.s32." a_ptx "." b_ptx ".s32 {%0, %1}, {%2}, {%3}, {%0, %1};"    \
                     : "+r"(c[0]), "+r"(c[1])                                                                          \
                     : "r"(a), "r"(b));                                                                                \
    }                                                                                                                  \
    Q_FN void warp_product(u32 *c, const u32 *a, const u32 *b, const A *x, const B *y)                                 \
    {                                                                                                                  \
        warp_quarter(c, a[0], b[0], x, y);                                                                             \
        warp_quarter(c, a[2], b[1], x, y);                                                                             \
        warp_quarter(c + 2, a[1], b[0], x, y);                                                                         \
        warp_quarter(c + 2, a[3], b[1], x, y);                                                                         \
    }
#else
#define WARP_PRODUCT(A, B, a_ptx, b_ptx)                                                                               \
    Q_FN u32 warp_words(u32 a, u32 b, const A *, const B *)                                                            \
    {                                                                                                                  \
        u32 sum = 0;                                                                                                   \
        for (u32 i = 0; i < 32; i += 8)                                                                                \
            sum += (u32)(A)(a >> i) * (u32)(B)(b >> i);                                                                \
        return sum;                                                                                                    \
    }                                                                                                                  \
    Q_FN void warp_product(u32 *c, const u32 *a, const u32 *b, const A *x, const B *y)                                 \
    {                                                                                                                  \
        const u32 lane = threadIdx.x % 32, row = lane / 4 * 4, column = lane % 4 * 8;                                  \
        for (u32 k = 0; k < 4; k++) {                                                                                  \
            const u64 near = __shfl_sync(WARP_ALL, a[0] | (u64)a[1] << 32, row + k);                                   \
            const u64 far = __shfl_sync(WARP_ALL, a[2] | (u64)a[3] << 32, row + k);                                    \
            const u64 first = __shfl_sync(WARP_ALL, b[0] | (u64)b[1] << 32, column + k);                               \
            const u64 second = __shfl_sync(WARP_ALL, b[0] | (u64)b[1] << 32, column + 4 + k);                          \
            c[0] += warp_words((u32)near, (u32)first, x, y) + warp_words((u32)far, first >> 32, x, y);                 \
            c[1] += warp_words((u32)near, (u32)second, x, y) + warp_words((u32)far, second >> 32, x, y);               \
            c[2] += warp_words(near >> 32, (u32)first, x, y) + warp_words(far >> 32, first >> 32, x, y);               \
            c[3] += warp_words(near >> 32, (u32)second, x, y) + warp_words(far >> 32, second >> 32, x, y);             \
        }                                                                                                              \
    }
#endif
WARP_PRODUCT(u8, u8, "u8", "u8")
WARP_PRODUCT(u8, i8, "u8", "s8")
WARP_PRODUCT(i8, u8, "s8", "u8")
WARP_PRODUCT(i8, i8, "s8", "s8")
#undef WARP_PRODUCT

/* Two bf16 or f16, the first in the lower half of their word, are read by nobody but the functions below. */
typedef struct Bf16 {
    u16 bits;
} Bf16;

typedef struct F16 {
    u16 bits;
} F16;

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
#define WARP_HALVES(H, ptx, from, to)                                                                                  \
    Q_FN void warp_product(f32 *c, const u32 *a, const u32 *b, const H *, const H *)                                   \
    {                                                                                                                  \
        WARP_MMA("f", "m16n8k16.row.col.f32." ptx "." ptx ".f32");                                                     \
    }                                                                                                                  \
    Q_FN u32 warp_pack(f32 first, f32 second, const H *)                                                               \
    {                                                                                                                  \
        u32 word;                                                                                                      \
        asm("cvt.rn." ptx "x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));                                \
        return word;                                                                                                   \
    }
#else
#define WARP_HALVES(H, ptx, from, to)                                                                                  \
    Q_FN f32 warp_pair(u32 a, u32 b, f32 sum, const H *)                                                               \
    {                                                                                                                  \
        sum = fma_f32(from((u16)a), from((u16)b), sum);                                                                \
        return fma_f32(from((u16)(a >> 16)), from((u16)(b >> 16)), sum);                                               \
    }                                                                                                                  \
    Q_FN void warp_product(f32 *c, const u32 *a, const u32 *b, const H *h, const H *)                                  \
    {                                                                                                                  \
        const u32 lane = threadIdx.x % 32, row = lane / 4 * 4, column = lane % 4 * 8;                                  \
        for (u32 k = 0; k < 8; k++) {                                                                                  \
            const u32 half = k / 4, place = k % 4;                                                                     \
            const u64 rows = __shfl_sync(WARP_ALL, a[2 * half] | (u64)a[2 * half + 1] << 32, row + place);             \
            const u32 first = __shfl_sync(WARP_ALL, b[half], column + place);                                          \
            const u32 second = __shfl_sync(WARP_ALL, b[half], column + 4 + place);                                     \
            c[0] = warp_pair((u32)rows, first, c[0], h);                                                               \
            c[1] = warp_pair((u32)rows, second, c[1], h);                                                              \
            c[2] = warp_pair(rows >> 32, first, c[2], h);                                                              \
            c[3] = warp_pair(rows >> 32, second, c[3], h);                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    Q_FN u32 warp_pack(f32 first, f32 second, const H *)                                                               \
    {                                                                                                                  \
        return (u32)to(first) | (u32)to(second) << 16;                                                                 \
    }
#endif
WARP_HALVES(Bf16, "bf16", bf16_to_f32, bf16_from_f32)
WARP_HALVES(F16, "f16", f16_to_f32, f16_from_f32)
#undef WARP_HALVES

#include "ops/warp/attend.h"
#include "ops/warp/tile.h"
#include "ops/warp/f8.h"

enum {
    WARP_THREADS = 256,
    WARP_WORDS = 4 * TILE_PARTS, /* of a lane in the memory that a block shares: 64 codes */
};

/* A square of a result that a block of 256 threads makes of a matrix of m rows and one of n columns, both `depth` deep. */
typedef struct CodesTile {
    i64 m, n, depth, row, column; /* where it begins */
    i64 from, to;                 /* the part of the depth, in whole pieces, that the block adds up */
    bool sums_x, sums_y;          /* what codes alone sum to is wanted, too */
} CodesTile;

/* What each thread holds of it: eight warps, two by four, have as many squares of 16 x 8. */
template <int SQUARES> struct CodesSums {
    u32 of_products[SQUARES][SQUARES][4], of_x[SQUARES][4], of_y[SQUARES][4];
};

/* Where a thread's sum in line i (of two a square) and column j (of two) lies, from the corner of the tile. */
template <int SQUARES> Q_FN u32 warp_row(u32 i)
{
    return threadIdx.x / 128 * (16 * SQUARES) + i * 8 + threadIdx.x % 32 / 4;
}

template <int SQUARES> Q_FN u32 warp_column(u32 j)
{
    return threadIdx.x / 32 % 4 * (8 * SQUARES) + j / 2 * 8 + threadIdx.x % 4 * 2 + j % 2;
}

/* The four codes at `at`, of which `left` are there: zeros stand for the others. */
Q_FN u32 codes_word(const u8 *at, i64 left)
{
    u32 word = 0;
    for (u32 i = 0; i < 4; i++)
        word |= (i < left ? (u32)at[i] : 0) << 8 * i;
    return word;
}

/* Four words as the rows of a square of bytes become its columns. */
Q_FN void turn_words(u32 *w)
{
    const u32 even = 0x00ff00ffu, low = 0xffffu;
    const u32 a = (w[0] & even) | (w[1] << 8 & ~even), b = (w[0] >> 8 & even) | (w[1] & ~even);
    const u32 c = (w[2] & even) | (w[3] << 8 & ~even), d = (w[2] >> 8 & even) | (w[3] & ~even);
    w[0] = (a & low) | c << 16;
    w[1] = (b & low) | d << 16;
    w[2] = a >> 16 | (c & ~low);
    w[3] = b >> 16 | (d & ~low);
}

/* A lane is a row of the left matrix or a column of the right one.  Where its codes lie beside each other (ALONG), words are
 * read as they lie, and else as squares of four lanes, which are turned.  A thread's word i goes to lane and word `at`. */
template <int SIDE, bool ALONG> Q_FN void codes_place(u32 i, u32 *lane, u32 *at)
{
    const u32 e = threadIdx.x + WARP_THREADS * (ALONG ? i : i / 4);
    *lane = ALONG ? e / WARP_WORDS : e / 4 % (SIDE / 4) * 4 + i % 4;
    *at = ALONG ? e % WARP_WORDS : e / SIDE * 4 + e % 4;
}

/* `whole`: all words lie at multiples of four bytes, and no lane ends in one. */
template <int SIDE, bool ALONG>
Q_FN void codes_fetch(u32 *words, const u8 *from, i64 first, i64 lanes, i64 k0, i64 depth, bool whole)
{
#pragma unroll
    for (u32 i = 0; i < SIDE * WARP_WORDS / WARP_THREADS; i++) {
        u32 lane, at;
        codes_place<SIDE, ALONG>(ALONG ? i : i / 4 * 4, &lane, &at);
        const i64 l = first + lane, k = k0 + 4 * at + (ALONG ? 0 : i % 4);
        const i64 left = ALONG ? (l < lanes ? depth - k : 0) : (k < depth ? lanes - l : 0);
        const u8 *const word = from + (ALONG ? l * depth + k : k * lanes + l);
        if (whole)
            words[i] = left > 0 ? *(const u32 *)word : 0;
        else
            words[i] = codes_word(word, left);
    }
#pragma unroll
    for (u32 i = 0; !ALONG && i < SIDE * WARP_WORDS / WARP_THREADS; i += 4)
        turn_words(words + i);
}

template <int SIDE, bool ALONG> Q_FN void codes_put(const u32 *words, TilePiece<SIDE, true> *to)
{
#pragma unroll
    for (u32 i = 0; i < SIDE * WARP_WORDS / WARP_THREADS; i++) {
        u32 lane, at;
        codes_place<SIDE, ALONG>(i, &lane, &at);
        to->part[lane][at / 4].w[at % 4] = words[i];
    }
}

/* Adds what a block has in the memory that it shares. */
template <int SQUARES, int SIDE, class A, class B>
Q_FN void codes_multiply(CodesSums<SQUARES> *sums, const CodesTile *t, const TilePiece<SIDE, true> *xs,
                         const TilePiece<SIDE, true> *ys, const A *x, const B *y)
{
    const u32 one = 0x01010101, ones[4] = { one, one, one, one };
#pragma unroll
    for (u32 half = 0; half < TILE_DEPTH / 16; half++) {
        u32 a[SQUARES][4], b[SQUARES / 2][4];
        piece_left<SQUARES>(a, xs, half);
        piece_right<SQUARES>(b, ys, half);
#pragma unroll
        for (u32 i = 0; i < SQUARES; i++)
#pragma unroll
            for (u32 j = 0; j < SQUARES; j++)
                warp_product(sums->of_products[i][j], a[i], b[j / 2] + j % 2 * 2, x, y);
        if (t->sums_x)
#pragma unroll
            for (u32 i = 0; i < SQUARES; i++)
                warp_product(sums->of_x[i], a[i], ones, x, y);
        if (t->sums_y)
#pragma unroll
            for (u32 j = 0; j < SQUARES; j++)
                warp_product(sums->of_y[j], ones, b[j / 2] + j % 2 * 2, x, y);
    }
}

/* A matrix whose codes lie beside each other along k (ALONG) or along its lanes; `whole` as above, and `copies`: by sixteen, which go
 * by themselves. */
template <class A, bool ALONG> struct CodesMatrix {
    const A *at;
    i64 lanes, depth;
    bool whole, copies;
};

template <bool ALONG, class A> Q_FN CodesMatrix<A, ALONG> codes_matrix(const A *at, i64 lanes, i64 depth)
{
    const u64 all = (u64)at | (u64)(ALONG ? depth : lanes);
    const CodesMatrix<A, ALONG> m = { at, lanes, depth, (all & 3) == 0, ALONG && (all & 15) == 0 };
    return m;
}

/* A piece of it begins its way: there, or to words, which codes_set puts there. */
template <int SIDE, class A, bool ALONG>
Q_FN void codes_take(Copies *c, TilePiece<SIDE, true> *to, u32 *words, const CodesMatrix<A, ALONG> *m, i64 first,
                     i64 k0)
{
    if (!m->copies) {
        codes_fetch<SIDE, ALONG>(words, (const u8 *)m->at, first, m->lanes, k0, m->depth, m->whole);
        return;
    }
#pragma unroll
    for (u32 i = 0; i < SIDE * TILE_PARTS / WARP_THREADS; i++) {
        const u32 e = threadIdx.x + WARP_THREADS * i, lane = e / TILE_PARTS, part = e % TILE_PARTS;
        const i64 l = first + lane, k = k0 + 16 * part;
        const bool there = l < m->lanes && k < m->depth;
        copy_begin(c, &to->part[lane][part], m->at + (there ? l * m->depth + k : 0), there);
    }
}

template <int SIDE, class A, bool ALONG>
Q_FN void codes_set(const u32 *words, const CodesMatrix<A, ALONG> *m, TilePiece<SIDE, true> *to)
{
    if (!m->copies)
        codes_put<SIDE, ALONG>(words, to);
}

/* A matrix that lies nowhere: code(lane, k) is an element, in the low byte.  Neighbours of a warp have lanes that follow each other,
 * so that what they read lies beside each other where lanes do. */
template <class A, class F> struct CodesGather {
    const A *type; /* of the codes; it points to nothing */
    const F *code;
    i64 lanes, depth;
};

template <class A, class F> Q_FN CodesGather<A, F> codes_gather(const A *type, const F *code, i64 lanes, i64 depth)
{
    const CodesGather<A, F> m = { type, code, lanes, depth };
    return m;
}

template <int SIDE, class A, class F>
Q_FN void codes_take(Copies *, TilePiece<SIDE, true> *, u32 *words, const CodesGather<A, F> *m, i64 first, i64 k0)
{
#pragma unroll
    for (u32 i = 0; i < SIDE * WARP_WORDS / WARP_THREADS; i++) {
        const u32 e = threadIdx.x + WARP_THREADS * i;
        const i64 lane = first + e % SIDE, k = k0 + 4 * (e / SIDE);
        words[i] = 0;
#pragma unroll
        for (u32 p = 0; p < 4; p++)
            words[i] |= (lane < m->lanes && k + p < m->depth ? (*m->code)(lane, k + p) & 0xffu : 0) << 8 * p;
    }
}

template <int SIDE, class A, class F>
Q_FN void codes_set(const u32 *words, const CodesGather<A, F> *, TilePiece<SIDE, true> *to)
{
#pragma unroll
    for (u32 i = 0; i < SIDE * WARP_WORDS / WARP_THREADS; i++) {
        const u32 e = threadIdx.x + WARP_THREADS * i;
        to->part[e % SIDE][e / SIDE / 4].w[e / SIDE % 4] = words[i];
    }
}

/* The type of a matrix's codes, as a pointer to nothing. */
template <class A, bool ALONG> Q_FN const A *codes_type(const CodesMatrix<A, ALONG> *)
{
    return 0;
}

template <class A, class F> Q_FN const A *codes_type(const CodesGather<A, F> *)
{
    return 0;
}

/* The sums of a tile, from two pieces of each matrix: while one is multiplied, the next one is on its way. */
template <int SQUARES, int SIDE, class X, class Y>
Q_FN void codes_tile(CodesSums<SQUARES> *sums, const CodesTile *t, const X &x, const Y &y, TilePiece<SIDE, true> *xs,
                     TilePiece<SIDE, true> *ys)
{
    Copies copies = {};
    u32 odd = 0;
    for (i64 k0 = t->from;; k0 += 4 * WARP_WORDS, odd ^= 1) {
        u32 next_x[SIDE * WARP_WORDS / WARP_THREADS], next_y[SIDE * WARP_WORDS / WARP_THREADS];
        if (k0 < t->to) {
            codes_take(&copies, &xs[odd], next_x, &x, t->row, k0);
            codes_take(&copies, &ys[odd], next_y, &y, t->column, k0);
        }
        copy_commit(&copies);
        if (k0 > t->from)
            codes_multiply(sums, t, &xs[odd ^ 1], &ys[odd ^ 1], codes_type(&x), codes_type(&y));
        if (k0 >= t->to)
            return;
        codes_set(next_x, &x, &xs[odd]);
        codes_set(next_y, &y, &ys[odd]);
        copy_wait<0>(&copies);
        __syncthreads();
    }
}

#endif

#endif
