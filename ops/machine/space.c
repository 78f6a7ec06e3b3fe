#include "ops/machine/space.h"

#include <string.h>

/* The steps of an operand over the result's dimensions, aligned at the right. */
static void steps_of(const Type *operand, const Type *result, int64_t *strides)
{
    int64_t step = 1;
    memset(strides, 0, MAX_RANK * sizeof *strides);
    if (!operand)
        return;
    const int more = result->rank - operand->rank;
    for (int d = operand->rank - 1; d >= 0; d--) {
        if (operand->dims[d] != 1 && d + more >= 0)
            strides[d + more] = step;
        step *= operand->dims[d];
    }
}

/* Dimension `inner` continues `outer` when every operand steps on from the one's end to the other's next. */
static bool continues(const Space *s, int outer, int inner)
{
    for (int i = 0; i < s->n; i++)
        if (s->strides[i][outer] != s->strides[i][inner] * s->dims[inner])
            return false;
    return true;
}

void space_open(Space *s, const Type *result, int n, const Type *const *operands, int64_t (*strides)[MAX_RANK])
{
    *s = (Space){ .rank = 0, .n = n, .total = type_elements(result), .strides = strides };
    for (int i = 0; i < n; i++)
        steps_of(operands[i], result, strides[i]);
    for (int d = 0; d < result->rank; d++)
        s->dims[d] = result->dims[d];

    int rank = 0; /* kept so far, in place */
    for (int d = 0; d < result->rank; d++) {
        if (s->dims[d] == 1)
            continue;
        const bool merges = rank > 0 && continues(s, rank - 1, d);
        const int to = merges ? rank - 1 : rank++;
        s->dims[to] = merges ? s->dims[to] * s->dims[d] : s->dims[d];
        for (int i = 0; i < n; i++)
            strides[i][to] = strides[i][d];
    }
    if (rank == 0) {
        s->dims[rank++] = 1;
        for (int i = 0; i < n; i++)
            strides[i][0] = 0;
    }
    s->rank = rank;
}

bool space_is_dense(const Space *s, int i)
{
    int64_t step = 1;
    bool dense = true;
    for (int d = s->rank - 1; d >= 0; d--) {
        dense = dense && s->strides[i][d] == step;
        step *= s->dims[d];
    }
    return dense || s->total == 1;
}

bool space_is_fixed(const Space *s, int i)
{
    for (int d = 0; d < s->rank; d++)
        if (s->strides[i][d])
            return false;
    return true;
}

/* One run along the innermost dimension. */
#define RUN(W)                                                                                                         \
    static void run_##W(const W *from, int64_t stride, int64_t n, W *to)                                               \
    {                                                                                                                  \
        if (stride == 0) {                                                                                             \
            enum { SIDE = 8 };                                                                                         \
            const W one = *from;                                                                                       \
            for (; n >= SIDE; n -= SIDE, to += SIDE)                                                                   \
                for (int k = 0; k < SIDE; k++)                                                                         \
                    to[k] = one;                                                                                       \
        }                                                                                                              \
        for (int64_t k = 0; k < n; k++)                                                                                \
            to[k] = from[k * stride];                                                                                  \
    }
RUN(uint32_t)
RUN(uint64_t)
#undef RUN

void space_gather(const Space *s, int i, const void *from, size_t size, int64_t at, int64_t n, void *to)
{
    const int last = s->rank - 1;
    const int64_t *stride = s->strides[i];
    int64_t c[MAX_RANK], offset = 0, rest = at;
    for (int d = last; d >= 0; d--) {
        c[d] = rest % s->dims[d];
        rest /= s->dims[d];
        offset += c[d] * stride[d];
    }
    char *out = to;
    while (n > 0) {
        const int64_t left = s->dims[last] - c[last], run = left < n ? left : n;
        const char *in = (const char *)from + offset * (int64_t)size;
        if (stride[last] == 1)
            memcpy(out, in, (size_t)run * size);
        else if (size == sizeof(uint32_t))
            run_uint32_t((const uint32_t *)(const void *)in, stride[last], run, (uint32_t *)(void *)out);
        else
            run_uint64_t((const uint64_t *)(const void *)in, stride[last], run, (uint64_t *)(void *)out);
        out += run * (int64_t)size;
        n -= run;
        offset += run * stride[last];
        c[last] += run;
        for (int d = last; d > 0 && c[d] == s->dims[d]; d--) {
            offset += stride[d - 1] - c[d] * stride[d];
            c[d] = 0;
            c[d - 1]++;
        }
    }
}
