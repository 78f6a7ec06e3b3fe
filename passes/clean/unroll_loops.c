/* unroll-loops: a loop whose turns can be counted now stands as one copy of its body for each, where that tells more.
 *
 *     graph @f(%x: f32[3,2]) -> (%y) {
 *         const %two: i64[] = 2
 *         const %go: bool[] = true
 *         %y: f32[?,2] = loop(%two, %go, %x, operands=3) { (%i: i64[], %c: bool[], %s: f32[?,2]) -> (%k, %t)
 *             const %last: i64[1] = [-1]
 *             const %zero: i64[1] = [0]
 *             %k: bool[] = identity(%c)
 *             %t: f32[?,2] = slice(%s, %zero, %last)
 *         }
 *     }
 *     ==>
 *     graph @f(%x: f32[3,2]) -> (%y) {
 *         const %two: i64[] = 2
 *         const %go: bool[] = true
 *         const %0: i64[] = 0
 *         const %1: i64[1] = [-1]
 *         const %2: i64[1] = [0]
 *         const %3: bool[] = true
 *         %4: f32[2,2] = slice(%x, %2, %1)
 *         const %5: i64[] = 1
 *         const %6: i64[1] = [-1]
 *         const %7: i64[1] = [0]
 *         const %8: bool[] = true
 *         %y: f32[1,2] = slice(%4, %7, %6)
 *     }
 *
 * A loop that builds a sequence, or whose turns have shapes of their own, has no gradient; each turn by itself has.  So
 * exporters write bags of embeddings.  Loops whose shapes are known already, that draw, that would become more than the
 * limit `unrolled_nodes`, or whose end only the run tells stay. */
#include <inttypes.h>

#include "ir/copy.h"
#include "ops/card/make.h"
#include "ops/control/control.h"
#include "passes/clean/fold.h"

typedef struct Unroller {
    Graph *graph;
    PassRun *run;
    Arena *scratch;
    Fold fold;
    int64_t left; /* nodes that may still be added */
    size_t unrolled;
    Facts gone; /* of a loop: its turns stand for it */
} Unroller;

enum { HEAD = 2 }; /* behind M and cond, and behind the iteration and cond of the body */

/* ---- which ---- */

static bool is_open_tensor(const Type *t)
{
    return t->kind == TYPE_TENSOR && !type_known(t);
}

/* Whether one turn by itself is known better than all of them together; what is counted is how much stands in a turn. */
static bool is_worth(const Node *loop, int64_t *nodes)
{
    Graph *body = loop->regions[0];
    bool worth = false;
    *nodes = 1; /* the number of the turn */
    for (size_t i = 0; i < body->n_inputs; i++)
        worth |= body->inputs[i]->type->kind == TYPE_SEQ;
    for (Node *n = walk_first(body); n; n = walk_next(body, n)) {
        if (op_of(n)->mode != MODE_PURE)
            return false;
        worth |= is_open_tensor(type_result(n->type, 0));
        ++*nodes;
    }
    return worth;
}

/* The one number that a constant is. */
static bool is_number(const Node *n, int64_t *v)
{
    const Tensor *t = n && n->op == OP_const ? node_constant(n, sizeof *v) : NULL;
    if (!t || t->type->kind != TYPE_TENSOR || tensor_elements(t) != 1)
        return false;
    *v = tensor_get_i64(t, 0);
    return true;
}

/* ---- one loop ---- */

typedef struct Unrolling {
    Node *loop, *before; /* before: what stood in front of it, may be null */
    Graph *body;
    int states, stacked;
    Node **values;  /* of the body's parameters */
    Node **results; /* of one turn */
    Node ***slices; /* of each stacked result */
    size_t n_slices, cap_slices;
    Node *held; /* reads what the last turn gave, while constants take places */
    Build b;
} Unrolling;

static void give_up(Unrolling *k)
{
    for (Node *n = k->loop->prev, *prev; n != k->before; n = prev) {
        prev = n->prev;
        node_remove(n);
    }
}

/* What the copies of a turn compute from constants is constant. */
static Status fold_turn(Unroller *u, Node *from, const Node *to)
{
    for (Node *n = from, *next; n != to; n = next) {
        bool folded;
        TRY(fold_node(&u->fold, n, &folded));
        next = n->next;
        if (folded && !n->uses)
            node_remove(n);
    }
    return OK;
}

/* Holds values against being replaced: they are read, and read again behind the change. */
static void hold(Unrolling *k, int n, Node *const *values)
{
    Node *old = k->held;
    k->held = build_tuple(&k->b, n, values);
    if (old)
        node_remove(old);
}

static Status add_turn(Unroller *u, Unrolling *k, int64_t turn)
{
    const int n = graph_n_results(k->body);
    k->values[0] = build_scalar(&k->b, I64, (double)turn);
    copy_body(&k->b, k->body, k->values, k->results);
    hold(k, n, k->results);
    TRY(fold_turn(u, k->values[0], k->held));
    for (int i = 0; i < n; i++)
        k->results[i] = in(k->held, i);
    for (int i = 0; i <= k->states; i++)
        k->values[1 + i] = k->results[i];
    if (k->stacked) {
        GROW(u->scratch, k->slices, k->n_slices, k->cap_slices);
        k->slices[k->n_slices] = NEWS(u->scratch, Node *, k->stacked);
        for (int i = 0; i < k->stacked; i++)
            k->slices[k->n_slices][i] = k->results[1 + k->states + i];
        k->n_slices++;
    }
    return k->b.status;
}

