/* scan: a body run over the slices of tensors. */
#include "ops/card/shapes.h"
#include "ops/control/unwind.h"
#include "ops/move/move.h"

static const AttrSpec scan_attrs[] = {
    ATTR_REQUIRED(ScanAttr, num_scan_inputs, INT),         ATTR_OPTIONAL(ScanAttr, scan_input_axes, INTS),
    ATTR_OPTIONAL(ScanAttr, scan_input_directions, INTS),  ATTR_OPTIONAL(ScanAttr, scan_output_axes, INTS),
    ATTR_OPTIONAL(ScanAttr, scan_output_directions, INTS), ATTR_OURS(ScanAttr, operands, INT, 0),
    ATTR_OURS(ScanAttr, from_last, BOOL, false),           ATTR_LAST,
};

static int64_t listed(Ints list, int i)
{
    return list.v ? list.v[i] : 0;
}

/* A list for n scanned values: as long as they are many, directions 0 or 1. */
static bool check_list(Infer *q, const char *name, Ints list, int n, bool directions)
{
    if (list.v && list.n != n)
        return infer_fail(q, "%s lists %d numbers for %d values", name, list.n, n), false;
    for (int i = 0; list.v && directions && i < n; i++)
        if (list.v[i] != 0 && list.v[i] != 1)
            return infer_fail(q, "%s has a direction %" PRId64, name, list.v[i]), false;
    return true;
}

/* A tensor without one of its axes. */
static const Type *slice_type(Types *types, const Type *t, int axis)
{
    int64_t dims[MAX_RANK];
    for (int i = 0, k = 0; i < t->rank; i++)
        if (i != axis)
            dims[k++] = t->dims[i];
    return type_tensor(types, t->dtype, t->rank - 1, dims);
}

/* Scanned operand i: its slices must fit the body, its length the other ones. */
static bool infer_scanned(Infer *q, const Graph *body, int i, int64_t given, int64_t *length)
{
    const Type *x = infer_tensor(q, i);
    int axis;
    if (!x)
        return false;
    if (x->rank < 0)
        return true;
    if (!infer_axis(q, given, x->rank, &axis))
        return false;
    if (!dims_fit(*length, x->dims[axis]))
        return infer_fail(q, "operand %d has %" PRId64 " slices, those before it %" PRId64, i, x->dims[axis], *length),
               false;
    *length = dims_meet(*length, x->dims[axis]);
    return infer_parameter(q, body, i, slice_type(q->types, x, axis));
}

static bool check_call(Infer *q, const Graph *body, int states, int own, int64_t *length)
{
    const ScanAttr *at = q->attr;
    const int scanned = own - states, stacked = graph_n_results(body) - states;
    *length = DIM_UNKNOWN;
    if (!check_list(q, "scan_input_axes", at->scan_input_axes, scanned, false) ||
        !check_list(q, "scan_input_directions", at->scan_input_directions, scanned, true) ||
        !check_list(q, "scan_output_axes", at->scan_output_axes, stacked, false) ||
        !check_list(q, "scan_output_directions", at->scan_output_directions, stacked, true))
        return false;
    for (int i = 0; i < states; i++)
        if (!infer_has(q, i))
            return infer_fail(q, "operand %d is missing", i), false;
        else if (!infer_parameter(q, body, i, q->in[i]))
            return false;
    for (int i = states; i < own; i++)
        if (!infer_scanned(q, body, i, listed(at->scan_input_axes, i - states), length))
            return false;
    return infer_captures(q, body, own, own);
}

static const Type *infer_scan(Infer *q)
{
    const ScanAttr *at = q->attr;
    const int own = infer_own(q, at->operands, 1);
    int64_t length;
    if (own < 0)
        return NULL;
    if (at->num_scan_inputs < 1 || at->num_scan_inputs > own)
        return infer_fail(q, "num_scan_inputs is %" PRId64 " of %d operands", at->num_scan_inputs, own);
    const int states = own - (int)at->num_scan_inputs;
    const Graph *body = infer_region(q, 0, q->n_in, q->n_out > states ? q->n_out : states);
    if (!body || !check_call(q, body, states, own, &length))
        return NULL;
    const int n = graph_n_results(body);
    const Type **types = NEWS(q->scratch, const Type *, n + 1);
    for (int i = 0; i < n; i++) {
        const Type *result = graph_result(body, i)->type;
        types[i] = i < states ? infer_carried(q, q->in[i], body->inputs[i]->type, result)
                              : infer_stacked(q, result, listed(at->scan_output_axes, i - states), length);
        if (!types[i])
            return NULL;
    }
    return infer_results(q, n, types);
}

