/* advance-loss: what goes back through the end of a loss is computed beside it, as a part of the forward side.
 *
 *     graph @f(%x: f32[4,8], %w: f32[8,8]) -> (%loss, %dx) {
 *         const %axes: i64[2] = [0, 1]
 *         %h: f32[4,8] = matmul(%x, %w)
 *         %e: f32[4,8] = exp(%h)
 *         %loss: f32[] = reduce_sum(%e, %axes, keepdims=false)
 *         %0: f32[4,8] = exp(%h) side=backward
 *         %dx: f32[4,8] = matmul(%0, %w, tb=true) side=backward
 *     }
 *     ==>
 *     graph @f(%x: f32[4,8], %w: f32[8,8]) -> (%loss, %dx) {
 *         const %axes: i64[2] = [0, 1]
 *         %h: f32[4,8] = matmul(%x, %w)
 *         %e: f32[4,8] = exp(%h)
 *         %loss: f32[] = reduce_sum(%e, %axes, keepdims=false)
 *         %0: f32[4,8] = exp(%h)
 *         %dx: f32[4,8] = matmul(%0, %w, tb=true) side=backward
 *     }
 *
 * The two sides meet there: the one ends with what the other begins with.  So the scores of a classifier are read
 * once, and one launch gives the loss of each row and the gradient of its scores.  Moved is what rows, reductions
 * and moves make of nothing but the end of the loss and what that reads: no product, nothing that waits for a scale
 * or for a gradient that the host gives, and nothing large that stays on the backward side half way. */
#include "ops/region/region.h"
#include "passes/engine/pass.h"

enum { SMALLER = 8 }; /* what has at most 1 / SMALLER of the elements of the largest value of the end may be kept */

typedef enum Standing {
    PLACE_ELSEWHERE,
    PLACE_READ,    /* what the end of the loss reads */
    PLACE_END,     /* what it is made of */
    PLACE_ADVANCED /* of the backward side, and can be computed from those */
} Standing;

typedef struct Ends {
    Facts places;    /* int: Standing */
    int64_t largest; /* elements of a value of the end, or that it reads */
} Ends;

static int *place(Ends *e, const Node *n)
{
    return fact(&e->places, n);
}

static bool is_forward(const Node *n)
{
    return !(n->flags & (NODE_BACKWARD | NODE_UPDATE));
}

static bool is_sized(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && type_known(n->type);
}

/* Whether a call is of the kind that the end of a loss is made of. */
static bool is_plain(const Node *n)
{
    Reduction r;
    const AccessKind kind = op_of(n)->access.kind;
    return is_sized(n) && n->op != OP_const &&
           (region_maps(n) || region_folds(n, &r) || kind == ACCESS_MOVE || kind == ACCESS_GATHER);
}

/* From results of one element back to what no rows, reductions or moves make. */
static void find_end(Graph *g, Ends *e)
{
    for (int i = 0; i < graph_n_results(g); i++) {
        const Node *n = graph_result(g, i);
        if (n && is_forward(n) && is_plain(n) && dtype_is_float(n->type->dtype) && type_elements(n->type) == 1)
            *place(e, n) = PLACE_END;
    }
    for (const Node *n = g->last; n; n = n->prev)
        for (int i = 0; i < n->n_in && *place(e, n) == PLACE_END; i++) {
            const Node *def = in(n, i);
            if (!def || def->op == OP_const || *place(e, def) == PLACE_END)
                continue;
            *place(e, def) = is_plain(def) && is_forward(def) ? PLACE_END : PLACE_READ;
            if (is_sized(def) && type_elements(def->type) > e->largest)
                e->largest = type_elements(def->type);
        }
}

static bool is_there(Ends *e, const Node *n)
{
    return !n || n->op == OP_const || *place(e, n) != PLACE_ELSEWHERE;
}

static void find_advanced(Graph *g, Ends *e)
{
    for (const Node *n = g->first; n; n = n->next) {
        bool all = n->flags & NODE_BACKWARD && n->n_in && is_plain(n);
        for (int i = 0; i < n->n_in && all; i++)
            all = is_there(e, in(n, i));
        if (all)
            *place(e, n) = PLACE_ADVANCED;
    }
}

/* Whether a value is done when the forward side ends: what the backward side makes of it element by element is,
 * too, or it is small. */
static bool is_done(Ends *e, const Node *n)
{
    Reduction r;
    bool waits = false;
    for (int i = 0; i < n->n_in; i++)
        if (!is_there(e, in(n, i)))
            return false;
    for (const Use *u = n->uses; u; u = u->next)
        waits = waits || (!node_is_return(u->user) && u->user->flags & NODE_BACKWARD && is_plain(u->user) &&
                          *place(e, u->user) != PLACE_ADVANCED);
    return n->uses && (!waits || region_folds(n, &r) || type_elements(n->type) <= e->largest / SMALLER);
}

/* What is not done leaves what it is made of not done, and what is made of it; whether anything was not. */
static bool drop_undone(Graph *g, Ends *e)
{
    bool any = false;
    for (const Node *n = g->last; n; n = n->prev)
        if (*place(e, n) == PLACE_ADVANCED && !is_done(e, n)) {
            *place(e, n) = PLACE_ELSEWHERE;
            any = true;
        }
    return any;
}

/* With the constants that it reads: what both sides computed is the same call now, and merges. */
static void advance(Node *n)
{
    n->flags &= (uint16_t)~NODE_BACKWARD;
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && in(n, i)->op == OP_const)
            in(n, i)->flags &= (uint16_t)~NODE_BACKWARD;
}

static Status advance_loss(Graph *g, PassRun *run)
{
    Ends e = { .places = facts_open(run->scratch, sizeof(int)) };
    find_end(g, &e);
    find_advanced(g, &e);
    while (drop_undone(g, &e))
        continue;
    for (Node *n = g->first; n; n = n->next)
        if (*place(&e, n) == PLACE_ADVANCED) {
            advance(n);
            run->changes++;
        }
    return OK;
}

const Pass pass_advance_loss = { .name = "advance-loss", .needs = TYPED, .may = EXACT, .run = advance_loss };
