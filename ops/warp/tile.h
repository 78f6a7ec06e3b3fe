/* Pieces of two matrices of 16-bit numbers in the memory that a block shares, for tiles of products: 32 steps of k of each.
 *
 * A piece lies as its matrix does.  Where numbers lie beside each other along k (ALONG), a lane, which is a row of the left matrix
 * or a column of the right one, has four times 16 bytes and 16 that nobody reads; else each k has its lanes, and as much more.
 * So what eight threads load at once begins an odd number of 16 bytes apart, in different banks. */
#ifndef QCC_OPS_WARP_TILE_H
#define QCC_OPS_WARP_TILE_H

#include "ops/warp/copy.h"

enum { TILE_DEPTH = 32, TILE_PARTS = TILE_DEPTH / 8 };

template <int SIDE, bool ALONG> struct TilePiece {
    Quad part[ALONG ? SIDE : TILE_DEPTH][(ALONG ? TILE_PARTS : SIDE / 8) + 1];
};

/* Eight numbers on their way to a piece; by single ones where they do not lie at a multiple of 16 bytes. */
Q_FN void piece_fetch(Copies *c, Quad *to, const u16 *from, bool there, bool whole)
{
    if (whole)
        copy_begin(c, to, from, there);
    else
        *to = quad_of(from, there ? 8 : 0);
}

/* What a thread holds of sixteen steps of k, the first or the second ones of a piece. */
template <int SQUARES, int SIDE> Q_FN void piece_left(u32 (*a)[4], const TilePiece<SIDE, true> *x, u32 half)
{
    const u32 lane = threadIdx.x % 32, row = threadIdx.x / 128 * (16 * SQUARES) + lane % 16;
#pragma unroll
    for (u32 i = 0; i < SQUARES; i++)
        warp_load(a[i], &x->part[row + 16 * i][2 * half + lane / 16]);
}

template <int SQUARES, int SIDE> Q_FN void piece_left(u32 (*a)[4], const TilePiece<SIDE, false> *x, u32 half)
{
    const u32 lane = threadIdx.x % 32, k = 16 * half + lane / 16 * 8 + lane % 8;
#pragma unroll
    for (u32 i = 0; i < SQUARES; i++)
        warp_load_turned(a[i], &x->part[k][threadIdx.x / 128 * (2 * SQUARES) + 2 * i + lane / 8 % 2]);
}

template <int SQUARES, int SIDE> Q_FN void piece_right(u32 (*b)[4], const TilePiece<SIDE, true> *y, u32 half)
{
    const u32 lane = threadIdx.x % 32, column = threadIdx.x / 32 % 4 * (8 * SQUARES) + lane / 16 * 8 + lane % 8;
#pragma unroll
    for (u32 j = 0; j < SQUARES / 2; j++)
        warp_load(b[j], &y->part[column + 16 * j][2 * half + lane / 8 % 2]);
}

template <int SQUARES, int SIDE> Q_FN void piece_right(u32 (*b)[4], const TilePiece<SIDE, false> *y, u32 half)
{
    const u32 lane = threadIdx.x % 32;
#pragma unroll
    for (u32 j = 0; j < SQUARES / 2; j++)
        warp_load_turned(b[j], &y->part[16 * half + lane % 16][threadIdx.x / 32 % 4 * SQUARES + 2 * j + lane / 16]);
}

/* Adds the products of two pieces. */
template <class H, int SQUARES, class X, class Y>
Q_FN void pieces_multiply(f32 (*sums)[SQUARES][4], const X *x, const Y *y)
{
    const H *const h = 0;
#pragma unroll
    for (u32 half = 0; half < TILE_DEPTH / 16; half++) {
        u32 a[SQUARES][4], b[SQUARES / 2][4];
        piece_left<SQUARES>(a, x, half);
        piece_right<SQUARES>(b, y, half);
#pragma unroll
        for (u32 i = 0; i < SQUARES; i++)
#pragma unroll
            for (u32 j = 0; j < SQUARES; j++)
                warp_product(sums[i][j], a[i], b[j / 2] + j % 2 * 2, h, h);
    }
}

#endif
