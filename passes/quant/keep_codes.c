/* keep-codes: of what the backward side reads, what codes and other values that are kept anyway give again at little
 * cost is made again there.
 *
 *     graph @f(%x: f32[64,32], state %w: i8[32,64], %s: f32[], %z: u8[], %o: i8[], %dy: f32[64,64]) -> (%y, %dx, %dw) {
 *         %c: u8[64,32] = quantize_linear(%x, %s, %z)
 *         %m: f32[64,64] = qmatmul(%c, %s, %z, %w, %s, %o)
 *         %y: f32[64,64] = exp(%m)
 *         %dx: f32[64,64] = mul(%m, %dy) side=backward
 *         %dw: f32[64,32] = cast(%c, to=f32) side=backward
 *     }
 *     ==>
 *     graph @f(%x: f32[64,32], state %w: i8[32,64], %s: f32[], %z: u8[], %o: i8[], %dy: f32[64,64]) -> (%y, %dx, %dw) {
 *         %c: u8[64,32] = quantize_linear(%x, %s, %z)
 *         %m: f32[64,64] = qmatmul(%c, %s, %z, %w, %s, %o)
 *         %y: f32[64,64] = exp(%m)
 *         %0: f32[64,64] = qmatmul(%c, %s, %z, %w, %s, %o) ours side=backward
 *         %dx: f32[64,64] = mul(%0, %dy) side=backward
 *         %dw: f32[64,32] = cast(%c, to=f32) side=backward
 *     }
 *
 * Made again are rows, softmax and norms, quantizers, what moves codes, and products of codes that add up few numbers
 * for each byte that is not kept, as those of attention do: no large product of weights, and no codes or bits behind an
 * exponential.  The same calls of the same values have the same bits. */
#include "ops/card/row.h"
#include "ops/control/reverse_call.h"
#include "ops/quant/words.h"
#include "ops/region/region.h"
#include "passes/engine/pass.h"

enum {
    LEAST_BYTES = 1024, /* of a value that is worth it */
    SMALLER = 16,       /* what has at most 1 / SMALLER of its bytes is kept for its sake */
    MOST_CALLS = 16,    /* that make a value again */
    MOST_TERMS = 16,    /* of a sum, for each byte that is not kept */
    LEAST_ELEMENT = 2,  /* bytes of an element for which an exponential is worth computing again */
};

/* Of a node of the forward side. */
typedef struct Again {
    int place;
    bool is_read; /* by the backward side */
    bool returned;
    bool of_data; /* not of states and constants alone: those are there, in one form or another */
    bool cloned;  /* it is made again, */
    bool read;    /* and so read by those of the backward side who read it */
    int first;    /* the place of the first who reads what is made again */
    Node *clone;
    int seen; /* the value for which it was last looked at */
} Again;

typedef struct Keep {
    Graph *graph;
    PassRun *run;
    Facts again;
    Node **at; /* by place */
    Node *calls[MOST_CALLS];
    int n_calls;
} Keep;

static Again *of(Keep *k, const Node *n)
{
    return fact(&k->again, n);
}

static size_t bytes_of(const Node *n)
{
    size_t bytes = 0;
    return n->type->kind == TYPE_TENSOR && type_known(n->type) && type_bytes(n->type, &bytes) ? bytes : 0;
}

static bool is_forward(const Node *n)
{
    return !(n->flags & (NODE_BACKWARD | NODE_UPDATE)) && !node_is_return(n);
}

/* Data of a step are none: what is made of them is read beside them. */
static bool is_elsewhere(const Node *n)
{
    return n->op == OP_state || n->op == OP_const || n->op == OP_param;
}

static bool is_reader_back(const Node *n)
{
    return !node_is_return(n) && n->flags & NODE_BACKWARD;
}

static void look_at_readers(const Node *n, Again *a)
{
    for (const Use *u = n->uses; u; u = u->next) {
        a->returned |= node_is_return(u->user);
        a->is_read |= is_reader_back(u->user);
    }
}

/* ---- what is cheap ---- */

/* How many numbers a product of codes adds up; 0: it gives codes, or is no such product. */
static int64_t terms_of(const Node *n)
{
    if (n->op != OP_qmatmul || n->type->kind != TYPE_TENSOR || n->type->dtype != F32)
        return 0;
    const Type *a = in(n, QMATMUL_A)->type;
    const bool turned = ((const QmatmulAttr *)n->attr)->transpose_a;
    return a->rank < 2 ? a->dims[0] : a->dims[a->rank - (turned ? 2 : 1)];
}

static bool is_quantizer(const Node *n)
{
    return op_of(n)->quant.quantizes || op_of(n)->quant.dequantizes;
}

static bool moves_codes(const Node *n)
{
    return dtype_is_integer(n->type->dtype) && reverse_moves_codes(n);
}

/* Whether a call is worth making again for a value whose elements have so many bytes. */
static bool is_cheap(const Node *n, size_t element)
{
    const OpDef *def = op_of(n);
    if (n->type->kind != TYPE_TENSOR || n->n_regions)
        return false;
    if (terms_of(n))
        return terms_of(n) <= (int64_t)(MOST_TERMS * element);
    if (def->row && row_is_costly(def->row) && element < LEAST_ELEMENT)
        return false;
    return region_maps(n) || is_quantizer(n) || moves_codes(n) || def->access.kind == ACCESS_COMPOSITE;
}

