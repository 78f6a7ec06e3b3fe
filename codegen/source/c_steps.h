/* Parts of what prints integers that are computed element by element. */
#ifndef CODEGEN_SOURCE_C_STEPS_H
#define CODEGEN_SOURCE_C_STEPS_H

#include "codegen/source/c_parts.h"

enum { MOST_STEPS = 64, MOST_LEAVES = 2 };

typedef struct Step {
    const Node *n;
    const char *text;
    int64_t least, most;
    bool sum, product, wide; /* what the text is; a number of 64 bits */
} Step;

/* What is computed of elements of `leaves`, or of `sum`, which stands for a node. */
typedef struct Steps {
    CSource *s;
    const Node *end, *of, *sum; /* end: who makes something of the value `of` */
    const char *name;
    const Type *y;
    const char *const *indices;
    bool plain; /* elements lie where those of the result do */
    const Node *leaves[MOST_LEAVES];
    int n_leaves, n;
    Step steps[MOST_STEPS];
    int64_t sum_least, sum_most;
} Steps;

/* ---- c_steps.c ---- */

/* Whether integers are computed here, of what is no constant; by a product of codes; codes of each, by a table. */
bool c_computes(CSource *s, const Node *n);
bool c_is_product(const Node *n);
bool c_looks_up(CSource *s, const Node *n);
bool c_makes_codes(CSource *s, const Node *n);
bool c_is_code(const Node *n);

/* The steps to `of` in the order in which they are computed, and their leaves; the text of the last, once it is known
 * where elements lie; what is stored of it. */
Status c_order_steps(Steps *t);
Status c_make_steps(Steps *t, Step *value);
Status c_make_end(Steps *t, const char **stored);

/* An operand: what was computed, or a constant.  The index of an element of a type. */
Step c_operand(Steps *t, const Node *n);
const char *c_element(Steps *t, const Type *of);

/* Whether a number has 32 bits; the complaint that one may not. */
bool c_fits(int64_t v);
Status c_too_far(const Steps *t);

/* ---- c_scaled.c ---- */

/* Constants of a product in fixed point: shifts are powers of two. */
typedef struct Scaled {
    const Node *v;
    const Tensor *m, *left, *half, *right; /* left, right: null: none */
} Scaled;

/* Finds such a product, which ends with n. */
bool c_match_scaled(CSource *s, const Node *n, Scaled *p);
Status c_make_scaled(Steps *t, const Scaled *p, Step *y);

#endif
