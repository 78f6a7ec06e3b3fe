/* The kernels of every level the machine has give the bits of the plain loop. */
#include <math.h>

#include "ops/card/row.h"
#include "ops/kernels/panel.h"
#include "ops/reduce.h"
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
GEMM_CASE(f32, fma_f32, rng_unit(rng) - 0.5)
GEMM_CASE(f64, fma_f64, rng_unit(rng) - 0.5)

/* A lane's code in step k, whatever the type and the steps in memory. */
static i32 code_at(const CodeLanes *c, const void *codes, size_t lane, size_t k)
{
    const size_t i = lane * c->lane + k * c->step;
    return c->type == CODE_U8    ? ((const uint8_t *)codes)[i]
           : c->type == CODE_I8  ? ((const int8_t *)codes)[i]
           : c->type == CODE_U16 ? ((const uint16_t *)codes)[i]
                                 : ((const int16_t *)codes)[i];
}

/* Lanes of any codes, beside each other or each after the other, with room between them. */
static CodeLanes draw_lanes(Rng *rng, CodeType type, size_t lanes, size_t k)
{
    CodeLanes c = { .type = type, .lanes = lanes, .k = k, .lane = 1, .step = lanes + (size_t)rng_below(rng, 3) };
    if (rng_below(rng, 3) == 0)
        c.lane = k * 2 + 1, c.step = 1 + (size_t)rng_below(rng, 2);
    return c;
}

/* Products of packed codes and the sums of packed lanes, both modulo 2^32, sums of several blocks of words continued. */
static int codes_case(const Kernels *level, Rng *rng, Arena *arena)
{
    static const size_t lanes[] = { 1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 15, 16, 17, 31, 32, 33, 50, 65 };
    static const size_t depths[] = { 0, 1, 2, 3, 4, 5, 7, 64, 257, 600 };
    const size_t m = lanes[rng_below(rng, COUNT(lanes))], n = lanes[rng_below(rng, COUNT(lanes))];
    const size_t k = depths[rng_below(rng, COUNT(depths))];
    const CodeType ta = (CodeType)rng_below(rng, CODE_TYPES), tb = (CodeType)rng_below(rng, CODE_TYPES);
    const CodeProducts *l = kernels_code_products(level, ta, tb);
    const ArenaMark mark = arena_mark(arena);
    const CodeLanes ca = draw_lanes(rng, ta, m, k), cb = draw_lanes(rng, tb, n, k);
    const size_t sa = m * ca.lane + k * ca.step + 1, sb = n * cb.lane + k * cb.step + 1;
    u16 *a = NEWS(arena, u16, sa), *b = NEWS(arena, u16, sb);
    for (size_t i = 0; i < sa; i++)
        a[i] = (u16)(rng_below(rng, 9) ? rng_u64(rng) : 0x8080);
    for (size_t i = 0; i < sb; i++)
        b[i] = (u16)(rng_below(rng, 9) ? rng_u64(rng) : 0x8080);
    const size_t words = code_words(l, k), tiles = (m + l->rows - 1) / l->rows;
    const size_t panels = (n + l->width - 1) / l->width, ldc = panels * l->width,
                 half = words / 2 / l->whole * l->whole;
    u32 *pa = NEWS(arena, u32, tiles * words * l->rows + 1), *pb = NEWS(arena, u32, panels * words * l->width + 1);
    i32 *sum_a = NEWS(arena, i32, m), *sum_b = NEWS(arena, i32, n), *c = NEWS(arena, i32, m * ldc);
    u32 *zeros = NEWS(arena, u32, n);
    l->pack_rows(&ca, a, pa, words * l->rows, sum_a);
    l->pack_columns(&cb, b, pb, words * l->width, sum_b);
    memset(c, 0x55, m * ldc * sizeof *c);
    l->multiply(m, panels, half, pa, words * l->rows, pb, words * l->width, c, ldc, true);
    l->multiply(m, panels, words - half, pa + half * l->rows, words * l->rows, pb + half * l->width, words * l->width,
                c, ldc, false);
    const i32 za = l->row_shift[ta], zb = l->column_shift[tb];
    int bad = 0;
    for (size_t j = 0; j < n; j++)
        zeros[j] = (u32)zb;
    for (size_t i = 0; i < m; i++) {
        l->correct(n, (u32)k * (u32)za - (u32)sum_a[i], zeros, 0u - (u32)za, sum_b, c + i * ldc);
        for (size_t j = 0; j < n; j++) {
            u32 want = 0;
            for (size_t p = 0; p < k; p++)
                want += (u32)code_at(&ca, a, i, p) * (u32)code_at(&cb, b, j, p);
            bad += want != (u32)c[i * ldc + j];
        }
    }
    arena_reset(arena, mark);
    return bad != 0;
}

