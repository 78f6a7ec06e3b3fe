#include "runtime/cuda/products.h"

#include "base/arena.h"
#include "runtime/cuda/device.h"

enum {
    ALIGNED = 64,          /* what every value on a device is at least (ir/plan.h) */
    MOST_SCRATCH = 1 << 25 /* bytes: what NVIDIA advises for the largest devices */
};

struct KernelProduct {
    KernelProduct *next;
    StackProduct is;
    CublasProduct *product;
    CublasMatrix *a, *b, *d;
    CublasChoice choice;
    bool taken; /* the library makes it */
};

/* How elements of a type are multiplied: the library's number of it, its arithmetic, and the type of its factors, which are 1
 * and 0. */
typedef struct Arithmetic {
    DType type;
    int number, compute, scale;
} Arithmetic;

static const Arithmetic arithmetics[] = {
    { F32, CUBLAS_F32, CUBLAS_EXACT_F32, CUBLAS_F32 }, { BF16, CUBLAS_BF16, CUBLAS_SUMS_F32, CUBLAS_F32 },
    { F16, CUBLAS_F16, CUBLAS_SUMS_F32, CUBLAS_F32 },  { I8, CUBLAS_I8, CUBLAS_SUMS_I32, CUBLAS_I32 },
    { I32, CUBLAS_I32, CUBLAS_SUMS_I32, CUBLAS_I32 },
};

static const Arithmetic *arithmetic_of(DType type)
{
    for (size_t i = 0; i < COUNT(arithmetics); i++)
        if (arithmetics[i].type == type)
            return &arithmetics[i];
    return NULL;
}

/* Notes what the library answered; whether all is well. */
static bool did(Products *p, int code, const char *asked)
{
    return code == CUBLAS_OK || device_failed(p->device, asked, p->library.error_name(code));
}

static size_t bytes_of(const MatrixStack *s, int64_t elements)
{
    return (size_t)elements * (size_t)dtype_bits(s->type) / 8;
}

/* ---- what is the same product ---- */

static bool same_stack(const MatrixStack *a, const MatrixStack *b)
{
    return a->type == b->type && a->argument == b->argument && a->turned == b->turned && a->rows == b->rows &&
           a->columns == b->columns && a->line == b->line && a->step == b->step && a->from == b->from;
}

static KernelProduct *find(const Products *p, const StackProduct *is)
{
    for (KernelProduct *k = p->list; k; k = k->next)
        if (k->is.n == is->n && same_stack(&k->is.a, &is->a) && same_stack(&k->is.b, &is->b) &&
            same_stack(&k->is.d, &is->d))
            return k;
    return NULL;
}

/* ---- descriptions ---- */

static CublasMatrix *describe(Products *p, const MatrixStack *s, int64_t n)
{
    const Cublas *c = &p->library;
    const int32_t stack = (int32_t)n;
    CublasMatrix *made = NULL;
    if (!did(p, c->matrix(&made, arithmetic_of(s->type)->number, (uint64_t)s->rows, (uint64_t)s->columns, s->line),
             "describing a matrix"))
        return NULL;
    if (n > 1)
        (void)(did(p, c->set_matrix(made, CUBLAS_STACK, &stack, sizeof stack), "describing a stack of matrices") &&
               did(p, c->set_matrix(made, CUBLAS_STACK_STEP, &s->step, sizeof s->step),
                   "describing a stack of matrices"));
    return made;
}

static void describe_product(Products *p, KernelProduct *k)
{
    const Cublas *c = &p->library;
    const Arithmetic *how = arithmetic_of(k->is.a.type);
    const int32_t a = k->is.a.turned ? CUBLAS_TURNED : CUBLAS_AS_IT_LIES;
    const int32_t b = k->is.b.turned ? CUBLAS_TURNED : CUBLAS_AS_IT_LIES;
    if (did(p, c->product(&k->product, how->compute, how->scale), "describing a product"))
        (void)(did(p, c->set_product(k->product, CUBLAS_TURN_A, &a, sizeof a), "describing a product") &&
               did(p, c->set_product(k->product, CUBLAS_TURN_B, &b, sizeof b), "describing a product"));
    k->a = describe(p, &k->is.a, k->is.n);
    k->b = describe(p, &k->is.b, k->is.n);
    k->d = describe(p, &k->is.d, k->is.n);
}

/* ---- the way it is made ---- */

