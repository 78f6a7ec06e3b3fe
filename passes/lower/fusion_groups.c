#include "passes/lower/fusion_groups.h"

#include "ir/step_part.h"

/* How far groups grow; what a region may be as it runs stands in ops/region/schedules.def. */
enum {
#define GROWTH(what, most) MOST_##what = (most),
#include "passes/lower/growth.def"
};

FusionGroup *fusion_group_of(FusionGroups *gs, const Node *n)
{
    FusionGroup *group = *(FusionGroup **)fact(&gs->of, n);
    while (group && group->into)
        group = group->into;
    return group;
}

static bool is_nobody(void *user, const Node *n)
{
    (void)user, (void)n;
    return false;
}

static bool is_region_alone(Node *n)
{
    Region region;
    const Node *call = n;
    return type_known(n->type) && !region_read(&(RegionMembers){ &call, 1, is_nobody, NULL }, &region);
}

static void begin(FusionGroups *gs, Graph *g, Arena *arena)
{
    size_t n = 0;
    Facts parts = step_parts(g, arena);
    for (const Node *k = g->first; k; k = k->next)
        n++;
    *gs = (FusionGroups){ .graph = g,
                          .arena = arena,
                          .of = facts_open(arena, sizeof(FusionGroup *)),
                          .ranks = NEWS(arena, FusionGroup *, n + 1) };
    for (Node *k = g->first; k; k = k->next) {
        if (k->op == OP_const || k->op == OP_param)
            continue;
        FusionGroup *group = NEW(arena, FusionGroup);
        *group = (FusionGroup){ .calls = NEWS(arena, Node *, 1), .n = 1, .rank = gs->n };
        group->calls[0] = k;
        group->fusible =
            k->uses && is_region_alone(k); /* what nobody reads must not cut a space that others stand in */
        group->part = *(int *)fact(&parts, k);
        *(FusionGroup **)fact(&gs->of, k) = group;
        gs->ranks[gs->n++] = group;
    }
}

/* ---- ways around ----
 *
 * Ranks are a topological order of groups that is kept up as they merge: who reads, directly or not, stands behind.  So a
 * way from one group to another leads through groups between their ranks alone. */

typedef struct Search {
    FusionGroups *gs;
    const FusionGroup *from, *to;
    FusionGroup **stack;
    size_t depth, cap;
} Search;

/* Marks and pushes who reads what a group computes and stands before the one that is sought; whether that one reads it. */
static bool push_readers(Search *s, const FusionGroup *of)
{
    bool met = false;
    for (size_t i = 0; i < of->n; i++)
        for (const Use *u = of->calls[i]->uses; u; u = u->next) {
            FusionGroup *reader = u->user->graph == s->gs->graph ? fusion_group_of(s->gs, u->user) : NULL;
            met = met || reader == s->to;
            if (!reader || reader->rank >= s->to->rank || reader == s->from || reader->seen == s->gs->search)
                continue;
            reader->seen = s->gs->search;
            GROW(s->gs->arena, s->stack, s->depth, s->cap);
            s->stack[s->depth++] = reader;
        }
    return met;
}

/* Whether the later group reads what the earlier one computes by way of a third, which then can run neither before nor
 * after both.  If not, `seen` marks those between them that read the earlier one. */
static bool is_way_around(FusionGroups *gs, const FusionGroup *earlier, const FusionGroup *later)
{
    Search s = { .gs = gs, .from = earlier, .to = later };
    gs->search++;
    (void)push_readers(&s, earlier);
    while (s.depth)
        if (push_readers(&s, s.stack[--s.depth]))
            return true;
    return false;
}

/* After a search that found no way: those between the two that read the earlier one go behind the merged group. */
static void merge_ranks(FusionGroups *gs, FusionGroup *earlier, const FusionGroup *later)
{
    const size_t first = earlier->rank, last = later->rank;
    FusionGroup **behind = NEWS(gs->arena, FusionGroup *, last - first + 1);
    size_t n_behind = 0, to = first;
    for (size_t k = first + 1; k < last; k++) {
        FusionGroup *group = gs->ranks[k];
        if (group && group->seen == gs->search)
            behind[n_behind++] = group;
        else if (group)
            gs->ranks[group->rank = to++] = group;
    }
    gs->ranks[earlier->rank = to++] = earlier;
    for (size_t k = 0; k < n_behind; k++)
        gs->ranks[behind[k]->rank = to++] = behind[k];
    while (to <= last)
        gs->ranks[to++] = NULL;
}

/* ---- merging ---- */

typedef struct Pair {
    FusionGroups *gs;
    const FusionGroup *a, *b;
} Pair;

