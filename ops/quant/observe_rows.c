/* observe as reductions and rows, which run in the pass that makes or reads the numbers: of kinds minmax and ema, whose
 * state is four numbers. */
#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/quant/observe.h"

/* One number of the state is marked, or the two of the range. */
static Node *marks(Build *b, bool lo, bool hi, bool seen, bool bad)
{
    const bool set[OBSERVED_RANGE] = { lo, hi, seen, bad };
    Tensor *t = tensor_new(b->graph->arena, type_vector(&b->graph->ir->types, BOOL, OBSERVED_RANGE));
    for (int i = 0; i < OBSERVED_RANGE; i++)
        tensor_set_i64(t, i, set[i]);
    return build_const(b, t);
}

static Node *number(Build *b, double v)
{
    return build_scalar(b, F32, v);
}

/* How many batches there were: a sum along the state, of which all that follows is the one row. */
static Node *seen_before(Build *b, Node *state)
{
    const int64_t axis = 0;
    Node *seen = CALL(b, where, marks(b, false, false, true, false), state, number(b, 0));
    return build_reduce(b, OP_reduce_sum, seen, 1, &axis);
}

/* The range behind a batch, in the places of the state: of its least and its largest number, which are not above and not
 * below 0. */
static Node *moved(Build *b, const ObserveAttr *at, Node *state, Node *batch, Node *is_lo)
{
    if (at->kind == OBSERVE_EMA) {
        Node *first = CALL(b, equal, seen_before(b, state), number(b, 0));
        Node *step = CALL(b, mul, number(b, (double)at->rate), CALL(b, sub, batch, state));
        return CALL(b, where, first, batch, CALL(b, add, state, step));
    }
    Node *lower = CALL(b, where, CALL(b, less, batch, state), batch, state);
    return CALL(b, where, is_lo, lower, CALL(b, where, CALL(b, less, state, batch), batch, state));
}

/* Whether it is made of a number for each of its rows, as probabilities are, opened or not yet: then rows are there in the pass
 * that makes it. */
static bool is_made_by_rows(const Node *x)
{
    const int last = x->type->rank - 1;
    if (x->op == OP_softmax)
        return (((const AxisAttr *)x->attr)->axis + x->type->rank) % x->type->rank == last;
    for (int i = 0; i < x->n_in; i++) {
        const Type *t = in(x, i) ? in(x, i)->type : NULL;
        if (t && t->kind == TYPE_TENSOR && t->rank == last + 1 && t->dims[last] == 1 && t->dims[0] == x->type->dims[0])
            return true;
    }
    return false;
}

Node *observe_extreme(Build *b, Op op, Node *x)
{
    enum { LEAST_ROW = 16 };
    const int64_t last = x->type->rank - 1;
    if ((x->type->rank == 2 || x->type->rank == 3 || (x->type->rank > 3 && is_made_by_rows(x))) &&
        x->type->dims[last] >= LEAST_ROW)
        x = build_reduce(b, op, x, 1, &last);
    return make_reduce_all(b, op, x);
}

Node *open_observe(Build *b, const Site *s)
{
    const ObserveAttr *at = s->attr;
    const Type *x = s->in[0]->type;
    if (observe_counts(at->kind) || !type_known(x) || type_elements(x) == 0 || x->rank == 0)
        return NULL;
    Node *v = x->dtype == F32 ? s->in[0] : build_cast(b, s->in[0], F32), *state = s->in[1], *zero = number(b, 0);
    Node *lo = observe_extreme(b, OP_reduce_min, v), *hi = observe_extreme(b, OP_reduce_max, v);
    Node *finite = CALL(b, and, CALL(b, less, number(b, -INFINITY), lo), CALL(b, less, hi, number(b, INFINITY)));
    Node *least = CALL(b, where, CALL(b, less, lo, zero), lo, zero);
    Node *most = CALL(b, where, CALL(b, less, zero, hi), hi, zero), *is_lo = marks(b, true, false, false, false);
    Node *range = moved(b, at, state, CALL(b, where, is_lo, least, most), is_lo);
    Node *more = CALL(b, add, state, number(b, 1));
    Node *taken = CALL(b, where, marks(b, false, false, true, false), more, state);
    taken = CALL(b, where, marks(b, true, true, false, false), range, taken);
    Node *left_out = CALL(b, where, marks(b, false, false, false, true), more, state);
    return CALL(b, where, finite, taken, left_out);
}
