/* Which products the simulated cuBLASLt makes, how, and what a call has to bring for the way that was chosen. */
#include <string.h>

#include "simcuda/cublas.h"

/* Parts of long sums lie in the scratch, as those of split-K do.  A long sum has three ways, of three parts, of one, and of two; a
 * short one two, which do the same. */
enum {
    MAGIC = 0x71636362,
    LONG = 48,
    WAYS = 3,
    WAY_MAGIC = 0,
    WAY_SPLITS,
    WAY_SCRATCH,
    WAY_SHAPE,
    WAY_ALIGNMENT,
    WAY_NUMBER
};
static const uint64_t way_splits[WAYS] = { 3, 1, 2 };

bool blas_is_f8(int type)
{
    return type == CUBLAS_F8E4M3 || type == CUBLAS_F8E5M2;
}

size_t blas_bytes(int type)
{
    return type == CUBLAS_I8 || blas_is_f8(type) ? 1 : type == CUBLAS_F16 || type == CUBLAS_BF16 ? 2 : 4;
}

uint64_t blas_sums(const CublasProduct *p, const CublasMatrix *a)
{
    return p->turned[0] ? a->rows : a->columns;
}

/* ---- what makes sense ---- */

typedef struct Combination {
    int compute, scale, factor, other, result;
} Combination;

static const Combination combinations[] = {
    { CUBLAS_EXACT_F32, CUBLAS_F32, CUBLAS_F32, CUBLAS_F32, CUBLAS_F32 },
    { CUBLAS_SUMS_F32, CUBLAS_F32, CUBLAS_BF16, CUBLAS_BF16, CUBLAS_BF16 },
    { CUBLAS_SUMS_F32, CUBLAS_F32, CUBLAS_BF16, CUBLAS_BF16, CUBLAS_F32 },
    { CUBLAS_SUMS_F32, CUBLAS_F32, CUBLAS_F16, CUBLAS_F16, CUBLAS_F16 },
    { CUBLAS_SUMS_F32, CUBLAS_F32, CUBLAS_F16, CUBLAS_F16, CUBLAS_F32 },
    { CUBLAS_SUMS_I32, CUBLAS_I32, CUBLAS_I8, CUBLAS_I8, CUBLAS_I32 },
    { CUBLAS_SUMS_F32, CUBLAS_F32, CUBLAS_F8E4M3, CUBLAS_F8E4M3, CUBLAS_F32 },
    { CUBLAS_SUMS_F32, CUBLAS_F32, CUBLAS_F8E4M3, CUBLAS_F8E5M2, CUBLAS_F32 },
    { CUBLAS_SUMS_F32, CUBLAS_F32, CUBLAS_F8E5M2, CUBLAS_F8E4M3, CUBLAS_F32 },
};

static bool known(const CublasProduct *p, const CublasMatrix *a, const CublasMatrix *b, const CublasMatrix *d)
{
    for (size_t i = 0; i < sizeof combinations / sizeof *combinations; i++) {
        const Combination *c = &combinations[i];
        if (c->compute == p->compute && c->scale == p->scale && c->factor == a->type && c->other == b->type &&
            c->result == d->type)
            return true;
    }
    return false;
}

static int invalid(const char *call, const char *what)
{
    simcuda_complain("%s: %s", call, what);
    return CUBLAS_INVALID;
}

/* What becomes of sums, which is nothing of those of codes; a bias is of the type of d, as cublasLt.h says. */
static int check_end(const CublasProduct *p, const CublasMatrix *a, const CublasMatrix *d, const char *call)
{
    const uint32_t known_ends = CUBLAS_END_RELU | CUBLAS_END_BIAS;
    if (p->end == CUBLAS_END_NONE)
        return CUBLAS_OK;
    if (!p->end || p->end & ~known_ends)
        return invalid(call, "an end that the simulated library does not know");
    if (p->end & CUBLAS_END_BIAS && !p->bias)
        return invalid(call, "a bias that lies nowhere");
    /* of floats of eight bits it is of bf16, which nobody asks for here */
    const bool other =
        p->end & CUBLAS_END_BIAS && (blas_is_f8(a->type) || (p->bias_type >= 0 && p->bias_type != d->type));
    return a->type == CUBLAS_I8 || other ? CUBLAS_NOT_SUPPORTED : CUBLAS_OK;
}

static bool fours(const CublasMatrix *m)
{
    return m->rows % 4 == 0 && m->columns % 4 == 0 && m->line % 4 == 0;
}

/* Floats of eight bits from sm_89 on, along k in both, everything by sixteen bytes, or elements. */
static bool takes_f8(const CublasProduct *p, const CublasMatrix *a, const CublasMatrix *b, const CublasMatrix *d)
{
    enum { OLDEST = 89, SIXTEEN = 16 };
    const CublasMatrix *const all[] = { a, b, d };
    for (int i = 0; i < 3; i++)
        if (all[i]->rows % SIXTEEN || all[i]->columns % SIXTEEN ||
            (size_t)all[i]->line * blas_bytes(all[i]->type) % SIXTEEN ||
            (size_t)all[i]->step * blas_bytes(all[i]->type) % SIXTEEN)
            return false;
    return simcuda_capability() >= OLDEST && p->turned[0] && !p->turned[1];
}

