#include "ops/quant/integer.h"

enum { BLOCK = 512 };

i32 *eval_i32(Eval *e, int i)
{
    i64 wide[BLOCK];
    const int64_t n = eval_elements(e, i);
    i32 *v = eval_scratch(e, (size_t)n, sizeof *v);
    for (int64_t first = 0; first < n; first += BLOCK) {
        const int64_t k = n - first < BLOCK ? n - first : BLOCK;
        load_i64(wide, e->in[i], first, k);
        for (int64_t j = 0; j < k; j++)
            v[first + j] = (i32)wide[j];
    }
    return v;
}

static bool is_f8(DType d)
{
    return d == F8E4M3 || d == F8E4M3FNUZ || d == F8E5M2 || d == F8E5M2FNUZ;
}

bool infer_codes(Infer *q, int i, bool floats)
{
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    if (t->dtype == U8 || t->dtype == I8 || (floats && is_f8(t->dtype)))
        return true;
    infer_fail(q, "operand %d must hold u8 or i8%s, not %s", i, floats ? " or f8" : "", dtype_name(t->dtype));
    return false;
}

bool infer_single(Infer *q, int i, int like)
{
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    const int64_t n = type_elements(t);
    if (n >= 0 && n != 1) {
        infer_fail(q, "operand %d must be one number, not %s", i, type_text(q->scratch, t));
        return false;
    }
    if (like >= 0 ? t->dtype != q->in[like]->dtype : !dtype_is_float(t->dtype)) {
        infer_fail(q, "operand %d cannot be %s", i, dtype_name(t->dtype));
        return false;
    }
    return true;
}
