/* One call: its expansion or its card's own way, and what comes out of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ops/card/cards.h"
#include "ops/machine/machine.h"
#include "ops/machine/strings.h"

/* An expansion made for given operand types, and, where it depends on them, values. */
typedef struct Expansion {
    struct Expansion *next;
    const Type **types;
    const Tensor **values; /* copies; null: it does not depend on this one */
    Graph *graph;
} Expansion;

static bool same_operands(const Expansion *x, int n, const Tensor *const *in)
{
    for (int i = 0; i < n; i++)
        if (x->types[i] != (in[i] ? in[i]->type : NULL) ||
            (x->values[i] && in[i]->bytes && memcmp(x->values[i]->data, in[i]->data, in[i]->bytes) != 0))
            return false;
    return true;
}

/* What an expansion may see of an operand: integers, such as axes. */
static const Tensor *shown_value(Machine *m, const Eval *e, int i)
{
    const Tensor *t = e->in[i];
    if (!e->def->expand_needs_values || t->type->kind != TYPE_TENSOR || !dtype_is_integer(t->type->dtype))
        return NULL;
    Tensor *copy = tensor_new(&m->arena, t->type);
    if (t->bytes)
        memcpy(copy->data, t->data, t->bytes);
    return copy;
}

/* The op's meaning in smaller ops, as a graph of its own over the actual operand types. */
static Status expand(Machine *m, Eval *e, Graph **graph)
{
    bool fresh;
    MapEntry *entry = map_put_u64(&m->expansions, (uintptr_t)e->node, &fresh);
    for (Expansion *x = entry->value.p; x; x = x->next)
        if (same_operands(x, e->n_in, e->in)) {
            *graph = x->graph;
            return OK;
        }

    Expansion *x = NEW(&m->arena, Expansion);
    x->types = NEWS(&m->arena, const Type *, e->n_in + 1);
    x->graph = graph_new(m->ir, &m->arena, NULL);
    Node **ins = NEWS(&m->arena, Node *, e->n_in + 1);
    x->values = NEWS(&m->arena, const Tensor *, e->n_in + 1);
    for (int i = 0; i < e->n_in; i++) {
        if (!e->in[i])
            continue;
        x->types[i] = e->in[i]->type;
        ins[i] = graph_input(x->graph, NULL, e->in[i]->type);
        x->values[i] = shown_value(m, e, i);
    }
    Build b = build_at_end(x->graph);
    if (e->node) { /* what goes wrong inside is said at the node that expands */
        b.src = e->node->src;
        b.label = e->node->label;
    }
    const Site site = { .attr = e->attr,
                        .n_in = e->n_in,
                        .in = ins,
                        .value = x->values,
                        .type = e->type,
                        .n_out = e->n_out,
                        .regions = e->node ? e->node->regions : NULL,
                        .n_regions = e->node ? e->node->n_regions : 0 };
    Node *y = e->def->expand(&b, &site);
    TRY(b.status);
    BUG_IF(m->ir->memory, !y);
    graph_return(x->graph, 1, &y, NULL);
    x->next = entry->value.p;
    entry->value.p = x;
    *graph = x->graph;
    return OK;
}

/* What an expansion gives that is a constant of it: the machine's own memory, which ends with the machine. */
static bool is_own_constant(const Graph *g, int i)
{
    const Node *y = graph_result(g, 0);
    if (y->op == OP_tuple)
        y = in(y, i);
    return y && y->op == OP_const;
}

static void give_copy(Eval *e, int i, const Tensor *t)
{
    Tensor *copy = eval_out_as(e, i, t->type);
    if (t->bytes)
        memcpy(copy->data, t->data, t->bytes);
}

Status eval_expansion(Eval *e)
{
    Machine *m = e->machine;
    Graph *g;
    Tensor *result;
    TRY(expand(m, e, &g));
    const Tensor **arguments = NEWS(e->scratch, const Tensor *, e->n_in + 1);
    for (int i = 0, k = 0; i < e->n_in; i++)
        if (e->in[i])
            arguments[k++] = e->in[i];
    TRY(machine_run_graph(m, g, arguments, &result));
    for (int i = 0; i < e->n_out; i++)
        (is_own_constant(g, i) ? give_copy : eval_give)(e, i, e->n_out > 1 ? result->items[i] : result);
    tensor_drop(m->heap, result);
    return OK;
}

static const Type *actual_type(Machine *m, const Node *n, Eval *e)
{
    const Type **types = NEWS(e->scratch, const Type *, e->n_in + 1);
    for (int i = 0; i < e->n_in; i++)
        types[i] = e->in[i] ? e->in[i]->type : NULL;
    Infer q = { .ir = m->ir,
                .types = &m->ir->types,
                .def = e->def,
                .attr = e->attr,
                .n_in = e->n_in,
                .in = types,
                .value = e->in,
                .n_out = e->n_out,
                .declared = n->type,
                .regions = n->regions,
                .n_regions = n->n_regions,
                .scratch = e->scratch };
    const Type *type = e->def->infer(&q);
    if (!type)
        (void)fail(m->ir->diag, node_place(n), "%s %s", e->def->name,
                   q.complaint ? q.complaint : "is not a legal call");
    return type;
}

static Status check_size(Eval *e)
{
    for (int i = 0; i < e->n_out; i++) {
        const Type *t = eval_type(e, i);
        size_t bytes;
        if (t->kind == TYPE_TENSOR && type_known(t) &&
            (!type_bytes(t, &bytes) || bytes > (size_t)e->ir->limits.eval_bytes))
            return eval_fail(e, "its result %s is larger than the limit eval_bytes (%" PRId64 ")",
                             type_text(e->scratch, t), e->ir->limits.eval_bytes);
    }
    return OK;
}