static bool is_of_pair(void *user, const Node *n)
{
    const Pair *p = user;
    const FusionGroup *group = n->graph == p->gs->graph && !node_is_return(n) ? fusion_group_of(p->gs, n) : NULL;
    return group && (group == p->a || group == p->b);
}

/* Calls of both in list order: ids do not tell it, so places do. */
static Node **both(FusionGroups *gs, const FusionGroup *a, const FusionGroup *b, const Facts *places)
{
    Node **calls = NEWS(gs->arena, Node *, a->n + b->n);
    size_t i = 0, k = 0;
    while (i < a->n || k < b->n) {
        const bool first = k == b->n || (i < a->n && *(const size_t *)fact_known(places, a->calls[i]) <
                                                         *(const size_t *)fact_known(places, b->calls[k]));
        calls[i + k] = first ? a->calls[i] : b->calls[k];
        *(first ? &i : &k) += 1;
    }
    return calls;
}

/* Whether a call of a body makes what the next turn is given of what it reads itself, and so can make it where that lies. */
static bool hands_on(const Node *n)
{
    CountedTurns turns;
    const Node *of = n->graph->owner;
    if (!of || !op_of(of)->body.counted || !op_of(of)->body.counted(of, &turns))
        return false;
    for (const Use *u = n->uses; u; u = u->next) {
        const int carried = node_is_return(u->user) ? (int)(u - u->user->in) - 1 : -1;
        for (int i = 0; i < n->n_in && carried >= 0 && carried < turns.carried; i++)
            if (in(n, i) == n->graph->inputs[TURN_CARRIED + carried])
                return true;
    }
    return false;
}

static bool any_hands_on(Node *const *calls, size_t n)
{
    while (n > 0 && !hands_on(calls[n - 1]))
        n--;
    return n > 0;
}

/* Why two groups cannot be one region; null: they can, and *calls are the calls of both. */
static const char *apart(FusionGroups *gs, const FusionGroup *a, const FusionGroup *b, const Facts *places,
                         Node ***calls)
{
    Region region;
    if (a->part != b->part)
        return a->part == STEP_LATE || b->part == STEP_LATE ? "one of them only makes next values of states"
                                                            : "they are of two parts of the step";
    if (a->n + b->n > MOST_CALLS)
        return "together they are too many calls";
    *calls = both(gs, a, b, places);
    Pair pair = { gs, a, b };
    const RegionMembers members = { (const Node **)*calls, a->n + b->n, is_of_pair, &pair };
    const char *wrong = region_read(&members, &region);
    if (wrong)
        return wrong;
    if ((wrong = schedule_limits(&region)))
        return wrong;
    if (region.contraction && a->part == STEP_LATE)
        return "a product may be stopped, and what only makes next values of states may not";
    if (region.contraction && any_hands_on(*calls, a->n + b->n))
        return "a product may be stopped, and what a turn hands on is made where the one before left it";
    const FusionGroup *earlier = a->rank < b->rank ? a : b, *later = earlier == a ? b : a;
    if (later->rank - earlier->rank > MOST_APART)
        return "they are far apart";
    return is_way_around(gs, earlier, later) ? "a third call stands between them" : NULL;
}

typedef struct Growth {
    FusionGroups *gs;
    Facts places; /* size_t: where a node stands in the list */
} Growth;

static void try_merge(Growth *w, const Node *first, const Node *second)
{
    FusionGroup *a = fusion_group_of(w->gs, first), *b = fusion_group_of(w->gs, second);
    Node **calls;
    if (!a || !b || a == b || !a->fusible || !b->fusible || a->failures > MOST_FAILURES || b->failures > MOST_FAILURES)
        return;
    const ArenaMark mark = arena_mark(w->gs->arena);
    if (apart(w->gs, a, b, &w->places, &calls)) {
        arena_reset(w->gs->arena, mark);
        a->failures++;
        b->failures++;
        return;
    }
    FusionGroup *earlier = a->rank < b->rank ? a : b, *later = earlier == a ? b : a;
    merge_ranks(w->gs, earlier, later);
    earlier->n += later->n;
    earlier->calls = calls;
    later->into = earlier;
}

/* Whether two calls are of one group, if need be from now on. */
static bool are_one(Growth *w, const Node *a, const Node *b)
{
    try_merge(w, a, b);
    return fusion_group_of(w->gs, a) == fusion_group_of(w->gs, b);
}

/* A pick is of the region of what keeps its indices inside, or of none. */
static void keep_pick(Growth *w, const Node *n)
{
    Reduction r;
    FusionGroup *group = region_picks(n, &r) ? fusion_group_of(w->gs, n) : NULL;
    if (!group || group->fusible)
        return;
    group->fusible = true;
    try_merge(w, in(n, 1), n);
    if (fusion_group_of(w->gs, n) == group && group->n == 1)
        group->fusible = false;
}

