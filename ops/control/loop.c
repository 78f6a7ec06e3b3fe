/* loop: a body run a number of times, or as long as a condition holds. */
#include "ops/card/shapes.h"
#include "ops/control/unwind.h"

static const AttrSpec loop_attrs[] = { ATTR_OURS(LoopAttr, operands, INT, 0), ATTR_LAST };

enum { FIRST_CARRIED = 2 }; /* behind M and cond, and behind the iteration and cond of the body */

/* Whether the body's condition can never end the loop: it gives a constant true, or what it was given. */
static bool goes_on(const Graph *body)
{
    const Node *c = graph_result(body, 0);
    while (c->op == OP_identity && in(c, 0))
        c = in(c, 0);
    if (c == body->inputs[1])
        return true;
    const Tensor *t = node_constant(c, 64);
    return t && t->type->kind == TYPE_TENSOR && t->type->dtype == BOOL && tensor_elements(t) == 1 &&
           tensor_get_i64(t, 0);
}

/* The number of turns where it is certain; ? otherwise. */
static int64_t turns(const Infer *q, const Graph *body)
{
    if (!infer_has(q, 0) || !infer_known(q, 0))
        return DIM_UNKNOWN;
    const int64_t most = tensor_get_i64(infer_known(q, 0), 0);
    if (most <= 0)
        return 0;
    const bool starts = !infer_has(q, 1) || (infer_known(q, 1) && tensor_get_i64(infer_known(q, 1), 0));
    const bool stays = !infer_has(q, 1) || goes_on(body);
    return starts && stays && most <= q->ir->limits.loop_iterations ? most : DIM_UNKNOWN;
}

static bool head(Infer *q, const Graph *body)
{
    bool known;
    int64_t most;
    if (infer_has(q, 0) && !infer_one(q, 0, &known, &most))
        return false;
    if (infer_has(q, 1)) {
        const Type *cond = infer_tensor(q, 1);
        if (!cond)
            return false;
        if (cond->dtype != BOOL || !dims_fit(type_elements(cond), 1))
            return infer_fail(q, "needs one bool as condition, not %s", type_text(q->scratch, cond)), false;
    }
    const Type *again = graph_result(body, 0)->type;
    if (again->kind != TYPE_TENSOR || again->dtype != BOOL || !dims_fit(type_elements(again), 1))
        return infer_fail(q, "its body gives %s as condition", type_text(q->scratch, again)), false;
    return true;
}

static const Type *infer_loop(Infer *q)
{
    const int own = infer_own(q, ((const LoopAttr *)q->attr)->operands, FIRST_CARRIED);
    if (own < 0)
        return NULL;
    const int carried = own - FIRST_CARRIED;
    const Graph *body = infer_region(q, 0, q->n_in, 1 + (q->n_out > carried ? q->n_out : carried));
    if (!body || !head(q, body) || !infer_captures(q, body, FIRST_CARRIED, FIRST_CARRIED))
        return NULL;
    const int n = graph_n_results(body) - 1;
    const Type **types = NEWS(q->scratch, const Type *, n + 1);
    for (int i = 0; i < n; i++) {
        const Type *result = graph_result(body, i + 1)->type;
        const int k = i + FIRST_CARRIED;
        types[i] = i < carried ? infer_carried(q, q->in[k], body->inputs[k]->type, result)
                               : infer_stacked(q, result, 0, turns(q, body));
        if (!types[i])
            return NULL;
    }
    return infer_results(q, n, types);
}

/* A running loop. */
typedef struct Turns {
    Graph *body;
    int carried, stacked;
    const Tensor **values; /* of the body's parameters */
    Tensor **state;        /* carried values, held */
    Tensor **results;
    Stack *stacks;
} Turns;

static Status turn(Eval *e, Turns *t, int64_t i, bool *again)
{
    Heap *heap = eval_heap(e);
    Tensor *iteration = tensor_alloc(heap, type_scalar(&e->ir->types, I64));
    Tensor *cond = tensor_alloc(heap, type_scalar(&e->ir->types, BOOL));
    tensor_set_i64(iteration, 0, i);
    tensor_set_i64(cond, 0, *again);
    t->values[0] = iteration;
    t->values[1] = cond;
    for (int k = 0; k < t->carried; k++)
        t->values[FIRST_CARRIED + k] = t->state[k];
    for (int k = FIRST_CARRIED + t->carried; k < e->n_in; k++)
        t->values[k] = e->in[k];
    TRY(eval_body(e, t->body, i, e->n_in, t->values, t->results));
    tensor_drop(heap, iteration);
    tensor_drop(heap, cond);
    *again = tensor_get_i64(t->results[0], 0) != 0;
    tensor_drop(heap, t->results[0]);
    for (int k = 0; k < t->carried; k++) {
        tensor_drop(heap, t->state[k]);
        t->state[k] = t->results[1 + k];
    }
    for (int k = 0; k < t->stacked; k++)
        stack_push(e, &t->stacks[k], t->results[1 + t->carried + k]);
    return OK;
}

/* Gives the last value of a carried state as result i.  Where iterations turn an optional into its element and none
 * ran, the element is taken out here. */
static Status give_state(Eval *e, int i, Tensor *value, const Type *type)
{
    const bool unwrap = value->type->kind == TYPE_OPTIONAL && type->kind != TYPE_OPTIONAL;
    if (unwrap && !value->n_items)
        return eval_fail(e, "result %d is an empty optional after no turn", i);
    eval_give(e, i, unwrap ? value->items[0] : value);
    return OK;
}

