/* ops/reduce.h against the law written down again, literally, and against the order in which a warp would do it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "ops/reduce.h"

enum { LONG = (1 << 21) + 12345 };

/* Sizes and signs that make every change of order visible. */
static f32 *numbers(size_t n)
{
    f32 *x = malloc(n * sizeof *x);
    assert_non_null(x);
    u32 s = 12345;
    for (size_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = ((f32)(i32)s / 2147483648.0f) * float_of(0x3f800000u + ((s >> 5 & 7) << 23));
    }
    return x;
}

static f32 absent(const f32 *x, size_t n, size_t i)
{
    return i < n ? x[i] : -0.0f;
}

/* A segment with all of its 1024 places, then the joining, level by level over a list. */
static f32 law_segment(const f32 *x, size_t n)
{
    f32 a[256], t[32];
    for (size_t p = 0; p < 256; p++) {
        a[p] = absent(x, n, p);
        a[p] += absent(x, n, p + 256);
        a[p] += absent(x, n, p + 512);
        a[p] += absent(x, n, p + 768);
    }
    for (size_t g = 0; g < 32; g++) {
        const f32 *b = a + 8 * g;
        t[g] = ((b[0] + b[4]) + (b[2] + b[6])) + ((b[1] + b[5]) + (b[3] + b[7]));
    }
    for (size_t w = 16; w > 0; w /= 2)
        for (size_t i = 0; i < w; i++)
            t[i] += t[i + w];
    return t[0];
}

/* 2k joins 2k+1 on every level; what is left over on a level waits, to be folded from the youngest to the oldest. */
static f32 law_join(f32 *part, size_t n)
{
    f32 waiting[64];
    size_t levels = 0;
    bool waits[64];
    while (n > 0) {
        waits[levels] = n % 2 == 1;
        waiting[levels] = part[n - 1];
        for (size_t k = 0; k < n / 2; k++)
            part[k] = part[2 * k] + part[2 * k + 1];
        n /= 2;
        levels++;
    }
    f32 sum = 0;
    bool any = false;
    for (size_t k = 0; k < levels; k++)
        if (waits[k]) {
            sum = any ? waiting[k] + sum : waiting[k];
            any = true;
        }
    return sum;
}

static f32 law_row(const f32 *x, size_t n)
{
    f32 *part = malloc((n / 1024 + 1) * sizeof *part);
    size_t parts = 0;
    assert_non_null(part);
    for (size_t base = 0; base < n; base += 1024)
        part[parts++] = law_segment(x + base, n - base < 1024 ? n - base : 1024);
    const f32 sum = law_join(part, parts);
    free(part);
    return sum;
}

static f32 law_column(const f32 *x, size_t rows, size_t stride)
{
    f32 *part = malloc((rows / 64 + 1) * sizeof *part);
    size_t parts = 0;
    assert_non_null(part);
    for (size_t base = 0; base < rows; base += 64) {
        f32 a[8] = { -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f };
        for (size_t r = base; r < rows && r < base + 64; r++)
            a[r % 8] += x[r * stride];
        for (size_t w = 4; w > 0; w /= 2)
            for (size_t i = 0; i < w; i++)
                a[i] += a[i + w];
        part[parts++] = a[0];
    }
    const f32 sum = law_join(part, parts);
    free(part);
    return sum;
}

/* Lane l owns elements 256 c + 8 l .. + 7 of each chunk c; then five shuffles. */
static f32 warp_segment(const f32 *x, size_t n)
{
    f32 lane[32];
    for (size_t l = 0; l < 32; l++) {
        f32 a[8];
        for (size_t j = 0; j < 8; j++)
            a[j] = absent(x, n, 8 * l + j);
        for (size_t c = 1; c < 4; c++)
            for (size_t j = 0; j < 8; j++)
                a[j] += absent(x, n, 256 * c + 8 * l + j);
        lane[l] = sum_eight_f32(a);
    }
    for (size_t w = 16; w > 0; w /= 2)
        for (size_t l = 0; l < 32; l++)
            lane[l] = l + w < 32 ? lane[l] + lane[l + w] : lane[l];
    return lane[0];
}

static void rows_follow_the_law(void **state)
{
    (void)state;
    f32 *x = numbers(LONG);
    for (size_t n = 0; n <= 5000; n++) {
        assert_int_equal(bits_of(sum_row_f32(x + n % 7, n)), bits_of(law_row(x + n % 7, n)));
        if (n > 0 && n <= 1024)
            assert_int_equal(bits_of(sum_segment_f32(x, n)), bits_of(warp_segment(x, n)));
    }
    for (size_t n = LONG; n > LONG - 3000; n -= 997)
        assert_int_equal(bits_of(sum_row_f32(x, n)), bits_of(law_row(x, n)));
    free(x);
}

