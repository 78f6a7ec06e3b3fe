/* keep-bits: where gradients pass is found out on the forward side, and kept as a bit a value.
 *
 *     graph @f(%v: f32[64], %dy: f32[64]) -> (%y, %dx) {
 *         const %0: f32[] = 0
 *         %x: f32[64] = exp(%v)
 *         %y: f32[64] = round(%x)
 *         %1: bool[64] = less(%0, %x) side=backward
 *         %2: bit[64] = cast(%1, to=bit) side=backward
 *         %3: bool[64] = cast(%2, to=bool) side=backward
 *         %dx: f32[64] = where(%3, %dy, %0) side=backward
 *     }
 *     ==>
 *     graph @f(%v: f32[64], %dy: f32[64]) -> (%y, %dx) {
 *         const %0: f32[] = 0
 *         %x: f32[64] = exp(%v)
 *         %1: bool[64] = less(%0, %x)
 *         %2: bit[64] = cast(%1, to=bit)
 *         %y: f32[64] = round(%x)
 *         %3: bool[64] = cast(%2, to=bool) side=backward
 *         %dx: f32[64] = where(%3, %dy, %0) side=backward
 *     }
 *
 * An adjoint says of a condition, by a cast to bits and back, that it may be kept so.  What the condition is made of
 * moves to the forward side, row by row, if something larger need not be kept then; else the two casts go.  What is one
 * number, such as whether anything is a NaN, moves with it. */
#include "ops/region/region.h"
#include "passes/engine/pass.h"

enum { MOST_CALLS = 64 }; /* that a condition is made of */

typedef struct Keep {
    Graph *graph;
    PassRun *run;
    Facts movable;          /* bool: of the backward side, made of the forward side alone */
    Facts good;             /* bool: who reads it are conditions that move, and single numbers */
    Facts places;           /* int64_t: the order of the list */
    Facts collected;        /* int: the root for which a node was last seen */
    Node *cone[MOST_CALLS]; /* what a root is made of */
    int n_cone;             /* more than there is room for: too many */
    int root;               /* its number */
} Keep;

static bool is_back(const Node *n)
{
    return n->flags & NODE_BACKWARD;
}

static bool is_forward(const Node *n)
{
    return !(n->flags & (NODE_BACKWARD | NODE_UPDATE)) && !node_is_return(n);
}

static bool is_bits(const Node *n)
{
    return n->op == OP_cast && n->type->dtype == BIT;
}

static bool is_single(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && type_known(n->type) && type_elements(n->type) == 1;
}

static bool is(Facts *facts, const Node *n)
{
    return *(bool *)fact(facts, n);
}

/* Whether a call of the backward side may move: element by element, or a number of all elements. */
static bool may_move(Keep *k, const Node *n)
{
    Reduction fold;
    if (n->n_regions ||
        !(n->op == OP_const || n->op == OP_part || is_single(n) || region_maps(n) || region_folds(n, &fold)))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && !is_forward(in(n, i)) && !is(&k->movable, in(n, i)))
            return false;
    return true;
}

static bool is_read_well(Keep *k, const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (is_back(u->user) ? !is(&k->good, u->user) : !is_forward(u->user))
            return false;
    return true;
}

static void number(Keep *k)
{
    int64_t place = 0;
    for (const Node *n = k->graph->first; n; n = n->next)
        *(int64_t *)fact(&k->places, n) = ++place;
}

static void look(Keep *k)
{
    Node *last = NULL;
    number(k);
    for (Node *n = k->graph->first; n; last = n, n = n->next)
        *(bool *)fact(&k->movable, n) = is_back(n) && may_move(k, n);
    for (Node *n = last; n; n = n->prev)
        *(bool *)fact(&k->good, n) =
            is(&k->movable, n) && (n->op == OP_const || is_bits(n) || is_single(n) || is_read_well(k, n));
}

/* ---- one root ---- */

static void collect(Keep *k, Node *n)
{
    int *seen = fact(&k->collected, n);
    if (!is_back(n) || *seen == k->root)
        return;
    *seen = k->root;
    if (k->n_cone < MOST_CALLS)
        k->cone[k->n_cone] = n;
    k->n_cone++;
}

static size_t bytes_of(const Node *n)
{
    size_t bytes = 0;
    return n->type->kind == TYPE_TENSOR && type_known(n->type) && type_bytes(n->type, &bytes) ? bytes : 0;
}

/* Whether a value of the forward side need not be kept once all that is good has moved. */
static bool is_freed(Keep *k, const Node *n)
{
    if (!is_forward(n) || node_is_input(n) || n->op == OP_state || n->op == OP_const || n->op == OP_param)
        return false;
    for (const Use *u = n->uses; u; u = u->next)
        if (node_is_return(u->user) || (is_back(u->user) && !is(&k->good, u->user)))
            return false;
    return true;
}

/* A part of a call is what is kept of it. */
static bool frees_something(Keep *k, const Node *n, size_t more_than)
{
    if (n->op == OP_part && is_back(n))
        return bytes_of(n) > more_than && is(&k->good, n);
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && bytes_of(in(n, i)) > more_than && is_freed(k, in(n, i)))
            return true;
    return false;
}