static Status finish(Eval *e, Turns *t)
{
    for (int i = 0; i < t->carried; i++) {
        if (i < e->n_out)
            TRY(give_state(e, i, t->state[i], graph_result(t->body, 1 + i)->type));
        tensor_drop(eval_heap(e), t->state[i]);
    }
    for (int i = 0; i < t->stacked; i++) {
        const int result = t->carried + i;
        if (result < e->n_out)
            TRY(stack_result(e, result, &t->stacks[i], graph_result(t->body, 1 + result)->type, 0, false));
        else
            for (size_t k = 0; k < t->stacks[i].n; k++)
                tensor_drop(eval_heap(e), t->stacks[i].items[k]);
    }
    return OK;
}

static Status eval_loop(Eval *e)
{
    const int64_t operands = ((const LoopAttr *)e->attr)->operands;
    Turns t = { .body = e->node->regions[0], .carried = (int)(operands ? operands : e->n_in) - FIRST_CARRIED };
    t.stacked = graph_n_results(t.body) - 1 - t.carried;
    t.values = NEWS(e->scratch, const Tensor *, e->n_in + 1);
    t.state = NEWS(e->scratch, Tensor *, t.carried + 1);
    t.results = NEWS(e->scratch, Tensor *, graph_n_results(t.body));
    t.stacks = NEWS(e->scratch, Stack, t.stacked + 1);

    for (int i = 0; i < t.carried; i++)
        t.state[i] = tensor_hold(e->in[FIRST_CARRIED + i]);

    const bool asks = eval_has(e, 1);
    bool again = asks ? eval_int(e, 1, 0) != 0 : true;
    for (int64_t i = 0; again && (!eval_has(e, 0) || i < eval_int(e, 0, 0)); i++) {
        TRY(turn(e, &t, i, &again));
        again = again || !asks; /* a condition that nobody gave is not asked for again */
    }
    return finish(e, &t);
}

/* A body that turns a matrix round, doubles a list and gives two slices; it stops after two turns, or never. */
static Graph *sample_body(Build *b, const Type *square, const Type *list, const Type *row, bool ends)
{
    Graph *g = region_new(b->graph);
    Types *types = &b->graph->ir->types;
    Build in = build_at_end(g);
    Node *i = graph_input(g, "i", type_scalar(types, I64)), *cond = graph_input(g, "cond", type_scalar(types, BOOL));
    Node *x = graph_input(g, "x", square), *grows = graph_input(g, "grows", list), *r = graph_input(g, "r", row);
    Node *results[] = {
        ends ? CALL(&in, less, i, build_scalar(&in, I64, 1)) : cond,   CALL(&in, transpose, x),
        CALL(&in, tile, grows, build_i64s(&in, 1, (int64_t[]){ 2 })),  i,
        CALL(&in, unsqueeze, r, build_i64s(&in, 1, (int64_t[]){ 0 })),
    };
    if (in.status != OK)
        b->status = in.status;
    graph_return(g, (int)COUNT(results), results, NULL);
    return g;
}

static Node *sample_loop(Build *b, Rng *rng, int variant)
{
    const DType dtype = variant % 2 ? F32 : I64;
    const int64_t n = rng_range(rng, 1, 3), dims[] = { n, n };
    const bool counts = variant % 4 != 3, asks = variant % 4 >= 2, ends = variant % 4 == 3 || variant % 3 == 0;
    Node *ins[] = {
        counts ? build_scalar(b, I64, (double)rng_range(rng, -1, 4)) : NULL,
        asks ? build_scalar(b, BOOL, !counts || rng_below(rng, 4)) : NULL,
        sample_tensor(b, rng, dtype, 2, dims, -3, 3),
        sample_tensor(b, rng, dtype, 1, dims, -3, 3),
        sample_tensor(b, rng, dtype, 1, dims, -3, 3),
    };
    const Type *list = type_vector(&b->graph->ir->types, dtype, DIM_UNKNOWN);
    Graph *body = sample_body(b, ins[2]->type, list, ins[4]->type, ends);
    const LoopAttr at = { 4 };
    return build_with_regions(b, OP_loop, &at, 5, ins, 1 + variant % 4, 1, &body);
}

/* As often as it is told; one that is told less than none is not entered. */
static double loop_turns(const Node *n)
{
    const Tensor *most = in(n, 0) ? node_constant(in(n, 0), sizeof(int64_t)) : NULL;
    if (!most)
        return -1;
    return tensor_get_f64(most, 0) < 0 ? 0 : tensor_get_f64(most, 0);
}

static bool is_true(const Node *n)
{
    const Tensor *t = node_constant(n, sizeof(int64_t));
    return t && t->type->kind == TYPE_TENSOR && tensor_elements(t) == 1 && tensor_get_i64(t, 0);
}

/* No turn can end it before all were made. */
static bool loop_counted(const Node *n, CountedTurns *to)
{
    const Tensor *most = in(n, 0) ? node_constant(in(n, 0), sizeof(int64_t)) : NULL;
    if (!most || (in(n, 1) && (!is_true(in(n, 1)) || !goes_on(n->regions[0]))))
        return false;
    *to = (CountedTurns){ .turns = tensor_get_i64(most, 0), .carried = own_operands(n) - FIRST_CARRIED };
    to->turns = to->turns < 0 ? 0 : to->turns;
    return true;
}

const OpDef op_loop = {
    .name = "loop",
    .min_in = 2,
    .max_in = -1,
    .min_out = 1,
    .max_out = -1,
    .n_regions = 1,
    .attrs = loop_attrs,
    .infer = infer_loop,
    .eval = eval_loop,
    .adjoint = adjoint_loop,
    .differentiable = ~3u,
    .sample = sample_loop,
    .n_variants = 24,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "it runs a body",
    .body = { .open = true, .first_result = 1, .turns = loop_turns, .counted = loop_counted },
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_NEVER, QUANT_NEVER, QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "Loop", 25, NULL },
};
