/* Moves that repeat or reorder whole axes: transpose, depth_to_space, space_to_depth, expand, tile. */
#include <string.h>

#include "base/checked.h"
#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/move/move.h"
#include "ops/move/move_access.h"

#define MOVES                                                                                                          \
    .differentiable = 1, .access.kind = ACCESS_MOVE, .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },                    \
    .quant = { .in = { QUANT_AGNOSTIC, QUANT_NEVER }, .out = { QUANT_AGNOSTIC }, .same_scale = true }

/* Runs a move from operand 0 to result 0. */
static Status moved(Eval *e, Move *m)
{
    const Raw x = raw_in(e, 0), y = raw_open(e, eval_out(e, 0));
    m->e = e;
    m->size = x.size;
    move_run(m, y.data, x.data);
    raw_close(e->out[0], y);
    return OK;
}

/* Adds the axes order[0], order[1], .. of a dense `from` as those of a dense result. */
static void permute(Move *m, int rank, const int64_t *from, const int *order)
{
    int64_t strides[MOVE_RANK], to = move_count(from, 0, rank);
    move_strides(rank, from, strides);
    for (int i = 0; i < rank && to; i++) {
        to /= from[order[i]];
        move_axis(m, from[order[i]], to, strides[order[i]]);
    }
    if (!to)
        move_axis(m, 0, 0, 0);
}

/* ---- transpose ---- */

static const AttrSpec transpose_attrs[] = { ATTR_OPTIONAL(TransposeAttr, perm, INTS), ATTR_LAST };

static const Type *infer_transpose(Infer *q)
{
    const Ints perm = ((const TransposeAttr *)q->attr)->perm;
    const Type *x = infer_tensor(q, 0);
    int64_t dims[MAX_RANK];
    Axes axes;
    if (!x)
        return NULL;
    if (x->rank < 0)
        return perm.v && perm.n <= MAX_RANK ? infer_unknown_dims(q, x->dtype, perm.n) : x;
    if (perm.v && perm.n != x->rank)
        return infer_fail(q, "permutes %d axes of a tensor of rank %d", perm.n, x->rank);
    if (perm.v && !infer_axes(q, perm.v, perm.n, x->rank, &axes))
        return NULL;
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[perm.v ? axes.v[i] : x->rank - 1 - i];
    return type_tensor(q->types, x->dtype, x->rank, dims);
}

static Status eval_transpose(Eval *e)
{
    const Ints perm = ((const TransposeAttr *)e->attr)->perm;
    const Type *x = e->in[0]->type;
    int order[MAX_RANK];
    Move m = { 0 };
    for (int i = 0; i < x->rank; i++)
        order[i] = perm.v ? axis_wrap(perm.v[i], x->rank) : x->rank - 1 - i;
    permute(&m, x->rank, x->dims, order);
    return moved(e, &m);
}

static void adjoint_transpose(Build *b, const Site *s, Node **dx)
{
    const Ints perm = ((const TransposeAttr *)s->attr)->perm;
    const int rank = s->in[0]->type->rank;
    int64_t *back = NEWS(b->graph->arena, int64_t, rank + 1);
    for (int i = 0; i < rank; i++)
        back[perm.v ? axis_wrap(perm.v[i], rank) : rank - 1 - i] = i;
    dx[0] = make_transpose(b, s->dout[0], rank, back);
}

static Node *sample_transpose(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK], order[MAX_RANK];
    const int rank = variant % 6;
    sample_dims(rng, rank, variant % 4 ? 4 : 9, dims);
    sample_order(rng, rank, order);
    const TransposeAttr at = { variant % 5 ? (Ints){ rank, order } : (Ints){ 0, NULL } };
    return CALL_ATTR(b, transpose, at, sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3));
}

const OpDef op_transpose = {
    .name = "transpose",
    .min_in = 1,
    .max_in = 1,
    .attrs = transpose_attrs,
    .infer = infer_transpose,
    .eval = eval_transpose,
    .adjoint = adjoint_transpose,
    .open_adjoint = true,
    .sample = sample_transpose,
    .n_variants = 36,
    MOVES,
    .access.iterate = iterate_transpose,
    .access.alias = { { 0, 0, ALIAS_VIEW } },
    .onnx = { "Transpose", 25, NULL },
};

/* ---- depth_to_space, space_to_depth ---- */

enum { MODE_DCR, MODE_CRD };
static const char *const block_modes[] = { "DCR", "CRD", NULL };

