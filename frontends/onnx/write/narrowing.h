/* Parts of narrow.h: which f32 values become narrow, and how. */
#ifndef FRONTENDS_ONNX_WRITE_NARROWING_H
#define FRONTENDS_ONNX_WRITE_NARROWING_H

#include "frontends/onnx/narrow.h"

/* Values and operand slots of one element type, as sets. */
typedef struct Kin {
    int set;     /* another member, or itself */
    bool wide;   /* of a set: some operator takes nothing narrower */
    bool narrow; /* of a set: it meets the signature or a weight */
} Kin;

/* An operator that takes or gives nothing narrower than f32 in one place. */
typedef struct Forced {
    Node *node;
    int kin;
} Forced;

typedef struct Narrowing {
    Graph *graph;
    Diag *diag;
    Arena *arena; /* ends with the call */
    const NarrowOptions *options;
    Map keep;    /* the names of the options */
    Facts slots; /* by node: where its operands and results begin among the kin */
    Kin *kin;
    size_t n, cap;
    Forced *forced;
    size_t n_forced, cap_forced;
} Narrowing;

/* Whether a value holds f32 elements; of a tuple false. */
bool holds_f32(const Type *type);

/* The same type with other float elements. */
const Type *narrowed(Types *types, const Type *type, DType to);

/* The attribute that says the element type of a result; null: there is none. */
const AttrSpec *says_type(const Node *n);

/* The opset by whose schema a call is asked for the type.  What can be taken apart does not raise a file to the newest
 * opset, which runtimes are slow to learn: it is asked as of the one before, unless only the newest has the call at all. */
int narrow_opset(const Node *n);

/* The inputs and outputs that stay f32 as the options say. */
bool narrow_keeps(const Narrowing *x, const char *name);

/* Finds the sets of a graph anew (narrow_types.c). */
void narrow_sort(Narrowing *x);

/* Whether operand i of a node, or its result i, becomes narrow. */
bool operand_narrows(Narrowing *x, const Node *n, int i);
bool result_narrows(Narrowing *x, const Node *n, int i);

/* Operators that should be narrow and cannot be; each once. */
size_t narrow_conflicts(Narrowing *x, Node ***list);

/* Gives constants the types of their readers (narrow_values.c): UNSUPPORTED when values are lost. */
Status narrow_constants(Narrowing *x);

/* A payload of an attribute in the narrow type; null after a complaint. */
Payload *narrow_payload(Narrowing *x, Payload *p);

#endif
