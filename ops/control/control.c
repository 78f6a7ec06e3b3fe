#include "ops/control/control.h"

#include "ops/card/shapes.h"
#include "ops/move/move.h"

int own_operands(const Node *n)
{
    const AttrSpec *spec = attr_find(op_of(n)->attrs, str("operands"));
    const int64_t own = spec && n->attr ? *(const int64_t *)attr_at(spec, n->attr) : 0;
    if (n->op == OP_if)
        return 1;
    return n->n_regions && own > 0 && own <= n->n_in ? (int)own : n->n_in;
}

int direct_operands(const Node *n)
{
    return n->op == OP_gradient ? n->n_in : n->n_in - own_operands(n);
}

/* Slices of a tensor along an axis; null when its rank is not known. */
static const Type *cut_type(Types *types, const Type *t, int64_t axis)
{
    int64_t dims[MAX_RANK];
    if (t->kind != TYPE_TENSOR || t->rank < 1 || axis < -t->rank || axis >= t->rank)
        return NULL;
    for (int i = 0, k = 0; i < t->rank; i++)
        if (i != axis_wrap(axis, t->rank))
            dims[k++] = t->dims[i];
    return type_tensor(types, t->dtype, t->rank - 1, dims);
}

const Type *parameter_type(const Node *n, int r, int k)
{
    const int own = n->n_in - direct_operands(n), from_last = (int)n->regions[r]->n_inputs - k;
    if (from_last <= direct_operands(n))
        return in(n, n->n_in - from_last) ? in(n, n->n_in - from_last)->type : NULL;
    const ScanAttr *at = n->op == OP_scan ? n->attr : NULL;
    const int first = at ? own - (int)at->num_scan_inputs : own;
    if (k < first || k >= own || !in(n, k))
        return NULL;
    const int64_t axis = at->scan_input_axes.v ? at->scan_input_axes.v[k - first] : 0;
    return cut_type(&n->graph->ir->types, in(n, k)->type, axis);
}

bool state_of_call(const Node *n, int i, int *operand, int *result)
{
    enum { LOOP_HEAD = 2, LOOP_SKIP = 1 };
    const int own = own_operands(n);
    const int head = n->op == OP_loop ? LOOP_HEAD : 0, skip = n->op == OP_loop ? LOOP_SKIP : 0;
    const int states = n->op == OP_loop   ? own - LOOP_HEAD
                       : n->op == OP_scan ? own - (int)((const ScanAttr *)n->attr)->num_scan_inputs
                                          : 0;
    *operand = head + i;
    *result = skip + i;
    return i < states && in(n, *operand) && *result < graph_n_results(n->regions[0]);
}

int infer_own(Infer *q, int64_t operands, int least)
{
    if (operands == 0)
        operands = q->n_in;
    if (operands >= least && operands <= q->n_in)
        return (int)operands;
    infer_fail(q, "has %" PRId64 " operands of its own among %d, at least %d are needed", operands, q->n_in, least);
    return -1;
}

const Graph *infer_region(Infer *q, int r, int n, int results)
{
    if (r >= q->n_regions) {
        infer_fail(q, "has %d bodies, %d are needed", q->n_regions, r + 1);
        return NULL;
    }
    const Graph *g = q->regions[r];
    if (g->n_inputs != (size_t)n || graph_n_results(g) < results) {
        infer_fail(q, "its body takes %zu values and gives %d, it must take %d and give %d", g->n_inputs,
                   graph_n_results(g), n, results);
        return NULL;
    }
    for (int i = 0; i < graph_n_results(g); i++)
        if (!graph_result(g, i)) {
            infer_fail(q, "its body does not give result %d", i);
            return NULL;
        }
    return g;
}

bool infer_parameter(Infer *q, const Graph *region, int k, const Type *type)
{
    const Type *parameter = region->inputs[k]->type;
    if (type_agrees(parameter, type))
        return true;
    infer_fail(q, "its body takes %s as parameter %d and is given %s", type_text(q->scratch, parameter), k,
               type_text(q->scratch, type));
    return false;
}

bool infer_captures(Infer *q, const Graph *region, int first, int k)
{
    for (int i = first; i < q->n_in; i++, k++) {
        if (!q->in[i])
            return infer_fail(q, "operand %d is missing", i), false;
        if (!infer_parameter(q, region, k, q->in[i]))
            return false;
    }
    return true;
}

/* A body may turn an optional into its element: then the first turn is given the one and all others the other. */
static bool unwraps(const Type *operand, const Type *result)
{
    return operand->kind == TYPE_OPTIONAL && result->kind != TYPE_OPTIONAL;
}

