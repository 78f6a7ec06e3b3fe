/* What a level is made of.  The files of this folder are compiled once per level, with LEVEL the level's name.  Where a
 * machine can do more with codes or bf16 alone, a level has products of these of its own and takes all else from level
 * LEVEL_FROM. */
#ifndef OPS_KERNELS_LEVEL_LEVEL_H
#define OPS_KERNELS_LEVEL_LEVEL_H

#include "ir/tensor.h"
#include "ops/kernels/kernels.h"
#include "ops/kernels/quads.h"

/* Between storage types and an arithmetic T: the loads and stores of ops/card/eval.h. */
#define LEVEL_LOAD(T)  void (*load_##T)(T * to, const Tensor *from, int64_t first, int64_t n)
#define LEVEL_STORE(T) void (*store_##T)(Tensor * to, int64_t first, const T *from, int64_t n)

struct Kernels {
    const char *name;
    LEVEL_LOAD(f32);
    LEVEL_LOAD(f64);
    LEVEL_LOAD(i64);
    LEVEL_LOAD(u64);
    LEVEL_STORE(f32);
    LEVEL_STORE(f64);
    LEVEL_STORE(i64);
    LEVEL_STORE(u64);
    void (*round_bf16)(int64_t n, const f32 *from, f32 *to);
    RowLoop *const (*rows)[ARITHMETICS];
    RowLoop *const (*rows_fixed)[FIXED_OPERANDS]; /* of f32 */
    ChainLoop *const *chains;
    const ReduceLoops (*reduce)[ARITHMETICS];
    const PackedLoops *packed;      /* of f32, of f64 */
    const PackedLoops *packed_bf16; /* of no rows where the level has none */
    const PairLoops *pairs_bf16;    /* likewise */
    const QuadLoops *quads;
    const CodeProducts *code_products; /* of bytes, of any codes */
    const CodeProducts (
        *code_tiles)[2]; /* of bytes of rows without a sign and with one, and of columns likewise; or of no rows */
    DrawLoop *draw;
    const LargestLoops *largest;
    const TapLoops *taps;
    const CodeLoops *codes;
    CodeWindowsLoop *code_windows;
    LargestCodesLoop *largest_codes;
    GemmF32 *gemm_f32;
    GemmF64 *gemm_f64;
};

#define LEVEL_JOIN(name, level)  name##_##level
#define LEVEL_PASTE(name, level) LEVEL_JOIN(name, level)
#define LEVEL_NAME(name)         LEVEL_PASTE(name, LEVEL)

/* What the files of one level give each other, and the level itself. */
#define LEVEL_STORAGE(T, level)                                                                                        \
    void load_##T##_##level(T *to, const Tensor *from, int64_t first, int64_t n);                                      \
    void store_##T##_##level(Tensor *to, int64_t first, const T *from, int64_t n);
#define LEVEL_PARTS(level)                                                                                             \
    extern RowLoop *const rows_##level[ROW_COUNT][ARITHMETICS];                                                        \
    extern RowLoop *const rows_fixed_##level[ROW_COUNT][FIXED_OPERANDS];                                               \
    extern ChainLoop *const chains_##level[CHAIN_COUNT];                                                               \
    LEVEL_STORAGE(f32, level)                                                                                          \
    LEVEL_STORAGE(f64, level)                                                                                          \
    LEVEL_STORAGE(i64, level)                                                                                          \
    LEVEL_STORAGE(u64, level)                                                                                          \
    void round_bf16_##level(int64_t n, const f32 *from, f32 *to);                                                      \
    extern const ReduceLoops reduce_##level[REDUCE_KINDS][ARITHMETICS];                                                \
    extern const PackedLoops packed_##level[2];                                                                        \
    LEVEL_PRODUCTS(level)                                                                                              \
    DrawLoop draw_##level;                                                                                             \
    extern const CodeLoops codes_##level;                                                                              \
    CodeWindowsLoop code_windows_##level;                                                                              \
    LargestCodesLoop largest_codes_##level;                                                                            \
    extern const LargestLoops largest_##level;                                                                         \
    extern const TapLoops taps_##level;                                                                                \
    GemmF32 gemm_f32_##level;                                                                                          \
    GemmF64 gemm_f64_##level;
/* All that a level has of its own which is another one but for products of codes and of bf16. */
#define LEVEL_PRODUCTS(level)                                                                                          \
    extern const CodeProducts code_products_##level[2];                                                                \
    extern const CodeProducts code_tiles_##level[2][2];                                                                \
    extern const PackedLoops packed_bf16_##level;                                                                      \
    extern const QuadLoops quads_##level;                                                                              \
    extern const PairLoops pairs_bf16_##level;                                                                         \
    extern const Kernels kernels_##level;
LEVEL_PARTS(base)
#if defined(__x86_64__)
LEVEL_PARTS(v3)
LEVEL_PARTS(v4)
LEVEL_PRODUCTS(v3vnni)
LEVEL_PRODUCTS(v4vnni)
LEVEL_PRODUCTS(v4bf16)
LEVEL_PRODUCTS(v4amx)
#elif defined(__aarch64__)
LEVEL_PRODUCTS(i8mm)
#endif
#undef LEVEL_PRODUCTS
#undef LEVEL_PARTS
#undef LEVEL_STORAGE
#undef LEVEL_LOAD
#undef LEVEL_STORE

/* Nothing is carried from one turn of the next loop to another: out is an operand or apart from all of them. */
#ifdef __clang__
#define LEVEL_VECTOR _Pragma("clang loop vectorize(assume_safety)")
#else
#define LEVEL_VECTOR _Pragma("GCC ivdep")
#endif

#endif