/* The plain product in the order of contractions: segments of 2048, joined like the digits of a binary counter. */
#define PANEL_CASE(T)                                                                                                  \
    static T joined_##T(const T *sums, size_t n)                                                                       \
    {                                                                                                                  \
        T digit[8];                                                                                                    \
        T sum = sums[0];                                                                                               \
        for (size_t s = 0; s < n; s++) {                                                                               \
            size_t k = 0;                                                                                              \
            sum = sums[s];                                                                                             \
            for (; s + 1 == n ? s >> k != 0 : (s >> k & 1) != 0; k++)                                                  \
                sum = s >> k & 1 ? digit[k] + sum : sum;                                                               \
            digit[k] = sum;                                                                                            \
        }                                                                                                              \
        return sum;                                                                                                    \
    }                                                                                                                  \
    static T element_##T(const Panel *p, const T *a, const T *b, size_t i, size_t j)                                   \
    {                                                                                                                  \
        T sums[8] = { 0 };                                                                                             \
        for (size_t k = 0; k < p->k; k++)                                                                              \
            sums[k / PANEL_SEGMENT] =                                                                                  \
                fma_##T(a[i * p->lda + k * p->a_step], b[k * p->ldb + j * p->b_step], sums[k / PANEL_SEGMENT]);        \
        return joined_##T(sums, p->k / PANEL_SEGMENT + 1 - (p->k && p->k % PANEL_SEGMENT == 0));                       \
    }                                                                                                                  \
    static int panel_case_##T(const Kernels *level, Rng *rng, Arena *arena)                                            \
    {                                                                                                                  \
        static const size_t sizes[] = { 1, 2, 3, 5, 12, 13, 25, 31, 32, 33, 50, 65, 243 };                             \
        static const size_t depths[] = { 0, 1, 7, 255, 256, 300, 2048, 2049, 4097, 6200 };                             \
        Panel p = { .m = sizes[rng_below(rng, COUNT(sizes))],                                                          \
                    .n = rng_below(rng, 12) ? sizes[rng_below(rng, COUNT(sizes))] : 530,                               \
                    .k = depths[rng_below(rng, COUNT(depths))] };                                                      \
        p.k = p.m * p.n > 4000 && p.k > 300 ? 300 : p.k;                                                               \
        const bool ta = rng_below(rng, 2), tb = rng_below(rng, 2), packed = rng_below(rng, 3) == 0;                    \
        p.lda = ta ? 1 : p.k + 1, p.a_step = ta ? p.m + 2 : 1;                                                         \
        p.ldb = tb ? 1 : p.n + 1, p.b_step = tb ? p.k + 3 : 1;                                                         \
        p.ldc = p.n + 1;                                                                                               \
        const ArenaMark mark = arena_mark(arena);                                                                      \
        T *a = NEWS(arena, T, (p.m + 2) * (p.k + 1)), *b = NEWS(arena, T, (p.k + 3) * (p.n + 1));                      \
        T *c = NEWS(arena, T, p.m * p.ldc);                                                                            \
        for (size_t i = 0; i < (p.m + 2) * (p.k + 1); i++)                                                             \
            a[i] = (T)(rng_unit(rng) - 0.5);                                                                           \
        for (size_t i = 0; i < (p.k + 3) * (p.n + 1); i++)                                                             \
            b[i] = (T)(rng_unit(rng) - 0.5);                                                                           \
        Panel given = p;                                                                                               \
        const T *left = a;                                                                                             \
        const PackedLoops *l = kernels_packed(level, sizeof(T) == sizeof(f64) ? ARITH_F64 : ARITH_F32);                \
        if (packed) {                                                                                                  \
            T *tiles = NEWS(arena, T, (p.m + l->rows) * (p.k + 1));                                                    \
            given = (Panel){ .m = p.m, .n = p.n, .k = p.k, .ldb = p.ldb, .b_step = p.b_step, .ldc = p.ldc };           \
            given.packed = true;                                                                                       \
            given.lda = p.k * l->rows;                                                                                 \
            l->pack_rows(p.m, p.k, a, p.lda, p.a_step, tiles, given.lda);                                              \
            left = tiles;                                                                                              \
        }                                                                                                              \
        const T *right = b;                                                                                            \
        if (rng_below(rng, 3) == 0) {                                                                                  \
            T *panels = NEWS(arena, T, panel_packed(&given) + 1);                                                      \
            panel_pack_##T(level, &given, b, panels);                                                                  \
            right = panels;                                                                                            \
        }                                                                                                              \
        panel_##T(level, &given, left, right, c, NEWS(arena, T, panel_room(&given) + 1));                              \
        int bad = 0;                                                                                                   \
        for (size_t i = 0; i < p.m; i++)                                                                               \
            for (size_t j = 0; j < p.n; j++) {                                                                         \
                const T want = element_##T(&p, a, b, i, j);                                                            \
                bad += memcmp(&want, &c[i * p.ldc + j], sizeof want) != 0;                                             \
            }                                                                                                          \
        for (size_t i = 0; i < p.m; i++)                                                                               \
            bad += c[i * p.ldc + p.n] != 0;                                                                            \
        arena_reset(arena, mark);                                                                                      \
        return bad != 0;                                                                                               \
    }
