/* The machine that runs graphs: each node by its card's meaning, values as long as somebody reads them. */
#include "ops/machine/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ops/card/cards.h"
#include "ops/machine/strings.h"

enum { DEEPEST = 40 }; /* regions in regions and expansions in expansions: a bounded recursion */

/* An expansion made for given operand types, and, where it depends on them, values. */
typedef struct Expansion {
    struct Expansion *next;
    const Type **types;
    const Tensor **values; /* copies; null: it does not depend on this one */
    Graph *graph;
} Expansion;

/* A value while it is alive. */
typedef struct Slot {
    Tensor *value;
    int readers; /* still to come */
} Slot;

static Status run_graph(Machine *m, Graph *g, const Tensor *const *arguments, Tensor **results);

/* Multiples of the golden ratio's fraction lie far apart: of some thousand outer turns, each with a million inner ones,
 * no two meet. */
static uint32_t iteration_of(uint32_t outer, int64_t turn)
{
    return turn == TURN_NONE ? outer : outer * 0x9E3779B1u + (uint32_t)turn;
}

Status eval_region(Eval *e, Graph *region, int64_t turn, int n, const Tensor *const *arguments, Tensor **results)
{
    if ((size_t)n != region->n_inputs)
        return eval_fail(e, "its body takes %zu values, not %d", region->n_inputs, n);
    if (turn != TURN_NONE && ++e->machine->turns > e->ir->limits.loop_iterations)
        return eval_fail(e, "bodies run more often than the limit loop_iterations (%" PRId64 ")",
                         e->ir->limits.loop_iterations);
    const uint32_t outer = e->machine->iteration;
    e->machine->iteration = iteration_of(outer, turn);
    const Status status = run_graph(e->machine, region, arguments, results);
    e->machine->iteration = outer;
    return status;
}

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

static Status eval_expansion(Eval *e)
{
    Machine *m = e->machine;
    Graph *g;
    Tensor *result;
    TRY(expand(m, e, &g));
    const Tensor **arguments = NEWS(e->scratch, const Tensor *, e->n_in + 1);
    for (int i = 0, k = 0; i < e->n_in; i++)
        if (e->in[i])
            arguments[k++] = e->in[i];
    TRY(run_graph(m, g, arguments, &result));
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
static void tell_node(char *out, size_t n, const Node *node, const Type *type)
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

static void tell_structure(char *out, size_t n, const void *thing)
{
    const Node *node = thing;
    tell_node(out, n, node, node->type);
}

static void tell_call(char *out, size_t n, const void *thing)
{
    const Eval *e = thing;
    if (e->node)
        tell_node(out, n, e->node, e->type);
}

/* What the structural words mean. */
static Status run_structure(Machine *m, const Node *n, const Tensor *const *in, Tensor **value)
{
    if (n->op == OP_const || n->op == OP_param) {
        Payload *p = node_payload(n);
        if (!tensor_holds(n->type))
            TRY(tensor_wants_numbers(m->ir->diag, node_place(n), "its value", n->type));
        const Tensor *t = p ? payload_cached(p, m->ir->diag) : NULL;
        if (!t)
            return payload_failed(p, m->ir->diag, node_place(n));
        *value = tensor_hold(t);
        return OK;
    }
    if (n->op == OP_part) {
        const int64_t index = ((const PartAttr *)n->attr)->index;
        BUG_IF(m->ir->memory, (size_t)index >= in[0]->n_items);
        *value = tensor_hold(in[0]->items[index]);
        return OK;
    }
    if (n->op == OP_tuple) {
        *value = tensor_group(m->heap, n->type, (size_t)n->n_in, (Tensor *const *)(uintptr_t)in);
        return OK;
    }
    const OpaqueAttr *opaque = n->op == OP_opaque ? n->attr : NULL;
    return fail_as(m->ir->diag, UNSUPPORTED, node_place(n), "%s has no meaning here",
                   opaque ? opaque->op_type : op_of(n)->name);
}

static Status run_call(Machine *m, const Node *n, const Tensor *const *in, Tensor **value)
{
    const int n_out = type_results(n->type);
    Eval e = { .machine = m,
               .ir = m->ir,
               .node = n,
               .def = op_of(n),
               .attr = n->attr,
               .n_in = n->n_in,
               .in = in,
               .n_out = n_out,
               .scratch = &m->scratch,
               .kernels = m->options->kernels,
               .pool = m->options->pool };
    e.out = NEWS(&m->scratch, Tensor *, n_out);
    e.type = actual_type(m, n, &e);
    if (!e.type)
        return INVALID;
    if (!type_agrees(e.type, n->type))
        return eval_fail(&e, "gives %s where the graph says %s", type_text(&m->scratch, e.type),
                         type_text(&m->scratch, n->type));
    TRY(refuse_strings(&e));
    TRY(check_size(&e));
    const MemoryWork before = memory_work(m->ir->memory, tell_call, &e);
    Status status = run_card(&e);
    m->ir->memory->work = before;
    if (status == OK)
        eval_round_results(&e);
    if (eval_stopped(&e)) /* a kernel may have left out the rest */
        status = INTERRUPTED;
    for (int i = 0; i < n_out && status != OK; i++)
        if (e.out[i])
            tensor_drop(m->heap, e.out[i]);
    TRY(status);
    for (int i = 0; i < n_out; i++)
        BUG_IF(m->ir->memory, !e.out[i]);
    if (n->type->kind != TYPE_TUPLE) {
        *value = e.out[0];
        return OK;
    }
    *value = tensor_group(m->heap, e.type, (size_t)n_out, e.out);
    for (int i = 0; i < n_out; i++)
        tensor_drop(m->heap, e.out[i]);
    return OK;
}

static void release_operands(Machine *m, Facts *slots, const Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        Slot *s = in(n, i) ? fact(slots, in(n, i)) : NULL;
        if (s && --s->readers == 0) {
            tensor_drop(m->heap, s->value);
            s->value = NULL;
        }
    }
}

