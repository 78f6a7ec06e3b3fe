/* The rows as loops. */
#include "ops/kernels/level/level.h"

#define EACH_F(M, ...)     M(f32, __VA_ARGS__) M(f64, __VA_ARGS__)
#define EACH_R(M, ...)     EACH_F(M, __VA_ARGS__)
#define EACH_FI(M, ...)    EACH_F(M, __VA_ARGS__) M(i64, __VA_ARGS__)
#define EACH_FIU(M, ...)   EACH_FI(M, __VA_ARGS__) M(u64, __VA_ARGS__)
#define EACH_FIUBS(M, ...) EACH_FIU(M, __VA_ARGS__)
#define EACH_IU(M, ...)    M(i64, __VA_ARGS__) M(u64, __VA_ARGS__)
#define EACH_B(M, ...)     M(i64, __VA_ARGS__)

#define READ_1 const T x = px[i];
#define READ_2 READ_1 const T y = py[i];
#define READ_3 READ_2 const T z = pz[i];

/* Rows of two formulas, between which their first attribute chooses: a loop for each, or both would be computed. */
#define CHOOSES_gelu               ~, 1
#define CHOOSES_mod                ~, 1
#define CHOOSES_bit_shift          ~, 1
#define SECOND(first, second, ...) second
#define CHOOSES_OF(...)            SECOND(__VA_ARGS__, 0, 0)
#define CHOOSES(id)                CHOOSES_OF(CHOOSES_##id)

#define LOOP(T0, id, n, value)                                                                                         \
    static inline __attribute__((always_inline)) void id##_each_##T0(size_t count, T0 *o, const T0 *px, const T0 *py,  \
                                                                     const T0 *pz, const T0 a, const T0 b)             \
    {                                                                                                                  \
        typedef T0 T;                                                                                                  \
        LEVEL_VECTOR                                                                                                   \
        for (size_t i = 0; i < count; i++) {                                                                           \
            READ_##n o[i] = (T)(value);                                                                                \
        }                                                                                                              \
        (void)py, (void)pz, (void)a, (void)b;                                                                          \
    }                                                                                                                  \
    static void id##_loop_##T0(size_t count, void *out, const void *x, const void *y, const void *z, const double *k)  \
    {                                                                                                                  \
        if (CHOOSES(id) && k[0] == 0)                                                                                  \
            id##_each_##T0(count, out, x, y, z, 0, (T0)k[1]);                                                          \
        else                                                                                                           \
            id##_each_##T0(count, out, x, y, z, CHOOSES(id) ? 1 : (T0)k[0], (T0)k[1]);                                 \
    }
#define ROW(id, least, n, kinds, value, ...)  EACH_##kinds(LOOP, id, n, value)
#define PICK(id, least, n, kinds, value, ...) EACH_##kinds(LOOP, id, n, value)
#define FOLD(id, least, n, kinds, value, ...) EACH_##kinds(LOOP, id, n, value)
#define TEST(id, least, n, kinds, value, ...) EACH_##kinds(LOOP, id, n, value)
#include "ops/rows.def"

/* The same of f32 where one operand is one number, which stays in a register. */
#define FIXED(id, operand, hold, read, value)                                                                          \
    static void id##_fixed_##operand(size_t count, void *out, const void *vx, const void *vy, const void *vz,          \
                                     const double *k)                                                                  \
    {                                                                                                                  \
        typedef f32 T;                                                                                                 \
        T *const o = out;                                                                                              \
        const T *const px = vx, *const py = vy, *const pz = vz, a = (T)k[0], b = (T)k[1];                              \
        hold LEVEL_VECTOR for (size_t i = 0; i < count; i++)                                                           \
        {                                                                                                              \
            read o[i] = (T)(value);                                                                                    \
        }                                                                                                              \
        (void)px, (void)py, (void)pz, (void)a, (void)b;                                                                \
    }
#define HOLD(x) const T x = *p##x;
#define TAKE(x) const T x = p##x[i];
#define FIXED_1(id, value)
#define FIXED_2(id, value) FIXED(id, x, HOLD(x), TAKE(y), value) FIXED(id, y, HOLD(y), TAKE(x), value)
#define FIXED_3(id, value)                                                                                             \
    FIXED(id, x, HOLD(x), TAKE(y) TAKE(z), value)                                                                      \
    FIXED(id, y, HOLD(y), TAKE(x) TAKE(z), value) FIXED(id, z, HOLD(z), TAKE(x) TAKE(y), value)
#define FIXED_f32(id, n, value) FIXED_##n(id, value)
#define FIXED_f64(id, n, value)
#define FIXED_i64(id, n, value)
#define FIXED_u64(id, n, value)
#define FIXED_OF(T0, id, n, value)            FIXED_##T0(id, n, value)
#define ROW(id, least, n, kinds, value, ...)  EACH_##kinds(FIXED_OF, id, n, value)
#define PICK(id, least, n, kinds, value, ...) EACH_##kinds(FIXED_OF, id, n, value)
#define FOLD(id, least, n, kinds, value, ...) EACH_##kinds(FIXED_OF, id, n, value)
#define TEST(id, least, n, kinds, value, ...) EACH_##kinds(FIXED_OF, id, n, value)
#include "ops/rows.def"

#define AT_f32                         ARITH_F32
#define AT_f64                         ARITH_F64
#define AT_i64                         ARITH_I64
#define AT_u64                         ARITH_U64
#define ENTRY(T0, id)                  [AT_##T0] = id##_loop_##T0,
#define ENTRIES(id, kinds)             [ROW_##id] = { EACH_##kinds(ENTRY, id) },
#define ROW(id, least, n, kinds, ...)  ENTRIES(id, kinds)
#define PICK(id, least, n, kinds, ...) ENTRIES(id, kinds)
#define FOLD(id, least, n, kinds, ...) ENTRIES(id, kinds)
#define TEST(id, least, n, kinds, ...) ENTRIES(id, kinds)
RowLoop *const LEVEL_NAME(rows)[ROW_COUNT][ARITHMETICS] = {
#include "ops/rows.def"
};

#define HELD(id, operand, number) [ROW_##id][number] = id##_fixed_##operand,
#define HELD_1(id)
#define HELD_2(id)      HELD(id, x, 0) HELD(id, y, 1)
#define HELD_3(id)      HELD_2(id) HELD(id, z, 2)
#define HELD_f32(id, n) HELD_##n(id)
#define HELD_f64(id, n)
#define HELD_i64(id, n)
#define HELD_u64(id, n)
#define HELD_OF(T0, id, n)             HELD_##T0(id, n)
#define ROW(id, least, n, kinds, ...)  EACH_##kinds(HELD_OF, id, n)
#define PICK(id, least, n, kinds, ...) EACH_##kinds(HELD_OF, id, n)
#define FOLD(id, least, n, kinds, ...) EACH_##kinds(HELD_OF, id, n)
#define TEST(id, least, n, kinds, ...) EACH_##kinds(HELD_OF, id, n)
RowLoop *const LEVEL_NAME(rows_fixed)[ROW_COUNT][FIXED_OPERANDS] = {
#include "ops/rows.def"
};
