#include "ops/region/region.h"

#include "ops/card/cards.h"
#include "ops/random/draw_call.h"

enum { LEAST_BITS = 8, BITS = 8 }; /* smaller elements share bytes, which blocks would tear; BITS: in a byte */

static bool is_plain(const Type *t)
{
    return t->kind == TYPE_TENSOR && type_known(t) && t->dtype != STRING && dtype_bits(t->dtype) >= LEAST_BITS;
}

static bool reads_plain(const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && !is_plain(in(n, i)->type))
            return false;
    return is_plain(n->type);
}

static bool is_bits(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && type_known(n->type) && n->type->dtype == BIT;
}

/* A cast that packs conditions eight to a byte, or takes such apart.  Where bytes would be torn is seen once the space
 * is known. */
static bool moves_bits(const Node *n)
{
    return n->op == OP_cast && (is_bits(n) ? is_plain(in(n, 0)->type) : is_bits(in(n, 0)) && is_plain(n->type));
}

/* A cast that is a load and a store: the eight-bit floats have modes of their own. */
static bool is_cast(const Node *n)
{
    const DType to = n->type->kind == TYPE_TENSOR ? n->type->dtype : STRING;
    return (n->op == OP_cast || n->op == OP_amp_cast) && !(dtype_is_float(to) && dtype_bits(to) <= LEAST_BITS);
}

bool region_maps(const Node *n)
{
    DrawCall draw;
    return moves_bits(n) || ((op_of(n)->row || is_cast(n) || draw_of(n, &draw)) && reads_plain(n));
}

bool region_folds(const Node *n, Reduction *r)
{
    for (int i = 1; i < n->n_in; i++)
        if (in(n, i) && in(n, i)->op != OP_const)
            return false;
    return reduction_of(n, r) && is_plain(n->type) && is_plain(in(n, 0)->type);
}

/* Elements of 16 bits and more are rounded one by one, wherever they stand. */
bool region_contracts(const Node *n)
{
    const Type *t = n->type;
    return op_of(n)->access.tells && reads_plain(n) && dtype_is_float(t->dtype) && dtype_bits(t->dtype) > LEAST_BITS;
}

const Node *region_contraction(const Node *fused)
{
    for (const Node *n = fused->n_regions ? fused->regions[0]->first : NULL; n; n = n->next)
        if (region_contracts(n))
            return n;
    return NULL;
}

/* Whether a constant says nothing but the axes of reductions. */
static bool is_axes(const Node *n)
{
    Reduction r;
    for (const Use *u = n->uses; u; u = u->next)
        if (u == &u->user->in[0] || !reduction_of(u->user, &r))
            return false;
    return n->uses;
}

bool region_holds_constant(const Node *n)
{
    return n->op == OP_const && is_plain(n->type) && (type_elements(n->type) == 1 || is_axes(n));
}

/* ---- the space ---- */

/* Dimension d of the space in a value, which lies at its right end. */
static int64_t dim_of(const Region *r, const Type *t, int d)
{
    const int at = d - (r->rank - t->rank);
    return at < 0 ? 1 : t->dims[at];
}

static bool widen_space(Region *r, const Type *t)
{
    const int more = t->rank - r->rank;
    if (more > 0) {
        for (int d = r->rank - 1; d >= 0; d--)
            r->dims[d + more] = r->dims[d];
        for (int d = 0; d < more; d++)
            r->dims[d] = 1;
        r->rank = t->rank;
    }
    for (int d = 0; d < r->rank; d++) {
        const int64_t n = dim_of(r, t, d);
        if (n != 1 && r->dims[d] != 1 && n != r->dims[d])
            return false;
        if (n != 1)
            r->dims[d] = n;
    }
    return true;
}

/* The axes of an operand as bits of dimensions of the space. */
static uint32_t axes_here(const Region *r, const Type *operand, uint32_t axes)
{
    return axes << (r->rank - operand->rank);
}

/* Whether every dimension of more than one element in [from, to) is reduced, or none is. */
static bool all_are(const Region *r, int from, int to, uint32_t axes, bool reduced)
{
    for (int d = from; d < to; d++)
        if (r->dims[d] != 1 && (axes >> d & 1) != reduced)
            return false;
    return true;
}

