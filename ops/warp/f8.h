/* Products of floats of eight bits by tensor cores: pieces of two matrices in the memory that a block shares, 64 steps of k of each,
 * four to a word, as codes of integers lie (ops/warp.h).
 *
 *     warp_product(c, a, b, x, y)     c += a b, of types that x and y point to, F8e4m3 or F8e5m2; all threads of a warp call it
 *     floats_multiply<X, Y>(..)       adds the products of two pieces to the sums of a block
 *
 * The instruction, from sm_89 on, keeps fewer bits of a sum than f32 has: so what it adds up of a piece leaves it behind the piece, and
 * is added to the sum in f32 (sum_apart, sum_joined; docs/arithmetic.md has the bound).  Without the instruction there is nothing to
 * leave: products are added one by one, as everywhere else. */
#ifndef QCC_OPS_WARP_F8_H
#define QCC_OPS_WARP_F8_H

typedef struct F8e4m3 {
    u8 bits;
} F8e4m3;

typedef struct F8e5m2 {
    u8 bits;
} F8e5m2;

Q_FN f32 f8_number(u32 code, const F8e4m3 *)
{
    return f8e4m3fn_to_f32((u8)code);
}

Q_FN f32 f8_number(u32 code, const F8e5m2 *)
{
    return f8e5m2_to_f32((u8)code);
}

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 890
#define WARP_FLOATS(A, B, a_ptx, b_ptx)                                                                                \
    Q_FN void warp_product(f32 *c, const u32 *a, const u32 *b, const A *, const B *)                                   \
    {                                                                                                                  \
        WARP_MMA("f", "m16n8k32.row.col.f32." a_ptx "." b_ptx ".f32");                                                 \
    }
WARP_FLOATS(F8e4m3, F8e4m3, "e4m3", "e4m3")
WARP_FLOATS(F8e4m3, F8e5m2, "e4m3", "e5m2")
WARP_FLOATS(F8e5m2, F8e4m3, "e5m2", "e4m3")
WARP_FLOATS(F8e5m2, F8e5m2, "e5m2", "e5m2")
#undef WARP_FLOATS

Q_FN f32 sum_apart(f32)
{
    return 0;
}

Q_FN f32 sum_joined(f32 sum, f32 part)
{
    return sum + part;
}
#else
template <class A, class B> Q_FN f32 warp_four(u32 a, u32 b, f32 sum, const A *x, const B *y)
{
    for (u32 i = 0; i < 32; i += 8)
        sum = fma_f32(f8_number(a >> i & 0xffu, x), f8_number(b >> i & 0xffu, y), sum);
    return sum;
}

#define WARP_FLOATS(A, B)                                                                                              \
    Q_FN void warp_product(f32 *c, const u32 *a, const u32 *b, const A *x, const B *y)                                 \
    {                                                                                                                  \
        const u32 lane = threadIdx.x % 32, row = lane / 4 * 4, column = lane % 4 * 8;                                  \
        for (u32 k = 0; k < 8; k++) {                                                                                  \
            const u32 half = k / 4, place = k % 4;                                                                     \
            const u64 rows = __shfl_sync(WARP_ALL, a[2 * half] | (u64)a[2 * half + 1] << 32, row + place);             \
            const u32 first = __shfl_sync(WARP_ALL, b[half], column + place);                                          \
            const u32 second = __shfl_sync(WARP_ALL, b[half], column + 4 + place);                                     \
            c[0] = warp_four((u32)rows, first, c[0], x, y);                                                            \
            c[1] = warp_four((u32)rows, second, c[1], x, y);                                                           \
            c[2] = warp_four((u32)(rows >> 32), first, c[2], x, y);                                                    \
            c[3] = warp_four((u32)(rows >> 32), second, c[3], x, y);                                                   \
        }                                                                                                              \
    }
WARP_FLOATS(F8e4m3, F8e4m3)
WARP_FLOATS(F8e4m3, F8e5m2)
WARP_FLOATS(F8e5m2, F8e4m3)
WARP_FLOATS(F8e5m2, F8e5m2)
#undef WARP_FLOATS

Q_FN f32 sum_apart(f32 sum)
{
    return sum;
}

Q_FN f32 sum_joined(f32, f32 part)
{
    return part;
}
#endif

/* Sixteen codes on their way to a piece; by single ones where they do not lie at a multiple of 16 bytes. */
Q_FN void piece_fetch(Copies *c, Quad *to, const u8 *from, bool there, bool whole)
{
    if (whole) {
        copy_begin(c, to, from, there);
        return;
    }
    Quad q;
#pragma unroll
    for (u32 i = 0; i < 16; i++)
        q.w[i / 4] = (i % 4 ? q.w[i / 4] : 0) | (there ? (u32)from[i] : 0) << 8 * (i % 4);
    *to = q;
}

/* Four codes, zeros where they are not there; by single ones where words do not lie at multiples of four bytes. */
Q_FN u32 codes_four(const u8 *from, bool there, bool whole)
{
    u32 word = 0;
    if (there && whole)
        return *(const u32 *)from;
#pragma unroll
    for (u32 i = 0; i < 4; i++)
        word |= (there ? (u32)from[i] : 0) << 8 * i;
    return word;
}

/* The products of two pieces: of each square, so that few sums wait at a time. */
template <class A, class B, int SQUARES, int SIDE>
Q_FN void floats_multiply(f32 (*sums)[SQUARES][4], const TilePiece<SIDE, true> *xs, const TilePiece<SIDE, true> *ys)
{
    const A *const x = 0;
    const B *const y = 0;
    u32 a[2][SQUARES][4], b[2][SQUARES / 2][4];
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        piece_left<SQUARES>(a[half], xs, half);
        piece_right<SQUARES>(b[half], ys, half);
    }
#pragma unroll
    for (u32 i = 0; i < SQUARES; i++)
#pragma unroll
        for (u32 j = 0; j < SQUARES; j++) {
            f32 part[4];
#pragma unroll
            for (u32 s = 0; s < 4; s++)
                part[s] = sum_apart(sums[i][j][s]);
#pragma unroll
            for (u32 half = 0; half < 2; half++)
                warp_product(part, a[half][i], b[half][j / 2] + j % 2 * 2, x, y);
#pragma unroll
            for (u32 s = 0; s < 4; s++)
                sums[i][j][s] = sum_joined(sums[i][j][s], part[s]);
        }
}

#endif
