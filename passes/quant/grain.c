/* Grains: one scale for all, for a channel, for a row, for so many along what a product adds up.
 *
 * Blocks are what ONNX knows as such (axis, block_size): scales of the rank of the value.  A tile is a block whose
 * scales are the same for some channels side by side; there is one scale for it, which is repeated where quantizers
 * read it. */
#include "passes/quant/grain.h"

#include <inttypes.h>

#include "ops/card/make.h"
#include "ops/card/words.h"

const QuantGrain quant_whole = { .axis = QUANT_WHOLE, .across = QUANT_WHOLE, .wide = 1 };

/* Filters have their channels and what they add up in the first two dimensions, matrices in the last two, recurrent
 * layers one matrix for each direction; rows of a table add up nothing and are cut along themselves.  Of what
 * has a word on codes, filters have their channels in the first, and stacks of matrices nothing. */
int quant_sum_axis(const Node *call, int operand)
{
    const QuantCard *card = &op_of(call)->quant;
    const int axis = quant_weight_axis(call, operand), rank = in(call, operand) ? in(call, operand)->type->rank : 0;
    if (axis == QUANT_WHOLE || rank < 2)
        return QUANT_WHOLE;
    if (quant_is_recurrent(call) || quant_is_table(call))
        return rank - 1;
    if (!card->integer)
        return quant_role(card, operand) == QUANT_WEIGHT && axis < 2 ? 1 - axis : QUANT_WHOLE;
    if (axis == 0)
        return 1;
    return axis == rank - 1 ? rank - 2 : axis == rank - 2 ? rank - 1 : QUANT_WHOLE;
}

static QuantValue word_of(const Quantizer *q)
{
    return q && q->on ? q->part[QUANT_GRAIN].value : QUANT_NOTHING;
}

bool quant_splits_sums(const Quantizer *q)
{
    return word_of(q) == GRAIN_GROUP || word_of(q) == GRAIN_BLOCK || word_of(q) == GRAIN_TILE;
}

bool quant_has_rows(const Quantizer *q)
{
    return word_of(q) == GRAIN_ROW;
}

/* ---- of weights ---- */

static Message *refused(Placement *p, const Quantizer *by, const Node *call, const char *why)
{
    return message_new(p->run->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(call), "w=%s: %s",
                       quantizer_text(by, p->run->scratch), why);
}

/* "--quant-op 'SELECTOR=w=int4:": for that call alone. */
static const char *for_call(Placement *p, const Quantizer *by, const Node *call)
{
    Arena *a = p->run->scratch;
    const char *format = by->format == FORMAT_UINT ? "uint" : "int";
    return call->label ? arena_printf(a, "--quant-op '%s=w=%s%d:", call->label, format, by->bits)
                       : arena_printf(a, "--quant-op 'op:%s=w=%s%d:", op_title(a, call), format, by->bits);
}

static int64_t largest_divisor(int64_t n, int64_t most)
{
    int64_t d = most < n ? most : n;
    while (d > 1 && n % d)
        d--;
    return d;
}

static Status does_not_divide(Placement *p, const Quantizer *by, const Node *call, const Node *weight, int64_t have)
{
    const int64_t group = by->part[QUANT_GRAIN].size[0], fits = largest_divisor(have, group);
    const char *name = quant_weight_of((Node *)weight)->name, *begin = for_call(p, by, call);
    const bool table = quant_is_table(call), stored = quantizer_is_stored(by);
    const char *rest = stored ? ":sr:stored" : "";
    Message *m =
        refused(p, by, call,
                arena_printf(p->run->scratch, "groups of %" PRId64 " do not divide the %" PRId64 " that %s%s has%s",
                             group, have, table ? "a row of " : "the sum of ", name ? name : "the weight",
                             table ? "" : " in a channel"));
    if (fits > 1)
        message_try(m, "%sgroup=%" PRId64 "%s'", begin, fits, rest);
    message_try(m, "%s%s%s'", begin, table ? "row" : "channel", rest);
    if (have > group && !stored)
        message_try(m, "w=%s%d:block=%" PRId64 ": the last one may have fewer",
                    by->format == FORMAT_UINT ? "uint" : "int", by->bits, group);
    return message_send(m);
}

Status quant_grain_of_weight(Placement *p, const Quantizer *by, const Node *call, int operand, QuantGrain *grain)
{
    const Node *weight = in(call, operand);
    const QuantPart *said = &by->part[QUANT_GRAIN];
    const int channel = quant_weight_axis(call, operand), sum = quant_sum_axis(call, operand);
    *grain = quant_whole;
    if (said->value == GRAIN_TENSOR) {
        if (quant_is_recurrent(call) && weight->type->dims[0] > 1)
            grain->axis = 0; /* each direction is a matrix */
        return OK;
    }
    if (!quant_splits_sums(by)) {
        grain->axis = channel < weight->type->rank ? channel : QUANT_WHOLE;
        return OK;
    }
    if (sum == QUANT_WHOLE || !type_known(weight->type)) {
        Message *m = refused(p, by, call, "nobody knows along which dimension of the weight it adds up");
        message_try(m, "%schannel'", for_call(p, by, call));
        return message_send(m);
    }
    const bool tile = said->value == GRAIN_TILE;
    const int64_t have = weight->type->dims[sum];
    grain->axis = sum;
    grain->block = said->size[tile];
    if (said->value == GRAIN_GROUP && have % grain->block)
        return does_not_divide(p, by, call, weight, have);
    if (tile && said->size[0] > 1) {
        grain->across = channel;
        grain->wide = said->size[0];
    }
    return OK;
}

/* ---- scales ---- */

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
