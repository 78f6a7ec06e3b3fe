/* order-nodes: puts calls into the order that they run in: the parts of a step one after the other (ir/step_part.h).
 *
 *     graph @f(%x: f32[2]) -> (%dx, %loss) {
 *         const %axes: i64[1] = [0]
 *         %dx: f32[2] = exp(%x) side=backward
 *         %loss: f32[] = reduce_sum(%x, %axes, keepdims=false)
 *     }
 *     ==>
 *     graph @f(%x: f32[2]) -> (%dx, %loss) {
 *         const %axes: i64[1] = [0]
 *         %loss: f32[] = reduce_sum(%x, %axes, keepdims=false)
 *         %dx: f32[2] = exp(%x) side=backward
 *     }
 *
 * Within a part the order stays, which is that of who made the graph: what is made is read soon.  Where all that a part of
 * the update makes is small, or the next value of a state, calls that read nothing of each other come together instead:
 * they can run side by side.  So can products of one left operand: a later one comes behind the first, where all that it
 * reads is there, and it is not far.
 *
 * On the backward side, what rows, reductions and moves make of the forward side's values (a look at one that is kept, one
 * that is made again) could run at any time, and runs right before who first reads it. */
#include "ir/step_part.h"
#include "ops/region/region.h"
#include "passes/engine/pass.h"
#include "passes/lower/lateness.h"

enum { SMALL_BYTES = 4096, MOST_LEVELS = 64, MOST_APART = 32 };

typedef struct Order {
    Graph *graph;
    Facts parts;  /* int: StepPart */
    Facts places; /* int: where a node stood */
    Facts came;   /* bool: it came behind another that multiplies the same */
    Facts levels; /* int: calls of its part that have to run before, one after the other */
} Order;

static int part_of(Order *o, const Node *n)
{
    return *(int *)fact(&o->parts, n);
}

static bool is_next_value(const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (!node_is_return(u->user))
            return false;
    return n->uses != NULL;
}

/* Whether keeping what a node makes costs next to nothing. */
static bool is_small(const Node *n, int part)
{
    size_t bytes = 0;
    if (n->type->kind != TYPE_TENSOR || node_is_input(n) || n->op == OP_const || n->op == OP_param)
        return true; /* parts are asked one by one */
    return (type_bytes(n->type, &bytes) && bytes <= SMALL_BYTES) || (part == STEP_LATE && is_next_value(n));
}

/* How many levels a part has; 0: its order stays. */
static int find_levels(Order *o, int part)
{
    int levels = 0;
    for (const Node *n = o->graph->first; n; n = n->next) {
        if (part_of(o, n) != part)
            continue;
        int *level = fact(&o->levels, n);
        for (int i = 0; i < n->n_in; i++)
            if (in(n, i) && part_of(o, in(n, i)) == part && *(int *)fact(&o->levels, in(n, i)) >= *level)
                *level = *(int *)fact(&o->levels, in(n, i)) + (n->op != OP_part);
        if (!is_small(n, part) || *level >= MOST_LEVELS)
            return 0;
        levels = *level >= levels ? *level + 1 : levels;
    }
    return levels;
}

/* Puts the nodes of a part and of a level behind all others, in their order; -1: of every level. */
static void move_to_end(Order *o, int part, int level)
{
    Node *last = o->graph->last;
    for (Node *n = o->graph->first, *next; n; n = next) {
        next = n == last ? NULL : n->next;
        if (part_of(o, n) == part && (level < 0 || *(int *)fact(&o->levels, n) == level))
            node_move(n, NULL);
    }
}

static bool is_in_order(Order *o)
{
    int part = STEP_FORWARD, level = 0;
    for (Node *n = o->graph->first; n; n = n->next) {
        const int p = part_of(o, n), l = *(int *)fact(&o->levels, n);
        if (p < part || (p == part && l < level))
            return false;
        part = p, level = l;
    }
    return true;
}

/* ---- products of one operand ---- */

/* Whether all that a call reads stands before another; constants can be brought there. */
static bool is_there_before(Order *o, const Node *n, const Node *other)
{
    const int at = *(int *)fact(&o->places, other);
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && !node_is_input(in(n, i)) && in(n, i)->op != OP_const && in(n, i)->op != OP_param &&
            *(int *)fact(&o->places, in(n, i)) >= at)
            return false;
    return true;
}

