#include "ops/kernels/kernels.h"

#include <string.h>

#include "ops/kernels/level/level.h"

/* A build for fuzzing, and one for races, has the base level alone. */
#if defined(__x86_64__) && !defined(QCC_BASE_ALONE)
#define HAS_X86_LEVELS
#elif defined(__aarch64__) && !defined(QCC_BASE_ALONE)
#define HAS_ARM_LEVELS
#endif

#if defined(HAS_X86_LEVELS)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt");
}

static bool has_v4(void)
{
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static bool has_v3vnni(void)
{
    enum { EXTENSIONS = 7, AVX_VNNI = 1 << 4 };
    unsigned a, b, c, d;
    return has_v3() && __get_cpuid_count(EXTENSIONS, 1, &a, &b, &c, &d) && (a & AVX_VNNI);
}

static bool has_v4vnni(void)
{
    return has_v4() && __builtin_cpu_supports("avx512vnni");
}

static bool has_v4bf16(void)
{
    return has_v4vnni() && __builtin_cpu_supports("avx512bf16");
}

/* Tiles are there for a process that has asked for them. */
static bool has_v4amx(void)
{
    enum {
        EXTENSIONS = 7,
        AMX_BF16 = 1 << 22,
        AMX_TILE = 1 << 24,
        AMX_INT8 = 1 << 25,
        ALL = AMX_BF16 | AMX_TILE | AMX_INT8
    };
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM */
    unsigned a, b, c, d;
    if (!has_v4bf16() || !__get_cpuid_count(EXTENSIONS, 0, &a, &b, &c, &d) || (d & ALL) != ALL)
        return false;
#ifdef SYS_arch_prctl
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
    return false;
#endif
}

/* Intel's processors issue a product of AVX512-BF16 every other cycle, and two fused multiply-adds of f32 in each: operands that
 * are widened are multiplied twice as fast there.  They have tiles for bf16; where a machine hides these, codes are all that a
 * level is for. */
static bool gains_by_v4bf16(void)
{
    return has_v4bf16() && !__builtin_cpu_is("intel");
}

#elif defined(HAS_ARM_LEVELS)
#include <sys/auxv.h>

static bool has_i8mm(void)
{
    enum { I8MM = 1 << 13 }; /* HWCAP2_I8MM */
    return getauxval(AT_HWCAP2) & I8MM;
}
#endif

static bool is_always_there(void)
{
    return true;
}

static const struct {
    bool (*is_there)(void), (*gains)(void);
    const Kernels *kernels;
} by_speed[] = {
#if defined(HAS_X86_LEVELS)
    { has_v4amx, has_v4amx, &kernels_v4amx },
    { has_v4bf16, gains_by_v4bf16, &kernels_v4bf16 },
    { has_v4vnni, has_v4vnni, &kernels_v4vnni },
    { has_v4, has_v4, &kernels_v4 },
    { has_v3vnni, has_v3vnni, &kernels_v3vnni },
    { has_v3, has_v3, &kernels_v3 },
#elif defined(HAS_ARM_LEVELS)
    { has_i8mm, has_i8mm, &kernels_i8mm },
#endif
    { is_always_there, is_always_there, &kernels_base },
};

#if defined(HAS_X86_LEVELS)
const char *const kernels_levels[] = { "base", "v3", "v3vnni", "v4", "v4vnni", "v4bf16", "v4amx", NULL };
#elif defined(HAS_ARM_LEVELS)
const char *const kernels_levels[] = { "base", "i8mm", NULL };
#else
const char *const kernels_levels[] = { "base", NULL };
#endif

const Kernels *kernels_best(void)
{
    size_t i = 0;
    while (!by_speed[i].gains())
        i++;
    return by_speed[i].kernels;
}

const Kernels *kernels_named(const char *name)
{
    for (size_t i = 0; i < COUNT(by_speed); i++)
        if (strcmp(name, by_speed[i].kernels->name) == 0)
            return by_speed[i].is_there() ? by_speed[i].kernels : NULL;
    return NULL;
}

const char *kernels_name(const Kernels *k)
{
    return k->name;
}

RowLoop *kernels_row(const Kernels *level, int row, Arithmetic arithmetic)
{
    return level->rows[row][arithmetic];
}

RowLoop *kernels_row_fixed(const Kernels *level, int row, Arithmetic arithmetic, int operand)
{
    return arithmetic == ARITH_F32 ? level->rows_fixed[row][operand] : NULL;
}

const ReduceLoops *kernels_reduce(const Kernels *level, ReduceKind kind, Arithmetic arithmetic)
{
    return &level->reduce[kind][arithmetic];
}

DrawLoop *kernels_draw(const Kernels *level)
{
    return level->draw;
}

const LargestLoops *kernels_largest(const Kernels *level)
{
    return level->largest;
}

const TapLoops *kernels_taps(const Kernels *level)
{
    return level->taps;
}

CodeWindowsLoop *kernels_code_windows(const Kernels *level)
{
    return level->code_windows;
}

LargestCodesLoop *kernels_largest_codes(const Kernels *level)
{
    return level->largest_codes;
}

ChainLoop *kernels_chain(const Kernels *level, int chain)
{
    return level->chains[chain];
}

const CodeLoops *kernels_codes(const Kernels *level)
{
    return level->codes;
}

void kernels_gemm_f32(const Kernels *level, size_t m, size_t n, size_t k, const f32 *a, size_t lda, const f32 *b,
                      size_t ldb, f32 *c, size_t ldc)
{
    level->gemm_f32(m, n, k, a, lda, b, ldb, c, ldc);
}

void kernels_gemm_f64(const Kernels *level, size_t m, size_t n, size_t k, const f64 *a, size_t lda, const f64 *b,
                      size_t ldb, f64 *c, size_t ldc)
{
    level->gemm_f64(m, n, k, a, lda, b, ldb, c, ldc);
}

const CodeProducts *kernels_code_products(const Kernels *level, CodeType rows, CodeType columns)
{
    if (rows >= CODE_U16 || columns >= CODE_U16)
        return level->code_products + 1;
    const CodeProducts *tiles = &level->code_tiles[rows == CODE_I8][columns == CODE_I8];
    return tiles->rows ? tiles : level->code_products;
}

size_t code_words(const CodeProducts *l, size_t k)
{
    const size_t filled = l->depth * l->whole;
    return (k + filled - 1) / filled * l->whole;
}

const PackedLoops *kernels_packed(const Kernels *level, Arithmetic arithmetic)
{
    return &level->packed[arithmetic == ARITH_F64];
}

const PackedLoops *kernels_packed_bf16(const Kernels *level)
{
    return level->packed_bf16->rows ? level->packed_bf16 : NULL;
}

const QuadLoops *kernels_quads(const Kernels *level)
{
    return level->quads;
}

const PairLoops *kernels_pairs_bf16(const Kernels *level)
{
    return level->pairs_bf16->rows ? level->pairs_bf16 : NULL;
}

/* The best level with loads and stores of its own.  It is asked for with every call: cpuid and the system call that asks for tiles
 * take microseconds where a machine is virtual. */
static const Kernels *with_storage(void)
{
#if defined(HAS_X86_LEVELS)
    if (has_v3())
        return has_v4() ? &kernels_v4 : &kernels_v3;
#endif
    return &kernels_base;
}

#define STORAGE(T)                                                                                                     \
    void load_##T(T *to, const Tensor *from, int64_t first, int64_t n)                                                 \
    {                                                                                                                  \
        with_storage()->load_##T(to, from, first, n);                                                                  \
    }                                                                                                                  \
    void store_##T(Tensor *to, int64_t first, const T *from, int64_t n)                                                \
    {                                                                                                                  \
        with_storage()->store_##T(to, first, from, n);                                                                 \
    }                                                                                                                  \
    void kernels_load_##T(const Kernels *level, T *to, const Tensor *from, int64_t first, int64_t n)                   \
    {                                                                                                                  \
        level->load_##T(to, from, first, n);                                                                           \
    }                                                                                                                  \
    void kernels_store_##T(const Kernels *level, Tensor *to, int64_t first, const T *from, int64_t n)                  \
    {                                                                                                                  \
        level->store_##T(to, first, from, n);                                                                          \
    }
STORAGE(f32)
STORAGE(f64)
STORAGE(i64)
STORAGE(u64)
#undef STORAGE

void kernels_round_bf16(const Kernels *level, int64_t n, const f32 *from, f32 *to)
{
    level->round_bf16(n, from, to);
}

void kernels_load(const Kernels *level, Arithmetic a, void *to, const Tensor *from, int64_t first, int64_t n)
{
    switch (a) {
    case ARITH_F32:
        level->load_f32(to, from, first, n);
        break;
    case ARITH_F64:
        level->load_f64(to, from, first, n);
        break;
    case ARITH_I64:
        level->load_i64(to, from, first, n);
        break;
    case ARITH_U64:
        level->load_u64(to, from, first, n);
        break;
    }
}

void kernels_store(const Kernels *level, Arithmetic a, Tensor *to, int64_t first, const void *from, int64_t n)
{
    switch (a) {
    case ARITH_F32:
        level->store_f32(to, first, from, n);
        break;
    case ARITH_F64:
        level->store_f64(to, first, from, n);
        break;
    case ARITH_I64:
        level->store_i64(to, first, from, n);
        break;
    case ARITH_U64:
        level->store_u64(to, first, from, n);
        break;
    }
}