static const AttrSpec block_attrs[] = {
    ATTR_REQUIRED(BlockAttr, blocksize, INT),
    ATTR_CHOICE(BlockAttr, mode, block_modes, MODE_DCR),
    ATTR_LAST,
};

/* An image operand and a block size that fits any 64-bit product; null after a complaint. */
static const Type *infer_image(Infer *q)
{
    const int64_t block = ((const BlockAttr *)q->attr)->blocksize;
    const Type *x = infer_tensor(q, 0);
    if (!x)
        return NULL;
    if (x->rank >= 0 && x->rank != 4)
        return infer_fail(q, "needs a tensor of rank 4, not %s", type_text(q->scratch, x));
    if (block < 1 || block > 1 << 20)
        return infer_fail(q, "blocksize %" PRId64 " is outside [1, %d]", block, 1 << 20);
    return x->rank < 0 ? infer_unknown_dims(q, x->dtype, 4) : x;
}

static const Type *infer_depth_to_space(Infer *q)
{
    const int64_t block = ((const BlockAttr *)q->attr)->blocksize;
    const Type *x = infer_image(q);
    if (!x)
        return NULL;
    if (x->dims[1] > 0 && x->dims[1] % (block * block))
        return infer_fail(q, "%" PRId64 " channels do not divide into blocks of %" PRId64, x->dims[1], block * block);
    int64_t dims[4] = { x->dims[0], x->dims[1] < 0 ? x->dims[1] : x->dims[1] / (block * block) };
    for (int i = 2; i < 4; i++)
        if (x->dims[i] < 0)
            dims[i] = DIM_UNKNOWN;
        else if (!checked_mul_i64(x->dims[i], block, &dims[i]))
            return infer_fail(q, "makes an image too large");
    return infer_dims(q, x->dtype, 4, dims);
}

static const Type *infer_space_to_depth(Infer *q)
{
    const int64_t block = ((const BlockAttr *)q->attr)->blocksize;
    const Type *x = infer_image(q);
    if (!x)
        return NULL;
    int64_t dims[4] = { x->dims[0], x->dims[1] };
    if (dims[1] >= 0 && !checked_mul_i64(dims[1], block * block, &dims[1]))
        return infer_fail(q, "makes too many channels");
    for (int i = 2; i < 4; i++) {
        if (x->dims[i] > 0 && x->dims[i] % block)
            return infer_fail(q, "dimension %d is %" PRId64 ", no multiple of the block size %" PRId64, i, x->dims[i],
                              block);
        dims[i] = x->dims[i] < 0 ? DIM_UNKNOWN : x->dims[i] / block;
    }
    return infer_dims(q, x->dtype, 4, dims);
}

const int *depth_to_space_blocks(const BlockAttr *at, const int64_t *d, int64_t *blocks)
{
    static const int orders[][6] = { [MODE_DCR] = { 0, 3, 4, 1, 5, 2 }, [MODE_CRD] = { 0, 1, 4, 2, 5, 3 } };
    const int64_t s = at->blocksize, c = d[1] / (s * s);
    const int64_t dcr[] = { d[0], s, s, c, d[2], d[3] }, crd[] = { d[0], c, s, s, d[2], d[3] };
    memcpy(blocks, at->mode == MODE_DCR ? dcr : crd, sizeof dcr);
    return orders[at->mode];
}

const int *space_to_depth_blocks(const BlockAttr *at, const int64_t *d, int64_t *blocks)
{
    static const int orders[][6] = { [MODE_DCR] = { 0, 3, 5, 1, 2, 4 }, [MODE_CRD] = { 0, 1, 3, 5, 2, 4 } };
    const int64_t s = at->blocksize, split[] = { d[0], d[1], d[2] / s, s, d[3] / s, s };
    memcpy(blocks, split, sizeof split);
    return orders[at->mode];
}

static Status eval_depth_to_space(Eval *e)
{
    int64_t blocks[6];
    Move m = { 0 };
    const int *order = depth_to_space_blocks(e->attr, e->in[0]->type->dims, blocks);
    permute(&m, 6, blocks, order);
    return moved(e, &m);
}

static Status eval_space_to_depth(Eval *e)
{
    int64_t blocks[6];
    Move m = { 0 };
    const int *order = space_to_depth_blocks(e->attr, e->in[0]->type->dims, blocks);
    permute(&m, 6, blocks, order);
    return moved(e, &m);
}

