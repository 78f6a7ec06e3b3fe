#include "ops/contract/operands.h"

#include "ops/contract/contract.h"

bool operands_narrow(const Type *a, const Type *b, int64_t rows)
{
    enum { FEW = 2 };
    return a->dtype == BF16 && b->dtype == BF16 && rows > FEW;
}

/* Codes as numbers. */
typedef struct Widening {
    const Eval *e;
    const Tensor *from;
    f32 *to;
} Widening;

enum { WIDENED = 1 << 14 }; /* elements that are worth a share */

static void widen_some(void *arg, int64_t begin, int64_t end, int worker)
{
    const Widening *w = arg;
    const int64_t all = tensor_elements(w->from), from = begin * WIDENED,
                  to = end * WIDENED < all ? end * WIDENED : all;
    (void)worker;
    kernels_load_f32(w->e->kernels, w->to + from, w->from, from, to - from);
}

const void *operand_wide(Eval *e, int i, Arithmetic arithmetic)
{
    if (arithmetic != ARITH_F32 || !contracts_codes(e->in[i]->type->dtype))
        return eval_wide(e, i, arithmetic);
    const int64_t n = tensor_elements(e->in[i]);
    Widening w = { e, e->in[i], eval_room(e, (size_t)n, sizeof(f32)) };
    eval_parallel(e, (n + WIDENED - 1) / WIDENED, widen_some, &w);
    return w.to;
}
