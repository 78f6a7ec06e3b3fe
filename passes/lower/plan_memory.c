#include "passes/lower/plan_memory.h"

#include <stdlib.h>
#include <string.h>

#include "ir/step_part.h"
#include "ops/region/region.h"
#include "passes/lower/source.h"

typedef struct Planner {
    Plan *plan;
    Arena *arena;
    Facts places;     /* int: number in the list + 1 */
    Facts parts;      /* int: StepPart */
    Facts sources;    /* Source *, by node: of each result */
    int *begin, *end; /* by wave: its first and its last call */
    int cap;
    const Node *open; /* its size is not known */
} Planner;

static int place_of(Planner *p, const Node *n)
{
    return *(int *)fact(&p->places, n) - 1;
}

static PlanValue *values_of(Planner *p, const Node *n)
{
    PlanValue **v = fact(&p->plan->values, n);
    if (!*v) {
        const int results = type_results(n->type);
        *v = NEWS(p->arena, PlanValue, results + 1);
        for (int i = 0; i < results; i++)
            (*v)[i] = (PlanValue){ PLAN_ELSEWHERE, PLAN_NO_NEXT, n, i };
    }
    return *v;
}

static bool is_late(Planner *p, const Node *n)
{
    return *(int *)fact(&p->parts, n) == STEP_LATE;
}

/* ---- what shares a buffer ---- */

/* The same, found once: every reader of a value asks it of all that read it. */
static Source source_of(Planner *p, const Node *n, int result)
{
    Source **of = fact(&p->sources, n);
    const int results = type_results(n->type);
    if (!*of) {
        *of = NEWS(p->arena, Source, results + 1);
        for (int i = 0; i < results; i++)
            (*of)[i] = source_find(n, i, p->arena);
    }
    return (*of)[result];
}

/* ---- what runs side by side ---- */

enum { MOST_BESIDE = 64, MOST_BESIDE_BYTES = 1 << 16 }; /* calls of a wave, and bytes of the arena that they make */

static int wave_of(Planner *p, const Node *n)
{
    return *(int *)fact(&p->plan->waves, n);
}

static int wave_begin(Planner *p, const Node *n)
{
    return p->begin[wave_of(p, n)];
}

static int wave_end(Planner *p, const Node *n)
{
    return p->end[wave_of(p, n)];
}

/* The last call that may still run when this one does; a look is no call. */
static int read_until(Planner *p, const Node *n)
{
    const int at = place_of(p, n), end = wave_end(p, n);
    return at > end ? at : end;
}

static bool is_look(Planner *p, const Node *n)
{
    for (int i = 0; i < type_results(n->type); i++)
        if (!source_of(p, n, i).node)
            return false;
    return true;
}

/* Whether another call of a wave reads the state whose next value a result is. */
static bool is_state_read(Planner *p, const Node *n, const Map *states, int wave)
{
    for (const Use *u = n->uses; u; u = u->next) {
        const Node *state = node_is_return(u->user) ? step_next_of(n->graph, (int)(u - u->user->in), states) : NULL;
        for (const Use *s = state ? state->uses : NULL; s; s = s->next)
            if (!node_is_return(s->user) && place_of(p, s->user) < place_of(p, n) && wave_of(p, s->user) == wave)
                return true;
        if (u->user->op == OP_part && is_state_read(p, u->user, states, wave))
            return true;
    }
    return false;
}

typedef struct Wave {
    int number, calls, part;
    size_t bytes;        /* of the arena */
    const Node *product; /* of products of one operand: the first; null: of regions */
} Wave;

static size_t bytes_made(Planner *p, const Node *n)
{
    size_t sum = 0, bytes = 0;
    for (int i = 0; i < type_results(n->type); i++)
        if (values_of(p, n)[i].next == PLAN_NO_NEXT && type_bytes(type_result(n->type, i), &bytes))
            sum += bytes;
    return sum;
}

static bool is_pure_region(const Node *n)
{
    return n->op == OP_fused && !region_contraction(n);
}

/* Whether a call may run beside those of a wave: it reads nothing that they make, and is a region that makes little, or a
 * product of what they multiply, too. */
static bool joins(Planner *p, const Wave *w, const Node *n, const Map *states)
{
    if (!w->calls || w->part != *(int *)fact(&p->parts, n))
        return false;
    if (w->product && (w->calls >= PRODUCTS_BESIDE || is_late(p, n) || !region_shares(w->product, n)))
        return false;
    if (!w->product &&
        (!is_pure_region(n) || w->calls >= MOST_BESIDE || w->bytes + bytes_made(p, n) > MOST_BESIDE_BYTES))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && wave_of(p, in(n, i)) == w->number)
            return false;
    return !is_late(p, n) || !is_state_read(p, n, states, w->number);
}

