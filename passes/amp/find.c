/* Which role each node plays once operands, constants and readers are known. */
#include <string.h>

#include "passes/amp/constant.h"
#include "passes/amp/narrow_graph.h"
#include "passes/engine/results.h"

/* ---- constants that do not survive narrowing (C-16), and guards (C-17) ---- */

static bool reads_values(AmpGraph *a, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (amp_reading(a, n, i) == AMP_NARROWLY)
            return true;
    return false;
}

/* An operand that the call would read narrow although its numbers do not survive that; null: there is none.  In a weight
 * small numbers may vanish, as they do in one that is trained. */
static const Node *unfit_operand(AmpGraph *a, const Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const Node *def = amp_origin(a, in(n, i));
        const AmpReading r = amp_reading(a, n, i);
        const bool narrowly = r == AMP_NARROWLY, with_us = r == AMP_WITH_US;
        const AmpFit fit = narrowly || with_us ? amp_constant_fit(def, a->narrow, 0) : AMP_FITS;
        if (fit == AMP_OVERFLOWS || (with_us && fit == AMP_VANISHES))
            return def;
    }
    return NULL;
}

/* A constant that takes what it meets out of the narrow range. */
static bool meets_large(AmpGraph *a, const Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const Node *def = amp_origin(a, in(n, i));
        if (def && amp_is_value(a, def) && amp_constant_fit(def, a->narrow, 0) == AMP_OVERFLOWS)
            return true;
    }
    return false;
}

static const char *constant_text(AmpGraph *a, const Node *constant)
{
    return arena_printf(a->g->arena, "%s does not fit %s", constant->name ? constant->name : "a constant",
                        dtype_name(a->narrow));
}

/* ---- ranges: in f16, what is wide because it may be large makes wide what follows it ---- */

static bool spreads(AmpClass c)
{
    return c == AMP_E || c == AMP_W || c == AMP_P || c == AMP_PW || c == AMP_PM || c == AMP_S || c == AMP_FI;
}

static bool may_be_large(const AmpRole *r)
{
    return r->class == AMP_EX || r->class == AMP_FO || (r->class == AMP_F && r->reason == REASON_RANGE);
}

static bool reads_large(AmpGraph *a, const Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        int k;
        const Node *def = amp_origin(a, in(n, i));
        const Node *p = def ? amp_producer(def, &k) : NULL;
        if (p && amp_reading(a, n, i) != AMP_NOT_READ && amp_note(a, p)->large)
            return true;
    }
    return false;
}

/* ---- the seed: loss scales beyond the narrow range meet the first tensor in f32 ---- */

static bool is_seed(const Node *n)
{
    return op_of(n)->latches ||
           (n->op == OP_const && n->flags & NODE_BACKWARD && n->name && strcmp(n->name, "seed") == 0);
}

/* Whether a value is nothing but the seed, moved and multiplied with constants. */
static bool is_seeded(AmpGraph *a, const Node *n)
{
    bool any = false;
    for (int i = 0; i < n->n_in; i++) {
        const Node *def = amp_origin(a, in(n, i));
        if (amp_reading(a, n, i) == AMP_NOT_READ)
            continue;
        if (def->op != OP_const && !is_seed(def) && !amp_note(a, def)->seeded)
            return false;
        any |= is_seed(def) || amp_note(a, def)->seeded;
    }
    return any;
}

/* ---- one node ---- */

static void be_wide(AmpRole *r, const char *why)
{
    r->class = AMP_F;
    r->wide = r->wide_out = 0;
    r->forced = why;
}

/* A sum of any number of values: of the shares of a gradient. */
static bool adds_shares(const Node *n)
{
    return op_of(n)->combine == COMBINE_SUM && op_of(n)->max_in < 0;
}

/* A sum along axes: of what was broadcast. */
static bool adds_along_axes(const Node *n)
{
    return op_of(n)->combine == COMBINE_SUM && !op_of(n)->row;
}

static AmpRole role_of(AmpGraph *a, const Node *n)
{
    AmpRole r = { .class = AMP_X };
    if (n->op == OP_amp_cast || n->op == OP_const || n->op == OP_part || amp_has_open_body(n))
        return (AmpRole){ .class = AMP_N };
    if (op_of(n)->structural)
        return r;
    r = amp_role(a->roles, n);
    if (n->n_regions)
        be_wide(&r, "has a body");
    if (adds_shares(n) && n->flags & NODE_BACKWARD && r.class == AMP_W)
        r.class = AMP_FO; /* shares of one gradient */
    return r;
}

static void find_role(AmpGraph *a, const Node *n)
{
    AmpNote *note = amp_note(a, n);
    AmpRole *r = &note->role;
    *r = role_of(a, n);
    note->seen = true;
    if (r->class == AMP_T && !reads_values(a, n))
        r->class = AMP_N;
    const Node *unfit = unfit_operand(a, n);
    note->unfit = unfit != NULL;
    if (unfit)
        be_wide(r, constant_text(a, unfit));
    note->seeded = n->flags & NODE_BACKWARD && spreads(r->class) && is_seeded(a, n);
    note->pinned |= note->seeded || amp_eps_guard(n);
    if (a->narrow != F16 || a->backward) /* gradients that leave the range are seen, and their step is skipped */
        return;
    note->large |= may_be_large(r) || unfit || (spreads(r->class) && meets_large(a, n));
    note->large |= spreads(r->class) && !r->bounded && reads_large(a, n);
    note->pinned |= note->large;
}

/* ---- gradients of parameters: the products that give them give f32 (B.4) ---- */

/* Through moves and sums over what was broadcast; a rounding behind such a sum is the edge of another adjoint, of an
 * activation. */
static void pin_gradient(AmpGraph *a, Node *v)
{
    bool summed = false;
    for (v = amp_origin(a, v); v && amp_may_change(a, v);) {
        int k;
        const Node *p = amp_producer(v, &k);
        const AmpClass c = amp_note(a, p)->role.class;
        if (c == AMP_T)
            amp_note(a, p)->pinned = true;
        summed |= adds_along_axes(p);
        if ((c != AMP_P && !adds_along_axes(p)) || !p->n_in)
            return;
        v = summed ? in(p, 0) : amp_origin(a, in(p, 0));
    }
}

static void pin_gradients(AmpGraph *a)
{
    for (int i = 0; i < graph_n_results(a->g); i++) {
        Node *v = graph_result(a->g, i);
        if (!v || graph_result_mark(a->g, i).role != RESULT_gradient)
            continue;
        int k;
        const Node *sum = amp_producer(amp_origin(a, v), &k);
        if (adds_shares(sum))
            for (int j = 0; j < sum->n_in; j++)
                pin_gradient(a, in(sum, j));
        pin_gradient(a, v);
    }
}

Status amp_find_roles(AmpGraph *a)
{
    const Precision *p = &a->run->options->recipe->precision;
    a->narrow = p->narrow;
    TRY(amp_roles_open(a->g, a->run, p, &a->roles));
    for (size_t i = 0; i < a->n; i++)
        if (amp_may_change(a, a->nodes[i]))
            find_role(a, a->nodes[i]);
    pin_gradients(a);
    return OK;
}
