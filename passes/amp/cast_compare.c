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

bool compares(const OpDef *def)
{
    return def->compares != 0;
}

/* The constant as an operand on its left is compared with it: where the answer changes below it or above it only, the next
 * narrow value on that side's end; where it changes at the constant alone, that, or what nothing is equal to. */
static double compared(unsigned affirms, double c, DType narrow)
{
    const bool below = !(affirms & IS_LESS) != !(affirms & IS_EQUAL);
    const bool above = !(affirms & IS_GREATER) != !(affirms & IS_EQUAL);
    if (below != above)
        return below ? amp_at_least(c, narrow) : amp_at_most(c, narrow);
    return amp_at_least(c, narrow) == c ? c : (double)NAN;
}

/* What a comparison affirms when its operands change places. */
static unsigned turned(unsigned affirms)
{
    return (affirms & IS_EQUAL) | (affirms & IS_LESS ? IS_GREATER : 0) | (affirms & IS_GREATER ? IS_LESS : 0);
}

Node *compare_as_they_are(Build *b, const Match *m)
{
    return build_node(b, m->root->op, m->root->attr, 2, (Node *[]){ m->x[0], m->x[1] });
}

Node *compare_narrow(Build *b, const Match *m)
{
    const Tensor *c = node_constant(m->constant[0], 0);
    const bool left = in(m->root, 0) == m->constant[0];
    const DType narrow = m->x[0]->type->dtype;
    if (!c)
        return NULL;
    const unsigned affirms = op_of(m->root)->compares;
    Tensor *t = tensor_new(b->graph->arena, c->type);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, compared(left ? turned(affirms) : affirms, tensor_get_f64(c, i), narrow));
    Node *k = build_amp_cast(b, build_const(b, t), narrow); /* of ours, so that it can be taken out again */
    return build_node(b, m->root->op, m->root->attr, 2, (Node *[]){ left ? k : m->x[0], left ? m->x[0] : k });
}
