/* What reaches the operands of matmul and gemm.  For y = l r: dl = dy r' and dr = l' dy; an operand that is read
 * transposed gets its product transposed. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/contract/contract.h"

Node *contract_left(Build *b, Node *r, Node *dy, bool ta, bool tb)
{
    return ta ? CALL_ATTR(b, matmul, ((MatmulAttr){ .ta = tb, .tb = true }), r, dy)
              : CALL_ATTR(b, matmul, (MatmulAttr){ .tb = !tb }, dy, r);
}

Node *contract_right(Build *b, Node *l, Node *dy, bool ta, bool tb)
{
    return tb ? CALL_ATTR(b, matmul, ((MatmulAttr){ .ta = true, .tb = ta }), dy, l)
              : CALL_ATTR(b, matmul, (MatmulAttr){ .ta = !ta }, l, dy);
}

/* A vector as the row or column it stands for; a matrix as it is. */
static Node *as_matrix(Build *b, Node *x, bool row)
{
    const Type *t = x->type;
    if (t->rank != 1)
        return x;
    return make_reshape(b, x, 2, row ? (int64_t[]){ 1, t->dims[0] } : (int64_t[]){ t->dims[0], 1 });
}

/* dy with the dimensions that vectors left out. */
static Node *full_result(Build *b, const Site *s)
{
    Node *dy = s->dout[0];
    const bool row = s->in[0]->type->rank == 1, column = s->in[1]->type->rank == 1;
    int64_t dims[MAX_RANK];
    int rank = dy->type->rank - (row ? 0 : 1) - (column ? 0 : 1);
    if (!row && !column)
        return dy;
    if (rank > 0)
        memcpy(dims, dy->type->dims, (size_t)rank * sizeof *dims);
    dims[rank] = row ? 1 : dy->type->dims[rank];
    dims[rank + 1] = column ? 1 : dy->type->dims[dy->type->rank - 1];
    return make_reshape(b, dy, rank + 2, dims);
}

/* A stack of matrices as one, all rows below each other. */
static Node *one_below_other(Build *b, Node *x)
{
    const Type *t = x->type;
    int64_t rows = 1;
    for (int i = 0; i < t->rank - 1; i++)
        rows *= t->dims[i];
    return make_reshape(b, x, 2, (int64_t[]){ rows, t->dims[t->rank - 1] });
}

static bool is_single(const Type *t)
{
    for (int i = 0; i < t->rank - 2; i++)
        if (t->dims[i] != 1)
            return false;
    return true;
}

/* A stack times one matrix, as of a linear layer: one product over the rows of the whole stack, in place of a stack of
 * products to be added up. */
static Node *right_of_stack(Build *b, Node *l, Node *r, Node *dy, bool tb)
{
    Node *y = contract_right(b, one_below_other(b, l), one_below_other(b, dy), false, tb);
    return r->type->rank > 2 ? make_reshape(b, y, r->type->rank, r->type->dims) : y;
}

void adjoint_matmul(Build *b, const Site *s, Node **dx)
{
    const MatmulAttr *at = s->attr;
    Node *l = as_matrix(b, s->in[0], true), *r = as_matrix(b, s->in[1], false), *dy = full_result(b, s);
    if (s->want[0])
        dx[0] = contract_left(b, r, dy, at->ta, at->tb);
    if (!s->want[1])
        return;
    if (is_single(r->type) && !is_single(l->type) && !at->ta)
        dx[1] = right_of_stack(b, l, r, dy, at->tb);
    else
        dx[1] = contract_right(b, l, dy, at->ta, at->tb);
    if (dx[1] && s->in[1]->type->rank == 1)
        dx[1] = make_reshape(b, dx[1], dx[1]->type->rank - 1, dx[1]->type->dims);
}

static Node *scaled(Build *b, Node *x, float factor)
{
    if (!x || factor == 1)
        return x;
    return CALL(b, mul, x, build_scalar(b, x->type->dtype, (double)factor));
}

void adjoint_gemm(Build *b, const Site *s, Node **dx)
{
    const GemmAttr *at = s->attr;
    Node *dy = s->dout[0];
    if (s->want[0])
        dx[0] = scaled(b, contract_left(b, s->in[1], dy, at->transA, at->transB), at->alpha);
    if (s->want[1])
        dx[1] = scaled(b, contract_right(b, s->in[0], dy, at->transA, at->transB), at->alpha);
    if (site_in(s, 2) && s->want[2] && at->beta != 0)
        dx[2] = scaled(b, dy, at->beta);
}

Node *make_product(Build *b, DType own, Node *x, Node *y, bool transpose_y)
{
    const DType wide = dtype_is_float(own) ? make_width(own) : own;
    const DType as = dtype_is_narrow(own) ? own : wide;
    const MatmulAttr attr = { .tb = transpose_y, .out = as == wide ? 0 : (int)wide + 1 };
    return CALL_ATTR(b, matmul, attr, make_cast(b, x, as), make_cast(b, y, as));
}
