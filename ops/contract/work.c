#include "ops/contract/work.h"

#include <math.h>

#include "ops/contract/contract.h"

static double elements(const Type *t)
{
    if (t->kind == TYPE_TUPLE && t->n_parts)
        t = t->parts[0];
    return t->kind == TYPE_TENSOR && type_known(t) ? (double)type_elements(t) : 0;
}

static double dim_from_end(const Node *value, int k)
{
    const Type *t = value->type;
    return t->kind == TYPE_TENSOR && t->rank >= k && t->dims[t->rank - k] > 0 ? (double)t->dims[t->rank - k] : 1;
}

/* Elements of a convolution's weight that meet one element of the other side. */
static double per_channel(const Node *weight)
{
    return elements(weight->type) / dim_from_end(weight, weight->type->rank);
}

double work_matmul(const Node *n)
{
    const Node *x = in(n, 0);
    return elements(n->type) * dim_from_end(x, ((const MatmulAttr *)n->attr)->ta && x->type->rank > 1 ? 2 : 1);
}

double work_accumulate(const Node *n)
{
    return elements(n->type) * dim_from_end(in(n, 0), ((const AccumulateAttr *)n->attr)->ta ? 2 : 1);
}

double work_gemm(const Node *n)
{
    return elements(n->type) * dim_from_end(in(n, 0), ((const GemmAttr *)n->attr)->transA ? 2 : 1);
}

double work_conv(const Node *n)
{
    return elements(n->type) * per_channel(in(n, 1));
}

double work_conv_weight_grad(const Node *n)
{
    return elements(in(n, 1)->type) * per_channel(n);
}

double work_conv_transpose(const Node *n)
{
    return elements(in(n, 0)->type) * per_channel(in(n, 1));
}

double work_recurrent(const Node *n)
{
    const Node *x = in(n, 0);
    return elements(x->type) / dim_from_end(x, 1) * (elements(in(n, 1)->type) + elements(in(n, 2)->type));
}

double work_attention(const Node *n)
{
    return 2 * elements(in(n, 0)->type) * dim_from_end(in(n, 1), 2);
}

/* Products with keys and values, those of the way back, and the scores again. */
double work_attention_grad(const Node *n)
{
    return 2.5 * work_attention(n);
}

double work_product(const Node *n)
{
    const Node *x = in(n, 0), *w = in(n, 1);
    return w ? sqrt(elements(x->type) * elements(w->type) * elements(n->type)) : 0;
}

double work_of(const Node *n)
{
    const OpDef *d = op_of(n);
    return d->work ? d->work(n) : work_product(n);
}

bool work_of_codes(const Node *n)
{
    const DType a = in(n, 0)->type->dtype;
    return op_of(n)->access.kind == ACCESS_CONTRACT && (a == U8 || a == I8);
}

bool work_narrows(const Node *n)
{
    const OpDef *d = op_of(n);
    return d->narrows && d->narrows(n);
}
