/* Operands of products as codes: each as its product sums it, or a value along both of its axes at once. */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "ops/card/make.h"
#include "ops/quant/quantize.h"
#include "ops/random/random_draws.h"
#include "passes/lowbit/products.h"
#include "passes/quant/grain.h"

Build product_build(const Node *call, bool back)
{
    Build b = build_before((Node *)call);
    b.flags = NODE_OURS | (back ? NODE_BACKWARD : 0);
    return b;
}

/* Numbers of [0, 1) for the elements of a value, by their place in it. */
static Node *draw_for(Build *b, const Layer *l, QuantOperand operand, const Node *value)
{
    const char *name = arena_printf(b->graph->arena, "%s/%s", l->weight->name, quantizer_operand_word(operand));
    return random_draws(b, value->type, (int64_t)(uint32_t)hash64(name, strlen(name), 0));
}

static bool is_by_chance(const Quantizer *q)
{
    return q->part[QUANT_ROUNDING].value == ROUNDING_SR;
}

static bool is_eden(const Quantizer *q)
{
    return q->part[QUANT_ROUNDING].value == ROUNDING_MS_EDEN;
}

/* Sixteen for both operands of a product, of which one is rounded by ms-eden: they are turned alike, each time otherwise. */
static Node *draw_of_turn(Build *b, const Layer *l, QuantProduct k)
{
    enum { WIDE = 16 };
    const char *name = arena_printf(b->graph->arena, "%s/turn/%d", l->weight->name, (int)k);
    if (!is_eden(layer_record(l, k, 0)) && !is_eden(layer_record(l, k, 1)))
        return NULL;
    return random_draws(b, type_vector(&b->graph->ir->types, F32, WIDE),
                        (int64_t)(uint32_t)hash64(name, strlen(name), 0));
}

/* A value, in f32 and in the shape of an operand. */
static Node *shaped(Build *b, Node *value, const Type *like)
{
    return make_shaped(b, make_cast(b, value, F32), like->rank, like->dims);
}

/* The record of an operand: what is multiplied with something turned is turned, too. */
static Quantizer turned_record(const Layer *l, QuantProduct k, int operand)
{
    Quantizer q = *layer_record(l, k, operand);
    const Quantizer *other = layer_record(l, k, 1 - operand);
    if (!q.part[QUANT_TURN].value)
        q.part[QUANT_TURN] = other->part[QUANT_TURN];
    return q;
}

/* Codes of an operand alone. */
static Status quantize_operand(Layer *l, QuantProduct k, int operand, DynamicCodes *to)
{
    const Node *call = l->call[k];
    const ProductWay *way = product_way(call);
    const Quantizer q = turned_record(l, k, operand);
    const bool of_data = k == PRODUCT_GRAD_WEIGHT && operand == l->data[k]; /* kept as codes */
    Build b = product_build(of_data ? l->call[PRODUCT_OUTPUT] : call, !of_data && k != PRODUCT_OUTPUT);
    Node *value = value_behind(in(call, operand)), *draw = NULL;
    int axis = 0;
    if (is_by_chance(&q) || is_eden(&q))
        draw = shaped(&b, draw_for(&b, l, layer_operand(l, k, operand), value), in(call, operand)->type);
    Node *x = way->lay(&b, call, operand, shaped(&b, value, in(call, operand)->type), &axis);
    draw = draw ? way->lay(&b, call, operand, draw, &axis) : NULL;
    const DynamicDraws draws = { draw, draw_of_turn(&b, l, k) };
    TRY(b.status);
    TRY(dynamic_codes(&b, x, &q, axis, &draws, to));
    to->codes = to->codes ? way->unlay(&b, call, operand, to->codes) : NULL;
    to->number = to->number ? way->unlay(&b, call, operand, to->number) : NULL;
    to->scale = to->scale ? way->scale(&b, call, operand, to->scale) : NULL;
    return b.status;
}

/* ---- codes of a value along both axes ---- */

/* Whether records of a value along both axes are those of quantize_both. */
static bool is_both(const Quantizer *q, const Quantizer *other)
{
    return quantizer_same(q, other) && q->format == FORMAT_INT && q->bits > 1 && q->bits <= 8 &&
           (quantizer_says(q, QUANT_GRAIN, GRAIN_ROW) || quantizer_says(q, QUANT_GRAIN, GRAIN_CHANNEL)) &&
           quantizer_says(q, QUANT_SOURCE, SOURCE_DYNAMIC) && quantizer_says(q, QUANT_SCALE, SCALE_F32) &&
           quantizer_says(q, QUANT_ZERO, ZERO_SYM) &&
           (quantizer_says(q, QUANT_ROUNDING, ROUNDING_RNE) || is_by_chance(q)) && !q->part[QUANT_BITS].value &&
           !q->part[QUANT_TURN].value;
}

