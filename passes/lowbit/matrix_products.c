/* Products of matrices of codes: matmul and gemm. */
#include <string.h>

#include "ops/contract/contract.h"
#include "ops/card/make.h"
#include "ops/quant/words.h"
#include "passes/lowbit/products.h"

/* Whether an operand is read transposed. */
static bool is_turned(const Node *call, int operand)
{
    if (call->op == OP_gemm) {
        const GemmAttr *at = call->attr;
        return operand ? at->transB : at->transA;
    }
    const MatmulAttr *at = call->attr;
    return operand ? at->tb : at->ta;
}

/* The axis of an operand that is summed: the last of the left one, the last but one of the right one. */
static int summed(const Node *call, int operand)
{
    const int rank = in(call, operand)->type->rank;
    return rank - (operand == (int)is_turned(call, operand) ? 1 : 2);
}

static int64_t terms(const Node *call)
{
    return in(call, 0)->type->dims[summed(call, 0)];
}

static int64_t least(const Node *call)
{
    (void)call;
    return 1;
}

static Node *lay(Build *b, const Node *call, int operand, Node *x, int *axis)
{
    (void)b;
    *axis = summed(call, operand);
    return x;
}

static Node *unlay(Build *b, const Node *call, int operand, Node *x)
{
    (void)b, (void)call, (void)operand;
    return x;
}

static Node *scale(Build *b, const Node *call, int operand, Node *s)
{
    return s && s->type->rank >= 2 && is_turned(call, operand) ? make_swap_last(b, s) : s;
}

static Node *part_of(Build *b, const Node *call, int operand, Node *x, int64_t from, int64_t to)
{
    return from == 0 && to == terms(call) ? x : make_slice(b, x, summed(call, operand), from, to, 1);
}

static Node *multiply(Build *b, const Node *call, Node *x, Node *y, int64_t most)
{
    const MatmulAttr floats = { .ta = is_turned(call, 0), .tb = is_turned(call, 1) };
    const MatmulIntegerAttr at = { .ta = floats.ta, .tb = floats.tb };
    const int64_t n = terms(call);
    Node *sum = NULL;
    if (!most)
        return CALL_ATTR(b, matmul, floats, x, y);
    for (int64_t from = 0; from < n || !sum; from += most) {
        const int64_t to = n - from < most ? n : from + most;
        Node *part =
            CALL_ATTR(b, matmul_integer, at, part_of(b, call, 0, x, from, to), part_of(b, call, 1, y, from, to));
        part = build_cast(b, part, F32);
        sum = sum ? CALL(b, add, sum, part) : part;
        if (b->status != OK)
            return NULL;
    }
    return sum;
}

static Node *finish(Build *b, const Node *call, Node *sums)
{
    if (call->op == OP_gemm) {
        const GemmAttr *at = call->attr;
        Node *bias = call->n_in > 2 ? in(call, 2) : NULL;
        if (at->alpha != 1)
            sums = CALL(b, mul, sums, build_scalar(b, F32, at->alpha));
        if (bias && at->beta != 1)
            bias = CALL(b, mul, make_cast(b, bias, F32), build_scalar(b, F32, at->beta));
        if (bias)
            sums = CALL(b, add, sums, make_cast(b, bias, F32));
    }
    return make_cast(b, sums, call->type->dtype);
}

const ProductWay way_matrix = { .first = 0,
                                .terms = terms,
                                .least = least,
                                .lay = lay,
                                .unlay = unlay,
                                .scale = scale,
                                .multiply = multiply,
                                .finish = finish };
