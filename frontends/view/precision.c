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

static int64_t code_limit(const Node *n, const char *name)
{
    const AttrSpec *a = attr_find(op_of(n)->attrs, str(name));
    return a && a->kind == ATTR_INT ? *(const int64_t *)attr_at(a, n->attr) : 0;
}

int view_code_bits(const Node *n)
{
    const Type *t = n->type->kind != TYPE_TENSOR && n->type->n_parts ? n->type->parts[0] : n->type;
    if (!op_of(n)->attrs || t->kind != TYPE_TENSOR || !dtype_is_integer(t->dtype) || dtype_bits(t->dtype) > 16)
        return 0;
    const int64_t codes = code_limit(n, "largest") - code_limit(n, "least") + 1;
    int bits = 0;
    while (codes > (int64_t)1 << bits)
        bits++;
    return bits > 0 && bits < dtype_bits(t->dtype) ? bits : 0;
}

ViewPrecision view_precision_of(const Node *n)
{
    const int bits = n ? view_code_bits(n) : 0;
    return !n ? VIEW_OTHER : !bits ? view_precision(n->type) : bits <= 4 ? VIEW_I4 : bits <= 8 ? VIEW_I8 : VIEW_I16;
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