int blas_check(const CublasProduct *p, const CublasMatrix *a, const CublasMatrix *b, const CublasMatrix *c,
               const CublasMatrix *d, const char *call)
{
    const CublasMatrix *const all[] = { a, b, c, d };
    if (!simcuda_holds(p, WORD_PRODUCT, call))
        return CUBLAS_INVALID;
    for (int i = 0; i < 4; i++) {
        if (!simcuda_holds(all[i], WORD_MATRIX, call))
            return CUBLAS_INVALID;
        if (!all[i]->rows || !all[i]->columns || all[i]->line < (int64_t)all[i]->rows)
            return invalid(call, "columns of a matrix lie closer than they are long");
        if (all[i]->n < 1 || all[i]->n != d->n || all[i]->step < 0)
            return invalid(call, "stacks of matrices that do not go together");
    }
    for (int i = 0; i < 2; i++)
        if (p->turned[i] != CUBLAS_AS_IT_LIES && p->turned[i] != CUBLAS_TURNED)
            return invalid(call, "a factor is read in no way that there is");
    const uint64_t m = p->turned[0] ? a->columns : a->rows, k = blas_sums(p, a);
    const uint64_t other_k = p->turned[1] ? b->columns : b->rows, n = p->turned[1] ? b->rows : b->columns;
    if (m != d->rows || n != d->columns || k != other_k)
        return invalid(call, "the matrices do not fit together");
    if (memcmp(c, d, sizeof *c) != 0)
        return invalid(call, "c is not like d");
    if (d->n > 1 && (uint64_t)d->step < (d->columns - 1) * (uint64_t)d->line + d->rows)
        return invalid(call, "results of a stack lie over each other");
    if (!known(p, a, b, d))
        return invalid(call, "types that do not go together");
    const int ends = check_end(p, a, d, call);
    const bool fits = blas_is_f8(a->type)    ? takes_f8(p, a, b, d)
                      : a->type == CUBLAS_I8 ? p->turned[0] && !p->turned[1] && fours(a) && fours(b) && d->rows % 4 == 0
                                             : true;
    return ends ? ends : fits ? CUBLAS_OK : CUBLAS_NOT_SUPPORTED;
}

/* ---- ways ---- */

/* A number of what a way is for. */
static uint64_t shape_of(const CublasProduct *p, const CublasMatrix *a, const CublasMatrix *b, const CublasMatrix *d)
{
    const CublasMatrix *const all[] = { a, b, d };
    uint64_t h = (uint64_t)(p->compute * 4 + p->turned[0] * 2 + p->turned[1]) + (uint64_t)p->end * 0x10001;
    for (int i = 0; i < 3; i++) {
        const uint64_t parts[] = { (uint64_t)all[i]->type, all[i]->rows,           all[i]->columns,
                                   (uint64_t)all[i]->line, (uint64_t)all[i]->step, (uint64_t)all[i]->n };
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            h = (h ^ parts[k]) * 0x100000001b3u;
    }
    return h;
}

/* Ways, as many as there are or as are wanted. */
static int list_ways(const CublasProduct *p, const CublasMatrix *const *m, const CublasWishes *w, uint64_t alignment,
                     int most, CublasChoice *choices)
{
    const uint64_t part = m[3]->rows * m[3]->columns * (uint64_t)m[3]->n * sizeof(float);
    const bool is_long = m[0]->type != CUBLAS_I8 && blas_sums(p, m[0]) >= LONG && part * way_splits[0] <= w->most;
    int n = 0;
    for (; n < (is_long ? WAYS : WAYS - 1) && n < most; n++) {
        const uint64_t splits = is_long ? way_splits[n] : 1;
        CublasChoice *c = &choices[n];
        *c = (CublasChoice){ .scratch = splits > 1 ? part * splits : 0, .state = CUBLAS_OK, .waves = 1 };
        c->way.data[WAY_MAGIC] = MAGIC;
        c->way.data[WAY_SPLITS] = splits;
        c->way.data[WAY_SCRATCH] = c->scratch;
        c->way.data[WAY_SHAPE] = shape_of(p, m[0], m[1], m[3]);
        c->way.data[WAY_ALIGNMENT] = alignment;
        c->way.data[WAY_NUMBER] = (uint64_t)n;
    }
    return n;
}