static void the_order_is_visible(void **state)
{
    (void)state;
    f32 *x = numbers(LONG);
    f32 plain = 0;
    for (size_t i = 0; i < LONG; i++)
        plain += x[i];
    assert_int_not_equal(bits_of(plain), bits_of(sum_row_f32(x, LONG)));
    free(x);
}

static void strided_rows_equal_packed_ones(void **state)
{
    (void)state;
    enum { N = 3000 };
    f32 *x = numbers((size_t)N * 3), packed[N];
    for (size_t n = 0; n <= N; n += n < 20 ? 1 : 331) {
        for (size_t i = 0; i < n; i++)
            packed[i] = x[3 * i];
        assert_int_equal(bits_of(sum_strided_f32(x, n, 3)), bits_of(sum_row_f32(packed, n)));
        for (size_t i = 0; i < n; i++)
            packed[i] = x[n - 1 - i];
        if (n > 0)
            assert_int_equal(bits_of(sum_strided_f32(x + n - 1, n, -1)), bits_of(sum_row_f32(packed, n)));
    }
    free(x);
}

static void columns_follow_the_law(void **state)
{
    (void)state;
    enum { COLS = 150 };
    f32 *x = numbers((size_t)COLS * 4100), out[COLS], part[COLS];
    for (size_t rows = 0; rows <= 4100; rows += rows < 200 ? 1 : 377) {
        sum_cols_f32(x, rows, COLS, COLS, out);
        for (size_t c = 0; c < COLS; c += 7)
            assert_int_equal(bits_of(out[c]), bits_of(law_column(x + c, rows, COLS)));
        sum_cols_f32(x, rows, 31, COLS, part);
        sum_cols_f32(x + 31, rows, COLS - 31, COLS, part + 31);
        assert_memory_equal(out, part, sizeof out);
        if (rows > 0 && rows <= 64) {
            sum_block_f32(x, rows, COLS, COLS, part);
            assert_memory_equal(out, part, sizeof out);
        }
    }
    free(x);
}

/* One column of neighbours, as an engine sums the blocks of its pieces and joins them. */
static void lines_join_to_a_column(void **state)
{
    (void)state;
    enum { MOST = 70000 };
    f32 *x = numbers(MOST), *parts = malloc((MOST / 64 + 1) * sizeof *parts), out;
    for (size_t n = 1; n <= MOST; n += n < 200 ? 1 : n < 5000 ? 61 : 6421) {
        sum_lines_f32(x, n, parts);
        sum_join_f32((n + 63) / 64, 1, parts, &out);
        assert_int_equal(bits_of(out), bits_of(law_column(x, n, 1)));
    }
    free(parts);
    free(x);
}

/* With the counter alone, segment after segment, as an engine would join the partial sums of its threads. */
static void counters_join_what_rows_join(void **state)
{
    (void)state;
    f32 *x = numbers(100000);
    for (size_t n = 1; n <= 100000; n += 1023 * 3) {
        sum_counter_f32 c = { 0 };
        for (size_t base = 0; base < n; base += 1024)
            sum_push_f32(&c, sum_segment_f32(x + base, n - base < 1024 ? n - base : 1024));
        assert_int_equal(bits_of(sum_total_f32(&c)), bits_of(law_row(x, n)));
    }
    free(x);
}

static void squares_are_sums_of_squares(void **state)
{
    (void)state;
    f32 *x = numbers(5000), *xx = numbers(5000);
    for (size_t i = 0; i < 5000; i++)
        xx[i] = x[i] * x[i];
    for (size_t n = 0; n <= 5000; n += 61)
        assert_int_equal(bits_of(squares_row_f32(x, n)), bits_of(law_row(xx, n)));
    f32 out[10], want[10];
    squares_cols_f32(x, 500, 10, 10, out);
    sum_cols_f32(xx, 500, 10, 10, want);
    assert_memory_equal(out, want, sizeof out);
    free(x);
    free(xx);
}

