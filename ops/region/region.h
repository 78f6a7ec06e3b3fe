/* Regions: what the body of a `fused` node computes, as one pass over one iteration space.
 *
 * The space has the dimensions that all values of the body broadcast to; its elements are those of the largest values.
 * Reductions cut it in two: rows, which are its leading dimensions, and their elements, the trailing ones.  A value has
 * an element for each element of the space, or for each row, or (what only operands may be) fewer.  Reductions are
 *
 *     along rows:  over the trailing dimensions; what they give, other calls of the region may read, and what is
 *                  picked out of each row counts as one
 *     of columns:  over the leading dimensions; what they give leaves the region
 *     of all:      over everything, where nothing cuts the space; what they give leaves the region
 *
 * Where a reduction keeps dimensions in the middle, rows are channels: these dimensions, and the elements of a row are
 * those of all dimensions around them, in their order.  All reductions of such a region are along its rows, each in the
 * order of a column (ops/reduce.h), as it is around a kept axis.
 *
 * One product may stand in a region that nothing is reduced in: its elements are those of the space, and what it reads
 * comes from outside.  Rows go on with them where they are done.
 *
 * Conditions leave as bits, eight to a byte, where no block tears a byte: where the elements of a row that lie beside
 * each other fill bytes, or nothing cuts the space; as bits they come in everywhere.
 *
 * Legal members are rows (ops/rows.def), casts, draws (ops/random/draw_call.h), reductions in the order of ops/reduce.h,
 * and constants: scalars, and what steers a call.  Nothing in a region can refuse, or keep a state; where rows are
 * channels, nothing draws, and nothing is picked out of them or marked in them. */
#ifndef OPS_REGION_REGION_H
#define OPS_REGION_REGION_H

#include "ir/graph.h"
#include "ops/fold/reduce_axes.h"

typedef enum RegionFold { FOLD_NONE, FOLD_ROW, FOLD_COLUMN, FOLD_ALL } RegionFold;

/* What of the space a value has one element for. */
typedef enum Extent { EXTENT_ELEMENT, EXTENT_ROW, EXTENT_COLUMN, EXTENT_SCALAR, EXTENT_OTHER } Extent;

enum { REGION_UNCUT = -1 };

typedef struct Region {
    int rank;
    int64_t dims[MAX_RANK];
    int first, cut;              /* dimensions first .. cut - 1 count rows; cut REGION_UNCUT: nothing asks for rows */
    int64_t rows, length, total; /* uncut: one row */
    const Node *contraction;     /* the product that makes the elements which rows go on with; null: there is none */
} Region;

/* Whether a call computes each element of its result from one element of each operand, by a row, a cast or a
 * draw that a region may hold. */
bool region_maps(const Node *n);

/* Whether a call is a reduction that a region may hold, wherever it cuts the space. */
bool region_folds(const Node *n, Reduction *r);

/* Whether a call fetches one element of each row, wherever its indices point; and whether it may do so in a region, where a
 * `clip` beside it keeps them inside: it cannot refuse.  The axes are those of the row. */
bool region_fetches(const Node *n, Reduction *r);
bool region_picks(const Node *n, Reduction *r);

/* Whether a call is a product that rows may go on with in a region, block by block as it is done. */
bool region_contracts(const Node *n);

/* The product in the body of a `fused` node; null: there is none. */
const Node *region_contraction(const Node *fused);

/* Whether two calls, products or regions with one, may run as one: they multiply the same left operand. */
bool region_shares(const Node *a, const Node *b);

/* That operand of such a call, as the graph around has it. */
const Node *region_left(const Node *n);

/* Whether a node may stand in a region beside the calls: a scalar constant, or one that steers them. */
bool region_holds_constant(const Node *n);

/* Whether the rows of a closed space are channels: dimensions in the middle. */
bool region_has_channels(const Region *r);

/* Whether a call of a closed region marks one element of each row: an `equal` of an index of each row and the numbers of the
 * elements of a row, a constant, which may stand in the body for that.  `index`: the operand that it is. */
bool region_hits(const Region *r, const Node *n, int *index);

/* What of the space a value of this type has one element for. */
Extent region_extent(const Region *r, const Type *t);

/* How a reduction over these axes of this operand runs in a closed space. */
RegionFold region_fold(const Region *r, const Type *operand, uint32_t axes);

/* Calls that are to be one region, in a topological order. */
typedef struct RegionMembers {
    const Node **calls;
    size_t n;
    bool (*holds)(void *user, const Node *n); /* whether a node that reads one of them is one of them */
    void *user;
} RegionMembers;

/* Reads the space of such calls; null, or why they cannot be a region. */
const char *region_read(const RegionMembers *m, Region *r);

/* The same of the body of a `fused` node. */
const char *region_read_body(const Graph *body, Arena *scratch, Region *r);

/* Whether a result of such a body may be made where an operand of this type lies: element by element, or once all are
 * read. */
bool region_lies_over(const Region *r, const Graph *body, int result, const Type *operand);

#endif