/* The largest power of two, up to that of all values, that its first element lies at. */
static uint32_t alignment_of(const MatrixStack *s)
{
    uint32_t at = ALIGNED;
    while (bytes_of(s, s->from) % at)
        at /= 2;
    return at;
}

/* Sums that are shared out are joined from the scratch, in one order: others would be joined as blocks come, or rounded before. */
static void wish(Products *p, CublasWishes *w, const StackProduct *is)
{
    const uint64_t most = MOST_SCRATCH;
    const uint32_t splits = CUBLAS_SPLITS_IN_SCRATCH;
    const MatrixStack *const of[] = { &is->a, &is->b, &is->d, &is->d };
    (void)did(p, p->library.set_wishes(w, CUBLAS_MOST_SCRATCH, &most, sizeof most), "asking for a way to multiply");
    (void)did(p, p->library.set_wishes(w, CUBLAS_SPLITS, &splits, sizeof splits), "asking for a way to multiply");
    for (int i = 0; i < (int)COUNT(of); i++) {
        const uint32_t at = alignment_of(of[i]);
        (void)did(p, p->library.set_wishes(w, CUBLAS_ALIGNMENT_A + i, &at, sizeof at), "asking for a way to multiply");
    }
}

static void choose(Products *p, KernelProduct *k)
{
    const Cublas *c = &p->library;
    CublasWishes *w = NULL;
    int n = 0;
    if (!device_well(p->device) || !did(p, c->wishes(&w), "asking for a way to multiply"))
        return;
    wish(p, w, &k->is);
    if (device_well(p->device)) {
        const int code = c->choose(p->handle, k->product, k->a, k->b, k->d, k->d, w, 1, &k->choice, &n);
        k->taken =
            (code == CUBLAS_NOT_SUPPORTED || code == CUBLAS_INVALID || did(p, code, "asking for a way to multiply")) &&
            code == CUBLAS_OK && n == 1 && k->choice.state == CUBLAS_OK && k->choice.scratch <= MOST_SCRATCH;
    }
    (void)did(p, c->end_wishes(w), "asking for a way to multiply");
}

static const KernelProduct *take(ProductMaker *m, const StackProduct *is, size_t *scratch)
{
    Products *p = (Products *)m;
    KernelProduct *k = find(p, is);
    if (!k) {
        if (!device_well(p->device))
            return NULL;
        k = NEW(p->arena, KernelProduct);
        *k = (KernelProduct){ .next = p->list, .is = *is };
        p->list = k;
        describe_product(p, k);
        choose(p, k);
        p->n += k->taken;
        p->refused += !k->taken;
    }
    *scratch = k->taken ? k->choice.scratch : 0;
    return k->taken ? k : NULL;
}

/* ---- running, beginning and end ---- */

static void *place(const CudaAddress *arguments, const MatrixStack *s)
{
    return (void *)(uintptr_t)(arguments[s->argument] + bytes_of(s, s->from));
}

void product_run(Products *p, const KernelProduct *k, const CudaAddress *arguments, CudaAddress scratch,
                 CudaStream *stream)
{
    static const union {
        float f32;
        int32_t i32;
    } factors[2][2] = { { { .f32 = 1 }, { .f32 = 0 } }, { { .i32 = 1 }, { .i32 = 0 } } };
    const bool codes = arithmetic_of(k->is.a.type)->scale == CUBLAS_I32;
    void *d = place(arguments, &k->is.d);
    if (!device_well(p->device))
        return;
    (void)did(p,
              p->library.multiply(p->handle, k->product, &factors[codes][0], place(arguments, &k->is.a), k->a,
                                  place(arguments, &k->is.b), k->b, &factors[codes][1], d, k->d, d, k->d,
                                  &k->choice.way, (void *)(uintptr_t)scratch, k->choice.scratch, stream),
              "multiplying matrices");
}

void products_open(Products *p, Device *device, const Cublas *library, Arena *arena)
{
    *p = (Products){ .maker = { take }, .device = device, .library = *library, .arena = arena };
    (void)did(p, p->library.open(&p->handle), "opening cuBLAS");
}

void products_close(Products *p)
{
    for (KernelProduct *k = p->list; k; k = k->next) {
        if (k->product)
            (void)p->library.end_product(k->product);
        CublasMatrix *const matrices[] = { k->a, k->b, k->d };
        for (size_t i = 0; i < COUNT(matrices); i++)
            if (matrices[i])
                (void)p->library.end_matrix(matrices[i]);
    }
    p->list = NULL;
    if (p->handle)
        (void)p->library.close(p->handle);
    p->handle = NULL;
}
