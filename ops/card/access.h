/* Which elements a call reads for which elements of its results, and in which order: the face of `access` on the cards.
 *
 * A call walks a space of points.  At each point it reads at most one element of each operand, where `in` says, and adds
 * to at most one element of each result, where `out` says; an element of a result depends on what is read at the points
 * that lead to it, and on nothing else. */
#ifndef OPS_CARD_ACCESS_H
#define OPS_CARD_ACCESS_H

#include "ops/card/expansion.h"

enum { SPACE_RANK = 2 * MAX_RANK + 2 };

typedef enum Reach {
    REACH_TYPE,    /* no element is read: the operand is absent, or its type and what steers say it all */
    REACH_AFFINE,  /* coordinate d is base[d] + the sum over s of step[d, s] * point[s] */
    REACH_FLAT,    /* the element with the number of the point, both counted in row-major order */
    REACH_INDEXED, /* affine, to which some coordinates add values of another operand */
    REACH_BESIDE, /* affine in the coordinates of the element of result 0: read once for it, when its sum is done, or begins as it */
    REACH_WHOLE, /* any element, for any result */
} Reach;

/* What lies outside of an operand, or of a result. */
typedef enum Guard {
    GUARD_NONE, /* nothing leads there */
    GUARD_FILL, /* is read as Iteration.fill */
    GUARD_MASK, /* nothing does, but some points read Iteration.fill all the same */
    GUARD_SKIP, /* is not read, not written */
} Guard;

enum { NO_PIECE = -1 };

typedef struct Access {
    Reach reach;
    int rank;
    int64_t *base, *step; /* rank, and rank x the space's rank (of BESIDE: that of result 0), rows first */
    Guard guard;
    /* of INDEXED: coordinates by_dim .. by_dim + by_n - 1 are values of operand `by`, counted from the end where they are
     * negative: the one that `by` is read at, or by_n along its last dimension */
    int by, by_dim, by_n;
    int piece_dim;    /* only points with from <= point[piece_dim] < to read or write it; NO_PIECE: all do */
    int64_t from, to; /* of the piece */
} Access;

typedef enum Order {
    ORDER_ANY,    /* one point an element, or it does not matter which comes first */
    ORDER_ROW,    /* a row's sum or product (docs/arithmetic.md) */
    ORDER_COLUMN, /* a column's */
    ORDER_FMA,    /* that of contractions: fused multiply-adds, joined by segments */
    ORDER_PLACE,  /* one point after the other, the last one stays or is added last */
    ORDER_SCAN,   /* along a line that stays: each point with all before it */
    ORDER_OWN,    /* the operator's own */
} Order;

struct Iteration {
    int rank, n_in, n_out;
    int64_t extent[SPACE_RANK];
    int n_folded,
        folded[SPACE_RANK]; /* axes that several points of one result's element differ in, the slowest first */
    Order order;
    Access *in, *out;
    double fill;
    int fill_by; /* the operand that holds what fills; NO_OPERAND: `fill` does */
    int begins;  /* the result begins as this operand; NO_OPERAND: as nothing */
    /* of PLACE: what is there, x, once y came to it, as a row says it, in the arithmetic of the result; null: y stays */
    const char *joins;
};

enum { NO_OPERAND = -1 };

/* How a call is walked; false where its card says nothing, where it cannot before the call runs, and of a composite,
 * whose expansion has an answer for each part (expansion_of). */
bool access_iterate(const Node *n, Arena *arena, Iteration *to);

/* What the card of a call says of a result and an operand, whether or not this call can do so. */
AliasHow access_alias_said(const Node *n, int result, int operand);

/* How the memory of a result of a call may be that of an operand; `scratch` is for what is asked on the way. */
AliasHow access_alias(const Node *n, int result, int operand, Arena *scratch);

/* ---- for cards ---- */

/* Begins a walk over a space: no operand or result is reached yet.  False where an extent of a type that it meets is
 * unknown; absent operands and sequences have none. */
bool iteration_open(Iteration *it, const Node *n, Arena *arena, int rank, const int64_t *extent);

/* An axis behind the others; returns its number. */
int iteration_axis(Iteration *it, int64_t extent);

/* An axis that is folded, inside those that are folded so far. */
int iteration_fold(Iteration *it, int64_t extent);

/* Makes an access affine, with no steps yet.  All axes must be there by now. */
Access *reach_affine(const Iteration *it, Arena *arena, Access *a, int rank);

/* Coordinate d goes on by `step` with each point along an axis. */
void reach_along(const Iteration *it, Access *a, int d, int axis, int64_t step);

/* Affine: coordinate d is that of axis `first` + d. */
Access *reach_axes(const Iteration *it, Arena *arena, Access *a, int rank, int first);

/* Affine by the rule of broadcasting: the shape's dimensions are the space's last ones before axis `end`, those of
 * extent 1 with step 0. */
Access *reach_broadcast(const Iteration *it, Arena *arena, Access *a, const Type *t, int end);

/* Beside the result: the shape's dimensions are those of result 0 before dimension `end`, those of extent 1 broadcast. */
Access *reach_beside(const Node *n, Arena *arena, Access *a, const Type *t, int end);

/* Every operand that no access says anything of yet may be read anywhere. */
void reach_rest(const Node *n, Iteration *to);

/* A walk over the elements of result 0, each operand by the rule of broadcasting: of rows. */
bool iterate_row(const Node *n, Arena *arena, Iteration *to);

/* The walk of the one part of an expansion that is neither a row nor a move, where rows alone lie between it and the
 * operands and the result. */
bool iterate_expansion(const Node *n, Arena *arena, Iteration *to);

/* Operand 0 and result 0 have the same elements in the same order. */
bool iterate_flat(const Node *n, Arena *arena, Iteration *to);

/* A product of stacks of matrices, operands a and b of a call, either of which may be read transposed: the result's axes,
 * and k, which is folded. */
typedef struct MatrixProduct {
    int a, b;
    bool ta, tb;
    Order order;
} MatrixProduct;
bool iterate_product(const Node *n, Arena *arena, Iteration *to, const MatrixProduct *p);

/* The integers of a constant operand; null where it is none (an absent one has none: *n is 0). */
const int64_t *access_ints(const Node *n, int operand, Arena *arena, int64_t *count);

/* The type of a result of a call. */
const Type *access_result(const Node *n, int result);

#endif
