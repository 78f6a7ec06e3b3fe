/* Arrays as files and as bytes of a stream, for tests of data. */
#ifndef TESTS_SUPPORT_DATA_ARRAYS_H
#define TESTS_SUPPORT_DATA_ARRAYS_H

#include "runtime/data/npy.h"
#include "support/data.h"

static inline Status append(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return OK;
}

/* The bytes of an .npy file whose k-th element is value(k). */
static inline Str npy_of(Context *c, DType dtype, int rank, const int64_t *dims, double (*value)(int64_t k))
{
    Text t;
    Tensor *x = tensor_new(&c->arena, type_tensor(&c->ir.types, dtype, rank, dims));
    for (int64_t k = 0; k < tensor_elements(x); k++)
        tensor_set_f64(x, k, value(k));
    text_open(&t, &c->arena);
    (void)npy_write(&c->arena, x, append, &t);
    return (Str){ t.p, t.n };
}

static inline void npy_file(Context *c, const char *path, DType dtype, int rank, const int64_t *dims,
                            double (*value)(int64_t k))
{
    const Str bytes = npy_of(c, dtype, rank, dims, value);
    write_file(path, bytes.p, bytes.n);
}

static inline double count(int64_t k)
{
    return (double)(k % 251);
}

static inline double number(int64_t k)
{
    return (double)k;
}

#define DIMS(...)                                                                                                      \
    (const int64_t[])                                                                                                  \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static inline DataInput input_of(Context *c, const char *name, DType dtype, int rank, const int64_t *dims)
{
    return (DataInput){ .name = name, .type = type_tensor(&c->ir.types, dtype, rank, dims) };
}

static inline double with_nan(int64_t k)
{
    return k == 17 ? (double)NAN : k == 3 ? (double)INFINITY : (double)k;
}

#endif
