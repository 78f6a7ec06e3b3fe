#include "passes/lower/plan_memory.h"

#include <stdlib.h>
#include <string.h>

#include "ir/step_part.h"
#include "ops/machine/caller.h"
#include "ops/region/region.h"
#include "passes/lower/plan_places.h"
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

/* The buffer of an operand that a result of so many bytes could take over: nobody else reads it, here or later. */
static int left_buffer(Planner *p, const Node *n, int operand, int result, size_t bytes)
{
    const int b = in(n, operand) ? plan_buffer(p->plan, in(n, operand), 0) : PLAN_ELSEWHERE;
    bool taken =
        b == PLAN_ELSEWHERE || p->plan->buffers[b].last != place_of(p, n) || p->plan->buffers[b].bytes != bytes;
    for (int r = 0; r < result && !taken; r++)
        taken = values_of(p, n)[r].buffer == b;
    for (int k = 0; k < n->n_in && !taken; k++) /* another look at it may read elsewhere than where is written */
        taken = k != operand && in(n, k) && plan_buffer(p->plan, in(n, k), 0) == b;
    return taken ? PLAN_ELSEWHERE : b;
}

static const PlanBody *body_of(Planner *p, const Node *n)
{
    return *(const PlanBody **)fact(&p->plan->bodies, n);
}

/* Whether a result may be made where an operand lies that nobody reads any more: that of a region, what goes on from it, or what turns
 * of a body hand on over what the first begins with.  Another call may not, nor a region with a product: what is stopped half way is run again. */
