#include "api/model/compare.h"

#include <inttypes.h>
#include <math.h>

static const char *compare_tensors(Arena *arena, const Tensor *got, const Tensor *want, double rtol, double atol)
{
    if (got->type != want->type)
        return arena_printf(arena, "is %s, not %s", type_text(arena, got->type), type_text(arena, want->type));
    const int64_t n = tensor_elements(got);
    for (int64_t i = 0; i < n; i++) {
        const double a = tensor_get_f64(got, i), b = tensor_get_f64(want, i);
        if (a == b || (isnan(a) && isnan(b)))
            continue;
        if (!(fabs(a - b) <= atol + rtol * fabs(b)) || isinf(a) || isinf(b))
            return arena_printf(arena, "element %" PRId64 " of %s is %.9g, not %.9g", i, type_text(arena, got->type), a,
                                b);
    }
    return NULL;
}

const char *compare_values(Arena *arena, const Tensor *got, const Tensor *want, double rtol, double atol)
{
    enum { DEEPEST = 16 };
    const Tensor *stack[DEEPEST][2] = { { got, want } };
    size_t next[DEEPEST] = { 0 };
    int depth = 1;
    while (depth) {
        const Tensor *a = stack[depth - 1][0], *b = stack[depth - 1][1];
        if (a->type->kind != b->type->kind)
            return "is of another kind";
        if (a->type->kind == TYPE_TENSOR) {
            const char *why = compare_tensors(arena, a, b, rtol, atol);
            if (why)
                return why;
            depth--;
            continue;
        }
        if (a->n_items != b->n_items)
            return arena_printf(arena, "has %zu elements, not %zu", a->n_items, b->n_items);
        if (next[depth - 1] == a->n_items || depth == DEEPEST) {
            depth--;
            continue;
        }
        const size_t i = next[depth - 1]++;
        stack[depth][0] = a->items[i];
        stack[depth][1] = b->items[i];
        next[depth++] = 0;
    }
    return NULL;
}
