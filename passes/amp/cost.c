/* What a labelling costs. */
#include <math.h>

#include "passes/amp/amp.h"

static double price_of(const AmpVariable *v)
{
    if (v->fixed != AMP_FREE && v->fixed != v->label)
        return INFINITY;
    return v->label == AMP_NARROW ? v->narrow_price : v->wide_price;
}

double amp_cost(const AmpProblem *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += price_of(&p->variable[i]);
    for (size_t i = 0; i < p->n_ties; i++) {
        const AmpTie *t = &p->tie[i];
        const AmpLabel a = p->variable[t->a].label, b = p->variable[t->b].label;
        if (a != b)
            sum += a == AMP_WIDE ? t->wide_narrow : t->narrow_wide;
    }
    return sum;
}
