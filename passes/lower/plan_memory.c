#include "passes/lower/plan_memory.h"

#include <stdlib.h>
#include <string.h>

#include "ops/card/access.h"

typedef struct Planner {
    Plan *plan;
    Arena *arena;
    Facts places; /* int: number in the list + 1 */
    int cap;
    const Node *open; /* its size is not known */
} Planner;

static int place_of(Planner *p, const Node *n)
{
    return *(int *)fact(&p->places, n) - 1;
}

static int *values_of(Planner *p, const Node *n)
{
    int **v = fact(&p->plan->values, n);
    if (!*v) {
        const int results = type_results(n->type);
        *v = NEWS(p->arena, int, results + 1);
        for (int i = 0; i < results; i++)
            (*v)[i] = PLAN_ELSEWHERE;
    }
    return *v;
}

/* ---- what shares a buffer ---- */

/* Where a value was made that another node shows as it is: a part, a tuple, a call that only looks at it in another way. */
typedef struct Source {
    const Node *node;
    int result;
} Source;

/* A look that leaves all elements in their order: other looks become moves when they are lowered. */
static bool is_flat_view(const Node *n, int result, int operand, Arena *scratch)
{
    const Type *from = in(n, operand)->type;
    Iteration walk;
    return from->kind == TYPE_TENSOR && access_alias(n, result, operand, scratch) == ALIAS_VIEW &&
           access_iterate(n, scratch, &walk) && walk.in[operand].reach == REACH_FLAT;
}

static Source source_of(const Node *n, int result, Arena *scratch)
{
    if (n->op == OP_part)
        return (Source){ in(n, 0), (int)((const PartAttr *)n->attr)->index };
    if (node_is_holder(n)) /* a tuple */
        return (Source){ in(n, result), 0 };
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && is_flat_view(n, result, i, scratch))
            return (Source){ in(n, i), 0 };
    return (Source){ NULL, 0 };
}

/* Whether the result of a call may be made where an operand lies that nobody reads any more. */
static int over_buffer(Planner *p, const Node *n, int result, size_t bytes)
{
    const int at = place_of(p, n);
    for (int i = 0; i < n->n_in; i++) {
        const Node *def = in(n, i);
        const int b = def && def->type->kind == TYPE_TENSOR ? plan_buffer(p->plan, def, 0) : PLAN_ELSEWHERE;
        if (b == PLAN_ELSEWHERE || p->plan->buffers[b].last != at || p->plan->buffers[b].bytes != bytes)
            continue;
        if (access_alias(n, result, i, p->arena) == ALIAS_OVER)
            return b;
    }
    return PLAN_ELSEWHERE;
}

/* ---- how long ---- */

static bool is_elsewhere(const Node *n)
{
    return node_is_input(n) || n->op == OP_const || n->op == OP_param;
}

/* The last call that reads result i, through parts and views too. */
static int last_reader(Planner *p, const Node *n, int i)
{
    typedef struct Look {
        Source source;
        struct Look *next;
    } Look;
    Look *todo = NEW(p->arena, Look);
    int last = place_of(p, n);
    *todo = (Look){ { n, i }, NULL };
    while (todo) {
        const Source s = todo->source;
        todo = todo->next;
        for (const Use *u = s.node->uses; u; u = u->next) {
            const int at = node_is_return(u->user) ? p->plan->n_calls : place_of(p, u->user);
            if (at > last)
                last = at;
            const int results = node_is_return(u->user) ? 0 : type_results(u->user->type);
            for (int r = 0; r < results; r++) {
                const Source of = source_of(u->user, r, p->arena);
                if (of.node != s.node || of.result != s.result)
                    continue;
                Look *more = NEW(p->arena, Look);
                *more = (Look){ { u->user, r }, todo };
                todo = more;
            }
        }
    }
    return last;
}

static int new_buffer(Planner *p, const Node *n, int i, size_t bytes)
{
    size_t count = (size_t)p->plan->n_buffers, cap = (size_t)p->cap;
    GROW(p->arena, p->plan->buffers, count, cap);
    p->cap = (int)cap;
    p->plan->buffers[p->plan->n_buffers] = (PlanBuffer){
        .bytes = (bytes + PLAN_ALIGNMENT - 1) / PLAN_ALIGNMENT * PLAN_ALIGNMENT,
        .first = place_of(p, n),
        .last = last_reader(p, n, i),
        .maker = n,
    };
    return p->plan->n_buffers++;
}

