#include "ops/card/reduction.h"

#include "base/parallel.h"
#include "ops/card/cards.h"

DType dtype_wide(DType d)
{
    static const DType wide[] = { [ARITH_F32] = F32, [ARITH_F64] = F64, [ARITH_I64] = I64, [ARITH_U64] = U64 };
    return wide[dtype_arithmetic(d)];
}

Arithmetic dtype_arithmetic(DType d)
{
    if (dtype_is_float(d))
        return d == F64 ? ARITH_F64 : ARITH_F32;
    return d == U64 ? ARITH_U64 : ARITH_I64;
}

bool dtype_is_native(DType d, Arithmetic a)
{
    return d == dtype_wide(d) && dtype_arithmetic(d) == a;
}

Node *build_reduce(Build *b, Op op, Node *x, int n_axes, const int64_t *axes)
{
    const ReduceAttr attr = { .keepdims = true };
    return build_node(b, op, &attr, 2, (Node *[]){ x, build_i64s(b, n_axes, axes) });
}