/* Cuts that only dimensions of one element lie between are the same: the last of them. */
static int last_cut(const Region *r, int cut)
{
    while (cut < r->rank && r->dims[cut] == 1)
        cut++;
    return cut;
}

/* Where a reduction would cut the space: rows are dimensions first .. cut - 1; cut below 0: nowhere. */
typedef struct Cut {
    int first, cut;
} Cut;

/* The cut before which everything is reduced (a fold of columns) or nothing is (one along rows). */
static Cut plain_cut(const Region *r, uint32_t axes, RegionFold fold)
{
    for (int cut = fold == FOLD_ROW ? 0 : 1; cut <= r->rank; cut++)
        if (all_are(r, 0, cut, axes, fold == FOLD_COLUMN) && all_are(r, cut, r->rank, axes, fold == FOLD_ROW))
            return (Cut){ 0, last_cut(r, cut) };
    return (Cut){ 0, -1 };
}

/* Dimensions in the middle that are kept, with something reduced on either side. */
static Cut channel_cut(const Region *r, uint32_t axes)
{
    int first = 0, cut, last = r->rank;
    while (first < r->rank && (r->dims[first] == 1 || axes >> first & 1))
        first++;
    for (cut = first; cut < r->rank && (r->dims[cut] == 1 || !(axes >> cut & 1));)
        cut++;
    while (last > cut && r->dims[last - 1] == 1)
        last--;
    const bool begins = last_cut(r, 0) < first;
    return begins && first < cut && cut < last && all_are(r, cut, last, axes, true) ? (Cut){ first, cut }
                                                                                    : (Cut){ 0, -1 };
}

/* Where a reduction along rows cuts the space. */
static Cut row_cut(const Region *r, uint32_t axes)
{
    const Cut plain = plain_cut(r, axes, FOLD_ROW);
    return plain.cut >= 0 ? plain : channel_cut(r, axes);
}

static bool is_cut(const Region *r, Cut c)
{
    return c.cut >= 0 && c.cut == r->cut && c.first == r->first;
}

static bool is_whole(const Region *r, uint32_t axes)
{
    return all_are(r, 0, r->rank, axes, true);
}

static bool cut_space(Region *r, const Type *operand, uint32_t axes, bool read)
{
    const uint32_t here = axes_here(r, operand, axes);
    for (int d = 0; d < r->rank; d++)
        if (dim_of(r, operand, d) != r->dims[d])
            return false;
    const Cut row = row_cut(r, here), column = read ? (Cut){ 0, -1 } : plain_cut(r, here, FOLD_COLUMN);
    if (r->cut != REGION_UNCUT)
        return is_cut(r, row) || is_cut(r, column);
    if (!read && is_whole(r, here))
        return true; /* of all: it needs no cut, and takes none */
    r->first = row.cut >= 0 ? row.first : column.first;
    r->cut = row.cut >= 0 ? row.cut : column.cut;
    return r->cut >= 0;
}

static bool close_space(Region *r)
{
    r->rows = r->length = 1;
    for (int d = 0; d < r->rank; d++) {
        int64_t *part = d >= r->first && d < r->cut ? &r->rows : &r->length;
        if (__builtin_mul_overflow(*part, r->dims[d], part))
            return false;
    }
    return !__builtin_mul_overflow(r->rows, r->length, &r->total) && r->total > 0;
}

bool region_has_channels(const Region *r)
{
    return r->first > 0;
}

/* What a value has of the dimensions of rows, or of the others: all, none (of those with more than one element), or
 * some. */
typedef enum Share { SHARE_ALL, SHARE_NONE, SHARE_SOME } Share;

static Share share_of(const Region *r, const Type *t, bool of_rows)
{
    bool all = true, none = true;
    for (int d = 0; d < r->rank; d++) {
        if ((d >= r->first && d < r->cut) != of_rows)
            continue;
        all = all && dim_of(r, t, d) == r->dims[d];
        none = none && dim_of(r, t, d) == 1;
    }
    return all ? SHARE_ALL : none ? SHARE_NONE : SHARE_SOME;
}

