/* Types: element type and shape, interned, compared with ==. */
#ifndef IR_TYPE_H
#define IR_TYPE_H

#include "base/map.h"
#include "base/text.h"

/* clang-format off */
typedef enum DTypeClass { CLASS_BOOL, CLASS_INT, CLASS_UINT, CLASS_FLOAT, CLASS_STRING } DTypeClass;

/* Hosts know the enumerators by number (qcc.h): new ones go behind the last.  A bit is a bool of which eight lie in a
 * byte: a step keeps some for its way back, no model has any.  Its number is none of ONNX's.
 *     enumerator    text          bits  class         ONNX  */
#define DTYPES(_)                                            \
    _( BOOL,         "bool",       8,    CLASS_BOOL,    9  ) \
    _( I2,           "i2",         2,    CLASS_INT,     26 ) \
    _( U2,           "u2",         2,    CLASS_UINT,    25 ) \
    _( I4,           "i4",         4,    CLASS_INT,     22 ) \
    _( U4,           "u4",         4,    CLASS_UINT,    21 ) \
    _( I8,           "i8",         8,    CLASS_INT,     3  ) \
    _( U8,           "u8",         8,    CLASS_UINT,    2  ) \
    _( I16,          "i16",        16,   CLASS_INT,     5  ) \
    _( U16,          "u16",        16,   CLASS_UINT,    4  ) \
    _( I32,          "i32",        32,   CLASS_INT,     6  ) \
    _( U32,          "u32",        32,   CLASS_UINT,    12 ) \
    _( I64,          "i64",        64,   CLASS_INT,     7  ) \
    _( U64,          "u64",        64,   CLASS_UINT,    13 ) \
    _( F4E2M1,       "f4e2m1",     4,    CLASS_FLOAT,   23 ) \
    _( F8E4M3,       "f8e4m3",     8,    CLASS_FLOAT,   17 ) \
    _( F8E4M3FNUZ,   "f8e4m3fnuz", 8,    CLASS_FLOAT,   18 ) \
    _( F8E5M2,       "f8e5m2",     8,    CLASS_FLOAT,   19 ) \
    _( F8E5M2FNUZ,   "f8e5m2fnuz", 8,    CLASS_FLOAT,   20 ) \
    _( F8E8M0,       "f8e8m0",     8,    CLASS_FLOAT,   24 ) \
    _( F16,          "f16",        16,   CLASS_FLOAT,   10 ) \
    _( BF16,         "bf16",       16,   CLASS_FLOAT,   16 ) \
    _( F32,          "f32",        32,   CLASS_FLOAT,   1  ) \
    _( F64,          "f64",        64,   CLASS_FLOAT,   11 ) \
    _( STRING,       "string",     128,  CLASS_STRING,  8  ) \
    _( F6E2M3,       "f6e2m3",     6,    CLASS_FLOAT,   27 ) \
    _( F6E3M2,       "f6e3m2",     6,    CLASS_FLOAT,   28 ) \
    _( BIT,          "bit",        1,    CLASS_BOOL,    31 )
/* clang-format on */

typedef enum DType {
#define ENUMERATOR(id, text, bits, class, onnx) id,
    DTYPES(ENUMERATOR)
#undef ENUMERATOR
        DTYPE_COUNT
} DType;

typedef enum TypeKind { TYPE_NONE, TYPE_TENSOR, TYPE_TUPLE, TYPE_SEQ, TYPE_OPTIONAL, TYPE_OPAQUE } TypeKind;

enum { DIM_UNKNOWN = -1, RANK_UNKNOWN = -1, MAX_RANK = 16 };

typedef struct Type Type;
struct Type {
    TypeKind kind;
    DType dtype;         /* of a tensor */
    int rank;            /* of a tensor; RANK_UNKNOWN prints as [*] */
    int n_parts;         /* of a tuple; 1 for seq and optional */
    const int64_t *dims; /* of a tensor; DIM_UNKNOWN prints as ? */
    const Type *const *parts;
    const char *text; /* of an opaque type: what it is in the file's words */
};

