#include "passes/amp/constant.h"

#include <math.h>

/* ---- C-16 ---- */

/* From where on a number rounds to infinity, and up to where to zero: half a unit beyond the ends, ties to even. */
static double overflows_from(DType t)
{
    return t == F16 ? 65520.0 : 0x1.FFp127;
}

static double vanishes_to(DType t)
{
    return t == F16 ? 0x1p-25 : 0x1p-134;
}

/* Bits of the significand, and the exponent of the least normal number. */
static int precision(DType t)
{
    return t == F16 ? 11 : 8;
}

static int least_exponent(DType t)
{
    return t == F16 ? -14 : -126;
}

/* A finite number in range, rounded once to nearest even. */
static double rounded(double v, DType t)
{
    int e;
    frexp(v, &e);
    const int unit = (e - 1 > least_exponent(t) ? e - 1 : least_exponent(t)) - precision(t) + 1;
    return ldexp(nearbyint(ldexp(v, -unit)), unit);
}

AmpFit amp_number_fit(double value, DType target, double rtol)
{
    const double size = fabs(value);
    if (!(size < INFINITY) || value == 0)
        return AMP_FITS;
    if (size >= overflows_from(target))
        return AMP_OVERFLOWS;
    if (size <= vanishes_to(target))
        return AMP_VANISHES;
    return rtol > 0 && fabs(rounded(value, target) - value) > rtol * size ? AMP_ROUNDS : AMP_FITS;
}

AmpFit amp_constant_fit(const Node *value, DType target, double rtol)
{
    const Tensor *t = value ? node_constant(value, 0) : NULL;
    AmpFit worst = AMP_FITS;
    if (!t || !dtype_is_float(t->type->dtype))
        return AMP_UNSTATED;
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        const AmpFit fit = amp_number_fit(tensor_get_f64(t, i), target, rtol);
        if (fit == AMP_OVERFLOWS)
            return fit;
        if (worst == AMP_FITS || (worst == AMP_ROUNDS && fit == AMP_VANISHES))
            worst = fit;
    }
    return worst;
}

/* ---- C-17 ---- */

enum { LARGEST_EPS = 1 << 16, FARTHEST = 8, MOST_READERS = 32 };

static bool is_eps(const Node *n)
{
    const Tensor *t = n ? node_constant(n, LARGEST_EPS) : NULL;
    const int64_t count = t && dtype_is_float(t->type->dtype) ? tensor_elements(t) : 0;
    for (int64_t i = 0; i < count; i++) {
        const double v = tensor_get_f64(t, i);
        if (!(v > 0 && v < 0x1p-14))
            return false;
    }
    return count > 0;
}

static bool adds_eps(const Node *n)
{
    for (int i = 0; i < n->n_in && i < 32; i++)
        if (op_of(n)->amp.lifts >> i & 1 && is_eps(in(n, i)))
            return true;
    return false;
}

/* What hands its operand 0 on as far as guards are concerned. */
static bool carries(const Node *n)
{
    return op_of(n)->amp.keeps_off || n->op == OP_amp_cast || n->op == OP_cast ||
           (op_of(n)->amp.f16 == AMP_P && n->n_regions == 0);
}

/* Whether the value of that operand must not be zero. */
static bool is_guarded(const Node *n, int operand)
{
    return operand < 32 && op_of(n)->amp.nonzero >> operand & 1;
}

/* Whether a value comes from a guard. */
static bool comes_from_eps(const Node *n)
{
    for (int far = 0; n && far < FARTHEST; far++) {
        if (adds_eps(n))
            return true;
        if (!carries(n))
            return false;
        n = in(n, 0);
    }
    return false;
}

/* Whether a value goes where it must not be zero. */
static bool goes_to_guarded(const Node *n)
{
    const Node *list[MOST_READERS];
    int count = 0;
    list[count++] = n;
    for (int i = 0; i < count; i++)
        for (const Use *u = list[i]->uses; u; u = u->next) {
            const int operand = (int)(u - u->user->in);
            if (is_guarded(u->user, operand))
                return true;
            if (operand == 0 && carries(u->user) && count < MOST_READERS)
                list[count++] = u->user;
        }
    return false;
}

bool amp_eps_guard(const Node *n)
{
    for (int i = 0; i < n->n_in && i < 2; i++)
        if (is_guarded(n, i) && comes_from_eps(in(n, i)))
            return true;
    return adds_eps(n) || carries(n) ? comes_from_eps(n) && goes_to_guarded(n) : false;
}
