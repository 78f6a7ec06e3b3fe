#include "passes/model/weight_use.h"

#include <string.h>

#include "ops/control/control.h"

typedef struct Walk {
    Origins *origins;
    Facts uses;
} Walk;

typedef enum Verdict { ENDS, GOES_ON } Verdict;

static bool is_guard(const Node *n, const Node *value)
{
    enum { FEW = 64 };
    const Tensor *t = op_of(n)->amp.lifts && type_elements(value->type) == 1 ? node_constant(value, FEW) : NULL;
    const double v = t ? tensor_get_f64(t, 0) : 0;
    if (!(v > 0 && v < 1e-2))
        return false;
    for (const Use *u = n->uses; u; u = u->next)
        if (op_guards(op_of(u->user), (int)(u - u->user->in)))
            return true;
    return false;
}

/* Constants that meet only integers, where a single number says nothing. */
static bool meets_positions(Origins *o, const Node *n, int i, unsigned others)
{
    if ((others & (ORIGIN_INTEGERS | ORIGIN_FLOATS)) != ORIGIN_INTEGERS)
        return false;
    if (is_symmetric(n))
        return i < 2 && long_axes(in(n, i)->type) <= 1;
    if (!meets_pointwise(n))
        return false;
    for (int k = 0; k < n->n_in; k++)
        if (k != i && in(n, k) && origin_of(o, in(n, k)) & ORIGIN_INTEGERS &&
            (type_elements(in(n, k)->type) != 1 || origin_of(o, in(n, k)) & ORIGIN_VARIES))
            return true;
    return false;
}

/* Operand i of a pointwise call that may be a weight and meets what varies. */
static UseKind pointwise_use(Origins *o, const Node *n, int i, unsigned others)
{
    if (others & ORIGIN_RAW && op_of(n)->access.kind == ACCESS_ROW && may_be_weight(n, 0) &&
        long_axes(in(n, i)->type) <= 1)
        return USE_NORMALIZATION;
    if (meets_positions(o, n, i, others))
        return USE_POSITIONS;
    return is_guard(n, in(n, i)) ? USE_GUARD : USE_SCALE;
}

static Verdict judge(Origins *o, const Node *n, int i, UseKind *kind)
{
    const unsigned others = origin_of_others(o, n, i);
    *kind = USE_OPERAND;
    if (i > 0 &&
        (op_of(n)->quant.quantizes || op_of(n)->quant.dequantizes)) /* scales stay what they were found to be */
        return ENDS;
    if (i < 32 && op_of(n)->statistics >> i & 1) {
        *kind = USE_STATISTIC;
        return ENDS;
    }
    if (!(origin_of(o, n) & ORIGIN_VARIES)) {
        if (may_be_weight(n, i) && meets_positions(o, n, i, others)) {
            *kind = USE_POSITIONS;
            return ENDS;
        }
        return node_is_holder(n) || op_is_smooth(op_of(n), i) ? GOES_ON : ENDS;
    }
    if (may_be_weight(n, i)) {
        *kind = meets_pointwise(n) ? pointwise_use(o, n, i, others) : USE_WEIGHT;
        if (is_symmetric(n) && meets_positions(o, n, i, others))
            *kind = USE_POSITIONS;
    }
    return ENDS;
}

static void note(WeightUse *use, UseKind kind, const Node *reader)
{
    use->reader[kind] = reader; /* readers come last to first: the first one stays */
    use->n_statistics += kind == USE_STATISTIC;
    const Combine c = op_of(reader)->combine;
    use->multiplied |= kind == USE_SCALE && c == COMBINE_PRODUCT;
    use->divides |= kind == USE_SCALE && c == COMBINE_QUOTIENT;
    use->added |= kind == USE_SCALE && c != COMBINE_PRODUCT && c != COMBINE_QUOTIENT;
}

static void merge(WeightUse *use, const WeightUse *more)
{
    for (int k = 0; k < USE_KINDS; k++)
        if (more->reader[k])
            use->reader[k] = more->reader[k];
    use->n_statistics += more->n_statistics;
    use->multiplied |= more->multiplied;
    use->divides |= more->divides;
    use->added |= more->added;
    use->computed |= more->computed;
}

/* A captured value is read by what reads the bodies' parameters for it. */
static void leave_regions(Walk *w, const Node *n, int i, WeightUse *use)
{
    const size_t from_end = (size_t)(n->n_in - i);
    for (int r = 0; r < n->n_regions; r++) {
        const Graph *g = n->regions[r];
        if (from_end <= g->n_inputs)
            merge(use, fact(&w->uses, g->inputs[g->n_inputs - from_end]));
    }
}

static void read_operand(Walk *w, const Node *n, int i)
{
    const Node *value = in(n, i);
    UseKind kind;
    if (!value || origin_of(w->origins, value) & ORIGIN_VARIES || value->type->kind == TYPE_NONE)
        return;
    WeightUse *use = fact(&w->uses, value);
    if (n->n_regions && i >= own_operands(n))
        leave_regions(w, n, i, use);
    else if (judge(w->origins, n, i, &kind) == GOES_ON) {
        WeightUse more = *(WeightUse *)fact(&w->uses, n);
        if (!moves_operand(n)) { /* what statistics are computed from is none */
            more.reader[USE_STATISTIC] = NULL;
            more.n_statistics = 0;
            more.computed = true;
        }
        merge(use, &more);
    } else
        note(use, kind, n);
}

Facts weight_uses(Graph *g, Arena *scratch, Origins *origins)
{
    Walk w = { origins, facts_open(scratch, sizeof(WeightUse)) };
    Node **list = NULL;
    size_t n_list = 0, cap = 0;
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        GROW(scratch, list, n_list, cap);
        list[n_list++] = n;
    }
    while (n_list--) /* readers before what they read; bodies before the call */
        for (int i = 0; i < list[n_list]->n_in; i++)
            read_operand(&w, list[n_list], i);
    return w.uses;
}

const char *use_reason(Arena *arena, const WeightUse *use, UseKind kind)
{
    static const char *const why[USE_KINDS] = {
        [USE_WEIGHT] = "weight of %s",
        [USE_SCALE] = "scale or offset of %s",
        [USE_STATISTIC] = "running statistics of %s",
        [USE_NORMALIZATION] = "normalizes the model's input: %s",
        [USE_POSITIONS] = "meets only what comes from integers: %s",
        [USE_GUARD] = "keeps %s off zero",
        [USE_OPERAND] = "no weight of %s",
    };
    const char *where = node_place(use->reader[kind]).where;
    const char *hole = strstr(why[kind], "%s");
    return arena_printf(arena, "%.*s%s%s", (int)(hole - why[kind]), why[kind], where, hole + 2);
}