static int over_buffer(Planner *p, const Node *n, int result, size_t bytes)
{
    Region region;
    const PlanBody *body = body_of(p, n);
    if (body)
        return result < body->turns.carried ? left_buffer(p, n, TURN_CARRIED + result, result, bytes) : PLAN_ELSEWHERE;
    if (node_goes_on(n) >= 0 && wave_begin(p, n) == wave_end(p, n))
        return left_buffer(p, n, node_goes_on(n), result, bytes);
    if (n->op != OP_fused || region_contraction(n) || wave_begin(p, n) != wave_end(p, n) ||
        region_read_body(n->regions[0], p->arena, &region))
        return PLAN_ELSEWHERE;
    for (int i = 0; i < n->n_in; i++) {
        const int b = left_buffer(p, n, i, result, bytes);
        if (b != PLAN_ELSEWHERE && region_lies_over(&region, n->regions[0], result, n->regions[0]->inputs[i]->type))
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

/* Values that show one, to be followed. */
typedef struct Look {
    Source source;
    struct Look *next;
} Look;

/* Notes the results of a reader that show what it reads. */
static void follow(Planner *p, Look **todo, Source s, const Node *reader)
{
    const int results = node_is_return(reader) ? 0 : type_results(reader->type);
    for (int r = 0; r < results; r++) {
        const Source of = source_of(p, reader, r);
        if (of.node != s.node || of.result != s.result)
            continue;
        Look *more = NEW(p->arena, Look);
        *more = (Look){ { reader, r }, *todo };
        *todo = more;
    }
}

/* The last call that reads result i, through parts and views too. */
static int last_reader(Planner *p, const Node *n, int i)
{
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
            follow(p, &todo, s, u->user);
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

/* Whose value a result of the graph is, looks aside. */
static Source made_as(Planner *p, const Graph *g, int result)
{
    Source s = { graph_result(g, result), 0 };
    while (s.node && (node_is_holder(s.node) || source_of(p, s.node, s.result).node))
        s = source_of(p, s.node, s.result);
    return s;
}

/* Next values of states that are made late are made where those are. */
static void find_next(Planner *p, const Graph *g)
{
    const Map states = step_states(g, p->arena);
    for (int i = 0; i < graph_n_results(g); i++) {
        const Node *state = step_next_of(g, i, &states);
        const Source s = made_as(p, g, i);
        if (!state || !s.node || is_elsewhere(s.node) || !is_late(p, s.node) ||
            !same_numbers(type_result(s.node->type, s.result), state->type) ||
            values_of(p, s.node)[s.result].next != PLAN_NO_NEXT)
            continue;
        values_of(p, s.node)[s.result].next = i;
    }
}

/* ---- turns of a body ---- */

/* Whether a region may make a result where the one operand lies that reads this. */
static bool lies_over(Planner *p, const Source *made, const Use *reader)
{
    const Node *n = made->node;
    const int operand = (int)(reader - n->in);
    Region region;
    if (node_goes_on(n) == operand)
        return true;
    return n->op == OP_fused && !region_contraction(n) && !region_read_body(n->regions[0], p->arena, &region) &&
           region_lies_over(&region, n->regions[0], made->result, n->regions[0]->inputs[operand]->type);
}

/* Whether nobody reads a parameter any more when this is made. */
static bool is_read_before(Planner *p, const Node *parameter, Source made)
{
    Look *todo = NEW(p->arena, Look);
    int over = 0;
    *todo = (Look){ { parameter, 0 }, NULL };
    while (todo) {
        const Source s = todo->source;
        todo = todo->next;
        for (const Use *u = s.node->uses; u; u = u->next) {
            if (node_is_return(u->user))
                return false;
            if (u->user == made.node ? over++ || !lies_over(p, &made, u)
                                     : !is_look(p, u->user) && read_until(p, u->user) >= wave_begin(p, made.node))
                return false;
            follow(p, &todo, s, u->user);
        }
    }
    return true;
}

/* What a turn hands on is made where the one before left it, once that was read, and slices where those of all turns lie, if that is
 * where values may lie. */
static void find_handed_on(Planner *p, const Graph *g, const CountedTurns *turns)
{
    for (int i = 1; i < graph_n_results(g); i++) {
        const Source s = made_as(p, g, i);
        const Type *type = graph_result(g, i)->type;
        size_t bytes;
        if (is_elsewhere(s.node) || values_of(p, s.node)[s.result].next != PLAN_NO_NEXT ||
            !same_numbers(type_result(s.node->type, s.result), type) || !type_bytes(type, &bytes))
            continue;
        const bool free = i - 1 < turns->carried ? is_read_before(p, g->inputs[TURN_CARRIED + i - 1], s)
                                                 : bytes % PLAN_ALIGNMENT == 0 || turns->turns == 1;
        if (free)
            values_of(p, s.node)[s.result].next = i;
    }
}

static bool is_tensor(const Type *t)
{
    size_t bytes;
    return tensor_holds(t) && t->kind == TYPE_TENSOR && type_known(t) && type_bytes(t, &bytes);
}

/* Whether what goes into a body and comes out of it has one type in all turns. */
static bool keeps_types(const Node *n, const CountedTurns *turns)
{
    const Graph *body = n->regions[0];
    if (type_results(n->type) != graph_n_results(body) - 1 || (size_t)n->n_in != body->n_inputs)
        return false;
    for (int i = TURN_CARRIED; i < n->n_in; i++)
        if (!in(n, i) || in(n, i)->type != body->inputs[i]->type || !is_tensor(in(n, i)->type))
            return false;
    for (int i = 0; i < type_results(n->type); i++)
        if (!is_tensor(type_result(n->type, i)) || !is_tensor(graph_result(body, 1 + i)->type) ||
            (i < turns->carried && (graph_result(body, 1 + i)->type != body->inputs[TURN_CARRIED + i]->type ||
                                    type_result(n->type, i) != graph_result(body, 1 + i)->type)))
            return false;
    return true;
}

/* Whether each call of a body can be a launch. */
static bool are_launches(Planner *p, const Graph *body)
{
    for (const Node *k = body->first; k; k = k->next)
        if ((op_of(k)->structural && !node_is_holder(k) && k->op != OP_const && k->op != OP_param) ||
            (k->op != OP_fused && !caller_knows_types(k, p->arena)))
            return false;
    return true;
}

/* A value that only changes its place from turn to turn could be written over before it is read. */
static bool hands_round(Planner *p, const Graph *body, const CountedTurns *turns)
{
    for (int i = 0; i < turns->carried; i++) {
        const Source s = made_as(p, body, 1 + i);
        for (int k = 0; k < turns->carried; k++)
            if (k != i && s.node == body->inputs[TURN_CARRIED + k])
                return true;
    }
    return false;
}

/* The plan of a body whose turns are run by launches of their own; null: one call runs it. */
static PlanBody *plan_body(Planner *p, const Node *n)
{
    enum { MOST_TURN_NODES = 1 << 16 };
    CountedTurns turns;
    const BodyCard *card = &op_of(n)->body;
    if (!card->counted || p->plan->graph->owner || is_late(p, n) || !card->counted(n, &turns) ||
        turns.turns > MOST_TURN_NODES / (int64_t)(graph_count(n->regions[0]) + 1) || !keeps_types(n, &turns) ||
        !are_launches(p, n->regions[0]))
        return NULL;
    PlanBody *body = NEW(p->arena, PlanBody);
    body->turns = turns;
    if (!plan_memory(n->regions[0], p->arena, &body->plan, NULL))
        return NULL;
    Planner inside = { .plan = &body->plan, .arena = p->arena, .sources = facts_open(p->arena, sizeof(Source *)) };
    return hands_round(&inside, n->regions[0], &turns) ? NULL : body;
}

/* What its turns work in. */
static void give_body(Planner *p, const Node *n)
{
    PlanBody *body = (PlanBody *)(uintptr_t)body_of(p, n);
    if (!body)
        return;
    body->buffer = new_buffer(p, n, 0, body->plan.arena);
    p->plan->buffers[body->buffer].last = wave_end(p, n);
}

/* ---- all of it ---- */

static void measure_live(Planner *p)
{
    const size_t *alive = plan_alive(p->plan, p->arena);
    for (int i = 0; i <= p->plan->n_calls; i++)
        p->plan->live = alive[i] > p->plan->live ? alive[i] : p->plan->live;
}

static bool give_buffers(Planner *p, const Node *n)
{
    if (n->n_regions)
        *(const PlanBody **)fact(&p->plan->bodies, n) = plan_body(p, n);
    for (int i = 0; i < type_results(n->type) && !is_elsewhere(n); i++)
        if (!give_buffer(p, n, i))
            return false;
    give_body(p, n);
    return give_product(p, n);
}

bool plan_memory(Graph *g, Arena *arena, Plan *plan, const Node **where)
{
    *plan = (Plan){ .graph = g,
                    .values = facts_open(arena, sizeof(PlanValue *)),
                    .products = facts_open(arena, sizeof(PlanProduct)),
                    .bodies = facts_open(arena, sizeof(const PlanBody *)),
                    .waves = facts_open(arena, sizeof(int)) };
    Planner p = { .plan = plan,
                  .arena = arena,
                  .places = facts_open(arena, sizeof(int)),
                  .parts = step_parts(g, arena),
                  .sources = facts_open(arena, sizeof(Source *)) };
    CountedTurns turns;
    for (const Node *n = g->first; n; n = n->next)
        *(int *)fact(&p.places, n) = ++plan->n_calls;
    find_next(&p, g);
    find_waves(&p, g);
    if (g->owner && op_of(g->owner)->body.counted && op_of(g->owner)->body.counted(g->owner, &turns))
        find_handed_on(&p, g, &turns);
    for (const Node *n = g->first; n; n = n->next)
        if (!give_buffers(&p, n)) {
            if (where)
                *where = n;
            return false;
        }
    plan_place(plan, arena);
    measure_live(&p);
    return true;
}