static Status run_card(Eval *e)
{
    if (e->def->row)
        return eval_row(e);
    if (e->def->eval)
        return e->def->eval(e);
    if (e->def->fast)
        return e->def->fast(e);
    if (e->def->expand)
        return eval_expansion(e);
    return fail_as(e->ir->diag, UNSUPPORTED, e->node ? node_place(e->node) : NOWHERE, "%s has no meaning here",
                   e->def->name);
}

/* ---- what is under way, where there is no memory for it ---- */

/* "/fc1/MatMul matmul f32[32,1000]", cut where it is too long. */
void machine_tell_node(char *out, size_t n, const Node *node, const Type *type)
{
    const char *label = node->label ? node->label : node->name;
    const Type *t = type->kind == TYPE_TENSOR ? type : NULL;
    int at = snprintf(out, n, "%s%s%s", label ? label : "", label ? " " : "", op_of(node)->name);
    if (t && at < (int)n)
        at += snprintf(out + at, n - (size_t)at, " %s[", dtype_name(t->dtype));
    for (int i = 0; t && i < t->rank && at < (int)n; i++)
        at += snprintf(out + at, n - (size_t)at, "%s%" PRId64, i ? "," : "", t->dims[i]);
    if (t && at < (int)n)
        snprintf(out + at, n - (size_t)at, "]");
}

static void tell_call(char *out, size_t n, const void *thing)
{
    const Eval *e = thing;
    if (e->node)
        machine_tell_node(out, n, e->node, e->type);
}

/* A call before it runs: its type is still to be found. */
static Eval call_of(Machine *m, const Node *n, const Tensor *const *in)
{
    return (Eval){ .machine = m,
                   .ir = m->ir,
                   .node = n,
                   .def = op_of(n),
                   .attr = n->attr,
                   .n_in = n->n_in,
                   .in = in,
                   .n_out = type_results(n->type),
                   .scratch = m->scratch,
                   .kernels = m->options->kernels,
                   .pool = m->options->pool };
}

/* Runs it, and rounds what it computed wide. */
static Status run_to_end(Eval *e)
{
    const MemoryWork before = memory_work(e->ir->memory, tell_call, e);
    Status status = run_card(e);
    e->ir->memory->work = before;
    if (status == OK)
        eval_round_results(e);
    if (eval_stopped(e) && !e->def->access.goes_on) /* a kernel may have left out the rest */
        status = INTERRUPTED;
    return status;
}

static Status wrong_type(Eval *e)
{
    return eval_fail(e, "gives %s where the graph says %s", type_text(e->scratch, e->type),
                     type_text(e->scratch, e->node->type));
}

/* Whether values that only a run knows say where its elements go: then the run has to ask whether they may. */
static bool is_steered_by_values(const Node *n)
{
    const uint32_t steer = op_of(n)->access.steer;
    for (int i = 0; i < n->n_in && steer; i++)
        if (in(n, i) && steer >> (i < 31 ? i : 31) & 1 && in(n, i)->op != OP_const)
            return true;
    return false;
}

Status machine_call(Machine *m, const Node *n, const Tensor *const *in, Tensor **value)
{
    Eval e = call_of(m, n, in);
    e.out = NEWS(m->scratch, Tensor *, e.n_out);
    e.type = actual_type(m, n, &e);
    if (!e.type)
        return INVALID;
    if (!type_agrees(e.type, n->type))
        return wrong_type(&e);
    TRY(refuse_strings(&e));
    TRY(check_size(&e));
    const Status status = run_to_end(&e);
    for (int i = 0; i < e.n_out && status != OK; i++)
        if (e.out[i])
            tensor_drop(m->heap, e.out[i]);
    TRY(status);
    for (int i = 0; i < e.n_out; i++)
        BUG_IF(m->ir->memory, !e.out[i]);
    if (n->type->kind != TYPE_TUPLE) {
        *value = e.out[0];
        return OK;
    }
    *value = tensor_group(m->heap, e.type, (size_t)e.n_out, e.out);
    for (int i = 0; i < e.n_out; i++)
        tensor_drop(m->heap, e.out[i]);
    return OK;
}

Status machine_call_into(Machine *m, const CallBeside *call)
{
    const Node *n = call->node;
    Eval e = call_of(m, n, call->in);
    e.is_given = true;
    e.watch = call->watch;
    e.kept = call->kept;
    e.out = call->out;
    e.type = is_steered_by_values(n) ? actual_type(m, n, &e) : n->type;
    if (!e.type)
        return INVALID;
    if (!type_agrees(e.type, n->type))
        return wrong_type(&e);
    TRY(refuse_strings(&e));
    TRY(run_to_end(&e));
    return e.misfits ? eval_fail(&e, "gives another type than the graph says, %s", type_text(m->scratch, n->type)) : OK;
}

Status machine_call_beside(Machine *m, int n, const CallBeside *calls)
{
    Eval each[PRODUCTS_BESIDE] = { 0 }, *all[PRODUCTS_BESIDE] = { NULL };
    BUG_IF(m->ir->memory, n < 1 || n > PRODUCTS_BESIDE);
    for (int i = 0; i < n; i++) {
        each[i] = call_of(m, calls[i].node, calls[i].in);
        each[i].is_given = true;
        each[i].out = calls[i].out;
        each[i].watch = calls[i].watch;
        each[i].kept = calls[i].kept;
        each[i].type = calls[i].node->type;
        all[i] = &each[i];
    }
    const MemoryWork before = memory_work(m->ir->memory, tell_call, all[0]);
    Status status = each[0].def->beside(all, n);
    m->ir->memory->work = before;
    for (int i = 0; i < n && status == OK; i++)
        eval_round_results(all[i]);
    return eval_stopped(all[0]) ? INTERRUPTED : status;
}