static Status run_node(Machine *m, Facts *slots, const Node *n)
{
    const ArenaMark mark = arena_mark(&m->scratch);
    const Tensor **operands = NEWS(&m->scratch, const Tensor *, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++)
        operands[i] = in(n, i) ? ((Slot *)fact(slots, in(n, i)))->value : NULL;

    Slot *slot = fact(slots, n);
    slot->readers = node_n_uses(n);
    const MemoryWork before = memory_work(m->ir->memory, tell_structure, n);
    const Status status = (op_of(n)->structural ? run_structure : run_call)(m, n, operands, &slot->value);
    m->ir->memory->work = before;
    TRY(status);
    if (m->depth == 1 && m->options->observe)
        m->options->observe(m->options->user, n, slot->value);
    release_operands(m, slots, n);
    if (!slot->readers) {
        tensor_drop(m->heap, slot->value);
        slot->value = NULL;
    }
    arena_reset(&m->scratch, mark);
    return OK;
}

/* ---- graphs ---- */

/* A graph that runs: what is alive, and how far it is. */
typedef struct Frame {
    Graph *graph;
    Arena arena;
    Facts slots;
    const Node *next;
} Frame;

static Slot *slot_of(Frame *f, const Node *n)
{
    return fact(&f->slots, n);
}

static void frame_open(Frame *f, Graph *g)
{
    f->graph = g;
    f->next = NULL;
    arena_open(&f->arena, g->ir->memory);
    f->slots = facts_open(&f->arena, sizeof(Slot));
}

static void slot_put(Machine *m, Slot *s, const Tensor *value)
{
    Tensor *held = value ? tensor_hold(value) : NULL;
    if (s->value)
        tensor_drop(m->heap, s->value);
    s->value = held;
}

static void frame_put(Machine *m, Frame *f, const Node *n, const Tensor *value)
{
    slot_put(m, slot_of(f, n), value);
}

static void frame_take(Machine *m, Frame *f, const Node *n)
{
    Slot *s = fact_known(&f->slots, n);
    if (s)
        slot_put(m, s, NULL);
}

static void frame_begin(Machine *m, Frame *f, const Tensor *const *arguments)
{
    for (size_t i = 0; i < f->graph->n_inputs; i++) {
        const Node *n = f->graph->inputs[i];
        slot_of(f, n)->readers = node_n_uses(n) + 1; /* the caller's own hold */
        frame_put(m, f, n, arguments[i]);
    }
    f->next = f->graph->first;
}

static bool is_stopped(const EvalOptions *o)
{
    return (o->stop && *o->stop) || (o->stop_too && *o->stop_too);
}

/* The next node of a run that was interrupted: the one that it was interrupted in, or would have run then. */
static Status frame_until(Machine *m, Frame *f, const Node *end)
{
    for (;;) {
        if (is_stopped(m->options))
            return INTERRUPTED;
        if (!f->next || f->next == end)
            return OK;
        TRY(run_node(m, &f->slots, f->next));
        f->next = f->next->next;
    }
}

