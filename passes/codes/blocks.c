/* Blocks are what ONNX knows as such (axis, block_size): scales of the rank of the value.  A tile is a block whose scales are
 * the same for some channels side by side; there is one scale for it, which is repeated where quantizers read it. */
#include "passes/codes/blocks.h"

#include "ops/card/make.h"
#include "ops/card/words.h"

const QuantGrain quant_whole = { .axis = QUANT_WHOLE, .across = QUANT_WHOLE, .wide = 1 };

static int64_t parts(int64_t n, int64_t size)
{
    return n < 0 ? n : n / size + (n % size != 0);
}

/* How many elements along a dimension share a scale; 0: all of them. */
static int64_t size_along(const QuantGrain *g, int axis)
{
    if (g->axis == QUANT_WHOLE)
        return 0;
    if (!g->block)
        return axis == g->axis;
    return axis == g->axis ? g->block : axis == g->across ? g->wide : 1;
}

const Type *quant_scale_type(Types *types, const QuantGrain *g, const Type *value)
{
    int64_t dims[MAX_RANK];
    if (g->axis == QUANT_WHOLE)
        return type_scalar(types, F32);
    if (!g->block)
        return type_vector(types, F32, value->dims[g->axis]);
    for (int i = 0; i < value->rank; i++)
        dims[i] = parts(value->dims[i], size_along(g, i));
    return type_tensor(types, F32, value->rank, dims);
}

double quant_sharing(const QuantGrain *g, const Type *value)
{
    double n = 1;
    for (int i = 0; i < value->rank; i++) {
        const int64_t size = size_along(g, i), have = value->dims[i];
        n *= (double)(size && size < have ? size : have);
    }
    return n;
}

/* Each block as a dimension of its own behind the one that counts them, zeros behind the last. */
static Node *in_blocks(Build *b, const QuantGrain *g, Node *value, int64_t *axes, int *n_axes)
{
    const Type *t = value->type;
    int64_t none[MAX_RANK] = { 0 }, after[MAX_RANK] = { 0 }, dims[2 * MAX_RANK] = { 0 };
    bool pads = false;
    int n = 0;
    *n_axes = 0;
    for (int i = 0; i < t->rank; i++) {
        const int64_t size = size_along(g, i), count = parts(t->dims[i], size);
        dims[n++] = count;
        after[i] = count * size - t->dims[i];
        pads |= after[i] > 0;
        if (size == 1)
            continue;
        axes[(*n_axes)++] = n;
        dims[n++] = size;
    }
    if (pads)
        value = make_pad(b, value, t->rank, none, after);
    return make_reshape(b, value, n, dims);
}

/* One block along its dimension: its scale has the place of what it is reduced to, whatever is known of the rest. */
static bool is_one_block(const QuantGrain *g, const Type *value)
{
    return g->block && value->dims[g->axis] == g->block && g->wide == 1;
}

static Node *fold(Build *b, QuantFold how, Node *value, int n, const int64_t *axes)
{
    if (!n)
        return value;
    switch (how) {
    case FOLD_LEAST:
        return build_reduce(b, OP_reduce_min, value, n, axes);
    case FOLD_LARGEST:
        return build_reduce(b, OP_reduce_max, value, n, axes);
    case FOLD_SUM:
        return build_reduce(b, OP_reduce_sum, value, n, axes);
    default:
        return build_reduce(b, OP_reduce_mean, value, n, axes);
    }
}

Node *quant_fold(Build *b, QuantFold how, const QuantGrain *g, Node *value)
{
    const Type *t = value->type;
    int64_t axes[MAX_RANK];
    int n = 0;
    if (is_one_block(g, t)) {
        axes[0] = g->axis;
        return fold(b, how, value, 1, axes);
    }
    if (g->block)
        value = in_blocks(b, g, value, axes, &n);
    for (int i = 0; i < t->rank && !g->block; i++)
        if (i != g->axis)
            axes[n++] = i;
    return fold(b, how, value, n, axes);
}

Node *quant_rows_of(Build *b, const QuantGrain *g, Node *value)
{
    int64_t axes[MAX_RANK], order[2 * MAX_RANK], dims[2] = { 1, 1 };
    int n = 0, kept = 0;
    if (g->block && !is_one_block(g, value->type))
        value = in_blocks(b, g, value, axes, &n);
    else
        for (int i = 0; i < value->type->rank; i++)
            if (g->block ? i == g->axis : i != g->axis)
                axes[n++] = i;
    if (!value)
        return NULL;
    const Type *t = value->type;
    for (int i = 0, k = 0; i < t->rank; i++) {
        const bool folds = k < n && axes[k] == i;
        dims[folds] *= t->dims[i];
        if (folds)
            k++;
        else
            order[kept++] = i;
    }
    for (int k = 0; k < n; k++)
        order[kept + k] = axes[k];
    bool moves = false;
    for (int i = 0; i < t->rank; i++)
        moves |= order[i] != i;
    return make_reshape(b, moves ? make_transpose(b, value, t->rank, order) : value, 2, dims);
}

Node *quant_as_scales(Build *b, const QuantGrain *g, Node *reduced, const Type *value)
{
    const Type *scales = quant_scale_type(&b->graph->ir->types, g, value);
    return is_one_block(g, value) ? reduced : make_reshape(b, reduced, scales->rank, scales->dims);
}

Node *quant_counts(Build *b, const QuantGrain *g, const Type *value)
{
    const Type *scales = quant_scale_type(&b->graph->ir->types, g, value);
    Tensor *counts = tensor_new(b->graph->arena, scales);
    for (int64_t k = 0; k < tensor_elements(counts); k++) {
        double n = 1;
        int64_t rest = k;
        for (int i = value->rank - 1; i >= 0; i--) {
            const int64_t size = size_along(g, i), have = value->dims[i];
            const int64_t at = !g->block ? 0 : rest % scales->dims[i] * size;
            rest = g->block ? rest / scales->dims[i] : rest;
            n *= (double)(!size ? have : have - at < size ? have - at : size);
        }
        tensor_set_f64(counts, k, n);
    }
    return build_const(b, counts);
}

Node *spread_scales(Build *b, const QuantGrain *g, Node *scales, const Type *value)
{
    if (!scales || g->wide == 1)
        return scales;
    const int64_t n = value->dims[g->across];
    int64_t *at = NEWS(b->graph->arena, int64_t, n + 1);
    for (int64_t i = 0; i < n; i++)
        at[i] = i / g->wide;
    return make_gather(b, scales, build_i64s(b, (int)n, at), g->across);
}
