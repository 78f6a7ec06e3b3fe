/* libcublasLt.so.13 of the simulated device: the functions that runtime/cuda/cublas.def lists, and no others.  Here: what they are
 * told of products and matrices, each attribute of its own size. */
#include <stdlib.h>
#include <string.h>

#include "simcuda/cublas.h"

int blas_enter(const char *call)
{
    const int code = simcuda_enter(call);
    if (code == CUDA_OK)
        return CUBLAS_OK;
    return code == CUDA_NO_MEMORY ? BLAS_NO_MEMORY : code == E_INVALID_CONTEXT ? BLAS_NOT_INITIALIZED : BLAS_INTERNAL;
}

/* The body of a call, unless its beginning failed; and of one that gives something up, which does so all the same. */
#define CALL(body)                                                                                                     \
    do {                                                                                                               \
        int code = blas_enter(__func__);                                                                               \
        if (code == CUBLAS_OK)                                                                                         \
            code = body;                                                                                               \
        return simcuda_leave(code);                                                                                    \
    } while (0)

#define GIVING_UP(thing, word)                                                                                         \
    do {                                                                                                               \
        int code = blas_enter(__func__);                                                                               \
        if (code == BLAS_NOT_INITIALIZED || !simcuda_holds(thing, word, __func__))                                     \
            return simcuda_leave(code ? code : CUBLAS_INVALID);                                                        \
        simcuda_let_go(thing);                                                                                         \
        return simcuda_leave(code);                                                                                    \
    } while (0)

int cublasLtGetProperty(int property, int *value)
{
    const char *word = getenv("QCC_SIM_CUBLAS");
    if (property < CUBLAS_MAJOR || property > CUBLAS_PATCH || !value)
        return CUBLAS_INVALID;
    *value = property == CUBLAS_MAJOR ? (word && *word ? atoi(word) : 13) : 0;
    return CUBLAS_OK;
}