static void frame_results(Frame *f, Tensor **results)
{
    const Node *ret = f->graph->ret;
    for (int i = 0; i < ret->n_in; i++) {
        const Slot *s = in(ret, i) ? slot_of(f, in(ret, i)) : NULL;
        results[i] = s && s->value ? tensor_hold(s->value) : NULL;
    }
}

static void frame_drop_inputs(Machine *m, Frame *f)
{
    for (size_t i = 0; i < f->graph->n_inputs; i++)
        frame_take(m, f, f->graph->inputs[i]);
}

/* One that was left half way holds values still.  Nothing is asked for: this is how an evaluation ends that found no
 * memory. */
static void frame_drop_all(Machine *m, Frame *f)
{
    frame_drop_inputs(m, f);
    for (const Node *n = f->graph->first; n; n = n->next)
        frame_take(m, f, n);
}

static Status run_graph(Machine *m, Graph *g, const Tensor *const *arguments, Tensor **results)
{
    Frame f;
    if (m->depth == DEEPEST)
        return fail(m->ir->diag, NOWHERE, "regions nest deeper than the limit graph_nesting");
    m->depth++;
    frame_open(&f, g);
    frame_begin(m, &f, arguments);
    const Status status = frame_until(m, &f, NULL);
    if (status == OK) {
        frame_results(&f, results);
        release_operands(m, &f.slots, g->ret);
        frame_drop_inputs(m, &f);
    } else {
        frame_drop_all(m, &f);
    }
    arena_close(&f.arena);
    m->depth--;
    return status;
}

static void machine_open(Machine *m, Ir *ir, const EvalOptions *options, Heap *heap)
{
    *m = (Machine){ .ir = ir, .options = options, .heap = heap };
    arena_open(&m->arena, ir->memory);
    arena_open(&m->scratch, ir->memory);
    map_open(&m->expansions, &m->arena);
}

static void machine_close(Machine *m)
{
    arena_close(&m->scratch);
    arena_close(&m->arena);
}

Status evaluate(Graph *g, const EvalOptions *options, Heap *heap, const Tensor *const *inputs, Tensor **results)
{
    static const EvalOptions defaults = { 0 };
    EvalOptions used = options ? *options : defaults;
    if (!used.kernels)
        used.kernels = kernels_best();
    Machine m;
    machine_open(&m, g->ir, &used, heap);
    const Status status = run_graph(&m, g, inputs, results);
    machine_close(&m);
    return status;
}

/* ---- again and again, and in parts ---- */

struct Evaluation {
    Machine machine;
    Frame frame;
    EvalOptions options;
    ArenaMark empty; /* of the machine's scratch */
};

Evaluation *evaluation_open(Graph *g, const EvalOptions *options, Arena *arena, Heap *heap)
{
    Evaluation *e = NEW(arena, Evaluation);
    e->options = *options;
    if (!e->options.kernels)
        e->options.kernels = kernels_best();
    machine_open(&e->machine, g->ir, &e->options, heap);
    frame_open(&e->frame, g);
    arena_reuse(&e->machine.scratch);
    e->empty = arena_mark(&e->machine.scratch);
    return e;
}

void evaluation_keep(Evaluation *e)
{
    arena_keep(&e->machine.arena);
    arena_keep(&e->machine.scratch);
    arena_keep(&e->frame.arena);
}

void evaluation_begin(Evaluation *e, uint64_t step, const Tensor *const *inputs)
{
    frame_drop_all(&e->machine, &e->frame);
    e->options.step = step;
    e->machine.turns = 0;
    e->machine.depth = 1; /* as evaluate() counts */
    arena_reset(&e->machine.scratch, e->empty);
    frame_begin(&e->machine, &e->frame, inputs);
}

void evaluation_set_seed(Evaluation *e, uint64_t seed)
{
    e->options.seed = seed;
}

Status evaluation_until(Evaluation *e, const Node *end)
{
    return frame_until(&e->machine, &e->frame, end);
}

const Tensor *evaluation_value(Evaluation *e, const Node *n)
{
    const Slot *s = fact_known(&e->frame.slots, n);
    return s ? s->value : NULL;
}

void evaluation_put(Evaluation *e, const Node *n, const Tensor *value)
{
    frame_put(&e->machine, &e->frame, n, value);
}

void evaluation_end(Evaluation *e)
{
    frame_drop_all(&e->machine, &e->frame);
}

void evaluation_close(Evaluation *e)
{
    if (!e)
        return;
    frame_drop_all(&e->machine, &e->frame);
    arena_close(&e->frame.arena);
    machine_close(&e->machine);
}
