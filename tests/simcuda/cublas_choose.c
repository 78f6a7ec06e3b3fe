/* Which products the simulated cuBLASLt makes, how, and what a call has to bring for the way that was chosen. */
#include <string.h>

#include "simcuda/cublas.h"

/* Parts of long sums lie in the scratch, as those of split-K do. */
enum { MAGIC = 0x71636362, LONG = 48, SPLITS = 3, WAY_MAGIC = 0, WAY_SPLITS, WAY_SCRATCH, WAY_SHAPE, WAY_ALIGNMENT };

size_t blas_bytes(int type)
{
    return type == CUBLAS_I8 ? 1 : type == CUBLAS_F16 || type == CUBLAS_BF16 ? 2 : 4;
}

uint64_t blas_sums(const CublasProduct *p, const CublasMatrix *a)
{
    return p->turned[0] ? a->rows : a->columns;
}

/* ---- what makes sense ---- */

typedef struct Combination {
    int compute, scale, factor, result;
} Combination;

static const Combination combinations[] = {
    { CUBLAS_EXACT_F32, CUBLAS_F32, CUBLAS_F32, CUBLAS_F32 }, { CUBLAS_SUMS_F32, CUBLAS_F32, CUBLAS_BF16, CUBLAS_BF16 },
    { CUBLAS_SUMS_F32, CUBLAS_F32, CUBLAS_BF16, CUBLAS_F32 }, { CUBLAS_SUMS_F32, CUBLAS_F32, CUBLAS_F16, CUBLAS_F16 },
    { CUBLAS_SUMS_F32, CUBLAS_F32, CUBLAS_F16, CUBLAS_F32 },  { CUBLAS_SUMS_I32, CUBLAS_I32, CUBLAS_I8, CUBLAS_I32 },
};

static bool known(const CublasProduct *p, const CublasMatrix *a, const CublasMatrix *b, const CublasMatrix *d)
{
    for (size_t i = 0; i < sizeof combinations / sizeof *combinations; i++) {
        const Combination *c = &combinations[i];
        if (c->compute == p->compute && c->scale == p->scale && c->factor == a->type && c->factor == b->type &&
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

static bool fours(const CublasMatrix *m)
{
    return m->rows % 4 == 0 && m->columns % 4 == 0 && m->line % 4 == 0;
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
    const bool fits = p->turned[0] && !p->turned[1] && fours(a) && fours(b) && d->rows % 4 == 0;
    return a->type == CUBLAS_I8 && !fits ? CUBLAS_NOT_SUPPORTED : CUBLAS_OK;
}

/* ---- ways ---- */

/* A number of what a way is for. */
static uint64_t shape_of(const CublasProduct *p, const CublasMatrix *a, const CublasMatrix *b, const CublasMatrix *d)
{
    const CublasMatrix *const all[] = { a, b, d };
    uint64_t h = (uint64_t)(p->compute * 4 + p->turned[0] * 2 + p->turned[1]);
    for (int i = 0; i < 3; i++) {
        const uint64_t parts[] = { (uint64_t)all[i]->type, all[i]->rows,           all[i]->columns,
                                   (uint64_t)all[i]->line, (uint64_t)all[i]->step, (uint64_t)all[i]->n };
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            h = (h ^ parts[k]) * 0x100000001b3u;
    }
    return h;
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
    const uint64_t parts = (uint64_t)SPLITS * m[3]->rows * m[3]->columns * (uint64_t)m[3]->n * sizeof(float);
    const bool splits = m[0]->type != CUBLAS_I8 && blas_sums(p, m[0]) >= LONG && parts <= w->most;
    uint64_t alignment = 0;
    for (int i = 0; i < 4; i++) {
        if (!w->alignment[i] || w->alignment[i] & (w->alignment[i] - 1))
            return invalid(call, "an alignment that is no power of two");
        alignment |= (uint64_t)w->alignment[i] << 16 * i;
    }
    *choices = (CublasChoice){ .scratch = splits ? parts : 0, .state = CUBLAS_OK, .waves = 1 };
    choices->way.data[WAY_MAGIC] = MAGIC;
    choices->way.data[WAY_SPLITS] = splits ? SPLITS : 1;
    choices->way.data[WAY_SCRATCH] = choices->scratch;
    choices->way.data[WAY_SHAPE] = shape_of(p, m[0], m[1], m[3]);
    choices->way.data[WAY_ALIGNMENT] = alignment;
    *n = 1;
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

static bool is_one_and_zero(const CublasProduct *p, const void *alpha, const void *beta)
{
    const float one = 1, zero = 0;
    const int32_t i_one = 1, i_zero = 0;
    const bool codes = p->scale == CUBLAS_I32;
    return alpha && beta && memcmp(alpha, codes ? (const void *)&i_one : &one, 4) == 0 &&
           memcmp(beta, codes ? (const void *)&i_zero : &zero, 4) == 0;
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
    int code = blas_enter(__func__);
    if (code)
        return simcuda_leave(code);
    code = simcuda_holds(handle, WORD_HANDLE, __func__) && way ? CUBLAS_OK : CUBLAS_INVALID;
    code = code ? code : blas_check(product, of_a, of_b, of_c, of_d, __func__);
    if (code == CUBLAS_OK && !is_one_and_zero(product, alpha, beta))
        code = invalid(__func__, "factors other than 1 and 0");
    code = code ? code : check_places(way->data, at, __func__);
    code = code ? code : check_way(way->data, scratch, bytes, shape_of(product, of_a, of_b, of_d), __func__);
    if (code == CUBLAS_OK) {
        const Multiply m = { *product, *of_a, *of_b, *of_d, a, b, d, scratch, way->data[WAY_SPLITS] };
        code = simcuda_queue(stream, blas_multiply, &m, sizeof m) ? BLAS_EXECUTION_FAILED : CUBLAS_OK;
    }
    return simcuda_leave(code);
}
