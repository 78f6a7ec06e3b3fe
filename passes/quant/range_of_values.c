/* What is known of the range of a value before anything is computed. */
#include <math.h>

#include "passes/quant/placement.h"

/* clang-format off */
/* Words whose results are never below 0. */
static bool lifts_all(const Node *n)
{
    switch ((OpWord)n->op) {
    case OP_relu: case OP_sigmoid: case OP_softmax: case OP_abs: case OP_exp: case OP_sqrt: case OP_softplus:
    case OP_hard_sigmoid: case OP_reduce_l1: case OP_reduce_l2: case OP_reduce_sum_square:
        return true;
    default:
        return false;
    }
}
/* clang-format on */

static bool is_clipped_from_0(const Node *n)
{
    const Tensor *least = n->op == OP_clip && in(n, 1) ? node_constant(in(n, 1), 8) : NULL;
    return least && tensor_get_f64(least, 0) >= 0;
}

double quant_clip_from_0(const Node *n)
{
    const Tensor *least = n->op == OP_clip && in(n, 1) ? node_constant(in(n, 1), 8) : NULL;
    if (!least || tensor_get_f64(least, 0) != 0)
        return (double)NAN;
    if (!in(n, 2))
        return (double)INFINITY;
    const Tensor *most = node_constant(in(n, 2), 8);
    return most && tensor_get_f64(most, 0) > 0 ? tensor_get_f64(most, 0) : (double)NAN;
}

double quant_most(const Node *n)
{
    for (const Node *from = n; from; from = quant_moved_from(n))
        n = from;
    const double most = n ? quant_clip_from_0(n) : (double)NAN;
    return most == most ? most : (double)INFINITY;
}

bool quant_never_negative(const Node *n)
{
    while (n) {
        if (lifts_all(n) || is_clipped_from_0(n))
            return true;
        const QuantRole role = op_of(n)->quant.in[0];
        const bool pools = role == QUANT_INPUT && op_of(n)->access.kind != ACCESS_CONTRACT && n->n_in == 1;
        const Node *from = quant_moved_from(n);
        if (!from && !pools && !op_of(n)->quant.dequantizes && !op_of(n)->quant.quantizes)
            return false;
        n = from ? from : in(n, 0);
    }
    return false;
}