/* Whether what a root is made of, which `cone` has then, should move. */
static bool should_move(Keep *k, Node *root)
{
    bool frees = false;
    k->n_cone = 0;
    k->root++;
    collect(k, root);
    for (int i = 0; i < k->n_cone && k->n_cone <= MOST_CALLS; i++) {
        const Node *n = k->cone[i];
        if (!is(&k->movable, n) || !is(&k->good, n))
            return false;
        frees = frees || frees_something(k, n, bytes_of(root));
        for (int j = 0; j < n->n_in; j++)
            if (in(n, j))
                collect(k, in(n, j));
    }
    return frees && k->n_cone <= MOST_CALLS;
}

static int64_t place_of(Keep *k, const Node *n)
{
    return *(int64_t *)fact(&k->places, n);
}

/* In the order of the list. */
static void sort_cone(Keep *k)
{
    for (int i = 1; i < k->n_cone; i++)
        for (int j = i; j > 0 && place_of(k, k->cone[j - 1]) > place_of(k, k->cone[j]); j--) {
            Node *n = k->cone[j];
            k->cone[j] = k->cone[j - 1];
            k->cone[j - 1] = n;
        }
}

static bool is_in_cone(Keep *k, const Node *n)
{
    return *(int *)fact(&k->collected, n) == k->root;
}

/* The last that a cone reads of the forward side; null: nothing of the list. */
static Node *last_read(Keep *k)
{
    Node *last = NULL;
    for (int i = 0; i < k->n_cone; i++)
        for (int j = 0; j < k->cone[i]->n_in; j++) {
            Node *def = in(k->cone[i], j);
            if (def && def->op != OP_const && !is_in_cone(k, def) && place_of(k, def) > (last ? place_of(k, last) : 0))
                last = def;
        }
    return last;
}

/* Constants may stand before everything. */
static void move_constants(Keep *k, const Node *reader)
{
    for (int i = 0; i < reader->n_in; i++)
        if (in(reader, i) && in(reader, i)->op == OP_const && in(reader, i) != k->graph->first)
            node_move(in(reader, i), k->graph->first);
}

/* Behind all that it reads, so that one pass over that makes it, too.  Constants go first: one of them may stand where the
 * others are to go. */
static void move_cone(Keep *k)
{
    for (int i = 0; i < k->n_cone; i++)
        move_constants(k, k->cone[i]);
    Node *last = last_read(k), *before = last ? last->next : k->graph->first;
    while (before && is_in_cone(k, before))
        before = before->next;
    sort_cone(k);
    for (int i = 0; i < k->n_cone; i++) {
        Node *n = k->cone[i];
        n->flags &= (uint16_t)~NODE_BACKWARD;
        if (n->op != OP_const)
            node_move(n, before);
    }
    number(k);
    k->run->changes++;
}

/* The condition itself stands for what its bits were turned back to. */
static void leave(Keep *k, Node *bits)
{
    for (Use *u = bits->uses, *next; u; u = next) {
        next = u->next;
        if (u->user->op == OP_cast && u->user->type == in(bits, 0)->type)
            stand_in(u->user, in(bits, 0));
    }
    k->run->changes++;
}

/* One number that is a root of its own: somebody reads it who is none. */
static bool is_number(Keep *k, const Node *n)
{
    if (!is_single(n) || n->op == OP_const || !is(&k->movable, n))
        return false;
    for (const Use *u = n->uses; u; u = u->next)
        if (!node_is_return(u->user) && !is_single(u->user))
            return true;
    return false;
}

/* The same part of a call, read out of it on the forward side. */
static Node *twin_of(const Node *part)
{
    for (const Use *u = in(part, 0)->uses; u; u = u->next)
        if (u->user->op == OP_part && is_forward(u->user) &&
            ((const PartAttr *)u->user->attr)->index == ((const PartAttr *)part->attr)->index)
            return u->user;
    return NULL;
}

static void read_parts_once(Keep *k)
{
    for (Node *n = k->graph->first, *next; n; n = next) {
        next = n->next;
        Node *twin = n->op == OP_part && is_back(n) ? twin_of(n) : NULL;
        if (twin) {
            stand_in(n, twin);
            node_remove(n);
        }
    }
}

static bool has_bits(const Graph *g)
{
    for (const Node *n = g->first; n; n = n->next)
        if (is_back(n) && is_bits(n))
            return true;
    return false;
}

static Status keep_bits(Graph *g, PassRun *run)
{
    Keep k = { .graph = g, .run = run };
    if (!has_bits(g))
        return OK;
    read_parts_once(&k);
    k.movable = facts_open(run->scratch, sizeof(bool));
    k.good = facts_open(run->scratch, sizeof(bool));
    k.places = facts_open(run->scratch, sizeof(int64_t));
    k.collected = facts_open(run->scratch, sizeof(int));
    look(&k);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        const bool bits = is_back(n) && is_bits(n);
        if (bits || (is_back(n) && is_number(&k, n))) {
            if (should_move(&k, n))
                move_cone(&k);
            else if (bits)
                leave(&k, n);
        }
    }
    return OK;
}

const Pass pass_keep_bits = { .name = "keep-bits", .needs = TYPED, .may = EXACT, .run = keep_bits };
