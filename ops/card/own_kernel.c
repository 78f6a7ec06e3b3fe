#include "ops/card/own_kernel.h"

#include <inttypes.h>

#include "base/half.h"

enum { ALIGNMENT = 16 };

void own_kernel_open(const OwnKernels *k, Text *body)
{
    text_open(body, k->arena);
}

void own_kernel_close(OwnKernels *k, const char *part, int64_t n, int block, Text *body)
{
    BUG_IF(k->arena->memory, k->n == OWN_KERNELS);
    k->list[k->n++] = (OwnKernel){ .part = part, .n = n, .block = block, .body = text_get(body) };
}

void own_product(OwnKernels *k, const char *part, const OwnProduct *product)
{
    OwnProduct *kept = NEW(k->arena, OwnProduct);
    BUG_IF(k->arena->memory, k->n == OWN_KERNELS);
    *kept = *product;
    k->list[k->n++] = (OwnKernel){ .part = part, .product = kept };
}

const char *own_f32(const OwnKernels *k, double v)
{
    return arena_printf(k->arena, "float_of(0x%08" PRIx32 "u)", half_bits32((float)v));
}

const char *own_f64(const OwnKernels *k, double v)
{
    return arena_printf(k->arena, "half_f64(0x%016" PRIx64 "ul)", half_bits64(v));
}

size_t own_scratch(OwnKernels *k, int64_t bytes)
{
    const size_t at = k->scratch;
    k->scratch += ((size_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}
