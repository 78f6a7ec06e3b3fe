#include "ops/move/order.h"

#include <string.h>

static uint64_t key_of_float(f64 v)
{
    uint64_t bits;
    if (v != v)
        return UINT64_MAX;
    v += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

uint64_t *order_keys(Eval *e, const Tensor *t)
{
    enum { BLOCK = 512 };
    const DType dtype = t->type->dtype;
    const int64_t n = tensor_elements(t);
    uint64_t *keys = eval_scratch(e, (size_t)n, sizeof *keys);
    if (dtype == U64) {
        load_u64(keys, t, 0, n);
        return keys;
    }
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t k = n - at < BLOCK ? n - at : BLOCK;
        f64 floats[BLOCK];
        i64 ints[BLOCK];
        if (dtype_is_float(dtype)) {
            load_f64(floats, t, at, k);
            for (int64_t i = 0; i < k; i++)
                keys[at + i] = key_of_float(floats[i]);
        } else {
            load_i64(ints, t, at, k);
            for (int64_t i = 0; i < k; i++)
                keys[at + i] = (uint64_t)ints[i] ^ (uint64_t)1 << 63;
        }
    }
    return keys;
}

int order_compare(const Rows *rows, int64_t a, int64_t b)
{
    const uint64_t *x = rows->keys + a * rows->row, *y = rows->keys + b * rows->row;
    for (int64_t i = 0; i < rows->width; i++, x += rows->step, y += rows->step)
        if (*x != *y)
            return *x < *y ? -1 : 1;
    return 0;
}

static void merge(const Rows *rows, const int64_t *from, int64_t *to, int64_t first, int64_t middle, int64_t last)
{
    int64_t a = first, b = middle;
    for (int64_t i = first; i < last; i++)
        to[i] = a < middle && (b >= last || order_compare(rows, from[a], from[b]) <= 0) ? from[a++] : from[b++];
}

int64_t *order_sort(Eval *e, const Rows *rows, int64_t n)
{
    int64_t *from = eval_scratch(e, (size_t)n, sizeof *from), *to = eval_scratch(e, (size_t)n, sizeof *to);
    for (int64_t i = 0; i < n; i++)
        from[i] = i;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            const int64_t middle = i + width < n ? i + width : n, last = i + 2 * width < n ? i + 2 * width : n;
            merge(rows, from, to, i, middle, last);
        }
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    return from;
}