static Node *stack(Unroller *u, Unrolling *k, int i)
{
    const int64_t first = 0;
    Node **parts = NEWS(u->scratch, Node *, k->n_slices);
    for (size_t t = 0; t < k->n_slices; t++)
        parts[t] = CALL(&k->b, unsqueeze, k->slices[t][i], build_i64s(&k->b, 1, &first));
    return make_concat(&k->b, 0, (int)k->n_slices, parts);
}

static void take_place(Unroller *u, Unrolling *k)
{
    Types *types = &u->graph->ir->types;
    const int n = k->states + k->stacked;
    const bool one = k->loop->type->kind != TYPE_TUPLE; /* it may be asked for the first of several results alone */
    Node **by = NEWS(u->scratch, Node *, n + 1);
    for (int i = 0; i < n; i++)
        by[i] = i < k->states ? k->values[HEAD + i] : stack(u, k, i - k->states);
    if (k->b.status != OK)
        return;
    for (Use *use = k->loop->uses, *next; use && !one; use = next) {
        Node *part = use->user;
        next = use->next;
        Node *value = by[((const PartAttr *)part->attr)->index];
        value->type = type_meet(types, value->type, part->type);
        stand_in(part, value);
        node_remove(part);
    }
    if (one)
        stand_in(k->loop, by[0]);
    node_remove(k->held);
    node_remove(k->loop);
    u->unrolled++;
    u->run->changes++;
}

/* Whether all that reads a loop reads its results one by one. */
static bool is_read_by_part(const Node *loop)
{
    bool parts = loop->uses;
    for (const Use *u = loop->uses; u && loop->type->kind == TYPE_TUPLE; u = u->next)
        parts &= u->user->op == OP_part;
    return parts;
}

static Status unroll(Unroller *u, Node *loop)
{
    Unrolling k = { .loop = loop, .before = loop->prev, .body = loop->regions[0], .b = build_before(loop) };
    int64_t nodes, most = INT64_MAX, again = 1, turn = 0;
    if (!is_read_by_part(loop) || !is_worth(loop, &nodes) || (in(loop, 0) && !is_number(in(loop, 0), &most)))
        return OK;
    k.states = own_operands(loop) - HEAD;
    k.stacked = graph_n_results(k.body) - 1 - k.states;
    k.values = NEWS(u->scratch, Node *, loop->n_in + 1);
    k.results = NEWS(u->scratch, Node *, graph_n_results(k.body));
    for (int i = 1; i < loop->n_in; i++)
        k.values[i] = in(loop, i);
    if (!k.values[1])
        k.values[1] = build_scalar(&k.b, BOOL, 1);
    bool counted = true;
    while (counted && turn < most && again) {
        counted = is_number(k.values[1], &again) && turn * nodes <= u->left;
        if (counted && again)
            TRY(add_turn(u, &k, turn++));
    }
    counted &= turn > 0;
    if (counted)
        u->left -= turn * nodes;
    else if (turn * nodes > u->left)
        remark(u->run->diag, "unroll", node_place(loop),
               "not unrolled: more than the limit unrolled_nodes (%" PRId64 ")", u->graph->ir->limits.unrolled_nodes);
    if (counted)
        take_place(u, &k);
    else
        give_up(&k);
    return k.b.status;
}

/* ---- the pass ---- */

static bool is_live(Unroller *u, const Node *n)
{
    for (const Graph *g = n->graph; g->owner; g = g->owner->graph)
        if (*(bool *)fact(&u->gone, g->owner))
            return false;
    return true;
}

/* The outer ones first: what stands in their turns comes next time. */
static Status unroll_all(Unroller *u)
{
    Node **loops = NULL;
    size_t n_loops = 0, cap = 0;
    u->gone = facts_open(u->scratch, sizeof(bool));
    for (Node *n = walk_first(u->graph); n; n = walk_next(u->graph, n))
        if (n->op == OP_loop) {
            GROW(u->scratch, loops, n_loops, cap);
            loops[n_loops++] = n;
        }
    for (size_t i = 0; i < n_loops; i++) {
        const size_t before = u->unrolled;
        if (!is_live(u, loops[i]))
            continue;
        TRY(unroll(u, loops[i]));
        *(bool *)fact(&u->gone, loops[i]) = u->unrolled > before;
    }
    return OK;
}

#define PASS(name) extern const Pass pass_##name;
PASS(propagate_shapes)
PASS(sink_constants)
PASS(fold_constants)
PASS(inline_branches)
#undef PASS

/* What the turns know now decides branches inside of them, and loops. */
static Status follow(Graph *g, PassRun *run)
{
    int64_t before;
    TRY(pass_propagate_shapes.run(g, run));
    do {
        TRY(pass_sink_constants.run(g, run));
        TRY(pass_fold_constants.run(g, run));
        before = run->changes;
        TRY(pass_inline_branches.run(g, run));
    } while (run->changes > before);
    return OK;
}

static Status unroll_loops(Graph *g, PassRun *run)
{
    Unroller u = { .graph = g, .run = run, .scratch = run->scratch, .left = g->ir->limits.unrolled_nodes };
    Status status = OK;
    do {
        u.unrolled = 0;
        fold_open(&u.fold, g->ir, run, false);
        status = unroll_all(&u);
        fold_close(&u.fold);
        if (status == OK && u.unrolled)
            status = follow(g, run);
    } while (status == OK && u.unrolled);
    return status;
}

const Pass pass_unroll_loops = { .name = "unroll-loops", .needs = TYPED, .may = EXACT, .run = unroll_loops };
