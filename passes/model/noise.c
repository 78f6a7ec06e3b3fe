#include "passes/model/noise.h"

#include <math.h>

#include "ops/random/random_draws.h"

/* Behind what only changes the type. */
static const Node *behind_casts(const Node *n)
{
    while (n && (n->op == OP_cast || n->op == OP_cast_like || n->op == OP_amp_cast || op_passes(op_of(n))))
        n = in(n, 0);
    return n;
}

static bool is_number(const Node *n, double *v)
{
    enum { ONE_NUMBER = 8 };
    const Node *k = behind_casts(n);
    const Tensor *t = k && k->op == OP_const && k->type->kind == TYPE_TENSOR ? node_constant(k, ONE_NUMBER) : NULL;
    if (!t || tensor_elements(t) != 1)
        return false;
    *v = tensor_get_f64(t, 0);
    return true;
}

/* Numbers drawn evenly from 0 to 1. */
static bool is_draw(const Node *n)
{
    const Node *k = behind_casts(n);
    if (!k || (k->op != OP_random_uniform && k->op != OP_random_uniform_like))
        return false;
    const RandomAttr *at = k->attr;
    return at->first == 0 && at->second == 1;
}

/* Ones with probability p, and zeros. */
static bool is_noise(const Node *n, double *p)
{
    const Node *k = behind_casts(n);
    if (!k)
        return false;
    if (k->op == OP_less || k->op == OP_less_or_equal)
        return is_draw(in(k, 0)) && is_number(in(k, 1), p);
    if (k->op == OP_greater || k->op == OP_greater_or_equal) {
        const bool fits = is_draw(in(k, 0)) && is_number(in(k, 1), p);
        *p = 1 - *p;
        return fits;
    }
    const Node *sum = k->op == OP_floor ? behind_casts(in(k, 0)) : NULL;
    return sum && sum->op == OP_add &&
           ((is_draw(in(sum, 0)) && is_number(in(sum, 1), p)) || (is_draw(in(sum, 1)) && is_number(in(sum, 0), p)));
}

static bool makes_up(double factor)
{
    return fabs(factor - 1) < 1e-4;
}

/* n / p or n * (1 / p): *of is n. */
static bool is_scaled(const Node *n, double *by, const Node **of)
{
    const Node *k = behind_casts(n);
    if (!k || (k->op != OP_div && k->op != OP_mul))
        return false;
    *of = in(k, 0);
    if (k->op == OP_mul && is_number(in(k, 0), by)) {
        *of = in(k, 1);
        return true;
    }
    if (!is_number(in(k, 1), by))
        return false;
    *by = k->op == OP_div ? 1 / *by : *by;
    return true;
}

Node *noise_free(const Node *mul)
{
    for (int i = 0; i < 2; i++) {
        Node *x = in(mul, i), *other = in(mul, 1 - i);
        double p = 0, by = 0;
        const Node *of = NULL;
        if (!is_scaled(other, &by, &of) || !is_noise(of, &p) || !makes_up(p * by)) {
            if (!is_noise(other, &p) || !is_scaled(x, &by, &of) || !makes_up(p * by))
                continue;
            x = (Node *)(uintptr_t)of;
        }
        if (x && x->type == mul->type)
            return x;
    }
    return NULL;
}