static Node *sample_depth_to_space(Build *b, Rng *rng, int variant)
{
    const BlockAttr at = { rng_range(rng, 1, 3), variant % 2 };
    int64_t dims[4];
    sample_dims(rng, 4, 3, dims);
    dims[1] *= at.blocksize * at.blocksize;
    return CALL_ATTR(b, depth_to_space, at, sample_tensor(b, rng, sample_dtype(variant), 4, dims, -3, 3));
}

/* The adjoint of depth_to_space is space_to_depth with the same attributes, and the other way round. */
static void adjoint_depth_to_space(Build *b, const Site *s, Node **dx)
{
    dx[0] = CALL_ATTR(b, space_to_depth, *(const BlockAttr *)s->attr, s->dout[0]);
}

static void adjoint_space_to_depth(Build *b, const Site *s, Node **dx)
{
    dx[0] = CALL_ATTR(b, depth_to_space, *(const BlockAttr *)s->attr, s->dout[0]);
}

static Node *sample_space_to_depth(Build *b, Rng *rng, int variant)
{
    const BlockAttr at = { rng_range(rng, 1, 3), variant % 2 };
    int64_t dims[4];
    sample_dims(rng, 4, 3, dims);
    dims[2] *= at.blocksize;
    dims[3] *= at.blocksize;
    return CALL_ATTR(b, space_to_depth, at, sample_tensor(b, rng, sample_dtype(variant), 4, dims, -3, 3));
}

const OpDef op_depth_to_space = {
    .name = "depth_to_space",
    .min_in = 1,
    .max_in = 1,
    .attrs = block_attrs,
    .infer = infer_depth_to_space,
    .eval = eval_depth_to_space,
    .adjoint = adjoint_depth_to_space,
    .sample = sample_depth_to_space,
    .n_variants = 16,
    MOVES,
    .access.iterate = iterate_depth_to_space,
    .onnx = { "DepthToSpace", 28, NULL },
};

const OpDef op_space_to_depth = {
    .name = "space_to_depth",
    .min_in = 1,
    .max_in = 1,
    .attrs = block_attrs,
    .infer = infer_space_to_depth,
    .eval = eval_space_to_depth,
    .adjoint = adjoint_space_to_depth,
    .sample = sample_space_to_depth,
    .n_variants = 16,
    MOVES,
    .access.iterate = iterate_space_to_depth,
    .onnx = { "SpaceToDepth", 28, NULL },
};

/* ---- expand ---- */

static const Type *infer_expand(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    int64_t n, dims[MAX_RANK];
    if (!x || !infer_list(q, 1, &n))
        return NULL;
    const int64_t *v = infer_ints(q, 1, &n);
    if (n > MAX_RANK)
        return infer_fail(q, "asks for %" PRId64 " dimensions, more than the limit rank (%d)", n, MAX_RANK);
    if (n < 0 || x->rank < 0)
        return type_unranked(q->types, x->dtype);
    int rank = (int)n;
    for (int i = 0; i < rank; i++) {
        dims[i] = v ? v[i] : DIM_UNKNOWN;
        if (v && v[i] < 0)
            return infer_fail(q, "asks for a dimension %" PRId64, v[i]);
    }
    const Type *want = infer_dims(q, x->dtype, rank, dims);
    if (!want)
        return NULL;
    if (!broadcast_dims(&rank, dims, x))
        return infer_fail(q, "%s does not broadcast to %s", type_text(q->scratch, x), type_text(q->scratch, want));
    return infer_dims(q, x->dtype, rank, dims);
}

static Status eval_expand(Eval *e)
{
    const Type *x = e->in[0]->type, *y = eval_type(e, 0);
    int64_t from[MAX_RANK], to[MAX_RANK];
    const int more = y->rank - x->rank;
    Move m = { 0 };
    move_strides(x->rank, x->dims, from);
    move_strides(y->rank, y->dims, to);
    for (int i = 0; i < y->rank; i++)
        move_axis(&m, y->dims[i], to[i], i < more || x->dims[i - more] == 1 ? 0 : from[i - more]);
    return moved(e, &m);
}

/* What was repeated is added up by the caller. */
static void adjoint_expand(Build *b, const Site *s, Node **dx)
{
    (void)b;
    dx[0] = s->dout[0];
}

static Node *sample_expand(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK], want[MAX_RANK];
    const int rank = variant % 5, more = (int)rng_below(rng, 2);
    sample_dims(rng, rank + more, 4, want);
    for (int i = 0; i < rank; i++) {
        const int64_t kind = rng_below(rng, 3);
        dims[i] = kind == 0 ? 1 : want[i + more];
        if (kind == 1)
            want[i + more] = 1;
    }
    Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    return CALL(b, expand, x, build_i64s(b, rank + more, want));
}

