#include "passes/rebatch.h"

#include <inttypes.h>
#include <string.h>

#include "ops/eval.h"

typedef struct Rebatch {
    Graph *graph;
    Ir *ir;
    Arena *arena;
    int64_t old, batch;
    Facts before; /* const Type *, where the type changed */
    const Node **stuck;
    const char **why;
    size_t n_stuck, cap_stuck, cap_why;
} Rebatch;

static const Type **type_before(Rebatch *r, const Node *n)
{
    return fact(&r->before, n);
}

static bool carries(Rebatch *r, const Node *n)
{
    return n && *type_before(r, n);
}

static void get_stuck(Rebatch *r, const Node *n, const char *why)
{
    GROW(r->arena, r->stuck, r->n_stuck, r->cap_stuck);
    GROW(r->arena, r->why, r->n_stuck, r->cap_why);
    r->stuck[r->n_stuck] = n;
    r->why[r->n_stuck++] = why;
}

/* The batch that the inputs agree on: dimension 0 of the first tensor, shared by the others that have one. */
static Status old_batch(Rebatch *r)
{
    r->old = -1;
    for (size_t i = 0; i < r->graph->n_inputs; i++) {
        const Type *t = r->graph->inputs[i]->type;
        if (t->kind == TYPE_TENSOR && t->rank > 0 && t->dims[0] > 0 && r->old < 0)
            r->old = t->dims[0];
    }
    if (r->old < 0)
        return fail_as(r->ir->diag, USAGE, NOWHERE, "no input has a batch to bind");
    return OK;
}

static const Type *with_batch(Rebatch *r, const Type *t)
{
    int64_t dims[MAX_RANK];
    if (t->kind != TYPE_TENSOR || t->rank < 1 || t->dims[0] != r->old)
        return t;
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    dims[0] = r->batch;
    return type_tensor(&r->ir->types, t->dtype, t->rank, dims);
}

static void set_type(Rebatch *r, Node *n, const Type *type)
{
    if (type != n->type && !*type_before(r, n))
        *type_before(r, n) = n->type;
    n->type = type;
}

/* Makes operand `slot` a constant of ours with entry `at` saying the new batch. */
static void patch(Rebatch *r, Node *n, int slot, int64_t at)
{
    const Tensor *old = node_constant(in(n, slot), 0);
    const int64_t count = tensor_elements(old);
    Tensor *t = tensor_new(r->graph->arena, old->type);
    for (int64_t i = 0; i < count; i++)
        tensor_set_i64(t, i, i == at ? tensor_get_i64(old, i) / r->old * r->batch : tensor_get_i64(old, i));
    Build b = build_before(n);
    const Payload *was = node_payload(in(n, slot));
    Payload *p = payload_of(r->graph->arena, t);
    p->name = was->name;
    node_set_in(n, slot, build_typed(&b, in(n, slot)->op, &(ValueAttr){ p }, 0, NULL, t->type));
}

/* A shape whose entry on the batch axis, where the old result had the old batch, states it as a number. */
static bool patch_shape(Rebatch *r, Node *n, int slot, int axis)
{
    const Tensor *shape = in(n, slot) ? node_constant(in(n, slot), 1 << 16) : NULL;
    if (!shape || !dtype_is_integer(shape->type->dtype) || axis >= tensor_elements(shape))
        return false;
    if (tensor_get_i64(shape, axis) != r->old)
        return false;
    patch(r, n, slot, axis);
    return true;
}

/* The axis of a value that carries the batch: where its type before and now differ; -1 when it is not one axis that
 * grew in proportion. */
static int batch_axis(Rebatch *r, const Node *n)
{
    const Type *a = carries(r, n) ? *type_before(r, n) : NULL, *b = n->type;
    int axis = -1;
    if (!a || a->kind != TYPE_TENSOR || b->kind != TYPE_TENSOR || a->rank != b->rank)
        return -1;
    for (int i = 0; i < a->rank; i++) {
        if (a->dims[i] == b->dims[i])
            continue;
        if (axis >= 0 || a->dims[i] * r->batch != b->dims[i] * r->old)
            return -1;
        axis = i;
    }
    return axis;
}

/* The axis of a reshape's result that holds the operand's batch axis: equal products before it. */
static int reshaped_axis(const Type *from, int axis, const Type *to)
{
    int64_t before = 1, product = 1;
    for (int i = 0; i < axis; i++)
        before *= from->dims[i];
    for (int i = 0; i < to->rank; i++) {
        if (product == before && to->dims[i] % from->dims[axis] == 0)
            return i;
        product *= to->dims[i];
    }
    return -1;
}

