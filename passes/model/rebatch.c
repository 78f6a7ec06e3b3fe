#include "passes/model/rebatch.h"

#include <inttypes.h>
#include <string.h>

#include "passes/clean/constant_values.h"
#include "passes/clean/fold.h"

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
    if (!type_agrees(type, n->type) && !*type_before(r, n))
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
        tensor_set_i64(t, i, i == at ? tensor_get_i64(old, i) * r->batch / r->old : tensor_get_i64(old, i));
    Build b = build_before(n);
    const Payload *was = node_payload(in(n, slot));
    Payload *p = payload_of(r->graph->arena, t);
    p->name = was->name;
    node_set_in(n, slot, build_typed(&b, in(n, slot)->op, &(ValueAttr){ p }, 0, NULL, t->type));
}

/* Whether an extent may hold the old batch: it, or a multiple (batch times heads).  A batch of 1 is in everything. */
static bool may_hold(const Rebatch *r, int64_t extent)
{
    return r->old == 1 ? extent == 1 : extent > 0 && extent % r->old == 0;
}

/* A number that states an extent which holds the batch. */
static bool patch_number(Rebatch *r, Node *n, StatedNumber of, int64_t extent)
{
    enum { MOST_BYTES = 1 << 16 };
    const Tensor *t = in(n, of.operand) ? node_constant(in(n, of.operand), MOST_BYTES) : NULL;
    if (!t || !dtype_is_integer(t->type->dtype) || of.at < 0 || of.at >= tensor_elements(t))
        return false;
    const int64_t stated = tensor_get_i64(t, of.at);
    if (stated != extent && !may_hold(r, stated))
        return false;
    patch(r, n, of.operand, of.at);
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

/* The operand that states the shape of a call's result as a constant; -1: none does. */
static int shape_operand(const Node *n)
{
    return op_of(n)->access.shape - 1;
}

/* Where a call states how far an axis of its operand reaches, that number follows. */
static void adapt(Rebatch *r, Node *n)
{
    const Node *x = in(n, 0);
    const int axis = carries(r, x) ? batch_axis(r, x) : -1;
    StatedNumber to;
    if (axis < 0 || n->type->kind != TYPE_TENSOR || n->type->rank < 0 || !op_of(n)->extent)
        return;
    const Type *from = *type_before(r, x);
    if (op_of(n)->extent(n, from, axis, r->old, &to))
        patch_number(r, n, to, from->dims[axis]);
}

/* The constant of one repeated value that x is, as far as its values go; null: it is none.  A parameter is not meant, a
 * Constant node is. */
static const Node *repeated_value(const Node *x)
{
    const Node *v = x && shape_operand(x) > 0 ? in(x, 0) : x;
    const bool stated = v && (v->op == OP_const || (v->op == OP_param && v->src && node_payload(v)));
    return stated && x->type->kind == TYPE_TENSOR && v->type->kind == TYPE_TENSOR && dtype_is_float(v->type->dtype) &&
                   type_elements(v->type) > 0 && is_one_value(v)
               ? v
               : NULL;
}

/* The same value, repeated in the new batch on an axis. */
static Node *repeated(Rebatch *r, Node *n, const Node *x, int axis)
{
    int64_t dims[MAX_RANK];
    const double value = tensor_get_f64(node_constant(repeated_value(x), 0), 0);
    memcpy(dims, x->type->dims, (size_t)x->type->rank * sizeof *dims);
    dims[axis] = r->batch;
    Tensor *t = tensor_new(r->graph->arena, type_tensor(&r->ir->types, x->type->dtype, x->type->rank, dims));
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, value);
    Build b = build_before(n);
    return build_const(&b, t);
}

