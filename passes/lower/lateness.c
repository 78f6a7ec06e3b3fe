#include "passes/lower/lateness.h"

#include "ops/region/region.h"

typedef struct Late {
    const BackwardCalls *b;
    Facts units;   /* int, by node: its unit + 1 */
    int *first;    /* by unit: its first call */
    int *when;     /* by unit: the unit that it stands before; itself: it stays */
    bool *is_free; /* by unit: it reads nothing of the backward side but what does not either */
    int n;
} Late;

static int unit_of(Late *l, const Node *n)
{
    const int *unit = fact_known(&l->units, n);
    return unit ? *unit - 1 : -1;
}

/* Whatever the backward side makes is made of the forward side's values in the end: the way to there leads through
 * products, or others that no region holds, where it is more than a few calls. */
static bool is_light(const Node *n)
{
    Reduction fold;
    return (n->op == OP_fused && !region_contraction(n)) || node_is_holder(n) || op_moves(op_of(n)) || region_maps(n) ||
           region_folds(n, &fold);
}

static size_t tensor_size(const Node *n, int result)
{
    size_t bytes = 0;
    const Type *t = type_result(n->type, result);
    return t->kind == TYPE_TENSOR && type_known(t) && type_bytes(t, &bytes) ? bytes : 0;
}

static bool leaves(Late *l, const Node *n, int unit)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (node_is_return(u->user) || unit_of(l, u->user) != unit)
            return true;
    return false;
}

/* What is made smaller is made soon: what it is made of may have no other reader. */
static bool makes_less(Late *l, int unit)
{
    size_t read = 0, made = 0;
    for (int i = l->first[unit]; i < l->first[unit + 1]; i++) {
        const Node *n = l->b->calls[i];
        for (int k = 0; k < n->n_in; k++)
            if (in(n, k) && in(n, k)->op != OP_state && unit_of(l, in(n, k)) != unit)
                read += tensor_size(in(n, k), 0);
        for (int r = 0; r < type_results(n->type) && leaves(l, n, unit); r++)
            made += tensor_size(n, r);
    }
    return made < read / 2;
}

static bool is_free(Late *l, int unit)
{
    for (int i = l->first[unit]; i < l->first[unit + 1]; i++)
        for (int k = 0; k < l->b->calls[i]->n_in; k++) {
            const Node *def = in(l->b->calls[i], k);
            const int of = def ? unit_of(l, def) : -1;
            if (!is_light(l->b->calls[i]) || (of >= 0 && of != unit && !l->is_free[of]))
                return false;
        }
    return !makes_less(l, unit);
}

/* When the first unit that reads it runs; what nobody of the backward side reads stays. */
static int first_wanted(Late *l, int unit)
{
    int when = l->n;
    for (int i = l->first[unit]; i < l->first[unit + 1]; i++)
        for (const Use *u = l->b->calls[i]->uses; u; u = u->next) {
            const int reader = node_is_return(u->user) ? -1 : unit_of(l, u->user);
            if (reader >= 0 && reader != unit && l->when[reader] < when)
                when = l->when[reader];
        }
    return when == l->n ? unit : when;
}

static Late late_open(const BackwardCalls *b, Arena *scratch)
{
    Late l = { .b = b, .units = facts_open(scratch, sizeof(int)), .n = b->n ? b->unit[b->n - 1] + 1 : 0 };
    l.first = NEWS(scratch, int, l.n + 1);
    l.when = NEWS(scratch, int, l.n + 1);
    l.is_free = NEWS(scratch, bool, l.n + 1);
    for (int i = b->n - 1; i >= 0; i--) {
        *(int *)fact(&l.units, b->calls[i]) = b->unit[i] + 1;
        l.first[b->unit[i]] = i;
    }
    l.first[l.n] = b->n;
    for (int u = 0; u < l.n; u++)
        l.is_free[u] = is_free(&l, u);
    for (int u = l.n - 1; u >= 0; u--)
        l.when[u] = l.is_free[u] ? first_wanted(&l, u) : u;
    return l;
}

static void put(const Late *l, int unit, BackwardCalls *to)
{
    for (int i = l->first[unit]; i < l->first[unit + 1]; i++) {
        to->unit[to->n] = unit;
        to->calls[to->n++] = l->b->calls[i];
    }
}

int backward_calls_late(BackwardCalls *b, Arena *scratch)
{
    const Late l = late_open(b, scratch);
    BackwardCalls to = { NEWS(scratch, Node *, b->n + 1), NEWS(scratch, int, b->n + 1), 0 };
    int *before = NEWS(scratch, int, l.n + 1), *next = NEWS(scratch, int, l.n + 1), moved = 0;
    for (int u = l.n - 1; u >= 0; u--) /* lists of those that stand before a unit, in their order */
        if (l.when[u] != u) {
            next[u] = before[l.when[u]];
            before[l.when[u]] = u + 1;
        }
    for (int u = 0; u < l.n; u++) {
        for (int k = before[u]; k; k = next[k - 1])
            put(&l, k - 1, &to);
        if (l.when[u] == u)
            put(&l, u, &to);
    }
    for (int i = 0; i < b->n; i++)
        moved += to.calls[i] != b->calls[i];
    *b = to;
    return moved;
}
