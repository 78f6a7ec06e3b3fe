#include "bench/tape.h"

#include <string.h>

#include "ops/reduce.h"
#include "ops/scalar.h"

/* dy gelu'(x + b) */
void dgelu_by_hand(size_t rows, size_t cols, const float *const *in, float *const *out)
{
    for (size_t r = 0; r < rows; r++) {
        const f32 *restrict x = in[0] + r * cols, *restrict b = in[1], *restrict dy = in[2] + r * cols;
        f32 *restrict z = out[0] + r * cols;
        for (size_t c = 0; c < cols; c++) {
            const f32 a = x[c] + b[c];
            const f32 half = 0.5f * (1 + q_erf(a * 0.70710676908493042f));
            const f32 slope = half + a * (0.39894229173660278f * q_exp(-0.5f * (a * a)));
            z[c] = dy[c] * slope;
        }
    }
}

void add_by_hand(size_t rows, size_t cols, const float *const *in, float *const *out)
{
    const f32 *restrict x = in[0], *restrict y = in[1];
    f32 *restrict z = out[0];
    for (size_t i = 0; i < rows * cols; i++)
        z[i] = x[i] + y[i];
}

enum { MOST_COLS = 4096 };

/* One row: x - mean and dy, into dx; what the columns add up comes in `scaled`. */
static void norm_row(size_t cols, const f32 *restrict x, f32 mean, f32 rate, const f32 *restrict dy,
                     const f32 *restrict gain, f32 *restrict dx, f32 *restrict scaled)
{
    f32 hat[MOST_COLS], reaches[MOST_COLS], both[MOST_COLS];
    for (size_t c = 0; c < cols; c++) {
        hat[c] = (x[c] - mean) * rate;
        reaches[c] = dy[c] * gain[c];
        both[c] = reaches[c] * hat[c];
        scaled[c] = dy[c] * hat[c];
    }
    const f32 across = sum_row_f32(both, cols) / (f32)cols, along = sum_row_f32(reaches, cols) / (f32)cols;
    for (size_t c = 0; c < cols; c++)
        dx[c] = rate * (reaches[c] - along - hat[c] * across);
}

/* Eight sums of 64 rows fold by halves. */
static void fold(size_t cols, f32 sums[REDUCE_BLOCK / 8][MOST_COLS], f32 *restrict to)
{
    for (size_t c = 0; c < cols; c++)
        to[c] = ((sums[0][c] + sums[4][c]) + (sums[2][c] + sums[6][c])) +
                ((sums[1][c] + sums[5][c]) + (sums[3][c] + sums[7][c]));
}

static void add_row(size_t cols, bool first, const f32 *restrict from, f32 *restrict to)
{
    if (first)
        memcpy(to, from, cols * sizeof *to);
    else
        for (size_t c = 0; c < cols; c++)
            to[c] += from[c];
}

enum { MOST_BLOCKS = 64 };

static f32 gains[8][MOST_COLS], shifts[8][MOST_COLS];
static f32 gain_parts[MOST_BLOCKS * MOST_COLS], shift_parts[MOST_BLOCKS * MOST_COLS];

/* The sums of blocks join as a counter does. */
static void join(size_t blocks, size_t cols, const f32 *parts, f32 *to)
{
    for (size_t c = 0; c < cols; c++) {
        sum_counter_f32 counter = { 0 };
        for (size_t k = 0; k < blocks; k++)
            sum_push_f32(&counter, parts[k * cols + c]);
        to[c] = sum_total_f32(&counter);
    }
}

/* x, mean, 1 / deviation, dy, gain -> dx, of the gain, of the shift; rows are a multiple of 64. */
void norm_backward_by_hand(size_t rows, size_t cols, const float *const *in, float *const *out)
{
    f32 scaled[MOST_COLS];
    for (size_t r = 0; r < rows; r++) {
        const size_t k = r % REDUCE_BLOCK;
        const f32 *dy = in[3] + r * cols;
        norm_row(cols, in[0] + r * cols, in[1][r], in[2][r], dy, in[4], out[0] + r * cols, scaled);
        add_row(cols, k < 8, scaled, gains[k % 8]);
        add_row(cols, k < 8, dy, shifts[k % 8]);
        if (k + 1 < REDUCE_BLOCK)
            continue;
        fold(cols, gains, gain_parts + r / REDUCE_BLOCK * cols);
        fold(cols, shifts, shift_parts + r / REDUCE_BLOCK * cols);
    }
    join(rows / REDUCE_BLOCK, cols, gain_parts, out[1]);
    join(rows / REDUCE_BLOCK, cols, shift_parts, out[2]);
}