static void bring_behind(Node *n, const Node *other)
{
    for (int i = 0; i < n->n_in; i++) {
        Node *def = in(n, i);
        if (def && (def->op == OP_const || def->op == OP_param) && def != n->graph->first)
            node_move(def, n->graph->first);
    }
    node_move(n, other->next);
}

/* The earliest product of what `n` multiplies that it can come behind: one that stands where it stood, not far away. */
static Node *product_before(Order *o, const Node *n)
{
    const Node *left = region_shares(n, n) && part_of(o, n) < STEP_LATE ? region_left(n) : NULL;
    const int at = *(int *)fact(&o->places, n);
    Node *first = NULL;
    for (const Use *u = left ? left->uses : NULL; u; u = u->next) {
        const int there = *(int *)fact(&o->places, u->user);
        if (!there || there >= at || at - there > MOST_APART || (first && there > *(int *)fact(&o->places, first)))
            continue;
        if (part_of(o, u->user) == part_of(o, n) && region_shares(u->user, n) && !*(bool *)fact(&o->came, u->user) &&
            is_there_before(o, n, u->user))
            first = u->user;
    }
    return first;
}

/* Products of what an earlier one multiplies come behind that, where all that they read is there: they run as one. */
static void bring_products_together(Order *o, PassRun *run)
{
    Facts lasts = facts_open(run->scratch, sizeof(Node *)); /* of those that others came behind: the last of these */
    int place = 0;
    for (const Node *n = o->graph->first; n; n = n->next)
        *(int *)fact(&o->places, n) = ++place;
    for (Node *n = o->graph->first, *next; n; n = next) {
        next = n->next;
        Node *first = node_is_return(n) ? NULL : product_before(o, n);
        if (!first)
            continue;
        Node **last = fact(&lasts, first), *behind = *last ? *last : first;
        *last = n;
        *(bool *)fact(&o->came, n) = true;
        if (behind->next == n)
            continue;
        bring_behind(n, behind);
        run->changes++;
    }
}

static BackwardCalls backward_calls(Order *o, Arena *scratch)
{
    size_t n = 0;
    for (const Node *k = o->graph->first; k; k = k->next)
        n += part_of(o, k) == STEP_BACKWARD;
    BackwardCalls b = { NEWS(scratch, Node *, n + 1), NEWS(scratch, int, n + 1), 0 };
    for (Node *k = o->graph->first; k; k = k->next)
        if (part_of(o, k) == STEP_BACKWARD) {
            b.unit[b.n] = b.n;
            b.calls[b.n++] = k;
        }
    return b;
}

/* The parts one behind the other, each in the order of its levels, if it has any. */
static void put_parts_in_order(Order *o, PassRun *run)
{
    int levels[STEP_LATE + 1] = { 0 };
    for (int part = STEP_FIND; part <= STEP_LATE; part++) {
        levels[part] = find_levels(o, part);
        for (const Node *n = o->graph->first; n && !levels[part]; n = n->next)
            if (part_of(o, n) == part)
                *(int *)fact(&o->levels, n) = 0;
    }
    BackwardCalls back = backward_calls(o, run->scratch);
    if (!backward_calls_late(&back, run->scratch) && is_in_order(o))
        return;
    run->changes++;
    for (int i = 0; i < back.n; i++)
        node_move(back.calls[i], NULL);
    for (int part = STEP_BACKWARD + 1; part <= STEP_LATE; part++)
        for (int level = levels[part] ? 0 : -1; level < (levels[part] ? levels[part] : 0); level++)
            move_to_end(o, part, level);
}

static Status order_nodes(Graph *g, PassRun *run)
{
    Order o = { .graph = g,
                .parts = step_parts(g, run->scratch),
                .places = facts_open(run->scratch, sizeof(int)),
                .came = facts_open(run->scratch, sizeof(bool)),
                .levels = facts_open(run->scratch, sizeof(int)) };
    put_parts_in_order(&o, run);
    bring_products_together(&o, run);
    return OK;
}

const Pass pass_order_nodes = { .name = "order-nodes", .needs = TYPED, .may = EXACT, .run = order_nodes };