/* Whether a value is there on the backward side, or small enough to be kept for the sake of another. */
static bool is_there(Keep *k, const Node *n, size_t bytes)
{
    const Again *a = of(k, n);
    return is_elsewhere(n) || a->cloned || a->is_read || a->returned ||
           (n->type->kind == TYPE_TENSOR && type_known(n->type) && bytes_of(n) <= bytes / SMALLER);
}

/* Finds the calls that make a value again: it, and what they read that is not there. */
static bool find_calls(Keep *k, Node *n)
{
    const size_t bytes = bytes_of(n), element = (size_t)dtype_bits(n->type->dtype) / 8;
    k->n_calls = 0;
    k->calls[k->n_calls++] = n;
    of(k, n)->seen = of(k, n)->place;
    for (int i = 0; i < k->n_calls; i++) {
        const Node *call = k->calls[i];
        if (!is_forward(call) || node_is_input(call) || !is_cheap(call, element))
            return false;
        for (int j = 0; j < call->n_in; j++) {
            Node *def = in(call, j);
            if (!def || def->graph != k->graph || is_there(k, def, bytes) || of(k, def)->seen == of(k, n)->place)
                continue;
            if (k->n_calls == MOST_CALLS)
                return false;
            k->calls[k->n_calls++] = def;
            of(k, def)->seen = of(k, n)->place;
        }
    }
    return true;
}

static bool is_of_data(Keep *k, const Node *n)
{
    bool data = n->n_regions;
    for (int i = 0; i < n->n_in; i++) {
        const Node *def = in(n, i);
        data = data || (def && (node_is_input(def) || of(k, def)->of_data));
    }
    return data;
}

static void decide(Keep *k)
{
    for (Node *n = k->graph->first; n; n = n->next) {
        of(k, n)->of_data = is_of_data(k, n);
        if (!is_forward(n) || !of(k, n)->of_data || bytes_of(n) < LEAST_BYTES || !of(k, n)->is_read ||
            of(k, n)->returned || !find_calls(k, n))
            continue;
        for (int i = 0; i < k->n_calls; i++)
            of(k, k->calls[i])->cloned = true;
        of(k, n)->read = true;
    }
}

/* ---- making ---- */

static int number(Keep *k)
{
    int n = 0;
    k->at = NEWS(k->run->scratch, Node *, graph_count(k->graph) + 2);
    for (Node *i = k->graph->first; i; i = i->next) {
        k->at[++n] = i;
        *of(k, i) = (Again){ .place = n };
        look_at_readers(i, of(k, i));
    }
    return n;
}

static void sooner(int *first, int place)
{
    *first = *first == 0 || place < *first ? place : *first;
}

/* The first who reads what is made again: of the backward side, or to be made again itself. */
static void find_first(Keep *k, Node *n)
{
    Again *a = of(k, n);
    for (const Use *u = n->uses; u; u = u->next) {
        if (node_is_return(u->user))
            continue;
        const Again *reader = of(k, u->user);
        if (a->read && is_reader_back(u->user))
            sooner(&a->first, reader->place);
        else if (reader->cloned && reader->first)
            sooner(&a->first, reader->first);
    }
}

static void make(Keep *k, Node *n)
{
    Again *a = of(k, n);
    Build b = { .graph = n->graph, .before = k->at[a->first], .src = n->src, .flags = NODE_OURS | NODE_BACKWARD };
    Node **ins = NEWS(k->run->scratch, Node *, n->n_in + 1);
    b.label = n->label;
    for (int i = 0; i < n->n_in; i++) {
        Node *def = in(n, i), *clone = def ? of(k, def)->clone : NULL;
        ins[i] = clone ? clone : def;
    }
    a->clone = build_typed(&b, n->op, n->attr, n->n_in, ins, n->type);
    k->run->changes++;
}

static void hand_over(Keep *k, Node *n)
{
    const Again *a = of(k, n);
    for (Use *u = n->uses, *next; u; u = next) {
        next = u->next;
        if (is_reader_back(u->user) && of(k, u->user)->place)
            node_set_in(u->user, (int)(u - u->user->in), a->clone);
    }
}

static bool has_codes(const Graph *g)
{
    for (const Node *n = g->first; n; n = n->next)
        if (op_of(n)->gives_codes)
            return true;
    return false;
}

static Status keep_codes(Graph *g, PassRun *run)
{
    Keep k = { .graph = g, .run = run, .again = facts_open(run->scratch, sizeof(Again)) };
    if (!has_codes(g))
        return OK;
    const int n = number(&k);
    decide(&k);
    for (int i = n; i > 0; i--)
        if (of(&k, k.at[i])->cloned)
            find_first(&k, k.at[i]);
    for (int i = 1; i <= n; i++)
        if (of(&k, k.at[i])->first)
            make(&k, k.at[i]);
    for (int i = 1; i <= n; i++)
        if (of(&k, k.at[i])->clone && of(&k, k.at[i])->read)
            hand_over(&k, k.at[i]);
    return OK;
}

const Pass pass_keep_codes = { .name = "keep-codes", .needs = TYPED, .may = EXACT, .run = keep_codes };
