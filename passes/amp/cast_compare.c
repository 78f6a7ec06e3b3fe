/* C-14: comparisons of a widened value with a constant.  Between two neighbours of the narrow type all constants answer
 * alike: a < c as a < (the next value that is not less than c), a <= c as a <= (the next one that is not greater).
 * Nothing narrow equals what lies between; it does not equal a NaN either. */
#include <math.h>

#include "base/half.h"
#include "passes/amp/cast_rules.h"

static double value_of(uint16_t code, DType t)
{
    return (double)(t == F16 ? f16_to_f32(code) : bf16_to_f32(code));
}

static uint16_t code_of(double v, DType t)
{
    return t == F16 ? f16_from_f64(v) : bf16_from_f64(v);
}

/* The next value above, and below; 0 and -0 are one place. */
static uint16_t next_up(uint16_t code)
{
    if (code == 0x8000)
        return 1;
    return code & 0x8000 ? code - 1 : code + 1;
}

static uint16_t next_down(uint16_t code)
{
    return next_up(code ^ 0x8000) ^ 0x8000;
}

double amp_at_least(double value, DType narrow)
{
    const uint16_t near = code_of(value, narrow);
    return value_of(value_of(near, narrow) < value ? next_up(near) : near, narrow);
}

double amp_at_most(double value, DType narrow)
{
    const uint16_t near = code_of(value, narrow);
    return value_of(value_of(near, narrow) > value ? next_down(near) : near, narrow);
}

bool compares_widened(const Match *m)
{
    for (int i = 0; i < 2; i++)
        if (!is_wide(in(m->root, i)))
            return false;
    for (int i = 1; i < m->n_nodes; i++)
        if (!is_narrow(in(m->node[i], 0)) || in(m->node[i], 0)->type->dtype != in(m->node[1], 0)->type->dtype)
            return false;
    return true;
}

/* The constant as the other operand is compared with it; `left`: it stands on the left, so that the question turns. */
static double compared(Op op, bool left, double c, DType narrow)
{
    switch (op) {
    case OP_less:
    case OP_greater_or_equal:
        return left ? amp_at_most(c, narrow) : amp_at_least(c, narrow);
    case OP_less_or_equal:
    case OP_greater:
        return left ? amp_at_least(c, narrow) : amp_at_most(c, narrow);
    default:
        return amp_at_least(c, narrow) == c ? c : (double)NAN;
    }
}

Node *compare_narrow(Build *b, const Match *m)
{
    const Tensor *c = node_constant(m->constant[0], 0);
    const bool left = in(m->root, 0) == m->constant[0];
    const DType narrow = m->x[0]->type->dtype;
    if (!c)
        return NULL;
    Tensor *t = tensor_new(b->graph->arena, c->type);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, compared(m->root->op, left, tensor_get_f64(c, i), narrow));
    Node *k = build_amp_cast(b, build_const(b, t), narrow); /* of ours, so that it can be taken out again */
    return build_node(b, m->root->op, m->root->attr, 2, (Node *[]){ left ? k : m->x[0], left ? m->x[0] : k });
}
