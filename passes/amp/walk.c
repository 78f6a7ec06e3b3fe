/* The painting walk: what is fixed stays, whatever follows something wide is wide, the rest is narrow; at the end moves
 * of wide values that are only read narrowly are painted narrow, from the last one back.
 *
 * Labels only ever change from narrow to wide, so there is one end, in whatever order the values come. */
#include <math.h>

#include "passes/amp/amp.h"

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
        for (size_t i = 0; i < p->n_ties; i++)
            if (widens(p, &p->tie[i])) {
                p->variable[p->tie[i].b].label = AMP_WIDE;
                more = true;
            }
        for (size_t i = p->n_ties; i-- > 0;)
            if (widens_back(p, &p->tie[i])) {
                p->variable[p->tie[i].a].label = AMP_WIDE;
                more = true;
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

/* ---- moves of wide values ---- */

typedef struct Painting {
    AmpProblem *p;
    const AmpTie **tie; /* of each variable, one variable after another .. */
    size_t *first;      /* .. from here */
    int *kept;          /* how many ties keep it wide: followers that are wide would be led the other way */
    bool *wanted;       /* it has a narrow copy */
    int *look;          /* variables that may be painted now */
    size_t n_look;
} Painting;

static bool keeps_leader(const AmpProblem *p, const AmpTie *t)
{
    return !is_copy(&p->variable[t->b]) && p->variable[t->b].label == AMP_WIDE;
}

static bool keeps_follower(const AmpProblem *p, const AmpTie *t)
{
    return isinf(t->wide_narrow) && p->variable[t->a].label == AMP_WIDE && !is_copy(&p->variable[t->b]);
}

/* Lists the ties of each variable. */
static void list_ties(Painting *q)
{
    const AmpProblem *p = q->p;
    q->first = NEWS(p->arena, size_t, p->n + 2);
    q->tie = NEWS(p->arena, const AmpTie *, 2 * p->n_ties + 1);
    for (size_t i = 0; i < p->n_ties; i++) {
        q->first[p->tie[i].a + 2]++;
        q->first[p->tie[i].b + 2]++;
    }
    for (size_t i = 2; i < p->n + 2; i++)
        q->first[i] += q->first[i - 1];
    for (size_t i = 0; i < p->n_ties; i++) {
        q->tie[q->first[p->tie[i].a + 1]++] = &p->tie[i];
        q->tie[q->first[p->tie[i].b + 1]++] = &p->tie[i];
    }
}

static void open_painting(Painting *q, AmpProblem *p)
{
    *q = (Painting){ .p = p };
    list_ties(q);
    q->kept = NEWS(p->arena, int, p->n + 1);
    q->wanted = NEWS(p->arena, bool, p->n + 1);
    q->look = NEWS(p->arena, int, p->n + 4 * p->n_ties + 1);
    for (size_t i = 0; i < p->n_ties; i++) {
        q->kept[p->tie[i].a] += keeps_leader(p, &p->tie[i]);
        q->kept[p->tie[i].b] += keeps_follower(p, &p->tie[i]);
    }
    for (size_t i = 0; i < p->n; i++) {
        if (is_copy(&p->variable[i]) && p->variable[i].label == AMP_NARROW)
            q->wanted[p->variable[i].copy_of] = true;
        q->look[q->n_look++] = (int)i;
    }
}

/* Whether a moved value that is wide is read by nobody who computes wide, and narrowly by someone. */
static bool paints(const Painting *q, int i)
{
    const AmpVariable *v = &q->p->variable[i];
    return v->moves && v->label == AMP_WIDE && v->fixed == AMP_FREE && !v->wide_readers && q->wanted[i] && !q->kept[i];
}

/* Makes a value narrow; what it was moved from may follow. */
static void paint(Painting *q, int i)
{
    AmpProblem *p = q->p;
    for (size_t k = q->first[i]; k < q->first[i + 1]; k++) {
        const AmpTie *t = q->tie[k];
        if (t->a == t->b)
            continue;
        if (t->b == i && keeps_leader(p, t))
            q->kept[t->a]--;
        if (t->a == i && keeps_follower(p, t))
            q->kept[t->b]--;
        q->look[q->n_look++] = t->a == i ? t->b : t->a;
        if (t->a == i && is_copy(&p->variable[t->b]) && isinf(t->narrow_wide)) {
            const int of = p->variable[t->b].copy_of;
            q->wanted[of] = true;
            q->look[q->n_look++] = of;
        }
    }
    p->variable[i].label = AMP_NARROW;
}

static void paint_moves(AmpProblem *p)
{
    Painting q;
    make_copies(p);
    open_painting(&q, p);
    while (q.n_look) {
        const int i = q.look[--q.n_look];
        if (!is_copy(&p->variable[i]) && paints(&q, i))
            paint(&q, i);
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
