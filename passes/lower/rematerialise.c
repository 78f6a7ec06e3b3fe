/* rematerialise: what is cheap to make is made again where the backward side reads it, instead of being kept till then.
 *
 *     graph @f(%x: f32[64,64], %b: f32[64], %dy: f32[64,64]) -> (%z, %dx) {
 *         %h: f32[64,64] = matmul(%x, %x)
 *         %y: f32[64,64] = add(%h, %b)
 *         %z: f32[64,64] = matmul(%y, %x)
 *         %0: f32[64,64] = mul(%h, %dy) side=backward
 *         %dx: f32[64,64] = matmul(%y, %0, ta=true) side=backward
 *     }
 *     ==>
 *     graph @f(%x: f32[64,64], %b: f32[64], %dy: f32[64,64]) -> (%z, %dx) {
 *         %h: f32[64,64] = matmul(%x, %x)
 *         %y: f32[64,64] = add(%h, %b)
 *         %z: f32[64,64] = matmul(%y, %x)
 *         %0: f32[64,64] = mul(%h, %dy) side=backward
 *         %1: f32[64,64] = add(%h, %b) ours side=backward
 *         %dx: f32[64,64] = matmul(%1, %0, ta=true) side=backward
 *     }
 *
 * Made again is what rows and casts make, element by element, out of values that are there anyway: inputs, states, constants,
 * what the backward side keeps for itself, and what is small beside the value.  The same calls of the same values have the
 * same bits. */
#include "ops/region/region.h"
#include "passes/engine/pass.h"

enum {
    LEAST_BYTES = 4096, /* of a value that is worth it */
    SMALLER = 4,        /* what is kept for its sake has at most 1 / SMALLER of its bytes, all together */
    MOST_CALLS = 6,     /* that make a value again */
};

typedef struct Remat {
    PassRun *run;
    Facts kept;   /* bool: of the forward side, and read by the backward side */
    Facts clones; /* Node *: what stands for a value on the backward side */
    Facts places; /* int: in the order of the list; what is made again has that of whom it is made for */
} Remat;

static size_t bytes_of(const Node *n)
{
    size_t bytes = 0;
    return n->type->kind == TYPE_TENSOR && type_known(n->type) && type_bytes(n->type, &bytes) ? bytes : 0;
}

static bool is_forward(const Node *n)
{
    return !(n->flags & (NODE_BACKWARD | NODE_UPDATE));
}

static bool is_elsewhere(const Node *n)
{
    return node_is_input(n) || n->op == OP_state || n->op == OP_const || n->op == OP_param;
}

static bool is_returned(const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (node_is_return(u->user))
            return true;
    return false;
}

static int place_of(Remat *r, const Node *n)
{
    return *(int *)fact(&r->places, n);
}

static Node *first_reader_back(Remat *r, const Node *n)
{
    Node *first = NULL;
    for (const Use *u = n->uses; u; u = u->next)
        if (!node_is_return(u->user) && u->user->flags & NODE_BACKWARD &&
            (!first || place_of(r, u->user) < place_of(r, first)))
            first = u->user;
    return first;
}

static bool is_kept(Remat *r, const Node *n)
{
    return *(bool *)fact(&r->kept, n);
}

/* Whether a value can be there on the backward side: `calls` are those that make it again, `bytes` what is kept for it. */
static bool can_be_there(Remat *r, const Node *n, size_t of, int *calls, size_t *bytes)
{
    if (is_elsewhere(n) || is_kept(r, n) || *(Node **)fact(&r->clones, n))
        return true;
    if (bytes_of(n) <= of / SMALLER / 2 && bytes_of(n)) {
        *bytes += bytes_of(n);
        return true;
    }
    if (!is_forward(n) || !region_maps(n) || ++*calls > MOST_CALLS)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && !can_be_there(r, in(n, i), of, calls, bytes))
            return false;
    return true;
}

/* A value that only rows and casts make, from what is there. */
static bool is_cheap(Remat *r, const Node *n)
{
    int calls = 0;
    size_t bytes = 0;
    if (!region_maps(n) || bytes_of(n) < LEAST_BYTES)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && !can_be_there(r, in(n, i), bytes_of(n), &calls, &bytes))
            return false;
    return bytes <= bytes_of(n) / SMALLER;
}

/* The value on the backward side: itself, or made again before `reader`. */
static Node *made_again(Remat *r, Node *n, size_t of, bool itself, Node *reader)
{
    Node **clone = fact(&r->clones, n);
    if (*clone && place_of(r, *clone) <= place_of(r, reader))
        return *clone;
    if (!*clone && !itself && (is_elsewhere(n) || is_kept(r, n) || bytes_of(n) <= of / SMALLER / 2))
        return n;
    Node **ins = NEWS(r->run->scratch, Node *, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++)
        ins[i] = in(n, i) ? made_again(r, in(n, i), of, false, reader) : NULL;
    Build b = { .graph = n->graph, .before = reader, .flags = NODE_OURS | NODE_BACKWARD };
    if (*clone) /* somebody who reads it earlier */
        node_move(*clone, reader);
    else
        *clone = build_typed(&b, n->op, n->attr, n->n_in, ins, n->type);
    *(int *)fact(&r->places, *clone) = place_of(r, reader);
    return *clone;
}

static void make_again(Remat *r, Node *n)
{
    Node *reader = first_reader_back(r, n);
    Node *clone = made_again(r, n, bytes_of(n), true, reader);
    for (Use *u = n->uses, *next; u; u = next) {
        next = u->next;
        if (!node_is_return(u->user) && u->user->flags & NODE_BACKWARD && u->user != clone)
            node_set_in(u->user, (int)(u - u->user->in), clone);
    }
    *(bool *)fact(&r->kept, n) = false;
    r->run->changes++;
}

static Status rematerialise(Graph *g, PassRun *run)
{
    int place = 0;
    Remat r = { run, facts_open(run->scratch, sizeof(bool)), facts_open(run->scratch, sizeof(Node *)),
                facts_open(run->scratch, sizeof(int)) };
    for (const Node *n = g->first; n; n = n->next)
        *(int *)fact(&r.places, n) = place++;
    for (const Node *n = g->first; n; n = n->next)
        *(bool *)fact(&r.kept, n) = is_forward(n) && (first_reader_back(&r, n) || is_returned(n));
    for (Node *n = g->first; n; n = n->next)
        if (is_forward(n) && !is_returned(n) && first_reader_back(&r, n) && is_cheap(&r, n))
            make_again(&r, n);
    return OK;
}

const Pass pass_rematerialise = { .name = "rematerialise", .needs = TYPED, .may = EXACT, .run = rematerialise };
