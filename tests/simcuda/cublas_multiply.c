/* Products as the simulated cuBLASLt makes them, and what becomes of them: column by column, sums from their end to their
 * beginning, long ones in parts.  So their bits are not those of kernels of ours, and whoever made a product shows. */
#include <math.h>
#include <stdlib.h>

#include "base/half.h"

#include "simcuda/cublas.h"

static const char what[] = "a product of cuBLASLt";

/* Floats of eight bits by their sign, exponent and fraction: nothing of base/half.h, which whoever is tested reads them by. */
static double read_e4m3(unsigned code)
{
    const unsigned exponent = code >> 3 & 15, fraction = code & 7;
    const double size = (code & 0x7f) == 0x7f ? (double)NAN
                        : exponent            ? ldexp(8 + fraction, (int)exponent - 10)
                                              : ldexp(fraction, -9);
    return code & 0x80 ? -size : size;
}

static double read_e5m2(unsigned code)
{
    const unsigned exponent = code >> 2 & 31, fraction = code & 3;
    const double size = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                        : exponent     ? ldexp(4 + fraction, (int)exponent - 17)
                                       : ldexp(fraction, -16);
    return code & 0x80 ? -size : size;
}

static double read(const CublasMatrix *m, const char *at, uint64_t row, uint64_t column)
{
    const char *p = at + (row + column * (uint64_t)m->line) * blas_bytes(m->type);
    uint16_t half;
    float f;
    if (m->type == CUBLAS_I8)
        return *(const signed char *)p;
    if (m->type == CUBLAS_F8E4M3)
        return read_e4m3(*(const unsigned char *)p);
    if (m->type == CUBLAS_F8E5M2)
        return read_e5m2(*(const unsigned char *)p);
    if (m->type == CUBLAS_F32) {
        memcpy(&f, p, sizeof f);
        return (double)f;
    }
    memcpy(&half, p, sizeof half);
    return (double)(m->type == CUBLAS_F16 ? f16_to_f32(half) : bf16_to_f32(half));
}

static void write(const CublasMatrix *m, char *at, uint64_t row, uint64_t column, double value)
{
    char *p = at + (row + column * (uint64_t)m->line) * blas_bytes(m->type);
    const float f = (float)value;
    const int32_t i = (int32_t)value;
    if (m->type == CUBLAS_I32) {
        memcpy(p, &i, sizeof i);
    } else if (m->type == CUBLAS_F32) {
        memcpy(p, &f, sizeof f);
    } else {
        const uint16_t half = m->type == CUBLAS_F16 ? f16_from_f32(f) : bf16_from_f32(f);
        memcpy(p, &half, sizeof half);
    }
}

/* Whether the columns of a matrix may be touched. */
static bool touch(const CublasMatrix *m, const char *at, int how)
{
    for (uint64_t c = 0; c < m->columns; c++)
        if (!simcuda_touch(at + c * (uint64_t)m->line * blas_bytes(m->type), m->rows * blas_bytes(m->type), how, what))
            return false;
    return true;
}

/* k from `end` down to `from`: in f32, of codes exactly. */
static double sum(const Multiply *m, const char *a, const char *b, uint64_t row, uint64_t column, uint64_t from,
                  uint64_t end)
{
    double exact = 0;
    float rounded = 0;
    for (uint64_t k = end; k > from; k--) {
        const double x = m->product.turned[0] ? read(&m->a, a, k - 1, row) : read(&m->a, a, row, k - 1);
        const double y = m->product.turned[1] ? read(&m->b, b, column, k - 1) : read(&m->b, b, k - 1, column);
        exact += x * y;
        rounded = (float)((double)rounded + x * y);
    }
    return m->a.type == CUBLAS_I8 ? exact : (double)rounded;
}

/* An element, its parts through the scratch. */
static double element(const Multiply *m, const char *a, const char *b, float *parts, uint64_t row, uint64_t column)
{
    const uint64_t k = blas_sums(&m->product, &m->a), each = (k + m->splits - 1) / m->splits;
    double total = 0;
    if (m->splits == 1)
        return sum(m, a, b, row, column, 0, k);
    for (uint64_t s = 0; s < m->splits; s++) {
        const uint64_t from = s * each < k ? s * each : k, end = from + each < k ? from + each : k;
        parts[s] = (float)sum(m, a, b, row, column, from, end);
    }
    for (uint64_t s = 0; s < m->splits; s++)
        total = (double)((float)total + parts[s]);
    return total;
}

/* A number of a vector of some type. */
static double read_bias(const Multiply *m, uint64_t row)
{
    const CublasMatrix vector = { .type = m->product.bias_type < 0 ? m->d.type : m->product.bias_type };
    return read(&vector, m->product.bias, row, 0);
}

/* What becomes of a sum, in f32: what is added, the bias, and what is below zero; a library that takes the larger of two numbers
 * may lose what is none (QCC_SIM_RELU=zero). */
static double finish(const Multiply *m, const char *c, uint64_t row, uint64_t column, double sum)
{
    const char *word = getenv("QCC_SIM_RELU");
    float x = (float)sum;
    if (c)
        x += (float)read(&m->d, c, row, column);
    if (m->product.end & CUBLAS_END_BIAS)
        x += (float)read_bias(m, row);
    if (m->product.end & CUBLAS_END_RELU && (x < 0 || (isnan(x) && word && strcmp(word, "zero") == 0)))
        x = 0;
    return (double)x;
}

static bool touch_bias(const Multiply *m)
{
    const int type = m->product.bias_type < 0 ? m->d.type : m->product.bias_type;
    return !(m->product.end & CUBLAS_END_BIAS) ||
           simcuda_touch(m->product.bias, m->d.rows * blas_bytes(type), SIM_READS, what);
}

int blas_multiply(const void *multiply)
{
    const Multiply *m = multiply;
    const uint64_t elements = m->d.rows * m->d.columns * (uint64_t)m->d.n;
    float *parts = (float *)(void *)m->scratch;
    simcuda_spend(simcuda_time(m->way));
    if (m->splits > 1 &&
        !simcuda_touch(m->scratch, elements * m->splits * sizeof *parts, SIM_WRITES, "the scratch of a product"))
        return E_ILLEGAL_ADDRESS;
    if (!touch_bias(m))
        return E_ILLEGAL_ADDRESS;
    for (int64_t i = 0; i < m->d.n; i++) {
        const char *a = m->at_a + (size_t)(i * m->a.step) * blas_bytes(m->a.type);
        const char *b = m->at_b + (size_t)(i * m->b.step) * blas_bytes(m->b.type);
        char *d = m->at_d + (size_t)(i * m->d.step) * blas_bytes(m->d.type);
        const char *c = m->at_c ? m->at_c + (size_t)(i * m->d.step) * blas_bytes(m->d.type) : NULL;
        if ((c && !touch(&m->d, c, SIM_READS)) || !touch(&m->a, a, SIM_READS) || !touch(&m->b, b, SIM_READS) ||
            !touch(&m->d, d, SIM_WRITES))
            return E_ILLEGAL_ADDRESS;
        for (uint64_t column = 0; column < m->d.columns; column++)
            for (uint64_t row = 0; row<m->d.rows; row++, parts += m->splits> 1 ? m->splits : 0)
                write(&m->d, d, row, column, finish(m, c, row, column, element(m, a, b, parts, row, column)));
    }
    return CUDA_OK;
}