/* Whether the first operand is summed along rows of the matrix whose columns the second one sums. */
static bool is_matrix(const Node *first, int i, const Node *second, int j)
{
    const Type *x = in(first, i)->type, *y = in(second, j)->type;
    int axis = 0;
    if (value_behind(in(first, i)) != value_behind(in(second, j)))
        return false;
    if (product_way(first) != &way_matrix)
        return type_agrees(type_with_dtype(&first->graph->ir->types, x, F32),
                           type_with_dtype(&first->graph->ir->types, y, F32));
    way_matrix.lay(NULL, first, i, NULL, &axis);
    if (axis != x->rank - 1 || y->rank != 2 || y->dims[1] != x->dims[axis])
        return false;
    way_matrix.lay(NULL, second, j, NULL, &axis);
    return axis == 0;
}

/* A scale an index, in the shape of those that a layout has. */
static Node *scale_of_layout(Build *b, const Node *call, int operand, Node *scale)
{
    const Type *t = in(call, operand)->type;
    int64_t dims[MAX_RANK] = { type_elements(scale->type), 1 };
    int axis = 0, rank = 2;
    if (product_way(call) == &way_matrix) {
        way_matrix.lay(b, call, operand, NULL, &axis);
        rank = t->rank;
        for (int i = 0; i < rank; i++)
            dims[i] = i == axis ? 1 : t->dims[i];
    }
    return product_way(call)->scale(b, call, operand, make_shaped(b, scale, rank, dims));
}

static DynamicCodes half_of(Build *b, Node *both, int at, const Node *call, int operand)
{
    const Type *t = in(call, operand)->type;
    return (DynamicCodes){ .codes = make_shaped(b, build_part(b, both, at), t->rank, t->dims),
                           .scale = scale_of_layout(b, call, operand, build_part(b, both, at + 1)) };
}

/* Codes of operand `i` of product `k` and of operand `j` of the one for weights, which are one value. */
static Status quantize_both(Products *p, Layer *l, QuantProduct k, DynamicCodes *first, DynamicCodes *second)
{
    Node *call = l->call[k], *other = l->call[PRODUCT_GRAD_WEIGHT];
    const int i = l->data[k], at = l->data[PRODUCT_GRAD_WEIGHT], j = k == PRODUCT_OUTPUT ? at : 1 - at;
    const Quantizer *q = layer_record(l, k, i);
    if (!is_both(q, layer_record(l, PRODUCT_GRAD_WEIGHT, j)) || !is_matrix(call, i, other, j) ||
        quant_splits_sums(layer_record(l, k, 1 - i)) || quant_splits_sums(layer_record(l, PRODUCT_GRAD_WEIGHT, 1 - j)))
        return OK; /* beside scales that change along a sum its numbers are wanted */
    const bool back = k != PRODUCT_OUTPUT;
    const bool sooner = back && *(int64_t *)fact(&p->places, other) < *(int64_t *)fact(&p->places, call);
    Build b = product_build(sooner ? other : call, back);
    Node *value = value_behind(in(call, i)), *ins[2] = { shaped(&b, value, in(other, j)->type), NULL };
    QuantizeBothAttr both = { .rounding = is_by_chance(q) ? ROUND_SR : ROUND_RNE };
    quantizer_codes(q, &both.least, &both.largest);
    if (is_by_chance(q))
        ins[1] = shaped(&b, draw_for(&b, l, layer_operand(l, k, i), value), in(other, j)->type);
    TRY(b.status);
    Node *codes = build_node_n(&b, OP_quantize_both, &both, ins[1] ? 2 : 1, ins, 4);
    TRY(b.status);
    *first = half_of(&b, codes, 0, call, i);
    *second = half_of(&b, codes, 2, other, j);
    return b.status;
}

Status products_codes(Products *p, Layer *l, DynamicCodes of[QUANT_PRODUCT_COUNT][2])
{
    const int at = l->data[PRODUCT_GRAD_WEIGHT];
    for (int k = 0; k < PRODUCT_GRAD_WEIGHT; k++)
        if (layer_quantizes(l, (QuantProduct)k) && layer_quantizes(l, PRODUCT_GRAD_WEIGHT))
            TRY(quantize_both(p, l, (QuantProduct)k, &of[k][l->data[k]],
                              &of[PRODUCT_GRAD_WEIGHT][k == PRODUCT_OUTPUT ? at : 1 - at]));
    for (int k = 0; k < QUANT_PRODUCT_COUNT; k++)
        for (int i = 0; i < 2 && layer_quantizes(l, (QuantProduct)k); i++)
            if (!of[k][i].codes && !of[k][i].number)
                TRY(quantize_operand(l, (QuantProduct)k, i, &of[k][i]));
    return OK;
}