static int choose(const CublasHandle *handle, const CublasProduct *p, const CublasMatrix *const *m,
                  const CublasWishes *w, int most, CublasChoice *choices, int *n, const char *call)
{
    if (!simcuda_holds(handle, WORD_HANDLE, call) || !simcuda_holds(w, WORD_WISHES, call) || most < 1 || !choices || !n)
        return CUBLAS_INVALID;
    *n = 0;
    const int code = blas_check(p, m[0], m[1], m[2], m[3], call);
    if (code != CUBLAS_OK)
        return code;
    if (w->splits != CUBLAS_SPLITS_IN_SCRATCH)
        return invalid(call, "sums may be joined in any order");
    uint64_t alignment = 0;
    for (int i = 0; i < 4; i++) {
        if (!w->alignment[i] || w->alignment[i] & (w->alignment[i] - 1))
            return invalid(call, "an alignment that is no power of two");
        if (blas_is_f8(m[0]->type) && w->alignment[i] < 16)
            return CUBLAS_NOT_SUPPORTED;
        alignment |= (uint64_t)w->alignment[i] << 16 * i;
    }
    *n = list_ways(p, m, w, alignment, most, choices);
    return CUBLAS_OK;
}

int cublasLtMatmulAlgoGetHeuristic(CublasHandle *handle, CublasProduct *product, CublasMatrix *a, CublasMatrix *b,
                                   CublasMatrix *c, CublasMatrix *d, CublasWishes *wishes, int most,
                                   CublasChoice *choices, int *n)
{
    const CublasMatrix *const matrices[] = { a, b, c, d };
    const int code = blas_enter(__func__);
    return simcuda_leave(code ? code : choose(handle, product, matrices, wishes, most, choices, n, __func__));
}

/* ---- calls ---- */

/* Whether products are multiplied by 1, and c by 0, or by 1, where it is added. */
static bool check_factors(const CublasProduct *p, const void *alpha, const void *beta, bool *adds)
{
    const float one = 1, zero = 0;
    const int32_t i_one = 1, i_zero = 0;
    const bool codes = p->scale == CUBLAS_I32;
    const void *is_one = codes ? (const void *)&i_one : &one, *is_zero = codes ? (const void *)&i_zero : &zero;
    *adds = beta && memcmp(beta, is_one, 4) == 0;
    return alpha && beta && memcmp(alpha, is_one, 4) == 0 && (*adds || memcmp(beta, is_zero, 4) == 0);
}

/* What is added may lie where d lies, or apart. */
static bool lie_apart(const CublasMatrix *m, const char *c, const char *d)
{
    const size_t bytes =
        ((size_t)(m->n - 1) * (size_t)m->step + (m->columns - 1) * (size_t)m->line + m->rows) * blas_bytes(m->type);
    return c == d || c + bytes <= d || d + bytes <= c;
}

static int check_places(const uint64_t *way, const void *const *at, const char *call)
{
    for (int i = 0; i < 4; i++) {
        const uint64_t alignment = way[WAY_ALIGNMENT] >> 16 * i & 0xffff;
        if (!at[i] || (uintptr_t)at[i] % alignment)
            return invalid(call, "a matrix lies at no multiple of what was promised");
    }
    return CUBLAS_OK;
}

static int check_way(const uint64_t *way, const void *scratch, size_t bytes, uint64_t shape, const char *call)
{
    if (way[WAY_MAGIC] != MAGIC || way[WAY_SHAPE] != shape)
        return invalid(call, "a way that is of another product");
    if (bytes < way[WAY_SCRATCH] || (bytes && (!scratch || (uintptr_t)scratch % SCRATCH_ALIGNMENT)))
        return invalid(call, "a scratch that is too small, or lies at no multiple of 256");
    return CUBLAS_OK;
}

int cublasLtMatmul(CublasHandle *handle, CublasProduct *product, const void *alpha, const void *a, CublasMatrix *of_a,
                   const void *b, CublasMatrix *of_b, const void *beta, const void *c, CublasMatrix *of_c, void *d,
                   CublasMatrix *of_d, const CublasWay *way, void *scratch, size_t bytes, CudaStream *stream)
{
    const void *const at[] = { a, b, c, d };
    bool adds = false;
    int code = blas_enter(__func__);
    if (code)
        return simcuda_leave(code);
    code = simcuda_holds(handle, WORD_HANDLE, __func__) && way ? CUBLAS_OK : CUBLAS_INVALID;
    code = code ? code : blas_check(product, of_a, of_b, of_c, of_d, __func__);
    if (code == CUBLAS_OK && !check_factors(product, alpha, beta, &adds))
        code = invalid(__func__, "factors other than 1 and 0");
    if (code == CUBLAS_OK && adds && !lie_apart(of_d, c, d))
        code = invalid(__func__, "what is added lies over what is made, elsewhere");
    code = code ? code : check_places(way->data, at, __func__);
    code = code ? code : check_way(way->data, scratch, bytes, shape_of(product, of_a, of_b, of_d), __func__);
    if (code == CUBLAS_OK) {
        const Multiply m = { *product,
                             *of_a,
                             *of_b,
                             *of_d,
                             a,
                             b,
                             adds ? c : NULL,
                             d,
                             scratch,
                             way->data[WAY_SPLITS],
                             (int)way->data[WAY_NUMBER] };
        code = simcuda_queue(stream, blas_multiply, &m, sizeof m) ? BLAS_EXECUTION_FAILED : CUBLAS_OK;
    }
    return simcuda_leave(code);
}