const char *cublasLtGetStatusName(int code)
{
    static const struct {
        int code;
        const char *name;
    } names[] = { { CUBLAS_OK, "CUBLAS_STATUS_SUCCESS" },
                  { BLAS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED" },
                  { BLAS_NO_MEMORY, "CUBLAS_STATUS_ALLOC_FAILED" },
                  { CUBLAS_INVALID, "CUBLAS_STATUS_INVALID_VALUE" },
                  { BLAS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED" },
                  { BLAS_INTERNAL, "CUBLAS_STATUS_INTERNAL_ERROR" },
                  { CUBLAS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED" } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code)
            return names[i].name;
    return "CUBLAS_STATUS_UNKNOWN";
}

int cublasLtCreate(CublasHandle **handle)
{
    CALL(handle ? (*handle = simcuda_hold(WORD_HANDLE, sizeof **handle), CUBLAS_OK) : CUBLAS_INVALID);
}

int cublasLtDestroy(CublasHandle *handle)
{
    GIVING_UP(handle, WORD_HANDLE);
}

/* Takes what is said of an attribute; a report where it is of another size. */
static int take(void *to, size_t wanted, const void *value, size_t bytes, const char *call, int attribute)
{
    if (!value || bytes != wanted) {
        simcuda_complain("%s: attribute %d is of %zu bytes, not %zu", call, attribute, wanted, bytes);
        return CUBLAS_INVALID;
    }
    memcpy(to, value, bytes);
    return CUBLAS_OK;
}

static int no_attribute(const char *call, int attribute)
{
    simcuda_complain("%s: attribute %d, which the simulated library does not know", call, attribute);
    return CUBLAS_INVALID;
}

/* ---- products ---- */

static int new_product(CublasProduct **product, int compute, int scale)
{
    if (!product)
        return CUBLAS_INVALID;
    CublasProduct *p = *product = simcuda_hold(WORD_PRODUCT, sizeof *p);
    *p = (CublasProduct){ .compute = compute, .scale = scale, .end = CUBLAS_END_NONE, .bias_type = -1 };
    return CUBLAS_OK;
}

int cublasLtMatmulDescCreate(CublasProduct **product, int compute, int scale)
{
    CALL(new_product(product, compute, scale));
}

static int set_product(CublasProduct *p, int attribute, const void *value, size_t bytes, const char *call)
{
    if (!simcuda_holds(p, WORD_PRODUCT, call))
        return CUBLAS_INVALID;
    if (attribute == CUBLAS_TURN_A || attribute == CUBLAS_TURN_B)
        return take(&p->turned[attribute - CUBLAS_TURN_A], sizeof *p->turned, value, bytes, call, attribute);
    if (attribute == CUBLAS_END)
        return take(&p->end, sizeof p->end, value, bytes, call, attribute);
    if (attribute == CUBLAS_BIAS)
        return take(&p->bias, sizeof p->bias, value, bytes, call, attribute);
    if (attribute == CUBLAS_BIAS_TYPE)
        return take(&p->bias_type, sizeof p->bias_type, value, bytes, call, attribute);
    return no_attribute(call, attribute);
}

int cublasLtMatmulDescSetAttribute(CublasProduct *product, int attribute, const void *value, size_t bytes)
{
    CALL(set_product(product, attribute, value, bytes, __func__));
}

int cublasLtMatmulDescDestroy(CublasProduct *product)
{
    GIVING_UP(product, WORD_PRODUCT);
}

/* ---- matrices ---- */

static int new_matrix(CublasMatrix **matrix, int type, uint64_t rows, uint64_t columns, int64_t line)
{
    if (!matrix)
        return CUBLAS_INVALID;
    CublasMatrix *m = *matrix = simcuda_hold(WORD_MATRIX, sizeof *m);
    *m = (CublasMatrix){ .type = type, .rows = rows, .columns = columns, .line = line, .n = 1 };
    return CUBLAS_OK;
}

int cublasLtMatrixLayoutCreate(CublasMatrix **matrix, int type, uint64_t rows, uint64_t columns, int64_t line)
{
    CALL(new_matrix(matrix, type, rows, columns, line));
}

static int set_matrix(CublasMatrix *m, int attribute, const void *value, size_t bytes, const char *call)
{
    if (!simcuda_holds(m, WORD_MATRIX, call))
        return CUBLAS_INVALID;
    if (attribute == CUBLAS_STACK)
        return take(&m->n, sizeof m->n, value, bytes, call, attribute);
    if (attribute == CUBLAS_STACK_STEP)
        return take(&m->step, sizeof m->step, value, bytes, call, attribute);
    return no_attribute(call, attribute);
}

int cublasLtMatrixLayoutSetAttribute(CublasMatrix *matrix, int attribute, const void *value, size_t bytes)
{
    CALL(set_matrix(matrix, attribute, value, bytes, __func__));
}

int cublasLtMatrixLayoutDestroy(CublasMatrix *matrix)
{
    GIVING_UP(matrix, WORD_MATRIX);
}

/* ---- wishes ---- */

static int new_wishes(CublasWishes **wishes)
{
    if (!wishes)
        return CUBLAS_INVALID;
    CublasWishes *w = *wishes = simcuda_hold(WORD_WISHES, sizeof *w);
    *w = (CublasWishes){ .splits = 7, .alignment = { 256, 256, 256, 256 } };
    return CUBLAS_OK;
}

int cublasLtMatmulPreferenceCreate(CublasWishes **wishes)
{
    CALL(new_wishes(wishes));
}

static int set_wishes(CublasWishes *w, int attribute, const void *value, size_t bytes, const char *call)
{
    const int a = attribute - CUBLAS_ALIGNMENT_A;
    if (!simcuda_holds(w, WORD_WISHES, call))
        return CUBLAS_INVALID;
    if (attribute == CUBLAS_MOST_SCRATCH)
        return take(&w->most, sizeof w->most, value, bytes, call, attribute);
    if (attribute == CUBLAS_SPLITS)
        return take(&w->splits, sizeof w->splits, value, bytes, call, attribute);
    if (a >= 0 && a < 4)
        return take(&w->alignment[a], sizeof *w->alignment, value, bytes, call, attribute);
    return no_attribute(call, attribute);
}

int cublasLtMatmulPreferenceSetAttribute(CublasWishes *wishes, int attribute, const void *value, size_t bytes)
{
    CALL(set_wishes(wishes, attribute, value, bytes, __func__));
}

int cublasLtMatmulPreferenceDestroy(CublasWishes *wishes)
{
    GIVING_UP(wishes, WORD_WISHES);
}