/* The set of types of one context. */
typedef struct Types {
    Arena *arena;
    Map map;
} Types;

/* An empty set in `arena`. */
void types_open(Types *t, Arena *arena);

/* A tensor type; dims may hold DIM_UNKNOWN. */
const Type *type_tensor(Types *t, DType dtype, int rank, const int64_t *dims);

/* A tensor type of unknown rank. */
const Type *type_unranked(Types *t, DType dtype);

/* A scalar: a tensor of rank 0. */
const Type *type_scalar(Types *t, DType dtype);

/* A tensor of rank 1. */
const Type *type_vector(Types *t, DType dtype, int64_t n);

/* A tuple of parts. */
const Type *type_tuple(Types *t, int n, const Type *const *parts);

/* A sequence of elements of one type. */
const Type *type_seq(Types *t, const Type *element);

/* An element or nothing. */
const Type *type_optional(Types *t, const Type *element);

/* The type of nothing: an absent operand, an empty return. */
const Type *type_none(Types *t);

/* A type that we carry but do not understand (maps, sparse tensors). */
const Type *type_opaque(Types *t, const char *text);

/* The same shape with another element type. */
const Type *type_with_dtype(Types *t, const Type *type, DType dtype);

/* Whether both are tensors of one rank with the same dimensions, known or not. */
bool type_same_shape(const Type *a, const Type *b);

/* Whether nothing about the type is unknown. */
bool type_known(const Type *type);

/* Elements of a tensor type, -1 when unknown. */
int64_t type_elements(const Type *type);

/* Bytes that n elements take, sub-byte types packed; false when that overflows. */
bool dtype_bytes(DType dtype, int64_t n, size_t *bytes);

/* Bytes of a known tensor type; false when that overflows. */
bool type_bytes(const Type *type, size_t *bytes);

/* Whether some actual type fits both: equal where both are known. */
bool type_agrees(const Type *a, const Type *b);

/* What two agreeing types say together. */
const Type *type_meet(Types *t, const Type *a, const Type *b);

/* The least type that holds both, `?` where they differ; null when the kinds or element types differ. */
const Type *type_join(Types *t, const Type *a, const Type *b);

/* Results of an op: 1, or the parts of its tuple. */
int type_results(const Type *type);

/* The i-th result of an op with this type. */
const Type *type_result(const Type *type, int i);

/* Appends the text of a type: f32[2,?], (f32[], i64[2]), seq(f32[*]). */
void type_print(Text *out, const Type *type);

/* The text of a type, in `arena`. */
const char *type_text(Arena *arena, const Type *type);

/* "f32"; never null. */
const char *dtype_name(DType dtype);

/* Bits of one element. */
int dtype_bits(DType dtype);

/* Its class. */
DTypeClass dtype_class(DType dtype);

/* Its number in TensorProto.DataType. */
int dtype_onnx(DType dtype);

/* The element type with that ONNX number; false when we have none. */
bool dtype_from_onnx(int64_t number, DType *dtype);

/* The element type of that name; false when there is none. */
bool dtype_from_name(Str name, DType *dtype);

/* Whether every value of `narrow` is a value of `wide` (the inclusion lattice). */
bool dtype_holds(DType wide, DType narrow);

static inline bool dtype_is_float(DType d)
{
    return dtype_class(d) == CLASS_FLOAT;
}

/* The widths that mixed precision narrows to. */
static inline bool dtype_is_narrow(DType d)
{
    return d == F16 || d == BF16;
}

/* A width that mixed precision chooses between. */
static inline bool dtype_is_amp(DType d)
{
    return d == F32 || dtype_is_narrow(d);
}

static inline bool dtype_is_integer(DType d)
{
    return dtype_class(d) == CLASS_INT || dtype_class(d) == CLASS_UINT;
}

#endif