/* A product is of the region of those who read it, if that is one it may be in: the last to join, so that it keeps nobody
 * from what else they could share. */
static void keep_contraction(Growth *w, const Node *n)
{
    FusionGroup *group = region_contracts(n) ? fusion_group_of(w->gs, n) : NULL;
    int tried = 0;
    if (!group || group->fusible)
        return;
    group->fusible = true;
    for (const Use *u = n->uses; u && tried < MOST_READERS && group->n == 1 && !group->into; u = u->next, tried++)
        if (u->user->graph == n->graph && !node_is_return(u->user))
            try_merge(w, n, u->user);
    group->fusible = group->n > 1;
}

/* A value stays in a register where who makes it and who reads it are one. */
static void merge_with_operands(Growth *w, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i))
            try_merge(w, in(n, i), n);
}

/* A value is read once where all who read it are one; else as often as there are some who cannot be. */
static void merge_readers(Growth *w, const Node *value)
{
    enum { MOST_APART = 4 };
    const Node *apart[MOST_APART];
    int n = 0, n_apart = 0;
    if (value->op == OP_const || value->type->kind != TYPE_TENSOR || type_elements(value->type) <= 1)
        return;
    for (const Use *u = value->uses; u && n < MOST_READERS; u = u->next, n++) {
        if (u->user->graph != value->graph || node_is_return(u->user) || !fusion_group_of(w->gs, u->user)->fusible)
            continue;
        int with = 0;
        while (with < n_apart && !are_one(w, apart[with], u->user))
            with++;
        if (with == n_apart && n_apart < MOST_APART)
            apart[n_apart++] = u->user;
    }
}

/* Whether somebody could expect two neighbours to be one: a product and rows of its part of the step, or both fusible. */
static bool are_near(const FusionGroup *from, const Node *def, const FusionGroup *of)
{
    return from->fusible || (region_contracts(def) && from->part == of->part);
}

/* Says of what a call reads why it is not computed beside it, of each pair of groups once.  What a product reads is there
 * before it in any case. */
static void remark_apart(Growth *w, Diag *diag, const Node *n)
{
    FusionGroup *of = fusion_group_of(w->gs, n);
    for (int i = 0; i < n->n_in && i < MOST_READERS && of && of->fusible && !region_contracts(n); i++) {
        const Node *def = in(n, i);
        FusionGroup *from = def && def->graph == n->graph ? fusion_group_of(w->gs, def) : NULL;
        Node **calls;
        if (!from || from == of || !are_near(from, def, of) || from->told == of)
            continue;
        from->told = of;
        const ArenaMark mark = arena_mark(w->gs->arena);
        const char *why = apart(w->gs, from, of, &w->places, &calls);
        if (why)
            remark(diag, "fusion", node_place(n), "apart from %s: %s", def->name ? def->name : op_of(def)->name, why);
        arena_reset(w->gs->arena, mark);
    }
}

void fusion_groups_find(FusionGroups *gs, Graph *g, Arena *arena, Diag *remarks)
{
    Growth w = { .gs = gs, .places = facts_open(arena, sizeof(size_t)) };
    size_t place = 0;
    begin(gs, g, arena);
    for (Node *n = g->first; n; n = n->next)
        *(size_t *)fact(&w.places, n) = ++place;
    for (Node *n = g->first; n; n = n->next)
        keep_pick(&w, n);
    for (Node *n = g->first; n; n = n->next)
        merge_with_operands(&w, n);
    for (size_t i = 0; i < g->n_inputs; i++)
        merge_readers(&w, g->inputs[i]);
    for (Node *n = g->first; n; n = n->next)
        merge_readers(&w, n);
    for (Node *n = g->first; n; n = n->next)
        keep_contraction(&w, n);
    for (Node *n = g->first; n && remarks; n = n->next)
        remark_apart(&w, remarks, n);
}

void fusion_group_region(FusionGroups *gs, const FusionGroup *group, Region *r)
{
    Pair alone = { gs, group, group };
    const char *wrong = region_read(&(RegionMembers){ (const Node **)group->calls, group->n, is_of_pair, &alone }, r);
    BUG_IF(gs->graph->ir->memory, wrong);
}

Node **fusion_groups_order(FusionGroups *gs, size_t *n_calls)
{
    Node **calls = NEWS(gs->arena, Node *, gs->n + 1);
    *n_calls = 0;
    for (size_t k = 0; k < gs->n; k++)
        for (size_t i = 0; gs->ranks[k] && i < gs->ranks[k]->n; i++)
            calls[(*n_calls)++] = gs->ranks[k]->calls[i];
    return calls;
}