/* Slice: an end that is the old extent of the axis follows it. */
static bool patch_slice(Rebatch *r, Node *n, int axis)
{
    const Tensor *ends = in(n, 2) ? node_constant(in(n, 2), 1 << 16) : NULL;
    const Tensor *axes = in(n, 3) ? node_constant(in(n, 3), 1 << 16) : NULL;
    const Type *from = *type_before(r, in(n, 0));
    for (int64_t i = 0; ends && i < tensor_elements(ends); i++) {
        const int64_t a = axes ? tensor_get_i64(axes, i) : i;
        if ((a < 0 ? a + from->rank : a) == axis && tensor_get_i64(ends, i) == from->dims[axis]) {
            patch(r, n, 2, i);
            return true;
        }
    }
    return false;
}

/* What states a shape as a constant, and in which operand. */
static const struct {
    const char *op;
    int shape;
} shaped[] = { { "reshape", 1 }, { "expand", 1 }, { "constant_of_shape", 0 } };

static int shape_operand(const Node *n)
{
    for (size_t i = 0; i < COUNT(shaped); i++)
        if (strcmp(op_of(n)->name, shaped[i].op) == 0)
            return shaped[i].shape;
    return -1;
}

static void adapt(Rebatch *r, Node *n)
{
    const Node *x = in(n, 0);
    const int axis = carries(r, x) ? batch_axis(r, x) : -1;
    if (axis < 0 || n->type->kind != TYPE_TENSOR || n->type->rank < 0)
        return;
    if (strcmp(op_of(n)->name, "reshape") == 0) {
        const int to = reshaped_axis(*type_before(r, x), axis, n->type);
        if (to >= 0)
            patch_shape(r, n, 1, to);
    } else if (strcmp(op_of(n)->name, "expand") == 0) {
        patch_shape(r, n, 1, axis + n->type->rank - x->type->rank);
    } else if (strcmp(op_of(n)->name, "slice") == 0) {
        patch_slice(r, n, axis);
    }
}

/* Where two operands no longer fit because one was made in the old batch by a stated shape, that shape follows. */
static bool adapt_producer(Rebatch *r, Node *n)
{
    bool changed = false;
    for (int i = 0; i < n->n_in; i++) {
        Node *x = in(n, i);
        const int shape = x && !carries(r, x) ? shape_operand(x) : -1;
        if (shape < 0 || x->type->kind != TYPE_TENSOR)
            continue;
        for (int axis = 0; axis < x->type->rank && !changed; axis++)
            changed = x->type->dims[axis] == r->old && patch_shape(r, x, shape, axis);
        const char *complaint;
        const Type *type = changed ? node_infer(x, &complaint) : NULL;
        if (type)
            set_type(r, x, type);
    }
    return changed;
}

static void visit(Rebatch *r, Node *n)
{
    const char *complaint = NULL;
    bool touched = false;
    for (int i = 0; i < n->n_in; i++)
        touched |= carries(r, in(n, i));
    if (!touched || op_of(n)->structural) {
        if (touched && n->op == OP_part)
            set_type(r, n, type_result(in(n, 0)->type, (int)((const PartAttr *)n->attr)->index));
        else if (touched)
            get_stuck(r, n, "is not understood");
        return;
    }
    if (n->n_regions) {
        get_stuck(r, n, "has a body");
        return;
    }
    adapt(r, n);
    if (r->batch == 1) /* which broadcasts, so that nothing below would complain */
        adapt_producer(r, n);
    const Type *type = node_infer(n, &complaint);
    if (!type && adapt_producer(r, n))
        type = node_infer(n, &complaint);
    if (!type) {
        get_stuck(r, n, complaint);
        return;
    }
    set_type(r, n, type);
    if (carries(r, n) && type->kind == TYPE_TENSOR && batch_axis(r, n) < 0)
        get_stuck(r, n, "mixes the batch into another axis");
}

static Status report_stuck(Rebatch *r)
{
    Message *m =
        message_new(r->ir->diag, SEVERITY_ERROR, UNSUPPORTED, NOWHERE,
                    "--batch %" PRId64 ": the file's batch of %" PRId64 " is part of the computation at %zu node%s",
                    r->batch, r->old, r->n_stuck, r->n_stuck == 1 ? "" : "s");
    for (size_t i = 0; i < r->n_stuck; i++)
        message_at(m, "%s (%s %s)", node_place(r->stuck[i]).where, op_of(r->stuck[i])->name, r->why[i]);
    message_try(m, "re-export with dynamic_axes={'%s': {0: 'batch'}}",
                r->graph->inputs[0]->name ? r->graph->inputs[0]->name : "x");
    if (r->batch % r->old == 0 && r->batch > r->old)
        message_try(m, "--batch %" PRId64 " --accumulate %" PRId64, r->batch, r->batch / r->old);
    return message_send(m);
}

