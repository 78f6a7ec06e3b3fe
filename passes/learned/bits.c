/* Bits that are learned.  A state holds a part of them, so that the step of an optimizer which changes weights by 0.001 changes
 * 0.06 bits; they count rounded, and what comes back to them goes to the state as it is. */
#include <math.h>
#include <string.h>

#include "ir/own_names.h"
#include "ops/card/make.h"
#include "ops/card/words.h"
#include "passes/learned/learned.h"

Node *learned_bits(Build *b, Node *state, int most)
{
    Node *bits = CALL(b, mul, state, build_scalar(b, F32, LEARNED_BITS_PART));
    Node *least = build_scalar(b, F32, LEARNED_BITS_LEAST), *largest = build_scalar(b, F32, most);
    return CALL(b, straight, CALL(b, clip, CALL(b, round, bits), least, largest), bits);
}

int learned_bits_known(const Node *state, int most, Arena *scratch)
{
    Payload *value = ((const StateAttr *)state->attr)->value;
    Tensor *t = tensor_new(scratch, state->type);
    if (!value || payload_read(value, t, state->graph->ir->diag) != OK)
        return most;
    const double bits = rint(tensor_get_f64(t, 0) * LEARNED_BITS_PART);
    return bits < LEARNED_BITS_LEAST ? LEARNED_BITS_LEAST : bits > most ? most : (int)bits;
}

const Node *learned_bits_of(const Node *scale)
{
    enum { MOST_SEEN = 512 };
    const Node *open[MOST_SEEN] = { scale };
    for (int n = 1, k = 0; k < n; k++) {
        if (open[k]->op == OP_state && strncmp(open[k]->name, BITS_PREFIX, sizeof BITS_PREFIX - 1) == 0)
            return open[k];
        for (int i = 0; i < open[k]->n_in && n < MOST_SEEN; i++)
            if (in(open[k], i))
                open[n++] = in(open[k], i);
    }
    return NULL;
}

Node *learned_largest(Build *b, Node *bits)
{
    Node *one = build_scalar(b, F32, 1);
    return CALL(b, sub, learned_power_above(b, CALL(b, sub, bits, one)), one);
}

Node *learned_within(Build *b, Node *weight, Node *end, int axis)
{
    int64_t dims[MAX_RANK];
    for (int i = 0; i < weight->type->rank; i++)
        dims[i] = i == axis ? weight->type->dims[i] : 1;
    if (axis >= 0 && end->type->rank)
        end = make_reshape(b, end, weight->type->rank, dims);
    Node *below = CALL(b, neg, end);
    Node *above = CALL(b, where, CALL(b, less, weight, below), below, weight);
    return CALL(b, where, CALL(b, less, end, weight), end, above);
}

static const Node *condition_of(const Node *value)
{
    const bool picks = value->op == OP_where && value->flags & NODE_OURS;
    return picks && in(value, 0)->op == OP_less ? in(value, 0) : NULL;
}

/* Numbers above something, below something, and the others. */
Node *learned_parted_of(const Node *value)
{
    const Node *above = condition_of(value), *below = above ? condition_of(in(value, 2)) : NULL;
    return below && in(above, 1) == in(below, 0) ? in(above, 1) : NULL;
}
