#include "passes/lower/timeline.h"

#include "passes/lower/fusion_groups.h"
#include "passes/lower/lateness.h"
#include "passes/lower/source.h"

/* What is made of so many times its bytes is not worth making again: statistics. */
enum { SMALLER = 16 };

int timeline_place(const Timeline *t, const Node *n)
{
    const int *place = fact_known(&t->places, n);
    return place ? *place - 1 : NEVER;
}

/* ---- the order ---- */

static void put_call(Timeline *t, Node *n, int part)
{
    t->at[t->n++] = (Moment){ .call = n, .part = (StepPart)part, .first_back = NEVER };
    t->n_forward += part == STEP_FORWARD;
    *(int *)fact(&t->places, n) = t->n;
}

/* As order-nodes will put them: what is to be one region together. */
static void put_backward(Timeline *t, FusionGroups *groups, BackwardCalls *back)
{
    const FusionGroup *last = NULL;
    int unit = -1;
    for (int i = 0; i < back->n; i++) {
        const FusionGroup *of = fusion_group_of(groups, back->calls[i]);
        unit += of != last;
        back->unit[i] = unit;
        last = of;
    }
    backward_calls_late(back, t->arena);
    for (int i = 0; i < back->n; i++)
        put_call(t, back->calls[i], STEP_BACKWARD);
}

/* Groups one behind the other, as grow-fusion will put them, and the parts of the step. */
static void put_in_order(Timeline *t, FusionGroups *groups)
{
    size_t n;
    Facts parts = step_parts(t->graph, t->arena);
    Node **calls = fusion_groups_order(groups, &n);
    BackwardCalls back = { NEWS(t->arena, Node *, n + 1), NEWS(t->arena, int, n + 1), 0 };
    t->at = NEWS(t->arena, Moment, n + 1);
    for (int part = 0; part <= STEP_LATE; part++) {
        for (size_t i = 0; i < n; i++)
            if (*(int *)fact(&parts, calls[i]) == part && part == STEP_BACKWARD)
                back.calls[back.n++] = calls[i];
            else if (*(int *)fact(&parts, calls[i]) == part)
                put_call(t, calls[i], part);
        if (part == STEP_BACKWARD)
            put_backward(t, groups, &back);
    }
}

void timeline_apply(const Timeline *t)
{
    for (int i = 0; i < t->n; i++)
        node_move(t->at[i].call, NULL);
}

/* ---- what it leaves ---- */

static size_t type_size(const Type *type)
{
    size_t sum = 0, bytes = 0;
    for (int i = 0; i < type_results(type); i++) {
        const Type *r = type_result(type, i);
        sum += r->kind == TYPE_TENSOR && type_known(r) && type_bytes(r, &bytes) ? bytes : 0;
    }
    return sum;
}

static bool is_of_tensors(const Type *type)
{
    for (int i = 0; i < type_results(type); i++)
        if (type_result(type, i)->kind != TYPE_TENSOR || !type_known(type_result(type, i)))
            return false;
    return true;
}

/* What a result of a call shows; null: it is made. */
static const Node *shown(const Node *n, int result, Arena *scratch)
{
    const ArenaMark mark = arena_mark(scratch);
    const Node *of = source_find(n, result, scratch).node;
    arena_reset(scratch, mark);
    return of;
}

static bool shows(const Node *n, const Node *of, Arena *scratch)
{
    for (int i = 0; i < type_results(n->type); i++)
        if (shown(n, i, scratch) == of)
            return true;
    return false;
}

static bool is_look(const Node *n, Arena *scratch)
{
    for (int i = 0; i < type_results(n->type); i++)
        if (!shown(n, i, scratch))
            return false;
    return true;
}

static void read_at(Moment *m, int place, const Timeline *t)
{
    const bool leaves = place == t->n;
    const int part = leaves ? STEP_LATE : (int)t->at[place].part;
    if (place > m->last)
        m->last = place;
    if (part == STEP_FORWARD && place > m->last_forward)
        m->last_forward = place;
    if (part == STEP_BACKWARD && (m->first_back == NEVER || place < m->first_back))
        m->first_back = place;
}