/* A constant operand of a call is all that a result shows: then it lies elsewhere, too. */
static bool give_buffer(Planner *p, const Node *n, int i)
{
    const Type *t = type_result(n->type, i);
    const Source from = source_of(n, i, p->arena);
    size_t bytes;
    if (from.node) {
        values_of(p, n)[i] = plan_buffer(p->plan, from.node, from.result);
        return true;
    }
    if (t->kind != TYPE_TENSOR || !type_known(t) || !type_bytes(t, &bytes))
        return false;
    const size_t padded = (bytes + PLAN_ALIGNMENT - 1) / PLAN_ALIGNMENT * PLAN_ALIGNMENT;
    const int over = over_buffer(p, n, i, padded);
    if (over != PLAN_ELSEWHERE)
        p->plan->buffers[over].last = last_reader(p, n, i);
    values_of(p, n)[i] = over != PLAN_ELSEWHERE ? over : new_buffer(p, n, i, bytes);
    return true;
}

/* ---- offsets ---- */

static int larger_first(const void *x, const void *y)
{
    const PlanBuffer *const *a = x, *const *b = y;
    if ((*a)->bytes != (*b)->bytes)
        return (*a)->bytes > (*b)->bytes ? -1 : 1;
    return (*a)->first != (*b)->first ? ((*a)->first < (*b)->first ? -1 : 1) : (*a < *b ? -1 : 1);
}

typedef struct Placed {
    PlanBuffer **by_offset;
    int n;
} Placed;

/* The smallest gap between those taken at the same time that holds a buffer; behind all of them where there is none. */
static size_t best_gap(const Placed *placed, const PlanBuffer *b)
{
    size_t end = 0, best = 0, smallest = SIZE_MAX;
    for (int i = 0; i < placed->n; i++) {
        const PlanBuffer *o = placed->by_offset[i];
        if (o->first > b->last || b->first > o->last)
            continue;
        if (o->offset >= end && o->offset - end >= b->bytes && o->offset - end < smallest) {
            smallest = o->offset - end;
            best = end;
        }
        if (o->offset + o->bytes > end)
            end = o->offset + o->bytes;
    }
    return smallest == SIZE_MAX ? end : best;
}

static void place_buffers(Planner *p)
{
    Plan *plan = p->plan;
    PlanBuffer **sorted = NEWS(p->arena, PlanBuffer *, plan->n_buffers + 1);
    Placed placed = { NEWS(p->arena, PlanBuffer *, plan->n_buffers + 1), 0 };
    for (int i = 0; i < plan->n_buffers; i++)
        sorted[i] = &plan->buffers[i];
    qsort(sorted, (size_t)plan->n_buffers, sizeof *sorted, larger_first);
    for (int i = 0; i < plan->n_buffers; i++) {
        PlanBuffer *b = sorted[i];
        b->offset = best_gap(&placed, b);
        int at = placed.n++;
        for (; at > 0 && placed.by_offset[at - 1]->offset > b->offset; at--)
            placed.by_offset[at] = placed.by_offset[at - 1];
        placed.by_offset[at] = b;
        if (b->offset + b->bytes > plan->arena)
            plan->arena = b->offset + b->bytes;
    }
}

static void measure_live(Planner *p)
{
    const Plan *plan = p->plan;
    int64_t *change = NEWS(p->arena, int64_t, plan->n_calls + 2), live = 0;
    for (int i = 0; i < plan->n_buffers; i++) {
        change[plan->buffers[i].first] += (int64_t)plan->buffers[i].bytes;
        change[plan->buffers[i].last + 1] -= (int64_t)plan->buffers[i].bytes;
    }
    for (int i = 0; i <= plan->n_calls; i++) {
        live += change[i];
        if ((size_t)live > p->plan->live)
            p->plan->live = (size_t)live;
    }
}

bool plan_memory(Graph *g, Arena *arena, Plan *plan, const Node **where)
{
    *plan = (Plan){ .graph = g, .values = facts_open(arena, sizeof(int *)) };
    Planner p = { .plan = plan, .arena = arena, .places = facts_open(arena, sizeof(int)) };
    for (const Node *n = g->first; n; n = n->next)
        *(int *)fact(&p.places, n) = ++plan->n_calls;
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < type_results(n->type) && !is_elsewhere(n); i++)
            if (!give_buffer(&p, n, i)) {
                if (where)
                    *where = n;
                return false;
            }
    place_buffers(&p);
    measure_live(&p);
    return true;
}
