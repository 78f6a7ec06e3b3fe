#include "passes/constant_values.h"
#include "base/bytes.h"

#include <math.h>
#include <string.h>

static const Tensor *values(const Node *n)
{
    const Tensor *t = node_constant(n, 0);
    return t && t->data ? t : NULL;
}

bool is_one_value(const Node *n)
{
    const Tensor *t = values(n);
    const int64_t count = t ? tensor_elements(t) : 0;
    if (count <= 1)
        return count == 1;
    const size_t size = t->bytes / (size_t)count;
    return size * (size_t)count == t->bytes && memcmp(t->data, (const char *)t->data + size, t->bytes - size) == 0;
}

bool is_additive_mask(const Node *n)
{
    const Tensor *t = values(n);
    bool shown = false, hidden = false;
    for (int64_t i = 0; t && i < tensor_elements(t); i++) {
        const double v = tensor_get_f64(t, i);
        if (!(v == 0 || v < -50))
            return false;
        shown |= v == 0;
        hidden |= v < -50;
    }
    return shown && hidden;
}

bool is_whole_numbers(const Node *n)
{
    enum { LEAST = 16 };
    const Tensor *t = values(n);
    if (!t || tensor_elements(t) < LEAST)
        return false;
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        const double v = tensor_get_f64(t, i);
        if (v != floor(v))
            return false;
    }
    return !is_one_value(n);
}

bool is_counting(const Node *n)
{
    enum { LEAST = 3 };
    int long_axes = 0;
    for (int i = 0; i < n->type->rank; i++)
        long_axes += n->type->dims[i] != 1;
    if (n->type->kind != TYPE_TENSOR || long_axes != 1 || type_elements(n->type) < LEAST)
        return false;
    const Tensor *t = values(n);
    const double first = t ? tensor_get_f64(t, 0) : 0.5;
    for (int64_t i = 0; t && i < tensor_elements(t); i++)
        if (tensor_get_f64(t, i) != first + (double)i)
            return false;
    return first == floor(first);
}

bool are_cosines_and_sines(const Node *a, const Node *b)
{
    const Tensor *c = a->type == b->type && a != b ? values(a) : NULL, *s = c ? values(b) : NULL;
    bool between = false;
    if (!c || !s)
        return false;
    const double near = a->type->dtype == F32 || a->type->dtype == F64 ? 1e-5 : 2e-2;
    for (int64_t i = 0; i < tensor_elements(c); i++) {
        const double x = tensor_get_f64(c, i), y = tensor_get_f64(s, i);
        if (!(fabs(x * x + y * y - 1) <= near))
            return false;
        between |= x * x > 0.01 && x * x < 0.99;
    }
    return between;
}

bool is_copy(const Node *a, const Node *b, bool transposed)
{
    const Type *t = a->type, *u = b->type;
    if (t->rank != 2 || u->rank != 2 || t->dtype != u->dtype || t->dims[0] != u->dims[transposed] ||
        t->dims[1] != u->dims[!transposed])
        return false;
    const Tensor *x = values(a), *y = x ? values(b) : NULL;
    if (!x || !y || x->bytes != y->bytes || is_one_value(a))
        return false;
    if (!transposed)
        return bytes_equal(x->data, y->data, x->bytes);
    const int64_t rows = t->dims[0], columns = t->dims[1];
    const size_t size = x->bytes / (size_t)(rows * columns);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            if (memcmp((const char *)x->data + (size_t)(i * columns + k) * size,
                       (const char *)y->data + (size_t)(k * rows + i) * size, size) != 0)
                return false;
    return true;
}