/* Slice `at` of a scanned operand. */
static Tensor *cut_slice(Eval *e, int i, Raw x, int axis, int64_t at)
{
    const Type *t = e->in[i]->type;
    Tensor *slice = tensor_alloc(eval_heap(e), slice_type(&e->ir->types, t, axis));
    const int64_t outer = move_count(t->dims, 0, axis), inner = move_count(t->dims, axis + 1, t->rank);
    const Raw y = raw_open(e, slice);
    Move m = { .size = x.size };
    move_axis(&m, outer, inner, t->dims[axis] * inner);
    move_axis(&m, inner, 1, 1);
    move_run(&m, y.data, x.data + (size_t)(at * inner) * x.size);
    raw_close(slice, y);
    return slice;
}

/* A running scan. */
typedef struct Sweep {
    Graph *body;
    int states, own, n_results;
    int64_t length;
    Raw *scanned; /* of operand states + i */
    const Tensor **values;
    Tensor **slices, **state, **results;
    Stack *stacks;
} Sweep;

static Status sweep_step(Eval *e, Sweep *s, int64_t step)
{
    const ScanAttr *at = e->attr;
    const ArenaMark mark = arena_mark(e->scratch);
    for (int i = 0; i < s->states; i++)
        s->values[i] = s->state[i];
    for (int i = s->states; i < s->own; i++) {
        const int k = i - s->states, axis = axis_wrap(listed(at->scan_input_axes, k), e->in[i]->type->rank);
        const int64_t place = listed(at->scan_input_directions, k) ? s->length - 1 - step : step;
        s->values[i] = s->slices[k] = cut_slice(e, i, s->scanned[k], axis, place);
    }
    for (int i = s->own; i < e->n_in; i++)
        s->values[i] = e->in[i];
    const int64_t turn = at->from_last ? s->length - 1 - step : step;
    TRY(eval_body(e, s->body, turn, e->n_in, s->values, s->results));
    for (int i = s->states; i < s->own; i++)
        tensor_drop(eval_heap(e), s->slices[i - s->states]);
    arena_reset(e->scratch, mark);
    for (int i = 0; i < s->n_results; i++) {
        if (i >= s->states) {
            stack_push(e, &s->stacks[i - s->states], s->results[i]);
            continue;
        }
        tensor_drop(eval_heap(e), s->state[i]);
        s->state[i] = s->results[i];
    }
    return OK;
}

static Status sweep_end(Eval *e, Sweep *s)
{
    const ScanAttr *at = e->attr;
    for (int i = 0; i < s->n_results; i++) {
        if (i < s->states) {
            if (i < e->n_out)
                eval_give(e, i, s->state[i]);
            tensor_drop(eval_heap(e), s->state[i]);
            continue;
        }
        Stack *stack = &s->stacks[i - s->states];
        if (i < e->n_out)
            TRY(stack_result(e, i, stack, graph_result(s->body, i)->type, listed(at->scan_output_axes, i - s->states),
                             listed(at->scan_output_directions, i - s->states)));
        else
            for (size_t k = 0; k < stack->n; k++)
                tensor_drop(eval_heap(e), stack->items[k]);
    }
    return OK;
}