Status rebatch(Graph *g, int64_t batch, int64_t *old)
{
    Arena arena;
    arena_open(&arena, g->ir->memory);
    Rebatch r = { .graph = g, .ir = g->ir, .arena = &arena, .batch = batch };
    r.before = facts_open(&arena, sizeof(const Type *));
    Status status = old_batch(&r);
    for (size_t i = 0; status == OK && i < g->n_inputs; i++)
        set_type(&r, g->inputs[i], with_batch(&r, g->inputs[i]->type));
    for (Node *n = g->first; status == OK && n; n = n->next)
        visit(&r, n);
    if (status == OK && r.n_stuck)
        status = report_stuck(&r);
    *old = r.old;
    arena_close(&arena);
    return status;
}

/* ---- the proof ---- */

static Tensor *seeded(Graph *g, const Type *type, Rng *rng)
{
    Tensor *t = tensor_new(g->arena, type);
    const int64_t n = tensor_elements(t);
    for (int64_t i = 0; i < n; i++) {
        if (dtype_is_float(type->dtype))
            tensor_set_f64(t, i, 2 * rng_unit(rng) - 1);
        else
            tensor_set_i64(t, i, rng_below(rng, 2));
    }
    return t;
}

/* The part of a value that belongs to chunk k of `chunks` along dimension 0, as a tensor of `type`. */
static Tensor *chunk_of(Graph *g, const Tensor *whole, const Type *type, int64_t k)
{
    Tensor *t = tensor_new(g->arena, type);
    const int64_t n = tensor_elements(t);
    for (int64_t i = 0; i < n; i++) {
        if (dtype_is_float(type->dtype))
            tensor_set_f64(t, i, tensor_get_f64(whole, k * n + i));
        else
            tensor_set_i64(t, i, tensor_get_i64(whole, k * n + i));
    }
    return t;
}

static Status prove_chunk(Graph *original, Heap *heap, const Tensor *const *inputs, Tensor *const *results, Graph *g,
                          int64_t k)
{
    const int n = graph_n_results(original);
    const Tensor **part = NEWS(g->arena, const Tensor *, original->n_inputs + 1);
    Tensor **want = NEWS(g->arena, Tensor *, n + 1);
    for (size_t i = 0; i < original->n_inputs; i++)
        part[i] = inputs[i]->type == original->inputs[i]->type ? inputs[i]
                                                               : chunk_of(g, inputs[i], original->inputs[i]->type, k);
    TRY(evaluate(original, NULL, heap, part, want));
    for (int i = 0; i < n; i++) {
        const bool follows = results[i]->type != want[i]->type;
        const Tensor *got = follows ? chunk_of(g, results[i], want[i]->type, k) : results[i];
        if (!tensor_same(got, want[i]))
            return fail_as(g->ir->diag, UNSUPPORTED, NOWHERE,
                           "--batch: rows of %s differ from what the file's own batch gives",
                           graph_result_name(g, i) ? graph_result_name(g, i) : "a result");
    }
    return OK;
}

/* How many times the rows of `small` go into `big`; 0 when big has fewer. */
static int64_t times(const Graph *big, const Graph *small)
{
    for (size_t i = 0; i < big->n_inputs; i++)
        if (big->inputs[i]->type != small->inputs[i]->type)
            return big->inputs[i]->type->dims[0] / small->inputs[i]->type->dims[0];
    return 1;
}

static Status prove(Graph *big, Graph *small, uint64_t seed)
{
    Heap heap;
    Rng rng = { seed };
    const int64_t chunks = times(big, small);
    heap_open(&heap, big->ir->memory);
    const Tensor **inputs = NEWS(big->arena, const Tensor *, big->n_inputs + 1);
    Tensor **results = NEWS(big->arena, Tensor *, graph_n_results(big) + 1);
    Status status = OK;
    for (size_t i = 0; i < big->n_inputs && status == OK; i++) {
        const Node *in = big->inputs[i];
        if (!type_known(in->type) || in->type->kind != TYPE_TENSOR)
            status =
                fail_as(big->ir->diag, USAGE, NOWHERE, "input %s has no size", in->name ? in->name : "without name");
        inputs[i] = status == OK ? seeded(big, in->type, &rng) : NULL;
    }
    if (status == OK)
        status = evaluate(big, NULL, &heap, inputs, results);
    for (int64_t k = 0; k < chunks && status == OK; k++)
        status = prove_chunk(small, &heap, inputs, results, big, k);
    heap_close(&heap);
    return status;
}

/* What grows many times is proved at twice the old batch: the constants that follow are the same ones. */
Status rebatch_prove(Graph *g, Graph *original, uint64_t seed)
{
    enum { MANY = 2 };
    if (times(g, original) == 0)
        return prove(original, g, seed);
    if (times(g, original) <= MANY)
        return prove(g, original, seed);
    int64_t old = 0;
    Graph *twice = graph_copy(original, g->arena);
    for (size_t i = 0; i < original->n_inputs; i++)
        if (g->inputs[i]->type != original->inputs[i]->type)
            old = original->inputs[i]->type->dims[0];
    TRY(rebatch(twice, MANY * old, &old));
    return prove(twice, original, seed);
}
