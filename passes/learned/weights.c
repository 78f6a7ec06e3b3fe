/* Weights that become others before they are codes. */
#include "ops/card/make.h"
#include "ops/card/words.h"
#include "passes/learned/learned.h"

/* Scales of an axis beside the elements of a value. */
static Node *beside(Build *b, Node *scale, const Type *value, int axis)
{
    int64_t dims[MAX_RANK];
    if (axis < 0 || !scale->type->rank)
        return scale;
    for (int i = 0; i < value->rank; i++)
        dims[i] = i == axis ? value->dims[i] : 1;
    return make_reshape(b, scale, value->rank, dims);
}

Node *learned_signs(Build *b, Node *weight, Node *scale, int axis)
{
    Node *size = beside(b, scale, weight->type, axis);
    Node *below = CALL(b, less, weight, build_scalar(b, F32, 0));
    return CALL(b, straight, CALL(b, where, below, CALL(b, neg, size), size), weight);
}

Node *learned_ternary(Build *b, Node *weight, Node *threshold, Node *scale, int axis)
{
    Node *edge = beside(b, threshold, weight->type, axis), *size = beside(b, scale, weight->type, axis);
    Node *below = CALL(b, less, weight, CALL(b, neg, edge)), *above = CALL(b, less, edge, weight);
    Node *small = CALL(b, where, below, CALL(b, neg, size), build_scalar(b, F32, 0));
    return CALL(b, straight, CALL(b, where, above, size, small), weight);
}

Node *learned_tanh(Build *b, Node *weight, int64_t steps)
{
    Node *n = build_scalar(b, F32, (double)steps), *one = build_scalar(b, F32, 1), *half = build_scalar(b, F32, 0.5);
    Node *least = build_scalar(b, F32, 0x1p-24), *none = build_scalar(b, F32, 0);
    Node *t = CALL(b, tanh, weight), *most = make_reduce_all(b, OP_reduce_max, CALL(b, abs, t));
    Node *smooth = CALL(b, div, t, CALL(b, straight, CALL(b, max, most, least), none));
    Node *u = CALL(b, add, CALL(b, mul, smooth, half), half);
    Node *level = CALL(b, div, CALL(b, round, CALL(b, mul, u, n)), n);
    return CALL(b, straight, CALL(b, sub, CALL(b, add, level, level), one), smooth);
}

Node *learned_from(Node *value)
{
    Node *counted = value->op == OP_mul && value->flags & NODE_OURS ? learned_levels_of(in(value, 1)) : NULL;
    Node *parted = learned_parted_of(value);
    if (counted || parted)
        return counted ? counted : parted;
    if (value->op != OP_straight || !(value->flags & NODE_OURS))
        return value;
    value = in(value, 1);
    return value->op == OP_div && in(value, 0)->op == OP_tanh ? in(in(value, 0), 0) : value;
}