/* A look is as late as what it looks at; inputs and constants are there before the first wave. */
static void find_waves(Planner *p, const Graph *g)
{
    Wave w = { 0 };
    const Map states = step_states(g, p->arena);
    p->begin = NEWS(p->arena, int, p->plan->n_calls + 2);
    p->end = NEWS(p->arena, int, p->plan->n_calls + 2);
    for (const Node *n = g->first; n; n = n->next) {
        int *wave = fact(&p->plan->waves, n);
        if (node_is_input(n) || n->op == OP_const || n->op == OP_param || node_is_return(n))
            continue;
        if (is_look(p, n)) {
            for (int i = 0; i < n->n_in; i++)
                if (in(n, i) && wave_of(p, in(n, i)) > *wave)
                    *wave = wave_of(p, in(n, i));
            continue;
        }
        if (!joins(p, &w, n, &states)) {
            const bool product = region_shares(n, n);
            w = (Wave){ .number = w.number + 1,
                        .calls = is_pure_region(n) || product ? 0 : MOST_BESIDE,
                        .part = *(int *)fact(&p->parts, n),
                        .product = product ? n : NULL };
            p->begin[w.number] = place_of(p, n);
        }
        w.calls++;
        w.bytes += bytes_made(p, n);
        *wave = w.number;
        p->end[w.number] = place_of(p, n);
    }
}

/* Whether a result of a region may be made where an operand lies that nobody reads any more.  A call may not, nor a
 * region with a product: what is stopped half way is run again. */
static int over_buffer(Planner *p, const Node *n, int result, size_t bytes)
{
    const int at = place_of(p, n);
    Region region;
    if (n->op != OP_fused || region_contraction(n) || wave_begin(p, n) != wave_end(p, n) ||
        region_read_body(n->regions[0], p->arena, &region))
        return PLAN_ELSEWHERE;
    for (int i = 0; i < n->n_in; i++) {
        const int b = plan_buffer(p->plan, in(n, i), 0);
        bool taken = b == PLAN_ELSEWHERE || p->plan->buffers[b].last != at || p->plan->buffers[b].bytes != bytes;
        for (int r = 0; r < result && !taken; r++)
            taken = values_of(p, n)[r].buffer == b;
        for (int k = 0; k < n->n_in && !taken; k++) /* another look at it may read elsewhere than where is written */
            taken = k != i && plan_buffer(p->plan, in(n, k), 0) == b;
        if (!taken && region_lies_over(&region, n->regions[0], result, n->regions[0]->inputs[i]->type))
            return b;
    }
    return PLAN_ELSEWHERE;
}

/* ---- products ---- */