/* A repeated value in the old batch (initial states of an LSTM), where n no longer complains of it in the new one. */
static bool adapt_repeated(Rebatch *r, Node *n, int slot)
{
    const char *before, *after;
    Node *x = in(n, slot);
    if (!x || carries(r, x) || !repeated_value(x) || node_infer(n, &before))
        return false;
    for (int axis = 0; axis < x->type->rank; axis++) {
        if (x->type->dims[axis] != r->old || !type_known(x->type))
            continue;
        Node *y = repeated(r, n, x, axis);
        *type_before(r, y) = x->type;
        node_set_in(n, slot, y);
        if (node_infer(n, &after) || strcmp(before, after) != 0)
            return true;
        node_set_in(n, slot, x);
        node_remove(y);
    }
    return false;
}

/* A shape that an operand was made in by the old batch follows. */
static bool adapt_shape(Rebatch *r, Node *x)
{
    bool changed = false;
    const char *complaint;
    const int shape = x && !carries(r, x) && x->type->kind == TYPE_TENSOR ? shape_operand(x) : -1;
    for (int axis = 0; shape >= 0 && axis < x->type->rank && !changed; axis++)
        changed = x->type->dims[axis] == r->old && patch_number(r, x, (StatedNumber){ shape, axis }, r->old);
    const Type *type = changed ? node_infer(x, &complaint) : NULL;
    if (type)
        set_type(r, x, type);
    return changed;
}

/* Where two operands no longer fit because one was made in the old batch, by a stated shape or as a repeated value, that
 * follows. */
static bool adapt_producer(Rebatch *r, Node *n)
{
    bool changed = false;
    for (int i = 0; i < n->n_in && !changed; i++)
        changed = adapt_repeated(r, n, i);
    if (changed)
        return true;
    for (int i = 0; i < n->n_in; i++)
        changed |= adapt_shape(r, in(n, i));
    return changed;
}

static void infer_again(Rebatch *r, Node *n)
{
    const char *complaint = NULL;
    const Type *type = node_infer(n, &complaint);
    for (int tries = 0; !type && tries < n->n_in && adapt_producer(r, n); tries++)
        type = node_infer(n, &complaint);
    if (!type) {
        get_stuck(r, n, complaint);
        return;
    }
    set_type(r, n, type);
    if (carries(r, n) && type->kind == TYPE_TENSOR && batch_axis(r, n) < 0)
        get_stuck(r, n, "mixes the batch into another axis");
}

/* Calls that no operand brings the batch are typed again, too: what they read may have been computed from shapes. */
static void visit(Rebatch *r, Node *n)
{
    const char *complaint;
    bool touched = false;
    for (int i = 0; i < n->n_in; i++)
        touched |= carries(r, in(n, i));
    if (op_of(n)->structural) {
        if (touched && n->op == OP_part)
            set_type(r, n, type_result(in(n, 0)->type, (int)((const PartAttr *)n->attr)->index));
        else if (touched)
            get_stuck(r, n, "is not understood");
        return;
    }
    if (n->n_regions) {
        if (touched)
            get_stuck(r, n, "has a body");
        return;
    }
    if (touched)
        adapt(r, n);
    if (touched && r->batch == 1 && node_infer(n, &complaint)) /* 1 broadcasts: nobody would complain */
        adapt_producer(r, n);
    infer_again(r, n);
}

static Status visit_all(Rebatch *r)
{
    PassRun run = { .diag = r->ir->diag };
    Status status = OK;
    Fold f;
    fold_open(&f, r->ir, &run, true);
    for (Node *n = r->graph->first, *next; status == OK && n; n = next) {
        bool folded = false;
        visit(r, n);
        if (!r->n_stuck)
            status = fold_node(&f, n, &folded);
        next = n->next;
        if (folded && !n->uses)
            node_remove(n);
    }
    fold_close(&f);
    return status;
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
    Status status = fold_types(g, &arena);
    if (status == OK)
        status = old_batch(&r);
    for (size_t i = 0; status == OK && i < g->n_inputs; i++)
        set_type(&r, g->inputs[i], with_batch(&r, g->inputs[i]->type));
    if (status == OK)
        status = visit_all(&r);
    if (status == OK && r.n_stuck)
        status = report_stuck(&r);
    *old = r.old;
    arena_close(&arena);
    return status;
}
