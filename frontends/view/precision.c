#include "frontends/view/precision.h"

static ViewPrecision of_float(DType dtype)
{
    const int bits = dtype_bits(dtype);
    return dtype == BF16 ? VIEW_BF16
           : bits == 64  ? VIEW_F64
           : bits == 32  ? VIEW_F32
           : bits == 16  ? VIEW_F16
           : bits > 4    ? VIEW_F8
                         : VIEW_F4;
}

static ViewPrecision of_integer(DType dtype)
{
    const int bits = dtype_bits(dtype);
    return bits == 64 ? VIEW_I64 : bits == 32 ? VIEW_I32 : bits == 16 ? VIEW_I16 : bits == 8 ? VIEW_I8 : VIEW_I4;
}

ViewPrecision view_precision(const Type *type)
{
    while (type && type->kind != TYPE_TENSOR && type->n_parts > 0)
        type = type->parts[0];
    if (!type || type->kind != TYPE_TENSOR || type->dtype == STRING)
        return VIEW_OTHER;
    if (type->dtype == BOOL)
        return VIEW_BOOL;
    return dtype_is_float(type->dtype) ? of_float(type->dtype) : of_integer(type->dtype);
}

const char *view_precision_word(ViewPrecision p)
{
    static const char *const words[] = {
#define VIEW_WORD(id, word) word,
        VIEW_PRECISIONS(VIEW_WORD)
#undef VIEW_WORD
    };
    return words[p];
}
