/* Attributes of a node: a plain struct per op, described by one line a field.  Printing, parsing, hashing,
 * equality, defaults and ONNX import all read that description. */
#ifndef IR_ATTR_H
#define IR_ATTR_H

#include <stddef.h>

#include "base/diag.h"
#include "ir/type.h"

typedef struct Payload Payload;

typedef struct Ints {
    int n;
    const int64_t *v; /* null: not given, which differs from empty */
} Ints;

typedef struct Floats {
    int n;
    const float *v;
} Floats;

typedef struct Strs {
    int n;
    const char *const *v;
} Strs;

typedef enum AttrKind {
    ATTR_END,
    ATTR_INT,     /* int64_t */
    ATTR_FLOAT,   /* float */
    ATTR_BOOL,    /* bool; an integer 0 or 1 in ONNX */
    ATTR_STR,     /* const char *, null when not given */
    ATTR_ENUM,    /* int: index into choices; a string in ONNX */
    ATTR_DTYPE,   /* DType + 1, 0 when not given (an int) */
    ATTR_INTS,    /* Ints */
    ATTR_FLOATS,  /* Floats */
    ATTR_STRS,    /* Strs */
    ATTR_PAYLOAD, /* Payload *, a tensor */
    ATTR_TYPE,    /* const Type * */
} AttrKind;

typedef struct AttrSpec {
    const char *name;
    AttrKind kind;
    uint16_t offset;
    bool required;              /* has no default: the file must say it */
    bool ours;                  /* not an attribute of the ONNX operator */
    double value;               /* default of INT, FLOAT, BOOL, ENUM, DTYPE */
    const char *text;           /* default of STR */
    const char *const *choices; /* of ENUM, ended by null */
} AttrSpec;

/* A field with a default number: ATTR(MatmulAttr, ta, BOOL, false). */
#define ATTR(S, field, K, v)                                                                                           \
    {                                                                                                                  \
        .name = #field, .kind = ATTR_##K, .offset = offsetof(S, field), .value = (v)                                   \
    }
/* A field that has to be given. */
#define ATTR_REQUIRED(S, field, K)                                                                                     \
    {                                                                                                                  \
        .name = #field, .kind = ATTR_##K, .offset = offsetof(S, field), .required = true                               \
    }
/* A field that may be missing and then says so itself (null, n = 0). */
#define ATTR_OPTIONAL(S, field, K)                                                                                     \
    {                                                                                                                  \
        .name = #field, .kind = ATTR_##K, .offset = offsetof(S, field)                                                 \
    }
/* One of a list of words. */
#define ATTR_CHOICE(S, field, list, v)                                                                                 \
    {                                                                                                                  \
        .name = #field, .kind = ATTR_ENUM, .offset = offsetof(S, field), .value = (v), .choices = (list)               \
    }
/* The same of ours, that ONNX does not know. */
#define ATTR_CHOICE_OURS(S, field, list, v)                                                                            \
    {                                                                                                                  \
        .name = #field, .kind = ATTR_ENUM, .offset = offsetof(S, field), .value = (v), .choices = (list), .ours = true \
    }
/* A string with a default. */
#define ATTR_TEXT(S, field, v)                                                                                         \
    {                                                                                                                  \
        .name = #field, .kind = ATTR_STR, .offset = offsetof(S, field), .text = (v)                                    \
    }
/* A field of ours that ONNX does not know, with a default. */
#define ATTR_OURS(S, field, K, v)                                                                                      \
    {                                                                                                                  \
        .name = #field, .kind = ATTR_##K, .offset = offsetof(S, field), .value = (v), .ours = true                     \
    }
#define ATTR_LAST                                                                                                      \
    {                                                                                                                  \
        .kind = ATTR_END                                                                                               \
    }

/* Bytes of the struct that the specs describe. */
size_t attrs_size(const AttrSpec *specs);

/* A fresh struct holding every default; null for ops without attributes. */
void *attrs_default(Arena *arena, const AttrSpec *specs);

/* A deep copy into another arena (payloads are shared). */
void *attrs_copy(Arena *arena, const AttrSpec *specs, const void *attr);

/* Whether two attribute structs say the same; payloads compare by content. */
bool attrs_equal(const AttrSpec *specs, const void *a, const void *b);

/* A hash that agrees with attrs_equal. */
uint64_t attrs_hash(const AttrSpec *specs, const void *attr);

/* Copies a field of one struct to one of the same kind of another; what it points to is shared. */
void attr_copy_as(const AttrSpec *as, void *to, const AttrSpec *spec, const void *from);

/* Copies one field from struct to struct; what it points to is shared. */
void attr_copy_field(const AttrSpec *spec, void *to, const void *from);

/* The spec of a field by name, or null. */
const AttrSpec *attr_find(const AttrSpec *specs, Str name);

/* Whether a field has its default value (then it is not printed). */
bool attr_is_default(const AttrSpec *spec, const void *attr);

/* Address of a field. */
static inline void *attr_at(const AttrSpec *spec, const void *attr)
{
    return (char *)(uintptr_t)attr + spec->offset;
}

/* Reads and writes ATTR_DTYPE fields: false when not given. */
static inline bool attr_dtype(int field, DType *out)
{
    if (field)
        *out = (DType)(field - 1);
    return field != 0;
}

#endif
