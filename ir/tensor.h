/* Host values: dense little-endian tensors in row-major order (4- and 2-bit elements packed, lowest bits first),
 * and sequences, optionals and tuples of them. */
#ifndef IR_TENSOR_H
#define IR_TENSOR_H

#include "base/diag.h"
#include "base/heap.h"
#include "ir/type.h"

typedef struct Tensor Tensor;
struct Tensor {
    const Type *type; /* known; of a seq the element type may be loose */
    void *data;       /* of a tensor; may be unaligned only while it is being read */
    size_t bytes;
    Tensor **items; /* of a tuple, seq, optional (0 or 1) */
    size_t n_items;
    int64_t refs; /* of tensors in a heap: how many hold it */
};

/* A value by name: a state, a gradient. */
typedef struct NamedTensor {
    const char *name;
    const Tensor *tensor;
} NamedTensor;

/* A tensor whose bytes may not have been read yet: a parameter of a model file. */
typedef struct Payload Payload;
struct Payload {
    const Type *type;
    const char *name;     /* for blobs and messages; may be null */
    Arena *arena;         /* it lies there, and so does what is read of it: never in a place that goes before it */
    const Tensor *tensor; /* once read */
    Status (*read)(Payload *self, void *out, size_t bytes, Diag *diag);
    /* Reads `bytes` bytes from byte `at` on, without the others; null: it is all or nothing. */
    Status (*read_part)(Payload *self, uint64_t at, void *out, size_t bytes, Diag *diag);
    void *owner;     /* whose bytes they are */
    uint64_t where;  /* for the owner */
    uint64_t length; /* for the owner */
    Status failed;   /* what reading it answered last, which was said; OK: nothing, so far */
};

/* Elements of a tensor. */
static inline int64_t tensor_elements(const Tensor *t)
{
    return type_elements(t->type);
}

/* Whether host tensors hold values of this type: a known tensor of numbers.  Strings have no bits, and what is no tensor
 * has items. */
bool tensor_holds(const Type *type) __attribute__((warn_unused_result));

/* OK where they do; else reports that `what` is of a type whose values are not held (UNSUPPORTED).  Whoever makes a
 * tensor of a type that a model states asks first: making it is a mistake of ours otherwise. */
Status tensor_wants_numbers(Diag *diag, Place place, const char *what, const Type *type)
    __attribute__((warn_unused_result));

/* A zeroed tensor of a known type of numbers in an arena. */
Tensor *tensor_new(Arena *arena, const Type *type);

/* A tensor of a known type of numbers in a heap, not zeroed, held once. */
Tensor *tensor_alloc(Heap *heap, const Type *type);

/* One more holder. */
Tensor *tensor_hold(const Tensor *t);

/* One holder less; the last one gives the memory back. */
void tensor_drop(Heap *heap, Tensor *t);

/* A sequence, optional or tuple over items; it holds each of them. */
Tensor *tensor_group(Heap *heap, const Type *type, size_t n, Tensor *const *items);

/* A payload over a tensor that is there. */
Payload *payload_of(Arena *arena, const Tensor *t);

/* Reads a payload into a tensor of its type, which is the caller's: nothing is kept.  The status of a failure, reported. */
Status payload_read(Payload *p, Tensor *into, Diag *diag);

/* The tensor of a payload, read on first use and kept as long as the payload, which is the module's: for what is small and
 * asked for again.  Null after a reported failure, and where tensor_holds says no or nothing can be read.  Weights are
 * read by payload_read() or payload_bytes(), or looked at through payload_part(). */
const Tensor *payload_cached(Payload *p, Diag *diag);

/* Reads `bytes` bytes from byte `at` on of a payload whose bytes can be had in parts or are there already; false: they
 * cannot, or reading failed (Payload.failed). */
bool payload_part(Payload *p, uint64_t at, void *out, size_t bytes, Diag *diag);

/* The status of a payload that gave nothing: of the failure that its reader reported, or of one that is reported here. */
Status payload_failed(const Payload *p, Diag *diag, Place place);

/* The texts of a payload of strings, read into `arena`; null where they are not there, or after a reported failure. */
const Str *payload_strings(Payload *p, Arena *arena, Diag *diag);

/* The i-th element as a number: every type that converts exactly, the nearest double otherwise. */
double tensor_get_f64(const Tensor *t, int64_t i);

/* The i-th element of an integer or bool tensor. */
int64_t tensor_get_i64(const Tensor *t, int64_t i);

/* Stores a number, converted to the element type as Cast does. */
void tensor_set_f64(Tensor *t, int64_t i, double value);

/* Stores an integer into an integer or bool tensor (converted as Cast does into others). */
void tensor_set_i64(Tensor *t, int64_t i, int64_t value);

/* Whether types and bits are equal, NaNs of one type being equal to each other. */
bool tensor_same(const Tensor *a, const Tensor *b);

/* Convenience for tests and builders: a rank-1 i64 tensor, a scalar. */
Tensor *tensor_i64s(Arena *arena, Types *types, int64_t n, const int64_t *v);
Tensor *tensor_scalar(Arena *arena, Types *types, DType dtype, double v);

#endif
