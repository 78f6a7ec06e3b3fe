/* Grains: one scale for all, for a channel, for a row, for so many along what a product adds up.
 *
 * Blocks are what ONNX knows as such (axis, block_size): scales of the rank of the value.  A tile is a block whose
 * scales are the same for some channels side by side; there is one scale for it, which is repeated where quantizers
 * read it. */
#include "passes/quant/grain.h"

#include <inttypes.h>

#include "ops/card/words.h"

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

bool quant_goes_by_rows(const Quantizer *q)
{
    return quant_has_rows(q) || quant_splits_sums(q);
}

/* ---- of data ---- */

int quant_block_axis(const Node *call, int operand)
{
    const QuantCard *card = &op_of(call)->quant;
    const int axis = quant_sum_axis(call, operand);
    const bool filtered = quant_role(card, operand) == QUANT_INPUT && quant_role(card, 1) == QUANT_WEIGHT;
    return axis == QUANT_WHOLE && filtered && in(call, operand)->type->rank > 2 ? 1 : axis;
}

QuantGrain quant_grain_of_rows(const Quantizer *q, int axis, const Type *data)
{
    const QuantPart *said = &q->part[QUANT_GRAIN];
    QuantGrain grain = quant_whole;
    grain.axis = axis;
    grain.block = quant_splits_sums(q) ? said->size[said->value == GRAIN_TILE] : data->dims[axis];
    return grain;
}

static bool has_grain_of(const Quantizer *a, const Quantizer *b)
{
    const QuantPart *x = &a->part[QUANT_GRAIN], *y = &b->part[QUANT_GRAIN];
    return x->value == y->value && x->size[0] == y->size[0] && x->size[1] == y->size[1];
}

/* Why data have no scales of rows, or of parts of them; null: they have. */
static const char *no_rows(Placement *p, const Node *n, int i, const Quantizer *q)
{
    const int axis = quant_has_rows(q) ? quant_sum_axis(n, i) : quant_block_axis(n, i);
    const QuantValueMark *v = quant_value(p, in(n, i));
    const QuantPart *grain = &q->part[QUANT_GRAIN];
    const int64_t have = axis == QUANT_WHOLE ? 0 : in(n, i)->type->dims[axis];
    if (axis == QUANT_WHOLE)
        return "its data have no rows that it adds up";
    if (have < 0)
        return "nobody knows yet how long the rows of its data are";
    if (grain->value == GRAIN_GROUP && have % grain->size[0])
        return arena_printf(p->run->scratch, "groups of %" PRId64 " do not divide rows of %" PRId64 " of its data",
                            grain->size[0], have);
    if (grain->value == GRAIN_TILE && grain->size[0] > 1)
        return "its data have blocks within rows, not tiles of several";
    return v->by && (!has_grain_of(v->by, q) || v->axis != axis) ? "others read rows of its data otherwise" : NULL;
}

/* What the data may have instead: blocks, of which the last may have fewer, or one scale. */
static const char *instead_of_rows(Placement *p, const Node *n, int i, const Quantizer *q)
{
    Quantizer other = *q;
    if (quant_splits_sums(q) && quant_block_axis(n, i) != QUANT_WHOLE && other.part[QUANT_GRAIN].value == GRAIN_GROUP)
        other.part[QUANT_GRAIN].value = GRAIN_BLOCK;
    else if (quant_has_rows(q) || quant_block_axis(n, i) == QUANT_WHOLE)
        return arena_printf(p->run->scratch, "%s:tensor:dynamic",
                            !quantizer_is_float(q)     ? q->format == FORMAT_UINT ? "uint8" : "int8"
                            : q->format == FORMAT_E2M1 ? "e2m1"
                                                       : "e4m3");
    other = quantizer_mended(&other, true);
    return quantizer_text(&other, p->run->scratch);
}

Status quant_check_rows(Placement *p, const Node *n, int i, const Quantizer *q)
{
    const char *why = no_rows(p, n, i, q);
    if (!why)
        return OK;
    Message *m = message_new(p->run->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(n), "a=%s: %s",
                             quantizer_text(q, p->run->scratch), why);
    message_try(m, "--quant-op 'op:%s=a=%s'", op_title(p->run->scratch, n), instead_of_rows(p, n, i, q));
    return message_send(m);
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

/* Whether a target has one scale alone for a weight whose channels are not the columns of one matrix on the right. */
static bool is_whole_for(const QuantTarget *t, const Quantizer *by, const Node *call, int operand, int channel)
{
    const int rank = in(call, operand)->type->rank;
    if (!op_of(call)->quant.integer || quant_is_recurrent(call) || quant_is_table(call))
        return false;
    if (operand == 0)
        return t->whole_left || (t->whole_stacks && by->part[QUANT_ZERO].value == ZERO_ASYM);
    return t->whole_stacks && rank > 2 && channel == rank - 1;
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
        const QuantTarget *t = quantization_target(p->recipe);
        const bool whole = channel != QUANT_WHOLE && is_whole_for(t, by, call, operand, channel);
        grain->axis = channel < weight->type->rank && !whole ? channel : QUANT_WHOLE;
        if (whole)
            remark(p->run->diag, "place-quant", node_place(call),
                   "%s is quantized with one scale: %s has no other for %s", quant_weight_of((Node *)weight)->name,
                   t->title, operand == 0 ? "what is multiplied from the left" : "a stack of matrices");
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
