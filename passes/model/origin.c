#include "passes/model/origin.h"

#include "ops/control/control.h"
#include "passes/clean/constant_values.h"

unsigned origin_of(Origins *o, const Node *n)
{
    return *(uint8_t *)fact(&o->facts, n);
}

unsigned origin_of_others(Origins *o, const Node *n, int but)
{
    unsigned set = 0;
    for (int i = 0; i < n->n_in; i++)
        if (i != but && in(n, i) && !op_steers(op_of(n), i))
            set |= origin_of(o, in(n, i));
    return set;
}

int long_axes(const Type *t)
{
    int n = 0;
    if (t->kind != TYPE_TENSOR || t->rank < 0)
        return MAX_RANK;
    for (int i = 0; i < t->rank; i++)
        n += t->dims[i] != 1;
    return n;
}

bool moves_operand(const Node *n)
{
    const OpDef *def = op_of(n);
    return n->op == OP_cast || n->op == OP_amp_cast || n->op == OP_cast_like ||
           (!def->structural && n->n_in && op_moves(def) && def->amp.f16 == AMP_P);
}

bool meets_pointwise(const Node *n)
{
    return op_of(n)->access.kind == ACCESS_ROW || op_of(n)->amp.f16 == AMP_PW;
}

static bool is_float(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && dtype_is_float(n->type->dtype);
}

/* Whether some operand is a weight that data goes through: what comes out is data. */
static bool goes_through_weights(Origins *o, const Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const Node *w = in(n, i);
        if (w && is_float(w) && may_be_weight(n, i) && !meets_pointwise(n) && !(origin_of(o, w) & ORIGIN_VARIES) &&
            (!is_symmetric(n) || long_axes(w->type) > 1))
            return true;
    }
    return false;
}

/* The only operand of a scaling that varies is an input of the graph, more or less. */
static bool scales_input(Origins *o, const Node *n)
{
    bool raw = false;
    if (op_of(n)->access.kind != ACCESS_ROW || !may_be_weight(n, 0))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        const unsigned set = in(n, i) ? origin_of(o, in(n, i)) : 0;
        if (set & ORIGIN_VARIES && !(set & ORIGIN_RAW))
            return false;
        raw |= (set & ORIGIN_RAW) != 0;
    }
    return raw;
}

/* What an operand says.  Axes, indices and lengths are integers too, but no data: what is computed from floats does not
 * come from them; nor does anything come from what only a type is read of. */
static unsigned origin_of_operand(Origins *o, const Node *n, int i)
{
    const bool data = op_reads_value(op_of(n), i) && (!is_float(n) || is_float(in(n, i)));
    return origin_of(o, in(n, i)) & (data ? ~0u : ORIGIN_VARIES);
}

/* What the operands of a call say together. */
static unsigned origin_of_operands(Origins *o, const Node *n)
{
    unsigned set = 0;
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i))
            set |= origin_of_operand(o, n, i);
    return set & ~(unsigned)ORIGIN_RAW;
}

static unsigned origin_of_call(Origins *o, const Node *n)
{
    if (n->op == OP_const || n->op == OP_param || n->op == OP_state)
        return is_float(n) && !is_counting(n) ? 0 : ORIGIN_INTEGERS;
    const unsigned all = origin_of_operands(o, n);
    if (op_of(n)->counts)
        return all | ORIGIN_INTEGERS;
    if (op_of(n)->mode == MODE_RANDOM)
        return ORIGIN_VARIES | ORIGIN_FLOATS;
    if (n->n_regions)
        return is_float(n) && all & ORIGIN_VARIES ? all | ORIGIN_FLOATS : all;
    if (moves_operand(n)) {
        const unsigned data = in(n, 0) ? origin_of(o, in(n, 0)) : 0;
        const bool looked_up = may_be_weight(n, 0) && all & ORIGIN_VARIES && !(data & ORIGIN_VARIES) && is_float(n);
        return looked_up ? ORIGIN_VARIES | ORIGIN_FLOATS : data;
    }
    if (all & ORIGIN_VARIES && goes_through_weights(o, n))
        return all | ORIGIN_FLOATS;
    return scales_input(o, n) ? all | ORIGIN_RAW : all;
}

/* What a body takes comes from outside: captures are the last of its parameters, as they are the last operands. */
static void enter_regions(Origins *o, const Node *n)
{
    const int own = own_operands(n);
    const unsigned all = origin_of_others(o, n, -1) & ~(unsigned)ORIGIN_RAW;
    for (int r = 0; r < n->n_regions; r++) {
        const Graph *g = n->regions[r];
        const size_t captured = (size_t)(n->n_in - own);
        for (size_t i = 0; i < g->n_inputs; i++) {
            const size_t from_end = g->n_inputs - i;
            const Node *outside = from_end <= captured ? in(n, n->n_in - (int)from_end) : NULL;
            const unsigned turn = is_float(g->inputs[i]) ? all : all | ORIGIN_INTEGERS | ORIGIN_VARIES;
            *(uint8_t *)fact(&o->facts, g->inputs[i]) = (uint8_t)(outside ? origin_of(o, outside) : turn);
        }
    }
}

Origins origins_of(Graph *g, Arena *scratch)
{
    Origins o = { facts_open(scratch, sizeof(uint8_t)) };
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        const unsigned kind = is_float(n) ? ORIGIN_FLOATS : ORIGIN_INTEGERS;
        *(uint8_t *)fact(&o.facts, n) =
            (uint8_t)(n->op == OP_state ? origin_of_call(&o, n) : kind | ORIGIN_VARIES | ORIGIN_RAW);
    }
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        *(uint8_t *)fact(&o.facts, n) = (uint8_t)origin_of_call(&o, n);
        if (n->n_regions)
            enter_regions(&o, n);
    }
    return o;
}
