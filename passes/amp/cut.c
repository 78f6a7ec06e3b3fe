/* Labels at the least cost: a minimum cut (base/min_cut.h).
 *
 * The source's side is wide, the sink's narrow: the minimal side is the narrow one, so what costs the same either way
 * stays wide, and the labels do not depend on the order of variables and ties. */
#include <math.h>

#include "base/min_cut.h"
#include "passes/amp/amp.h"

/* On the narrow side a variable pays the edge from the source, on the wide side the one to the sink.  What both labels
 * cost is left out: it changes no cut, and a price may be a saving. */
static void add_prices(MinCut *c, size_t i, const AmpVariable *v)
{
    const double wide = v->wide_price, narrow = v->narrow_price;
    const double both = fmin(wide, narrow);
    if (isfinite(both))
        min_cut_terminal(c, i, narrow - both, wide - both);
    if (v->fixed != AMP_FREE)
        min_cut_terminal(c, i, v->fixed == AMP_WIDE ? INFINITY : 0, v->fixed == AMP_NARROW ? INFINITY : 0);
}

void amp_cut(AmpProblem *p)
{
    const ArenaMark mark = arena_mark(p->arena);
    MinCut *c = min_cut_open(p->arena, p->n);
    for (size_t i = 0; i < p->n; i++)
        add_prices(c, i, &p->variable[i]);
    for (size_t i = 0; i < p->n_ties; i++) {
        const AmpTie *t = &p->tie[i];
        min_cut_edge(c, (size_t)t->a, (size_t)t->b, t->wide_narrow, t->narrow_wide);
    }
    min_cut_run(c);
    for (size_t i = 0; i < p->n; i++)
        p->variable[i].label = min_cut_sinks(c, i) ? AMP_NARROW : AMP_WIDE;
    arena_reset(p->arena, mark);
}