/* The result in whose place a product is made: what it is itself, or what rows make of it where it lies. */
static int under_result(Planner *p, const Node *n, const Node *product)
{
    const Graph *body = n->regions[0];
    Region region;
    int under = PLAN_ELSEWHERE;
    BUG_IF(n->graph->ir->memory, region_read_body(body, p->arena, &region));
    for (int i = type_results(n->type) - 1; i >= 0; i--) {
        if (values_of(p, n)[i].buffer == PLAN_ELSEWHERE)
            continue;
        if (graph_result(body, i) == product)
            return i;
        if (region_lies_over(&region, body, i, product->type))
            under = i;
    }
    return under;
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
    int last = is_late(p, n) ? p->plan->n_calls : wave_end(p, n);
    *todo = (Look){ { n, i }, NULL };
    while (todo) {
        const Source s = todo->source;
        todo = todo->next;
        for (const Use *u = s.node->uses; u; u = u->next) {
            const bool stays = node_is_return(u->user) || is_late(p, u->user);
            const int at = stays ? p->plan->n_calls : read_until(p, u->user);
            if (at > last)
                last = at;
            const int results = node_is_return(u->user) ? 0 : type_results(u->user->type);
            for (int r = 0; r < results; r++) {
                const Source of = source_of(p, u->user, r);
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
        .first = wave_begin(p, n),
        .last = last_reader(p, n, i),
        .maker = n,
    };
    return p->plan->n_buffers++;
}

static bool give_product(Planner *p, const Node *n)
{
    const Node *product = n->op == OP_fused ? region_contraction(n) : NULL;
    size_t bytes;
    if (!product)
        return true;
    PlanProduct *to = fact(&p->plan->products, n);
    to->result = under_result(p, n, product);
    if (to->result != PLAN_ELSEWHERE) {
        to->buffer = values_of(p, n)[to->result].buffer;
        return true;
    }
    if (!type_bytes(product->type, &bytes))
        return false;
    to->buffer = new_buffer(p, n, 0, bytes);
    p->plan->buffers[to->buffer].last = wave_end(p, n);
    return true;
}

/* A constant operand of a call is all that a result shows: then it lies elsewhere, too. */
static bool give_buffer(Planner *p, const Node *n, int i)
{
    const Type *t = type_result(n->type, i);
    const Source from = source_of(p, n, i);
    size_t bytes;
    if (from.node) {
        values_of(p, n)[i] = plan_value(p->plan, from.node, from.result);
        return true;
    }
    if (t->kind != TYPE_TENSOR || !type_known(t) || !type_bytes(t, &bytes))
        return false;
    if (values_of(p, n)[i].next != PLAN_NO_NEXT)
        return true;
    const size_t padded = (bytes + PLAN_ALIGNMENT - 1) / PLAN_ALIGNMENT * PLAN_ALIGNMENT;
    const int over = over_buffer(p, n, i, padded);
    if (over != PLAN_ELSEWHERE)
        p->plan->buffers[over].last = last_reader(p, n, i);
    values_of(p, n)[i].buffer = over != PLAN_ELSEWHERE ? over : new_buffer(p, n, i, bytes);
    return true;
}

/* Whether values of both types are the same bytes: other dimensions are another view. */
static bool same_numbers(const Type *a, const Type *b)
{
    return a == b || (a->kind == TYPE_TENSOR && a->dtype == b->dtype && type_known(a) && type_known(b) &&
                      type_elements(a) == type_elements(b));
}

/* Next values of states that are made late are made where those are. */
static void find_next(Planner *p, const Graph *g)
{
    const Map states = step_states(g, p->arena);
    for (int i = 0; i < graph_n_results(g); i++) {
        const Node *state = step_next_of(g, i, &states);
        Source s = { graph_result(g, i), 0 };
        while (s.node && (node_is_holder(s.node) || source_of(p, s.node, s.result).node))
            s = source_of(p, s.node, s.result);
        if (!state || !s.node || is_elsewhere(s.node) || !is_late(p, s.node) ||
            !same_numbers(type_result(s.node->type, s.result), state->type) ||
            values_of(p, s.node)[s.result].next != PLAN_NO_NEXT)
            continue;
        values_of(p, s.node)[s.result].next = i;
    }
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

static void place_largest_first(Planner *p)
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
    }
}

/* Among thousands of buffers trying each against all others takes too long: here each takes a place that one of its size
 * left, and behind all others where there is none. */
static void place_by_size(Planner *p)
{
    Plan *plan = p->plan;
    Map free_places; /* by bytes: the buffers that were there before, by `after` */
    int *after = NEWS(p->arena, int, plan->n_buffers + 1), *ending = NEWS(p->arena, int, plan->n_calls + 2);
    int *same_end = NEWS(p->arena, int, plan->n_buffers + 1), done = 0;
    size_t end = 0;
    bool fresh;
    map_open(&free_places, p->arena);
    for (int i = 0; i < plan->n_buffers; i++) {
        PlanBuffer *b = &plan->buffers[i];
        for (; done < b->first; done++)
            for (int k = ending[done]; k; k = same_end[k - 1]) {
                MapEntry *e = map_put_u64(&free_places, plan->buffers[k - 1].bytes, &fresh);
                after[k - 1] = (int)e->value.i;
                e->value.i = k;
            }
        MapEntry *e = map_put_u64(&free_places, b->bytes, &fresh);
        b->offset = e->value.i ? plan->buffers[e->value.i - 1].offset : end;
        if (e->value.i)
            e->value.i = after[e->value.i - 1];
        else
            end += b->bytes;
        same_end[i] = ending[b->last];
        ending[b->last] = i + 1;
    }
}

static void place_buffers(Planner *p)
{
    enum { MANY = 8192 };
    Plan *plan = p->plan;
    (plan->n_buffers > MANY ? place_by_size : place_largest_first)(p);
    for (int i = 0; i < plan->n_buffers; i++)
        if (plan->buffers[i].offset + plan->buffers[i].bytes > plan->arena)
            plan->arena = plan->buffers[i].offset + plan->buffers[i].bytes;
}

static void measure_live(Planner *p)
{
    const size_t *alive = plan_alive(p->plan, p->arena);
    for (int i = 0; i <= p->plan->n_calls; i++)
        p->plan->live = alive[i] > p->plan->live ? alive[i] : p->plan->live;
}

static bool give_buffers(Planner *p, const Node *n)
{
    for (int i = 0; i < type_results(n->type) && !is_elsewhere(n); i++)
        if (!give_buffer(p, n, i))
            return false;
    return give_product(p, n);
}

bool plan_memory(Graph *g, Arena *arena, Plan *plan, const Node **where)
{
    *plan = (Plan){ .graph = g,
                    .values = facts_open(arena, sizeof(PlanValue *)),
                    .products = facts_open(arena, sizeof(PlanProduct)),
                    .waves = facts_open(arena, sizeof(int)) };
    Planner p = { .plan = plan,
                  .arena = arena,
                  .places = facts_open(arena, sizeof(int)),
                  .parts = step_parts(g, arena),
                  .sources = facts_open(arena, sizeof(Source *)) };
    for (const Node *n = g->first; n; n = n->next)
        *(int *)fact(&p.places, n) = ++plan->n_calls;
    find_next(&p, g);
    find_waves(&p, g);
    for (const Node *n = g->first; n; n = n->next)
        if (!give_buffers(&p, n)) {
            if (where)
                *where = n;
            return false;
        }
    place_buffers(&p);
    measure_live(&p);
    return true;
}