static Status eval_scan(Eval *e)
{
    const ScanAttr *at = e->attr;
    Sweep s = { .body = e->node->regions[0], .own = (int)(at->operands ? at->operands : e->n_in) };
    s.states = s.own - (int)at->num_scan_inputs;
    s.n_results = graph_n_results(s.body);
    s.values = NEWS(e->scratch, const Tensor *, e->n_in);
    s.slices = NEWS(e->scratch, Tensor *, s.own);
    s.scanned = NEWS(e->scratch, Raw, s.own);
    s.state = NEWS(e->scratch, Tensor *, s.states + 1);
    s.results = NEWS(e->scratch, Tensor *, s.n_results);
    s.stacks = NEWS(e->scratch, Stack, s.n_results);
    for (int i = 0; i < s.states; i++)
        s.state[i] = tensor_hold(e->in[i]);
    for (int i = s.states; i < s.own; i++) {
        const Type *t = e->in[i]->type;
        s.length = t->dims[axis_wrap(listed(at->scan_input_axes, i - s.states), t->rank)];
        s.scanned[i - s.states] = raw_in(e, i);
    }
    if (s.length > e->ir->limits.loop_iterations)
        return eval_fail(e, "runs longer than the limit loop_iterations (%" PRId64 ")", e->ir->limits.loop_iterations);
    for (int64_t step = 0; step < s.length; step++)
        TRY(sweep_step(e, &s, step));
    return sweep_end(e, &s);
}

/* The state is a running sum of slices; given out are the sums and the captured row beside each slice. */
static Graph *sample_body(Build *b, const Type *slice)
{
    Graph *g = region_new(b->graph);
    Build in = build_at_end(g);
    Node *sum = graph_input(g, "sum", slice), *x = graph_input(g, "x", slice), *y = graph_input(g, "y", slice);
    Node *kept = graph_input(g, "kept", slice);
    Node *next = CALL(&in, add, sum, CALL(&in, mul, x, y));
    Node *results[] = { next, next, CALL(&in, add, kept, x) };
    if (in.status != OK)
        b->status = in.status;
    graph_return(g, (int)COUNT(results), results, NULL);
    return g;
}

static Node *sample_scan(Build *b, Rng *rng, int variant)
{
    const DType dtype = variant % 2 ? F32 : I64;
    const int rank = variant % 4;
    int64_t slice[MAX_RANK], dims[2][MAX_RANK], in_axes[2], out_axes[2], in_ways[2], out_ways[2];
    const int64_t length = rng_below(rng, 4);
    sample_dims(rng, rank, 3, slice);
    for (int k = 0; k < 2; k++) {
        const int axis = variant % 3 ? (int)rng_below(rng, rank + 1) : 0;
        for (int i = 0, j = 0; i <= rank; i++)
            dims[k][i] = i == axis ? length : slice[j++];
        in_axes[k] = rng_below(rng, 2) ? axis : axis - rank - 1;
        out_axes[k] = rng_range(rng, -rank - 1, rank);
        in_ways[k] = rng_below(rng, 2);
        out_ways[k] = rng_below(rng, 2);
    }
    Node *ins[] = {
        sample_tensor(b, rng, dtype, rank, slice, -3, 3),
        sample_tensor(b, rng, dtype, rank + 1, dims[0], -3, 3),
        sample_tensor(b, rng, dtype, rank + 1, dims[1], -3, 3),
        sample_tensor(b, rng, dtype, rank, slice, -3, 3),
    };
    ScanAttr at = { .num_scan_inputs = 2, .operands = 3 };
    if (variant % 3)
        at = (ScanAttr){ 2, 3, { 2, in_axes }, { 2, in_ways }, { 2, out_axes }, { 2, out_ways } };
    Graph *body = sample_body(b, ins[0]->type);
    return build_with_regions(b, OP_scan, &at, 4, ins, 1 + variant % 3, 1, &body);
}

/* As often as there are slices. */
static double scan_turns(const Node *n)
{
    const ScanAttr *at = n->attr;
    const Node *first = at->num_scan_inputs ? in(n, own_operands(n) - (int)at->num_scan_inputs) : NULL;
    const int64_t axis = first && at->scan_input_axes.v ? at->scan_input_axes.v[0] : 0;
    if (!first || first->type->rank < 1 || axis < 0 || axis >= first->type->rank || first->type->dims[axis] < 1)
        return -1;
    return (double)first->type->dims[axis];
}

const OpDef op_scan = {
    .name = "scan",
    .min_in = 1,
    .max_in = -1,
    .min_out = 1,
    .max_out = -1,
    .n_regions = 1,
    .attrs = scan_attrs,
    .infer = infer_scan,
    .eval = eval_scan,
    .adjoint = adjoint_scan,
    .differentiable = ~0u,
    .sample = sample_scan,
    .n_variants = 24,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "it runs a body",
    .body = { .open = true, .turns = scan_turns },
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "Scan", 25, NULL },
};
