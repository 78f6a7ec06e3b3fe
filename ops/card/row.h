/* Elementwise ops: one expression each (ops/rows.def), compiled into loops and quoted into kernels. */
#ifndef OPS_CARD_ROW_H
#define OPS_CARD_ROW_H

#include "ir/graph.h"
#include "ops/card/eval.h"

/* Element types a row takes, and so the arithmetics it has. */
enum RowKind {
    ROW_F = 1,  /* floats: f32 and f64 */
    ROW_I = 2,  /* integers except u64: i64 */
    ROW_U = 4,  /* u64 */
    ROW_B = 8,  /* bool, as i64 */
    ROW_R = 16, /* integers, in f64 */
    ROW_S = 32, /* strings: legal, but not computed with */
};

enum { ROW_SCALARS = 2, ROW_OPERANDS = 3 };

struct Row {
    const char *text; /* of x, y, z, a, b in arithmetic T; a fold's x is the value so far, y the next operand */
    int number;       /* in the loops of a level */
    int n;            /* how many of x, y, z it reads */
    unsigned kinds;
    int lead;  /* the operand whose type is the result's (of a test: that is compared) */
    bool fold; /* any number of operands, left to right */
    bool test; /* its result is bool */
};

/* What reaches the operands of each, from its column of the table. */
#define ADJOINT(name)   void adjoint_##name(Build *build, const Site *s, Node **dx);
#define ROW(name, ...)  ADJOINT(name)
#define PICK(name, ...) ADJOINT(name)
#define FOLD(name, ...) ADJOINT(name)
#define TEST(name, ...) ADJOINT(name)
#include "ops/rows.def"
#undef ADJOINT

/* The arithmetic in which a call with these operand types (null: absent) computes. */
Arithmetic row_arithmetic(const Row *row, int n_in, const Type *const *in);

/* The attributes in their order, as the expression's a and b. */
void row_scalars(const AttrSpec *attrs, const void *attr, double k[ROW_SCALARS]);

/* Whether an element takes more than looking it up does: functions that are no arithmetic. */
bool row_is_costly(const Row *row);

/* What stands for an absent operand i: the least value of the arithmetic for y, the greatest for z (clip). */
double row_absent(int i);

/* The type of a call: every operand of the lead's type, broadcast. */
const Type *infer_row(Infer *q);

/* A random call of an op with a row; floats lie in [lo, hi]. */
Node *sample_row(Build *b, Rng *rng, int variant, Op op, double lo, double hi);

#endif