PANEL_CASE(f32)
PANEL_CASE(f64)

static Status products(void *arg)
{
    Context *k = arg;
    int bad = 0, cases = 0;
    void *room[4];
    for (int i = 0; i < 4; i++)
        room[i] = arena_alloc(&k->arena, MOST * sizeof(f64));
    for (size_t l = 0; kernels_levels[l]; l++) {
        const Kernels *level = kernels_named(kernels_levels[l]);
        Rng rng = { 11 };
        for (int i = 0; level && i < 60; i++, cases += 2)
            bad += gemm_f32(level, &rng, room[0], room[1], room[2], room[3]) +
                   gemm_f64(level, &rng, room[0], room[1], room[2], room[3]);
        for (int i = 0; level && i < 300; i++, cases++)
            bad += codes_case(level, &rng, &k->arena);
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

static Status panels(void *arg)
{
    Context *k = arg;
    int bad = 0, cases = 0;
    for (size_t l = 0; kernels_levels[l]; l++) {
        const Kernels *level = kernels_named(kernels_levels[l]);
        Rng rng = { 23 };
        for (int i = 0; level && i < (l ? 150 : 40); i++, cases += 2)
            bad += panel_case_f32(level, &rng, &k->arena) + panel_case_f64(level, &rng, &k->arena);
    }
    print_message("%d panels\n", cases);
    assert_true(cases > 0);
    return bad ? INVALID : OK;
}

/* Whatever the strides, packed or not, over several segments. */
static void panels_agree(void **state)
{
    (void)state;
    with_context(panels);
}

/* Every row has a loop in exactly the arithmetics its kinds name, at every level. */
static void rows_are_there(void **state)
{
    (void)state;
    for (size_t l = 0; kernels_levels[l]; l++) {
        const Kernels *level = kernels_named(kernels_levels[l]);
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

/* Of one element as base/philox.h says. */
static f32 drawn(const DrawKey *k, PhiloxLaw law, f32 limit, u64 index)
{
    const f32 u = philox_uniform(philox_at(k->seed, k->stream, index, k->step, k->iteration, PHILOX_VALUE));
    return law == PHILOX_NORMAL    ? normal_at(k->seed, k->stream, index, k->step, k->iteration)
           : law == PHILOX_UNIFORM ? u
                                   : (f32)(u >= limit);
}

/* From any index on, as many as there are; the upper half of a seed and of an index count. */
static void draws_agree(void **state)
{
    static const u64 firsts[] = { 0, 1, 2, 3, 255, 1021, 0x3fffffffd, 0x3fffffffffe };
    static const size_t counts[] = { 0, 1, 2, 5, 255, 256, 257, 700 };
    static const DrawKey keys[] = { { 0, 0, 0, 0 }, { 7, 3, 1, 0 }, { 0x8000000100000002, 0xfffffff0, 0xffffffff, 9 } };
    f32 out[701];
    (void)state;
    for (size_t l = 0; kernels_levels[l]; l++)
        for (size_t i = 0; kernels_named(kernels_levels[l]) && i < COUNT(firsts) * COUNT(counts) * COUNT(keys) * 3;
             i++) {
            const DrawKey *key = &keys[i % COUNT(keys)];
            const PhiloxLaw law = (PhiloxLaw)(i / COUNT(keys) % 3);
            const u64 first = firsts[i / COUNT(keys) / 3 % COUNT(firsts)];
            const size_t n = counts[i / COUNT(keys) / 3 / COUNT(firsts)];
            out[n] = -1;
            kernels_draw(kernels_named(kernels_levels[l]))(key, law, 0.3f, first, n, out);
            for (size_t k = 0; k < n; k++)
                assert_int_equal(bits_of(out[k]), bits_of(drawn(key, law, 0.3f, first + k)));
            assert_true(out[n] == -1);
        }
}

enum { HELD = 70 };

/* Every loop that holds one operand gives the bits of the one that reads it from a line of the same number. */
static void fixed_rows_agree(void **state)
{
    static const f32 odd[] = { 0, -0.0f, 1, -1, 0.5f, 3e38f, 1e-40f, INFINITY, -INFINITY };
    f32 x[ROW_OPERANDS][HELD], want[HELD], got[HELD];
    const double k[ROW_SCALARS] = { 0.5, 2 };
    size_t met = 0;
    (void)state;
    for (size_t l = 0; kernels_levels[l]; l++) {
        const Kernels *level = kernels_named(kernels_levels[l]);
        for (size_t i = 0; level && i < ops_table.n * ROW_OPERANDS; i++) {
            const Row *row = ops_table.defs[i / ROW_OPERANDS]->row;
            const int operand = (int)(i % ROW_OPERANDS);
            RowLoop *fixed = row ? kernels_row_fixed(level, row->number, ARITH_F32, operand) : NULL;
            assert_int_equal(fixed != NULL, row && row->kinds & ROW_F && row->n > 1 && operand < row->n);
            for (size_t v = 0; fixed && v < COUNT(odd); v++, met++) {
                for (size_t j = 0; j < COUNT(x) * HELD; j++)
                    x[j / HELD][j % HELD] = j / HELD == (size_t)operand ? odd[v] : odd[(j * 7 + v) % COUNT(odd)];
                kernels_row(level, row->number, ARITH_F32)(HELD, want, x[0], x[1], x[2], k);
                memset(x[operand] + 1, 0x55, (HELD - 1) * sizeof(f32));
                fixed(HELD, got, x[0], x[1], x[2], k);
                for (size_t j = 0; j < HELD; j++)
                    assert_true(bits_of(want[j]) == bits_of(got[j]) || (want[j] != want[j] && got[j] != got[j]));
            }
        }
    }
    assert_true(met > 100);
}

/* Chains of few taps: along a line with some room behind it, and of positions in lanes. */
static void taps_agree(void **state)
{
    enum { LINE = 90, MOST_TAPS = 14, ROOM = LINE + MOST_LANES };
    static f32 x[40 * LINE * MOST_LANES];
    f32 w[MOST_TAPS], y[ROOM * MOST_LANES], sums[MOST_TAPS * MOST_LANES], want[MOST_TAPS * MOST_LANES];
    size_t at[MOST_TAPS];
    Rng rng = { 17 };
    (void)state;
    for (size_t i = 0; i < COUNT(x); i++)
        x[i] = (f32)(rng_unit(&rng) - 0.5);
    for (size_t l = 0; kernels_levels[l]; l++)
        for (int turn = 0; kernels_named(kernels_levels[l]) && turn < 200; turn++) {
            const TapLoops *loops = kernels_taps(kernels_named(kernels_levels[l]));
            const size_t taps = (size_t)rng_below(&rng, MOST_TAPS + 1), n = (size_t)rng_below(&rng, LINE + 1);
            const size_t step = (size_t)rng_range(&rng, 1, 3) * loops->lanes;
            for (size_t t = 0; t < taps; t++)
                at[t] = (size_t)rng_below(&rng, 1000), w[t] = (f32)(rng_unit(&rng) - 0.5);
            for (size_t i = 0; i < COUNT(y); i++)
                y[i] = 9;
            loops->weigh(taps, at, w, n, x, y);
            for (size_t i = 0; i < n; i++) {
                f32 sum = 0;
                for (size_t t = 0; t < taps; t++)
                    sum = fma_f32(w[t], x[at[t] + i], sum);
                assert_int_equal(bits_of(sum), bits_of(y[i]));
            }
            assert_true(y[n + loops->lanes - 1] == 9);
            for (size_t i = 0; i < COUNT(sums); i++)
                sums[i] = want[i] = (f32)rng_unit(&rng);
            for (size_t i = 0; i < taps * loops->lanes; i++)
                for (size_t p = 0; p < n; p++)
                    want[i] = fma_f32(x[at[i / loops->lanes] + p * step + i % loops->lanes],
                                      y[p * loops->lanes + i % loops->lanes], want[i]);
            loops->add(taps, at, n, x, step, y, sums);
            assert_memory_equal(sums, want, sizeof sums);
        }
}

/* As max chooses: the first of equals, a NaN before all, 0 before -0; of taps outside the image there is none.  x is where the
 * window begins, `left` columns into the image. */
static i32 largest_of(const WindowTaps *t, const f32 *x, i32 left)
{
    i32 where = INT32_MIN;
    for (i32 r = 0; r < t->rows; r++)
        for (i32 c = 0; c < t->cols; c++) {
            const i32 at = r * t->row_step + c * t->col_step;
            if (left + c * t->col_step < 0 || left + c * t->col_step >= t->width)
                continue;
            const f32 v = x[at], w = x[where == INT32_MIN ? at : where];
            if (where == INT32_MIN ||
                (w == w && (v != v || v > w || (v == 0 && w == 0 && bits_of(v) == 0 && bits_of(w) != 0))))
                where = at;
        }
    return where;
}

/* Windows over lines that end where nothing may be read; where, what and what is added are those of a loop over windows. */
static void largest_agree(void **state)
{
    static const f32 odd[] = { 0, -0.0f, 1, -1, 2, -INFINITY, INFINITY, 1e-40f, NAN };
    enum { LINE = 600, WINDOWS = 300, ALL = 8 * LINE };
    static f32 x[ALL], sum[ALL], want[ALL];
    i32 found[WINDOWS + 1];
    f32 y[WINDOWS + 1], dy[WINDOWS];
    Rng rng = { 5 };
    int planes = 0;
    (void)state;
    for (int turn = 0; turn < 3000; turn++) {
        WindowTaps t = { .rows = (i32)rng_range(&rng, 1, 5), .cols = (i32)rng_range(&rng, 1, 5) };
        t.col_step = (i32)rng_range(&rng, 1, turn % 10 ? 3 : 31);
        t.stride = (i32)rng_range(&rng, 1, turn % 10 ? 4 : 250);
        const i32 reach = (t.cols - 1) * t.col_step, most = (LINE - 1 - reach) / t.stride + 1;
        const size_t n = (size_t)rng_range(&rng, 0, most < WINDOWS ? most : WINDOWS);
        const i32 span = n ? ((i32)n - 1) * t.stride + reach + 1 : 0;
        /* one window sees all of its taps, so that each sees some; or the line is longer than windows see */
        t.before = (i32)rng_range(&rng, turn % 2 ? 0 : -3, span > reach ? reach : 0);
        const i32 beyond = (i32)rng_below(&rng, reach + 1);
        t.width = span - t.before - beyond > reach ? span - t.before - beyond : reach + 1;
        if (n && (((i32)n - 1) * t.stride - t.before >= t.width || t.before > reach))
            continue;
        t.row_step = t.width + (i32)rng_below(&rng, 3);
        const size_t kinds = turn % 3 ? COUNT(odd) - (size_t)(turn % 2) : 1;
        const size_t begin = ALL - (size_t)((t.rows - 1) * t.row_step + t.width);
        for (size_t i = begin; i < ALL; i++)
            x[i] = kinds == 1 ? (f32)rng_unit(&rng) : odd[rng_below(&rng, (int64_t)kinds)];
        for (size_t i = 0; i < n; i++)
            dy[i] = turn % 5 ? (f32)rng_unit(&rng) - 0.5f : odd[rng_below(&rng, COUNT(odd) - 1)];
        for (size_t l = 0; kernels_levels[l]; l++) {
            if (!kernels_named(kernels_levels[l]))
                continue;
            const LargestLoops *loops = kernels_largest(kernels_named(kernels_levels[l]));
            bool nan = false;
            found[n] = -7;
            y[n] = -7;
            memset(sum, 0, sizeof sum);
            memset(want, 0, sizeof want);
            loops->find(&t, x + begin, n, found);
            for (size_t i = 0; i < n; i++) {
                const i32 left = (i32)i * t.stride - t.before, where = largest_of(&t, x + begin + left, left);
                assert_int_equal(found[i], where);
                want[(i32)begin + left + where] += dy[i];
                nan = nan || isnan(x[(i32)begin + left + where]);
            }
            const PlaneWindows w = { .in = { t.rows, t.width },
                                     .out = { 1, (int64_t)n },
                                     .kernel = { t.rows, t.cols },
                                     .stride = { t.rows, t.stride },
                                     .dilation = { 1, t.col_step },
                                     .before = { 0, t.before } };
            const bool is_plane = n && t.before >= 0 && t.row_step == t.width && largest_pitch(&w) <= LARGEST_PITCH;
            planes += is_plane;
            if (is_plane)
                assert_int_equal(loops->values(&w, -INFINITY, 1, x + begin, y), !nan);
            for (size_t i = 0; i < n && is_plane && !nan; i++)
                assert_int_equal(bits_of(y[i]), bits_of(x[(i32)begin + (i32)i * t.stride - t.before + found[i]]));
            loops->add(&t, found, dy, n, sum + begin);
            assert_memory_equal(sum, want, sizeof sum);
            assert_int_equal(found[n], -7);
            assert_true(y[n] == -7);
        }
    }
    assert_true(planes > 500);
}

/* Codes of sums, and of sums of codes, also where scales are of no use. */
static void codes_agree(void **state)
{
    enum { SUMS = 150 };
    static const f32 factors[] = { 0.0078125f, 0.5f, 1e-30f, INFINITY, NAN, 3e-4f };
    static const CodeRange ranges[] = { { 0, 0, 255 }, { 7, 7, 255 }, { -3, -128, 127 }, { 9, -8, 7 } };
    i32 sums[SUMS], biases[SUMS];
    f32 each[SUMS];
    u8 a[SUMS], b[SUMS], to[SUMS + 1];
    Rng rng = { 31 };
    (void)state;
    for (size_t l = 0; kernels_levels[l]; l++)
        for (int turn = 0; kernels_named(kernels_levels[l]) && turn < 400; turn++) {
            const CodeLoops *loops = kernels_codes(kernels_named(kernels_levels[l]));
            const size_t n = (size_t)rng_below(&rng, SUMS + 1);
            const f32 factor = factors[rng_below(&rng, COUNT(factors))];
            const CodeRange r = ranges[rng_below(&rng, COUNT(ranges))];
            const u32 bias = (u32)rng_range(&rng, -4000, 4000);
            for (size_t i = 0; i < SUMS; i++) {
                sums[i] = rng_below(&rng, 9) ? (i32)rng_range(&rng, -70000, 70000) : INT32_MIN;
                biases[i] = (i32)rng_range(&rng, -500, 500);
                each[i] = factors[rng_below(&rng, COUNT(factors))];
                a[i] = (u8)rng_below(&rng, 256), b[i] = (u8)rng_below(&rng, 256);
            }
            memset(to, 0x5a, sizeof to);
            loops->requantize(n, sums, bias, factor, &r, to);
            for (size_t i = 0; i < n; i++) {
                const f32 v = (f32)(i32)((u32)sums[i] + bias) * factor;
                assert_int_equal(to[i], (u8)(i32)stored_code_f32(v, r.z, r.lo, r.hi));
            }
            loops->requantize_each(n, sums, biases, each, &r, to);
            for (size_t i = 0; i < n; i++) {
                const f32 v = (f32)(i32)((u32)sums[i] + (u32)biases[i]) * each[i];
                assert_int_equal(to[i], (u8)(i32)stored_code_f32(v, r.z, r.lo, r.hi));
            }
            const CodeBytes of[] = { { a, 0, factor }, { b, 0x80, 0.25f } };
            loops->sum_codes(n, &of[0], &of[1], 0.5f, &r, to);
            for (size_t i = 0; i < n; i++) {
                const f32 u = fma_f32((f32)a[i], factor, fma_f32((f32)(i8)b[i], 0.25f, 0.5f));
                assert_int_equal(to[i], (u8)(i32)shifted_code_f32(u, r.z, r.lo, r.hi));
            }
            assert_int_equal(to[n], 0x5a);
        }
}

/* Codes of numbers, with one scale or one each, to the nearest or by chance; and rows that make codes as numbers, whose bits agree. */
static void numbers_become_codes(void **state)
{
    enum { MANY = 150 };
    static const f32 some[] = { NAN, INFINITY, -INFINITY, -0.25f, 0.5f, 1.5f, -2.5f, 1e30f };
    static const CodeRange ranges[] = { { 0, 0, 255 }, { 7, 7, 255 }, { -3, -128, 127 }, { 0, -8, 0 } };
    f32 x[MANY], each[MANY], draw[MANY], codes[MANY];
    u8 to[MANY + 1];
    Rng rng = { 37 };
    (void)state;
    for (size_t l = 0; kernels_levels[l]; l++)
        for (int turn = 0; kernels_named(kernels_levels[l]) && turn < 400; turn++) {
            const CodeLoops *loops = kernels_codes(kernels_named(kernels_levels[l]));
            const size_t n = (size_t)rng_below(&rng, MANY + 1), step = turn % 2;
            const bool by_chance = turn / 2 % 2;
            const CodeRange r = ranges[rng_below(&rng, COUNT(ranges))];
            const double ends[] = { r.lo, r.hi };
            for (size_t i = 0; i < MANY; i++) {
                x[i] = rng_below(&rng, 9) ? (f32)(100 * rng_unit(&rng) - 50) : some[rng_below(&rng, COUNT(some))];
                each[i] = rng_below(&rng, 20) ? (f32)rng_unit(&rng) : 0;
                draw[i] = (f32)rng_unit(&rng);
            }
            memset(to, 0x5a, sizeof to);
            loops->quantize(n, x, each, step, by_chance ? draw : NULL, &r, to);
            for (size_t i = 0; i < n; i++) {
                const f32 v = x[i] / each[i * step], whole = by_chance ? stochastic_f32(v, draw[i]) : rint_f32(v);
                assert_int_equal(to[i], (u8)(i32)code_of_f32(whole, r.z, r.lo, r.hi));
            }
            assert_int_equal(to[n], 0x5a);
            for (int rounds = 0; rounds < 2; rounds++) {
                (rounds ? loops->stored : loops->settled)(n, codes, x, turn % 3 ? &r.z : NULL, NULL, ends);
                for (size_t i = 0; i < n; i++) {
                    const f32 v = rounds ? rint_f32(x[i]) : x[i];
                    const f32 want = turn % 3 ? code_of_f32(v, r.z, r.lo, r.hi) : clamp_f32(v == v ? v : 0, r.lo, r.hi);
                    assert_memory_equal(codes + i, &want, sizeof want);
                }
            }
        }
}

/* The largest and the smallest of rows: signs of zeros, NaNs, any length. */
static void extremes_agree(void **state)
{
    enum { LONGEST = 2100, ROWS = 3 };
    static const f32 odd[] = { 0, -0.0f, NAN, INFINITY, -INFINITY, 1e-40f, -1e-40f };
    static f32 x[ROWS * LONGEST];
    Rng rng = { 41 };
    (void)state;
    for (size_t l = 0; kernels_levels[l]; l++)
        for (int turn = 0; kernels_named(kernels_levels[l]) && turn < 1500; turn++) {
            const size_t n = 1 + (size_t)rng_below(&rng, turn % 3 ? 150 : LONGEST);
            const bool least = turn % 2;
            const i64 rare = 1 + rng_below(&rng, 400), kinds = 1 + rng_below(&rng, 5);
            const f32 sign = (f32)rng_below(&rng, 3) - 1; /* all below 0, all above, or zeros alone */
            f32 got[ROWS];
            for (size_t i = 0; i < ROWS * n; i++)
                x[i] = rng_below(&rng, rare) ? sign * (f32)rng_unit(&rng) : odd[rng_below(&rng, kinds)];
            const ReduceKind kind = least ? REDUCE_MIN : REDUCE_MAX;
            kernels_reduce(kernels_named(kernels_levels[l]), kind, ARITH_F32)->rows(ROWS, n, x, got);
            for (size_t r = 0; r < ROWS; r++) {
                const f32 want = least ? min_row_f32(x + r * n, n) : max_row_f32(x + r * n, n);
                assert_int_equal(bits_of(got[r]), bits_of(want));
            }
        }
}

/* Bits as numbers, from any place on, and nothing behind the last. */
static void bits_become_numbers(void **state)
{
    enum { MANY = 400 };
    Context c;
    f32 got[MANY + 1];
    Rng rng = { 43 };
    (void)state;
    context_open(&c);
    Tensor *t = tensor_new(&c.arena, type_vector(&c.ir.types, BIT, MANY));
    for (size_t i = 0; i < MANY / 8; i++)
        ((uint8_t *)t->data)[i] = (uint8_t)rng_u64(&rng);
    for (size_t l = 0; kernels_levels[l]; l++)
        for (int turn = 0; kernels_named(kernels_levels[l]) && turn < 300; turn++) {
            const int64_t first = rng_below(&rng, MANY), n = rng_below(&rng, MANY - first + 1);
            got[n] = -1;
            kernels_load_f32(kernels_named(kernels_levels[l]), got, t, first, n);
            for (int64_t i = 0; i < n; i++)
                assert_true(got[i] == (((uint8_t *)t->data)[(first + i) / 8] >> (first + i) % 8 & 1));
            assert_true(got[n] == -1);
        }
    context_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(products_agree),       cmocka_unit_test(panels_agree),
                                        cmocka_unit_test(rows_are_there),       cmocka_unit_test(draws_agree),
                                        cmocka_unit_test(fixed_rows_agree),     cmocka_unit_test(taps_agree),
                                        cmocka_unit_test(largest_agree),        cmocka_unit_test(codes_agree),
                                        cmocka_unit_test(numbers_become_codes), cmocka_unit_test(extremes_agree),
                                        cmocka_unit_test(bits_become_numbers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
