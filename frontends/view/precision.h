/* The precision of a value as a page shows it: a colour for each kind of element. */
#ifndef FRONTENDS_VIEW_PRECISION_H
#define FRONTENDS_VIEW_PRECISION_H

#include "ir/graph.h"

#define VIEW_PRECISIONS(_)                                                                                             \
    _(F64, "f64")                                                                                                      \
    _(F32, "f32")                                                                                                      \
    _(F16, "f16")                                                                                                      \
    _(BF16, "bf16")                                                                                                    \
    _(F8, "f8")                                                                                                        \
    _(F4, "f4") _(I64, "i64") _(I32, "i32") _(I16, "i16") _(I8, "i8") _(I4, "i4") _(BOOL, "bool") _(OTHER, "other")

typedef enum ViewPrecision {
#define VIEW_ENUMERATOR(id, word) VIEW_##id,
    VIEW_PRECISIONS(VIEW_ENUMERATOR)
#undef VIEW_ENUMERATOR
        VIEW_PRECISION_COUNT
} ViewPrecision;

/* The precision of a type; of several results that of the first. */
ViewPrecision view_precision(const Type *type);

/* The precision of a value: of codes that are fewer than their type has, theirs. */
ViewPrecision view_precision_of(const Node *n);

/* Bits that tell the codes apart that a node gives, where they are fewer than those of its type; 0: they are not. */
int view_code_bits(const Node *n);

/* Its word, which is its class in the page: "bf16"; unsigned integers count as signed ones, f6 as f8. */
const char *view_precision_word(ViewPrecision p);

#endif