const Type *infer_carried(Infer *q, const Type *operand, const Type *parameter, const Type *result)
{
    if (unwraps(operand, result) && type_agrees(parameter, type_optional(q->types, result)))
        return result;
    const Type *joined = type_agrees(parameter, result) ? type_join(q->types, operand, result) : NULL;
    if (joined)
        return joined;
    return infer_fail(q, "its body takes %s and gives %s for the next turn", type_text(q->scratch, parameter),
                      type_text(q->scratch, result));
}

const Type *infer_stacked(Infer *q, const Type *slice, int64_t axis, int64_t n)
{
    int64_t dims[MAX_RANK + 1];
    int at;
    if (slice->kind != TYPE_TENSOR)
        return infer_fail(q, "stacks tensors, not %s", type_text(q->scratch, slice));
    if (slice->rank < 0)
        return slice;
    if (!infer_axis(q, axis, slice->rank + 1, &at))
        return NULL;
    for (int i = 0, k = 0; i <= slice->rank; i++)
        dims[i] = i == at ? n : slice->dims[k++];
    return infer_dims(q, slice->dtype, slice->rank + 1, dims);
}

void stack_push(Eval *e, Stack *s, Tensor *slice)
{
    GROW(e->scratch, s->items, s->n, s->cap);
    s->items[s->n++] = slice;
}

/* The type of the slices; where there was no iteration, unknown dimensions of the declared type are 0. */
static const Type *slice_type(Eval *e, const Stack *s, const Type *declared)
{
    int64_t dims[MAX_RANK];
    if (s->n)
        return s->items[0]->type;
    for (int i = 0; i < declared->rank; i++)
        dims[i] = declared->dims[i] < 0 ? 0 : declared->dims[i];
    return type_tensor(&e->ir->types, declared->dtype, declared->rank < 0 ? 0 : declared->rank, dims);
}

Status stack_result(Eval *e, int i, Stack *s, const Type *declared, int64_t axis, bool reverse)
{
    const Type *slice = slice_type(e, s, declared);
    int64_t dims[MAX_RANK + 1];
    const int rank = slice->rank + 1, at = axis_wrap(axis, rank);
    if (at < 0 || at >= rank || rank > MAX_RANK)
        return eval_fail(e, "cannot stack %s along axis %" PRId64, type_text(e->scratch, slice), axis);
    for (int d = 0, k = 0; d < rank; d++)
        dims[d] = d == at ? (int64_t)s->n : slice->dims[k++];
    const int64_t outer = move_count(dims, 0, at), inner = move_count(dims, at + 1, rank);
    Tensor *y = eval_out_as(e, i, type_tensor(&e->ir->types, slice->dtype, rank, dims));
    const Raw to = raw_open(e, y);
    for (size_t n = 0; n < s->n; n++) {
        const Tensor *item = s->items[n];
        const size_t place = reverse ? s->n - 1 - n : n;
        if (item->type != slice)
            return eval_fail(e, "its body gives %s for result %d in turn %zu and %s in turn 0",
                             type_text(e->scratch, item->type), i, n, type_text(e->scratch, slice));
        const Raw from = raw_of(e, item);
        Move m = { .size = from.size };
        move_axis(&m, outer, (int64_t)s->n * inner, inner);
        move_axis(&m, inner, 1, 1);
        move_run(&m, to.data + place * (size_t)inner * to.size, from.data);
    }
    raw_close(y, to);
    for (size_t n = 0; n < s->n; n++)
        tensor_drop(eval_heap(e), s->items[n]);
    return OK;
}

Status eval_body(Eval *e, Graph *body, int64_t turn, int n, const Tensor **values, Tensor **results)
{
    const int n_results = graph_n_results(body);
    const ArenaMark mark = arena_mark(e->scratch);
    Tensor **wrapped = NEWS(e->scratch, Tensor *, n + 1);
    for (int i = 0; i < n; i++) {
        const Type *takes = body->inputs[i]->type;
        if (takes->kind == TYPE_OPTIONAL && values[i]->type->kind != TYPE_OPTIONAL) {
            wrapped[i] = tensor_group(eval_heap(e), takes, 1, (Tensor *const *)(uintptr_t)&values[i]);
            values[i] = wrapped[i];
        }
        if (!type_agrees(takes, values[i]->type))
            return eval_fail(e, "its body takes %s as parameter %d and is given %s", type_text(e->scratch, takes), i,
                             type_text(e->scratch, values[i]->type));
    }
    for (int i = 0; i < n_results; i++)
        results[i] = NULL;
    TRY(eval_region(e, body, turn, n, values, results));
    for (int i = 0; i < n; i++)
        if (wrapped[i])
            tensor_drop(eval_heap(e), wrapped[i]);
    for (int i = 0; i < n_results; i++)
        if (!results[i])
            return eval_fail(e, "its body gives nothing for result %d", i);
    arena_reset(e->scratch, mark); /* a loop may take many turns */
    return OK;
}
