/* Products as the simulated cuBLASLt makes them: column by column, sums from their end to their beginning, long ones in parts.  So
 * their bits are not those of kernels of ours, and whoever made a product shows. */
#include "base/half.h"

#include "simcuda/cublas.h"

static const char what[] = "a product of cuBLASLt";

static double read(const CublasMatrix *m, const char *at, uint64_t row, uint64_t column)
{
    const char *p = at + (row + column * (uint64_t)m->line) * blas_bytes(m->type);
    uint16_t half;
    float f;
    if (m->type == CUBLAS_I8)
        return *(const signed char *)p;
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

int blas_multiply(const void *multiply)
{
    const Multiply *m = multiply;
    const uint64_t elements = m->d.rows * m->d.columns * (uint64_t)m->d.n;
    float *parts = (float *)(void *)m->scratch;
    if (m->splits > 1 &&
        !simcuda_touch(m->scratch, elements * m->splits * sizeof *parts, SIM_WRITES, "the scratch of a product"))
        return E_ILLEGAL_ADDRESS;
    for (int64_t i = 0; i < m->d.n; i++) {
        const char *a = m->at_a + (size_t)(i * m->a.step) * blas_bytes(m->a.type);
        const char *b = m->at_b + (size_t)(i * m->b.step) * blas_bytes(m->b.type);
        char *d = m->at_d + (size_t)(i * m->d.step) * blas_bytes(m->d.type);
        if (!touch(&m->a, a, SIM_READS) || !touch(&m->b, b, SIM_READS) || !touch(&m->d, d, SIM_WRITES))
            return E_ILLEGAL_ADDRESS;
        for (uint64_t column = 0; column < m->d.columns; column++)
            for (uint64_t row = 0; row<m->d.rows; row++, parts += m->splits> 1 ? m->splits : 0)
                write(&m->d, d, row, column, element(m, a, b, parts, row, column));
    }
    return CUDA_OK;
}
