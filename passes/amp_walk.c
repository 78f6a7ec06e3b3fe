/* The painting walk: what is fixed stays, whatever follows something wide is wide, the rest is narrow; at the end moves
 * of wide values that are only read narrowly are painted narrow, from the last one back.
 *
 * Labels only ever change from narrow to wide, so there is one end, in whatever order the values come. */
#include <math.h>

#include "passes/amp.h"

static bool is_copy(const AmpVariable *v)
{
    return v->copy_of >= 0;
}

static AmpLabel first_label(const AmpVariable *v)
{
    if (v->fixed != AMP_FREE)
        return v->fixed;
    return is_copy(v) || !v->led ? AMP_WIDE : AMP_NARROW;
}

/* Whether a tie makes b wide because a is. */
static bool widens(const AmpProblem *p, const AmpTie *t)
{
    const AmpVariable *a = &p->variable[t->a], *b = &p->variable[t->b];
    return a->label == AMP_WIDE && b->label == AMP_NARROW && b->fixed == AMP_FREE && !is_copy(b) &&
           (t->leads || isinf(t->wide_narrow));
}

/* And the other way: what must not be wide behind a narrow one. */
static bool widens_back(const AmpProblem *p, const AmpTie *t)
{
    const AmpVariable *a = &p->variable[t->a], *b = &p->variable[t->b];
    return a->label == AMP_NARROW && b->label == AMP_WIDE && a->fixed == AMP_FREE && !is_copy(b) &&
           isinf(t->narrow_wide);
}

static void spread(AmpProblem *p)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < p->n_ties; i++) {
            const AmpTie *t = &p->tie[i];
            const bool on = widens(p, t), back = widens_back(p, t);
            if (on)
                p->variable[t->b].label = AMP_WIDE;
            if (back)
                p->variable[t->a].label = AMP_WIDE;
            more |= on || back;
        }
    }
}

/* Copies exist where someone reads them. */
static void make_copies(AmpProblem *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (is_copy(&p->variable[i]) && p->variable[i].fixed == AMP_FREE)
            p->variable[i].label = AMP_WIDE;
    for (size_t i = 0; i < p->n_ties; i++) {
        const AmpTie *t = &p->tie[i];
        if (is_copy(&p->variable[t->b]) && isinf(t->narrow_wide) && p->variable[t->a].label == AMP_NARROW)
            p->variable[t->b].label = AMP_NARROW;
    }
}

/* Whether a moved value that is wide is read by nobody who computes wide, and narrowly by someone. */
static bool paints(const AmpProblem *p, size_t i, const bool *wanted, const bool *kept)
{
    const AmpVariable *v = &p->variable[i];
    return v->moves && v->label == AMP_WIDE && v->fixed == AMP_FREE && !v->wide_readers && wanted[i] && !kept[i];
}

static void paint_moves(AmpProblem *p)
{
    bool *wanted = NEWS(p->arena, bool, p->n + 1), *kept = NEWS(p->arena, bool, p->n + 1);
    for (bool more = true; more;) {
        more = false;
        make_copies(p);
        for (size_t i = 0; i < p->n; i++)
            wanted[i] = kept[i] = false;
        for (size_t i = 0; i < p->n; i++)
            if (is_copy(&p->variable[i]) && p->variable[i].label == AMP_NARROW)
                wanted[p->variable[i].copy_of] = true;
        for (size_t i = 0; i < p->n_ties; i++) { /* followers that are wide would be led the other way */
            const AmpTie *t = &p->tie[i];
            kept[t->a] |= !is_copy(&p->variable[t->b]) && p->variable[t->b].label == AMP_WIDE;
            kept[t->b] |= isinf(t->wide_narrow) && p->variable[t->a].label == AMP_WIDE && !is_copy(&p->variable[t->b]);
        }
        for (size_t i = p->n; i-- > 0;)
            if (paints(p, i, wanted, kept)) {
                p->variable[i].label = AMP_NARROW;
                more = true;
            }
    }
}

void amp_walk(AmpProblem *p)
{
    for (size_t i = 0; i < p->n; i++)
        p->variable[i].label = first_label(&p->variable[i]);
    spread(p);
    paint_moves(p);
    make_copies(p);
}