Extent region_extent(const Region *r, const Type *t)
{
    if (t->rank > r->rank)
        return EXTENT_OTHER;
    const Share rows = share_of(r, t, true), length = share_of(r, t, false);
    if (type_elements(t) == r->total && rows == SHARE_ALL && length == SHARE_ALL)
        return EXTENT_ELEMENT;
    if (type_elements(t) == 1)
        return r->cut != REGION_UNCUT && r->rows == 1 ? EXTENT_ROW : EXTENT_SCALAR;
    if (rows == SHARE_ALL && length == SHARE_NONE)
        return EXTENT_ROW;
    if (rows == SHARE_NONE && length == SHARE_ALL)
        return EXTENT_COLUMN;
    return EXTENT_OTHER;
}

RegionFold region_fold(const Region *r, const Type *operand, uint32_t axes)
{
    const uint32_t here = axes_here(r, operand, axes);
    if (r->cut == REGION_UNCUT)
        return is_whole(r, here) ? FOLD_ALL : FOLD_NONE;
    if (is_cut(r, row_cut(r, here)))
        return FOLD_ROW;
    return is_cut(r, plain_cut(r, here, FOLD_COLUMN)) ? FOLD_COLUMN : FOLD_NONE;
}

/* ---- members ---- */

/* Whether a call gives less than it reads: a reduction, or a pick, which is one along rows. */
static bool reduces(const Node *n, Reduction *r)
{
    return region_folds(n, r) || region_picks(n, r);
}

static bool is_read_inside(const RegionMembers *m, const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (m->holds(m->user, u->user))
            return true;
    return false;
}

static bool is_draw(const Node *n)
{
    DrawCall draw;
    return draw_of(n, &draw);
}

static bool is_pick(const Node *n)
{
    Reduction r;
    return region_picks(n, &r);
}

/* What a product reads is there before any block of it is done. */
static const char *take_contraction(const RegionMembers *m, Region *r, const Node *n)
{
    if (r->contraction)
        return "two products";
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && in(n, i)->op != OP_input && m->holds(m->user, in(n, i)))
            return "a product of what it makes itself";
    r->contraction = n;
    return NULL;
}

static const char *widen(const RegionMembers *m, Region *r)
{
    Reduction fold;
    for (size_t i = 0; i < m->n; i++) {
        const Node *n = m->calls[i];
        const bool folds = reduces(n, &fold);
        if (!folds && !region_maps(n) && !region_contracts(n))
            return "a call that is neither a row, nor a cast, nor a draw, nor a reduction";
        const char *wrong = region_contracts(n) ? take_contraction(m, r, n) : NULL;
        if (wrong)
            return wrong;
        if (!widen_space(r, folds ? in(n, 0)->type : n->type))
            return "values that do not broadcast to one space";
    }
    return NULL;
}

static const char *cut(const RegionMembers *m, Region *r)
{
    Reduction fold;
    for (size_t i = 0; i < m->n; i++)
        if (reduces(m->calls[i], &fold) &&
            !cut_space(r, in(m->calls[i], 0)->type, fold.axes, is_pick(m->calls[i]) || is_read_inside(m, m->calls[i])))
            return "reductions that do not cut its space in one place";
    return close_space(r) ? NULL : "a space without elements";
}

/* Whether rows can go on with the elements of a product where they are done. */
static const char *check_contraction(const RegionMembers *m, const Region *r)
{
    Reduction fold;
    if (m->n == 1)
        return "a product alone";
    for (size_t i = 0; i < m->n; i++)
        if (reduces(m->calls[i], &fold))
            return "a reduction of what a product makes";
    return region_extent(r, r->contraction->type) == EXTENT_ELEMENT ? NULL : "a product of less than its space";
}

static const char *check_fold(const Region *r, const Node *n, const Reduction *fold, bool read)
{
    const RegionFold how = region_fold(r, in(n, 0)->type, fold->axes);
    if (how == FOLD_NONE || region_extent(r, in(n, 0)->type) != EXTENT_ELEMENT)
        return "a reduction of less than its space";
    if (how == FOLD_COLUMN && r->length == 1)
        return "a column that is one row to all others";
    if (read && how != FOLD_ROW)
        return "a column that is read before all rows are done";
    const Extent e = region_extent(r, n->type);
    return read && e != EXTENT_ROW && e != EXTENT_ELEMENT ? "a reduction that does not keep its dimensions" : NULL;
}