static bool expand_extent(const Node *n, const Type *from, int axis, int64_t batch, StatedNumber *to)
{
    (void)batch;
    *to = (StatedNumber){ 1, axis + n->type->rank - from->rank };
    return true;
}

const OpDef op_expand = {
    .name = "expand",
    .min_in = 2,
    .max_in = 2,
    .infer = infer_expand,
    .eval = eval_expand,
    .adjoint = adjoint_expand,
    .open_adjoint = true,
    .sample = sample_expand,
    .n_variants = 30,
    MOVES,
    .access.iterate = iterate_expand,
    .access.alias = { { 0, 0, ALIAS_VIEW } },
    .access.steer = 2,
    .access.shape = 2,
    .extent = expand_extent,
    .onnx = { "Expand", 13, NULL },
};

/* ---- tile ---- */

static const Type *infer_tile(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    int64_t n, dims[MAX_RANK];
    if (!x || !infer_list(q, 1, &n))
        return NULL;
    if (x->rank < 0)
        return n < 0 ? x : infer_unknown_dims(q, x->dtype, n);
    if (!dims_fit(n, x->rank))
        return infer_fail(q, "repeats %" PRId64 " axes of a tensor of rank %d", n, x->rank);
    const int64_t *v = infer_ints(q, 1, &n);
    if (!v)
        return infer_unknown_dims(q, x->dtype, x->rank);
    for (int i = 0; i < x->rank; i++) {
        if (v[i] < 0)
            return infer_fail(q, "repeats axis %d %" PRId64 " times", i, v[i]);
        if (x->dims[i] < 0)
            dims[i] = v[i] ? DIM_UNKNOWN : 0;
        else if (!checked_mul_i64(x->dims[i], v[i], &dims[i]))
            return infer_fail(q, "makes axis %d too long", i);
    }
    return infer_dims(q, x->dtype, x->rank, dims);
}

static Status eval_tile(Eval *e)
{
    const Type *x = e->in[0]->type, *y = eval_type(e, 0);
    int64_t from[MAX_RANK], to[MAX_RANK];
    Move m = { 0 };
    move_strides(x->rank, x->dims, from);
    move_strides(y->rank, y->dims, to);
    for (int i = 0; i < y->rank; i++) {
        move_axis(&m, x->dims[i] ? y->dims[i] / x->dims[i] : 0, to[i] * x->dims[i], 0);
        move_axis(&m, x->dims[i], to[i], from[i]);
    }
    return moved(e, &m);
}

/* Axis by axis, the copies one above the other and added up. */
static void adjoint_tile(Build *b, const Site *s, Node **dx)
{
    const Type *x = s->in[0]->type;
    int64_t dims[MAX_RANK];
    const int64_t copies = 1;
    Node *g = s->dout[0];
    for (int i = 0; i < x->rank; i++)
        dims[i] = s->dout[0]->type->dims[i];
    if (type_elements(x) == 0)
        return;
    for (int i = 0; i < x->rank; i++) {
        const int64_t n = dims[i] / x->dims[i];
        if (n == 1)
            continue;
        const int64_t outer = move_count(dims, 0, i), inner = move_count(dims, i + 1, x->rank);
        g = make_reshape(b, g, 4, (const int64_t[]){ outer, n, x->dims[i], inner });
        dims[i] = x->dims[i];
        g = make_reshape(b, build_reduce(b, OP_reduce_sum, g, 1, &copies), x->rank, dims);
    }
    dx[0] = g;
}

static Node *sample_tile(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK], repeats[MAX_RANK];
    const int rank = variant % 6;
    sample_dims(rng, rank, 4, dims);
    for (int i = 0; i < rank; i++)
        repeats[i] = rng_below(rng, 8) ? rng_range(rng, 1, 3) : 0;
    Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    return CALL(b, tile, x, build_i64s(b, rank, repeats));
}

const OpDef op_tile = {
    .name = "tile",
    .min_in = 2,
    .max_in = 2,
    .infer = infer_tile,
    .eval = eval_tile,
    .adjoint = adjoint_tile,
    .sample = sample_tile,
    .n_variants = 24,
    MOVES,
    .access.iterate = iterate_tile,
    .access.steer = 2,
    .onnx = { "Tile", 13, NULL },
};

#undef MOVES