static void check_integers(const i64 *x, const u64 *u, size_t n)
{
    u64 sum = 0, product = 1, squares = 0, most = 0;
    i64 max = INT64_MIN, min = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        sum += u[i], product *= u[i], squares += u[i] * u[i];
        max = x[i] > max ? x[i] : max, min = x[i] < min ? x[i] : min, most = u[i] > most ? u[i] : most;
    }
    assert_true(sum_row_u64(u, n) == sum && product_row_u64(u, n) == product && squares_row_u64(u, n) == squares);
    assert_true(max_row_i64(x, n) == max && min_row_i64(x, n) == min && max_row_u64(u, n) == most);
    i64 out;
    max_cols_i64(x, n, 1, 1, &out);
    assert_true(out == max);
}

static void integers_are_exact(void **state)
{
    (void)state;
    enum { N = 2500 };
    static const size_t lengths[] = { 0, 1, 7, 8, 9, 255, 256, 257, 1023, 1024, 1025, N };
    i64 x[N];
    u64 u[N];
    for (size_t i = 0; i < N; i++) {
        u[i] = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
        x[i] = (i64)(u[i] >> 3) - (INT64_C(1) << 60);
    }
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        check_integers(x, u, lengths[i]);
    const i64 wide[] = { INT64_MAX - 5, -3, 7, -INT64_MAX };
    assert_true(sum_row_i64(wide, 4) == -1);
}

static void nan_wins_in_any_place(void **state)
{
    (void)state;
    enum { N = 1500 };
    f32 *x = numbers(N);
    f64 d[N];
    for (size_t i = 0; i < N; i++)
        d[i] = x[i];
    f32 most = x[0], least = x[0];
    for (size_t i = 0; i < N; i++)
        most = x[i] > most ? x[i] : most, least = x[i] < least ? x[i] : least;
    assert_true(max_row_f32(x, N) == most && min_row_f32(x, N) == least);
    assert_true(max_row_f64(d, N) == (f64)most && min_row_f64(d, N) == (f64)least);
    for (size_t at = 0; at < N; at += 37) {
        const f32 kept = x[at];
        x[at] = Q_NAN;
        d[at] = (f64)Q_NAN;
        f32 out;
        max_cols_f32(x, N, 1, 1, &out);
        assert_true(isnan(max_row_f32(x, N)) && isnan(min_row_f32(x, N)) && isnan(out));
        assert_true(isnan(max_row_f64(d, N)) && isnan(sum_row_f64(d, N)));
        x[at] = kept;
        d[at] = kept;
    }
    const f32 zeros[] = { -0.0f, -0.0f, 0.0f, -0.0f };
    assert_true(!signbit(max_row_f32(zeros, 4)) && signbit(min_row_f32(zeros, 4)));
    free(x);
}

static void empty_reductions_have_a_value(void **state)
{
    (void)state;
    assert_int_equal(bits_of(sum_row_f32(NULL, 0)), 0);
    assert_true(product_row_f64(NULL, 0) == 1 && max_row_f32(NULL, 0) == -Q_INF && min_row_i64(NULL, 0) == INT64_MAX);
    const f32 minus_zero = -0.0f;
    assert_int_equal(bits_of(sum_row_f32(&minus_zero, 1)), 0x80000000u);
    f32 out[2] = { 7, 7 };
    sum_cols_f32(NULL, 0, 2, 2, out);
    assert_true(out[0] == 0 && out[1] == 0);
}

/* f64 walks the same tree: a row of f32 values whose sums are exact gives the exact sum; others stay near it. */
static void doubles_are_summed_too(void **state)
{
    (void)state;
    enum { N = 4000 };
    f32 *x = numbers(N);
    f64 d[N];
    long double exact = 0, product = 1;
    for (size_t i = 0; i < N; i++) {
        d[i] = x[i];
        exact += d[i];
    }
    assert_true(fabsl(sum_row_f64(d, N) - exact) < 1e-9L);
    for (size_t i = 0; i < N; i++) {
        d[i] = 1 + d[i] / 4096;
        product *= d[i];
    }
    assert_true(fabsl(product_row_f64(d, N) - product) < 1e-9L * fabsl(product));
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_follow_the_law),
        cmocka_unit_test(the_order_is_visible),
        cmocka_unit_test(strided_rows_equal_packed_ones),
        cmocka_unit_test(columns_follow_the_law),
        cmocka_unit_test(lines_join_to_a_column),
        cmocka_unit_test(counters_join_what_rows_join),
        cmocka_unit_test(squares_are_sums_of_squares),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(nan_wins_in_any_place),
        cmocka_unit_test(empty_reductions_have_a_value),
        cmocka_unit_test(doubles_are_summed_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
