#include "runtime/cuda/products.h"

#include <inttypes.h>

#include "runtime/cuda/products_parts.h"

enum {
    ALIGNED = 64,           /* what every value on a device is at least (ir/plan.h) */
    SOMEWHERE = 1 << 12,    /* an address that nobody reads from */
    MOST_SCRATCH = 1 << 25, /* bytes: what NVIDIA advises for the largest devices */
    MOST_WAYS = 8           /* that are measured */
};

/* How elements of a type are multiplied: the library's number of it, its arithmetic, and the type of its factors, which are 1
 * and 0. */
typedef struct Arithmetic {
    DType type;
    int number, compute, scale;
} Arithmetic;

static const Arithmetic arithmetics[] = {
    { F32, CUBLAS_F32, CUBLAS_EXACT_F32, CUBLAS_F32 },      { BF16, CUBLAS_BF16, CUBLAS_SUMS_F32, CUBLAS_F32 },
    { F16, CUBLAS_F16, CUBLAS_SUMS_F32, CUBLAS_F32 },       { I8, CUBLAS_I8, CUBLAS_SUMS_I32, CUBLAS_I32 },
    { I32, CUBLAS_I32, CUBLAS_SUMS_I32, CUBLAS_I32 },       { F8E4M3, CUBLAS_F8E4M3, CUBLAS_SUMS_F32, CUBLAS_F32 },
    { F8E5M2, CUBLAS_F8E5M2, CUBLAS_SUMS_F32, CUBLAS_F32 },
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

size_t product_bytes(const MatrixStack *s, int64_t elements)
{
    return (size_t)elements * (size_t)dtype_bits(s->type) / 8;
}

/* ---- what is the same product ---- */

static bool same_stack(const MatrixStack *a, const MatrixStack *b)
{
    return a->type == b->type && a->argument == b->argument && a->turned == b->turned && a->rows == b->rows &&
           a->columns == b->columns && a->line == b->line && a->step == b->step && a->from == b->from;
}

static bool same_end(const ProductEnd *a, const ProductEnd *b)
{
    return a->added == b->added && a->bias == b->bias && (a->bias == NO_ARGUMENT || a->bias_type == b->bias_type) &&
           a->relu == b->relu;
}

static KernelProduct *find(const Products *p, const StackProduct *is)
{
    for (KernelProduct *k = p->list; k; k = k->next)
        if (k->is.n == is->n && same_stack(&k->is.a, &is->a) && same_stack(&k->is.b, &is->b) &&
            same_stack(&k->is.d, &is->d) && same_end(&k->is.end, &is->end))
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

/* What becomes of the sums.  A way is chosen by how a bias lies, too, before it lies anywhere. */
static void describe_end(Products *p, const KernelProduct *k)
{
    static const char asked[] = "describing what becomes of a product";
    const Cublas *c = &p->library;
    const ProductEnd *end = &k->is.end;
    const bool bias = end->bias != NO_ARGUMENT;
    const uint32_t number =
        !bias && !end->relu ? CUBLAS_END_NONE : (bias ? CUBLAS_END_BIAS : 0u) | (end->relu ? CUBLAS_END_RELU : 0u);
    const void *somewhere = (const void *)(uintptr_t)SOMEWHERE;
    if (number != CUBLAS_END_NONE)
        (void)did(p, c->set_product(k->product, CUBLAS_END, &number, sizeof number), asked);
    if (!bias || !device_well(p->device))
        return;
    const int32_t type = arithmetic_of(end->bias_type)->number;
    (void)(did(p, c->set_product(k->product, CUBLAS_BIAS_TYPE, &type, sizeof type), asked) &&
           did(p, c->set_product(k->product, CUBLAS_BIAS, &somewhere, sizeof somewhere), asked));
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
    if (device_well(p->device))
        describe_end(p, k);
    k->a = describe(p, &k->is.a, k->is.n);
    k->b = describe(p, &k->is.b, k->is.n);
    k->d = describe(p, &k->is.d, k->is.n);
}

/* ---- the way it is made ---- */

/* The largest power of two, up to that of all values, that its first element lies at. */
static uint32_t alignment_of(const MatrixStack *s)
{
    uint32_t at = ALIGNED;
    while (product_bytes(s, s->from) % at)
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

/* Ways that can be used, at most so many: of those that a library knows, in its order. */
static int ways_of(Products *p, KernelProduct *k, const CublasWishes *w, int most, CublasChoice *ways)
{
    int n = 0, usable = 0;
    const int code =
        p->library.choose(p->handle, k->product, k->a, k->b, k->d, k->d, (CublasWishes *)(uintptr_t)w, most, ways, &n);
    if (code == CUBLAS_NOT_SUPPORTED || code == CUBLAS_INVALID || !did(p, code, "asking for a way to multiply"))
        return 0;
    for (int i = 0; i < n; i++) {
        if (ways[i].state != CUBLAS_OK || ways[i].scratch > MOST_SCRATCH)
            continue;
        ways[usable] = ways[i];
        usable += !k->is.end.relu || product_keeps_nan(p, k, &ways[usable]);
    }
    return usable;
}

static const char *say_stack(Arena *arena, const MatrixStack *s)
{
    return arena_printf(arena, "%s%s %" PRId64 "x%" PRId64 " line %" PRId64 " step %" PRId64 " at %u",
                        dtype_name(s->type), s->turned ? " turned" : "", s->rows, s->columns, s->line, s->step,
                        (unsigned)alignment_of(s));
}

const char *const *product_words(const Products *p, const KernelProduct *k, const char *own, Arena *arena)
{
    enum { WORDS = 7 };
    const ProductEnd *end = &k->is.end;
    const DeviceFacts *facts = &p->device->facts;
    const char **words = NEWS(arena, const char *, WORDS + 1);
    words[0] = own;
    words[1] = arena_printf(arena, "cublasLt %d.%d.%d", p->library.major, p->library.minor, p->library.patch);
    words[2] = arena_printf(arena, "%s %d.%d", facts->name, facts->major, facts->minor);
    words[3] = say_stack(arena, &k->is.a);
    words[4] = say_stack(arena, &k->is.b);
    words[5] = say_stack(arena, &k->is.d);
    words[6] = arena_printf(arena, "%" PRId64 " of them, %s added, %s bias, %s", k->is.n,
                            end->added == NO_ARGUMENT ? "nothing" : "c",
                            end->bias == NO_ARGUMENT ? "no" : dtype_name(end->bias_type), end->relu ? "relu" : "all");
    return words;
}

static int fastest(Products *p, KernelProduct *k, const CublasChoice *ways, int n)
{
    Str kept[MOST_WAYS];
    ProductTimes times = { p, k, ways };
    for (int i = 0; i < n; i++)
        kept[i] = (Str){ (const char *)&ways[i].way, sizeof ways[i].way };
    const Choice choice = {
        .words = product_words(p, k, "way", p->arena), .ways = kept, .n = n, .seconds = product_seconds, .user = &times
    };
    return choice_make(p->choices, &choice);
}

static void choose(Products *p, KernelProduct *k)
{
    const Cublas *c = &p->library;
    CublasWishes *w = NULL;
    CublasChoice ways[MOST_WAYS];
    int n = 0;
    if (!device_well(p->device) || !did(p, c->wishes(&w), "asking for a way to multiply"))
        return;
    wish(p, w, &k->is);
    if (device_well(p->device))
        n = ways_of(p, k, w, p->choices || k->is.end.relu ? MOST_WAYS : 1, ways);
    (void)did(p, c->end_wishes(w), "asking for a way to multiply");
    if (n && device_well(p->device))
        k->choice = ways[p->choices && n > 1 ? fastest(p, k, ways, n) : 0];
    k->taken = n > 0 && device_well(p->device);
}

static const KernelProduct *take(ProductMaker *m, const StackProduct *is, size_t *scratch)
{
    Products *p = (Products *)m;
    KernelProduct *k = find(p, is);
    if (is->end.bias != NO_ARGUMENT && !arithmetic_of(is->end.bias_type))
        return NULL;
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

int product_multiply(Products *p, const KernelProduct *k, const CublasChoice *way, const ProductPlaces *at,
                     CudaAddress scratch, CudaStream *stream)
{
    static const union {
        float f32;
        int32_t i32;
    } factors[2][2] = { { { .f32 = 0 }, { .f32 = 1 } }, { { .i32 = 0 }, { .i32 = 1 } } };
    const bool codes = arithmetic_of(k->is.a.type)->scale == CUBLAS_I32;
    const bool adds = k->is.end.added != NO_ARGUMENT;
    const void *bias = (const void *)(uintptr_t)at->bias;
    /* where it lies is a part of the description: whoever multiplies next says so anew */
    const int code = bias ? p->library.set_product(k->product, CUBLAS_BIAS, &bias, sizeof bias) : CUBLAS_OK;
    if (code != CUBLAS_OK)
        return code;
    return p->library.multiply(p->handle, k->product, &factors[codes][1], (void *)(uintptr_t)at->a, k->a,
                               (void *)(uintptr_t)at->b, k->b, &factors[codes][adds],
                               (void *)(uintptr_t)(adds ? at->c : at->d), k->d, (void *)(uintptr_t)at->d, k->d,
                               &way->way, (void *)(uintptr_t)scratch, way->scratch, stream);
}

static CudaAddress place(const CudaAddress *arguments, const MatrixStack *s)
{
    return arguments[s->argument] + product_bytes(s, s->from);
}

void product_run(Products *p, const KernelProduct *k, const CudaAddress *arguments, CudaAddress scratch,
                 CudaStream *stream)
{
    const ProductEnd *end = &k->is.end;
    const ProductPlaces at = { .a = place(arguments, &k->is.a),
                               .b = place(arguments, &k->is.b),
                               .c = end->added == NO_ARGUMENT ? 0 : arguments[end->added],
                               .d = place(arguments, &k->is.d),
                               .bias = end->bias == NO_ARGUMENT ? 0 : arguments[end->bias] };
    if (device_well(p->device))
        (void)did(p, product_multiply(p, k, &k->choice, &at, scratch, stream), "multiplying matrices");
}

void products_open(Products *p, Device *device, const Cublas *library, Choices *choices, Arena *arena)
{
    *p = (Products){ .maker = { take }, .device = device, .library = *library, .arena = arena, .choices = choices };
    (void)did(p, p->library.open(&p->handle), "opening cuBLAS");
}

void product_decline(Products *p, const KernelProduct *product)
{
    for (KernelProduct *k = p->list; k; k = k->next)
        if (k == product && k->taken) {
            k->taken = false;
            p->n--;
            p->refused++;
        }
}

void products_settle(Products *p)
{
    product_end_trials(p);
    if (p->choices)
        choices_settle(p->choices);
}

void products_close(Products *p)
{
    product_end_trials(p);
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
