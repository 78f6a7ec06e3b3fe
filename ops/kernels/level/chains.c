/* Chains of rows as loops. */
#include "ops/kernels/level/level.h"

/* The rows of f32 as functions. */
#define EACH_F(M, ...)     M(__VA_ARGS__)
#define EACH_R(M, ...)     M(__VA_ARGS__)
#define EACH_FI(M, ...)    M(__VA_ARGS__)
#define EACH_FIU(M, ...)   M(__VA_ARGS__)
#define EACH_FIUBS(M, ...) M(__VA_ARGS__)
#define EACH_IU(M, ...)
#define EACH_B(M, ...)
#define OF(id, value)                                                                                                  \
    __attribute__((unused)) static inline f32 id##_of(f32 x, f32 y, f32 z, f32 a, f32 b)                               \
    {                                                                                                                  \
        typedef f32 T;                                                                                                 \
        (void)x, (void)y, (void)z, (void)a, (void)b;                                                                   \
        return (T)(value);                                                                                             \
    }
#define ROW(id, least, n, kinds, value, ...)  EACH_##kinds(OF, id, value)
#define PICK(id, least, n, kinds, value, ...) EACH_##kinds(OF, id, value)
#define FOLD(id, least, n, kinds, value, ...) EACH_##kinds(OF, id, value)
#define TEST(id, least, n, kinds, value, ...) EACH_##kinds(OF, id, value)
#include "ops/rows.def"

#define X px[i]
#define Y py[i]
#define Z pz[i]
#define A number[0]
#define B number[1]
#define C number[2]
#define D number[3]
#define E number[4]

#define ADD(x, y)      add_of(x, y, 0, 0, 0)
#define SUB(x, y)      sub_of(x, y, 0, 0, 0)
#define MUL(x, y)      mul_of(x, y, 0, 0, 0)
#define DIV(x, y)      div_of(x, y, 0, 0, 0)
#define SQRT(x)        sqrt_of(x, 0, 0, 0, 0)
#define EXP(x)         exp_of(x, 0, 0, 0, 0)
#define ERF(x)         erf_of(x, 0, 0, 0, 0)
#define ROUND(x)       round_of(x, 0, 0, 0, 0)
#define CLIP(x, y, z)  clip_of(x, y, z, 0, 0)
#define EQUAL(x, y)    equal_of(x, y, 0, 0, 0)
#define GREATER(x, y)  greater_of(x, y, 0, 0, 0)
#define WHERE(x, y, z) where_of(x, y, z, 0, 0)

#define CHAIN(id, value)                                                                                               \
    static void id##_chain(size_t n, f32 *out, const f32 *const *streams, const f32 *numbers)                          \
    {                                                                                                                  \
        const f32 *const px = streams[0], *const py = streams[1], *const pz = streams[2];                              \
        const f32 number[CHAIN_NUMBERS] = { numbers[0], numbers[1], numbers[2], numbers[3], numbers[4] };              \
        LEVEL_VECTOR                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                                                 \
            out[i] = value;                                                                                            \
        (void)py, (void)pz, (void)number;                                                                              \
    }
#include "ops/kernels/chains.def"
#undef CHAIN

#define CHAIN(id, value) [CHAIN_##id] = id##_chain,
ChainLoop *const LEVEL_NAME(chains)[CHAIN_COUNT] = {
#include "ops/kernels/chains.def"
};
