#include "base/bytes.h"
#include "passes/clean/constant_values.h"

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

bool is_zeros(const Node *n)
{
    const Tensor *t = values(n);
    return t && is_one_value(n) && tensor_get_f64(t, 0) == 0;
}

bool is_identity_matrix(const Node *n)
{
    const Type *type = n->type;
    const int64_t side = type->rank >= 2 ? type->dims[type->rank - 1] : 0;
    if (side < 2 || type->dims[type->rank - 2] != side)
        return false;
    const Tensor *t = values(n);
    for (int64_t i = 0; t && i < tensor_elements(t); i++)
        if (tensor_get_f64(t, i) != (i / side % side == i % side))
            return false;
    return t;
}

bool is_progression(const Node *n)
{
    enum { LEAST = 4 };
    int long_axes = 0;
    for (int i = 0; i < n->type->rank; i++)
        long_axes += n->type->dims[i] != 1;
    const int64_t count = type_elements(n->type);
    const Tensor *t = long_axes == 1 && count >= LEAST ? values(n) : NULL;
    if (!t)
        return false;
    const double first = tensor_get_f64(t, 0), step = (tensor_get_f64(t, count - 1) - first) / (double)(count - 1);
    const double near = 1e-5 * (fabs(first) + fabs(step) * (double)count);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(tensor_get_f64(t, i) - first - step * (double)i) <= near))
            return false;
    return step != 0;
}

bool is_antisymmetric(const Node *n)
{
    enum { LEAST = 3 };
    const int64_t count = type_elements(n->type), width = n->type->rank > 1 ? n->type->dims[n->type->rank - 1] : 1;
    const int64_t rows = width ? count / width : 0;
    const Tensor *t = rows >= LEAST ? values(n) : NULL;
    if (!t || is_one_value(n))
        return false;
    for (int64_t i = 0; i < count; i++) {
        const double v = tensor_get_f64(t, i), mirror = tensor_get_f64(t, (rows - 1 - i / width) * width + i % width);
        if (!(fabs(v + mirror) <= 1e-6 * fabs(v)))
            return false;
    }
    return true;
}

/* Whether elements i and i + `apart` of each row, for i = 0, `step` .., are sine and cosine of an angle. */
static bool has_pairs(const Tensor *t, int64_t width, int64_t apart, int64_t step)
{
    const double near = t->type->dtype == F32 || t->type->dtype == F64 ? 1e-4 : 2e-2;
    for (int64_t row = 0; row < tensor_elements(t); row += width)
        for (int64_t i = 0, pairs = 0; pairs < width / 2; pairs++, i += step) {
            const double x = tensor_get_f64(t, row + i), y = tensor_get_f64(t, row + i + apart);
            if (!(fabs(x * x + y * y - 1) <= near))
                return false;
        }
    return true;
}

bool is_sinusoidal(const Node *n)
{
    enum { LEAST_WIDTH = 4, LEAST_ROWS = 2 };
    const int64_t width = n->type->rank >= 2 ? n->type->dims[n->type->rank - 1] : 0;
    if (width < LEAST_WIDTH || width % 2 || type_elements(n->type) / width < LEAST_ROWS)
        return false;
    const Tensor *t = values(n);
    return t && !is_one_value(n) && (has_pairs(t, width, 1, 2) || has_pairs(t, width, width / 2, 1));
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

static bool same_type(const Type *t, const Type *u, bool transposed)
{
    if (t->rank != u->rank || t->dtype != u->dtype || (transposed && t->rank != 2))
        return false;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] != u->dims[transposed ? 1 - i : i])
            return false;
    return true;
}

bool are_equal(const Node *a, const Node *b, bool transposed)
{
    const Type *t = a->type;
    if (!same_type(t, b->type, transposed))
        return false;
    const Tensor *x = values(a), *y = x ? values(b) : NULL;
    if (!x || !y || x->bytes != y->bytes)
        return false;
    if (!transposed)
        return bytes_equal(x->data, y->data, x->bytes);
    const int64_t rows = t->dims[0], columns = t->dims[1];
    const size_t size = rows && columns ? x->bytes / (size_t)(rows * columns) : 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            if (memcmp((const char *)x->data + (size_t)(i * columns + k) * size,
                       (const char *)y->data + (size_t)(k * rows + i) * size, size) != 0)
                return false;
    return true;
}

bool is_copy(const Node *a, const Node *b, bool transposed)
{
    return a->type->rank == 2 && are_equal(a, b, transposed) && !is_one_value(a);
}
