/* The kernels of every level the machine has give the bits of the plain loop. */
#include "ops/card/row.h"
#include "testing.h"

enum { MOST = 40000 };

#define GEMM_CASE(T, FMA, DRAW)                                                                                        \
    static int gemm_##T(const Kernels *level, Rng *rng, T *a, T *b, T *c, T *want)                                     \
    {                                                                                                                  \
        static const size_t edges[] = { 0, 1, 2, 3, 4, 11, 12, 13, 16, 17, 33, 49, 64, 130 };                          \
        const size_t m = edges[rng_below(rng, COUNT(edges))], n = edges[rng_below(rng, COUNT(edges))];                 \
        const size_t k = (size_t)rng_below(rng, 4) == 0 ? 257 : edges[rng_below(rng, COUNT(edges))];                   \
        const size_t lda = k + (size_t)rng_below(rng, 3), ldb = n + (size_t)rng_below(rng, 3), ldc = n + 1;            \
        for (size_t i = 0; i < m * lda; i++)                                                                           \
            a[i] = (T)(DRAW);                                                                                          \
        for (size_t i = 0; i < k * ldb; i++)                                                                           \
            b[i] = (T)(DRAW);                                                                                          \
        for (size_t i = 0; i < m * ldc; i++)                                                                           \
            c[i] = want[i] = (T)(DRAW);                                                                                \
        for (size_t i = 0; i < m; i++)                                                                                 \
            for (size_t p = 0; p < k; p++)                                                                             \
                for (size_t j = 0; j < n; j++)                                                                         \
                    want[i * ldc + j] = FMA(a[i * lda + p], b[p * ldb + j], want[i * ldc + j]);                        \
        kernels_gemm_##T(level, m, n, k, a, lda, b, ldb, c, ldc);                                                      \
        return memcmp(c, want, m * ldc * sizeof *c) != 0;                                                              \
    }
#define WRAPPING(x, y, z) ((i32)((u32)(x) * (u32)(y) + (u32)(z)))
GEMM_CASE(f32, fma_f32, rng_unit(rng) - 0.5)
GEMM_CASE(f64, fma_f64, rng_unit(rng) - 0.5)
GEMM_CASE(i32, WRAPPING, (i32)rng_u64(rng) >> rng_below(rng, 31))

static const char *const levels[] = { "base", "v3", "v4" };

static Status products(void *arg)
{
    Context *k = arg;
    int bad = 0, cases = 0;
    void *room[4];
    for (int i = 0; i < 4; i++)
        room[i] = arena_alloc(&k->arena, MOST * sizeof(f64));
    for (size_t l = 0; l < COUNT(levels); l++) {
        const Kernels *level = kernels_named(levels[l]);
        Rng rng = { 11 };
        for (int i = 0; level && i < 60; i++, cases += 3)
            bad += gemm_f32(level, &rng, room[0], room[1], room[2], room[3]) +
                   gemm_f64(level, &rng, room[0], room[1], room[2], room[3]) +
                   gemm_i32(level, &rng, room[0], room[1], room[2], room[3]);
    }
    print_message("%d products\n", cases);
    assert_true(cases > 0);
    return bad ? INVALID : OK;
}

static void products_agree(void **state)
{
    (void)state;
    with_context(products);
}

/* Every row has a loop in exactly the arithmetics its kinds name, at every level. */
static void rows_are_there(void **state)
{
    (void)state;
    for (size_t l = 0; l < COUNT(levels); l++) {
        const Kernels *level = kernels_named(levels[l]);
        for (size_t i = 0; level && i < ops_table.n; i++) {
            const Row *row = ops_table.defs[i]->row;
            if (!row)
                continue;
            const bool wanted[ARITHMETICS] = { [ARITH_F32] = row->kinds & ROW_F,
                                               [ARITH_F64] = row->kinds & ROW_F,
                                               [ARITH_I64] = row->kinds & (ROW_I | ROW_B),
                                               [ARITH_U64] = row->kinds & ROW_U };
            for (int a = 0; a < ARITHMETICS; a++)
                assert_int_equal(kernels_row(level, row->number, (Arithmetic)a) != NULL, wanted[a]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(products_agree), cmocka_unit_test(rows_are_there) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