/* Whether elements of rows begin with a byte wherever a block may: those that lie beside each other fill bytes. */
static bool fills_bytes(const Region *r)
{
    int64_t beside = 1;
    for (int d = r->cut; d < r->rank && r->cut != REGION_UNCUT; d++)
        beside *= r->dims[d];
    return r->cut == REGION_UNCUT ? !r->contraction : beside % BITS == 0;
}

/* Bits are of each element of the space, and never a copy that others read inside. */
static const char *check_bits(const RegionMembers *m, const Region *r, const Node *n)
{
    if (!moves_bits(n))
        return NULL;
    if (region_extent(r, n->type) != EXTENT_ELEMENT)
        return "bits of less than its space";
    if (!is_bits(n))
        return in(n, 0)->op != OP_input && m->holds(m->user, in(n, 0)) ? "bits that it makes itself" : NULL;
    return !fills_bytes(r) ? "bits whose bytes blocks would tear" : is_read_inside(m, n) ? "bits that it reads" : NULL;
}

/* What is computed has an element for each element of the space, or for each row. */
static const char *check(const RegionMembers *m, const Region *r)
{
    const char *wrong = NULL;
    Reduction fold;
    for (size_t i = 0; i < m->n && !wrong; i++) {
        const Node *n = m->calls[i];
        const Extent e = region_extent(r, n->type);
        if (region_has_channels(r) && (is_pick(n) || is_draw(n)))
            wrong = "a draw or a pick where rows are channels";
        else if (is_pick(n) && !m->holds(m->user, in(n, 1)))
            wrong = "a pick without what keeps its indices inside";
        else if (reduces(n, &fold))
            wrong = check_fold(r, n, &fold, is_pick(n) || is_read_inside(m, n));
        else if (e != EXTENT_ELEMENT && e != EXTENT_ROW)
            wrong = "a value that is neither one of each element nor one of each row";
        else
            wrong = check_bits(m, r, n);
    }
    return wrong;
}

const char *region_read(const RegionMembers *m, Region *r)
{
    const char *wrong;
    *r = (Region){ .cut = REGION_UNCUT };
    if ((wrong = widen(m, r)) || (wrong = cut(m, r)))
        return wrong;
    wrong = r->contraction ? check_contraction(m, r) : NULL;
    return wrong ? wrong : check(m, r);
}

static bool is_call_of_body(void *user, const Node *n)
{
    return n->graph == user && n->op != OP_return;
}

/* Whether a constant says nothing but the numbers of elements that are marked. */
static bool is_for_hits(const Region *r, const Node *n)
{
    int index;
    for (const Use *u = n->uses; u; u = u->next)
        if (!region_hits(r, u->user, &index) || u != &u->user->in[1 - index])
            return false;
    return n->uses;
}

const char *region_read_body(const Graph *body, Arena *scratch, Region *r)
{
    RegionMembers m = { .holds = is_call_of_body, .user = (void *)(uintptr_t)body };
    for (const Node *n = body->first; n; n = n->next)
        m.n += n->op != OP_const;
    m.calls = NEWS(scratch, const Node *, m.n + 1);
    m.n = 0;
    for (const Node *n = body->first; n; n = n->next) {
        if (n->op != OP_const)
            m.calls[m.n++] = n;
    }
    for (int i = 0; i < graph_n_results(body); i++)
        if (!graph_result(body, i) || graph_result(body, i)->op == OP_input || graph_result(body, i)->op == OP_const)
            return "a result that it does not compute";
    const char *wrong = region_read(&m, r);
    for (const Node *n = body->first; n && !wrong; n = n->next)
        wrong =
            n->op == OP_const && !region_holds_constant(n) && !is_for_hits(r, n) ? "a constant of many elements" : NULL;
    return wrong;
}

bool region_lies_over(const Region *r, const Graph *body, int result, const Type *operand)
{
    const Node *n = graph_result(body, result);
    Reduction fold;
    const RegionFold how = region_folds(n, &fold) ? region_fold(r, in(n, 0)->type, fold.axes) : FOLD_NONE;
    if (dtype_bits(n->type->dtype) != dtype_bits(operand->dtype) || type_elements(n->type) != type_elements(operand))
        return false;
    if (how == FOLD_COLUMN || how == FOLD_ALL)
        return true;
    return how == FOLD_NONE && region_extent(r, n->type) == EXTENT_ELEMENT &&
           region_extent(r, operand) == EXTENT_ELEMENT;
}