/* From the last call to the first: what looks at a value is known when the value is. */
static void find_readers(Timeline *t, int i)
{
    Moment *m = &t->at[i];
    m->last = m->last_forward = i;
    for (const Use *u = m->call->uses; u; u = u->next) {
        const int place = node_is_return(u->user) ? t->n : timeline_place(t, u->user);
        if (place < 0)
            continue;
        read_at(m, place, t);
        if (place == t->n || !shows(u->user, m->call, t->arena))
            continue;
        const Moment *look = &t->at[place];
        read_at(m, look->last, t);
        if (look->part == STEP_FORWARD)
            read_at(m, look->last_forward, t);
        if (look->first_back != NEVER)
            read_at(m, look->first_back, t);
    }
}

static void find_stored(Timeline *t, FusionGroups *groups, int i)
{
    Moment *m = &t->at[i];
    const FusionGroup *of = fusion_group_of(groups, m->call);
    m->alone = !of->fusible;
    m->stored = m->alone;
    for (const Use *u = m->call->uses; u && !m->stored; u = u->next)
        m->stored = node_is_return(u->user) || fusion_group_of(groups, u->user) != of;
}

/* ---- what stays ---- */

/* Values that only a run knows may make a call fail; those that it computes with are no such. */
static bool may_refuse(const Node *n)
{
    for (int i = 1; i < n->n_in && op_of(n)->access.refuses; i++)
        if (in(n, i) && in(n, i)->op != OP_const)
            return true;
    return false;
}

/* The same call of the same values has the same bits, what it draws included, for its stream is the same. */
static bool can_be_made_again(const Node *n)
{
    const OpDef *op = op_of(n);
    const bool moves_states = op->statistics && type_results(n->type) > 1;
    return !n->n_regions && !op->latches && !moves_states && (node_is_holder(n) || !op->structural) &&
           is_of_tensors(n->type) && !may_refuse(n);
}

/* The most bytes of what a value is made of by rows and reductions. */
static size_t made_of(const Timeline *t, const Node *n, const size_t *whole)
{
    Reduction fold;
    size_t most = type_size(n->type);
    if (!region_maps(n) && !region_folds(n, &fold))
        return most;
    for (int i = 0; i < n->n_in; i++) {
        const int place = in(n, i) ? timeline_place(t, in(n, i)) : NEVER;
        const size_t bytes = place != NEVER ? whole[place] : in(n, i) ? type_size(in(n, i)->type) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* A part stays where that stays whose part it is. */
static bool is_part_of_what_stays(const Timeline *t, const Node *n)
{
    const int of = n->op == OP_part ? timeline_place(t, in(n, 0)) : NEVER;
    return of != NEVER && t->at[of].stays;
}

static void find_stays(Timeline *t)
{
    size_t *whole = NEWS(t->arena, size_t, t->n_forward + 1);
    for (int i = 0; i < t->n_forward; i++) {
        Moment *m = &t->at[i];
        whole[i] = made_of(t, m->call, whole);
        m->outlives = m->last == t->n || t->at[m->last].part > STEP_BACKWARD;
        const bool is_small = m->bytes && m->bytes * SMALLER <= whole[i];
        m->stays = m->outlives || is_small || !can_be_made_again(m->call) || is_part_of_what_stays(t, m->call);
    }
}

void timeline_open(Timeline *t, Graph *g, Arena *arena)
{
    FusionGroups groups;
    *t = (Timeline){ .graph = g, .arena = arena, .places = facts_open(arena, sizeof(int)) };
    fusion_groups_find(&groups, g, arena, NULL);
    put_in_order(t, &groups);
    for (int i = t->n - 1; i >= 0; i--) {
        find_readers(t, i);
        find_stored(t, &groups, i);
        t->at[i].bytes = is_look(t->at[i].call, arena) ? 0 : type_size(t->at[i].call->type);
    }
    find_stays(t);
}
