/* The machine that runs graphs: each node by its card's meaning, values as long as somebody reads them. */
#include "ops/machine/machine.h"

#include <inttypes.h>

#include "ops/card/cards.h"

enum { DEEPEST = 40 }; /* regions in regions and expansions in expansions: a bounded recursion */

/* A value while it is alive. */
typedef struct Slot {
    Tensor *value;
    int readers; /* still to come */
} Slot;

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
    const Status status = machine_run_graph(e->machine, region, arguments, results);
    e->machine->iteration = outer;
    return status;
}

static void tell_structure(char *out, size_t n, const void *thing)
{
    const Node *node = thing;
    machine_tell_node(out, n, node, node->type);
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
    const ArenaMark mark = arena_mark(m->scratch);
    const Tensor **operands = NEWS(m->scratch, const Tensor *, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++)
        operands[i] = in(n, i) ? ((Slot *)fact(slots, in(n, i)))->value : NULL;

    Slot *slot = fact(slots, n);
    slot->readers = node_n_uses(n);
    const MemoryWork before = memory_work(m->ir->memory, tell_structure, n);
    const Status status = (op_of(n)->structural ? run_structure : machine_call)(m, n, operands, &slot->value);
    m->ir->memory->work = before;
    TRY(status);
    if (m->depth == 1 && m->options->observe)
        m->options->observe(m->options->user, n, slot->value);
    release_operands(m, slots, n);
    if (!slot->readers) {
        tensor_drop(m->heap, slot->value);
        slot->value = NULL;
    }
    arena_reset(m->scratch, mark);
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

Status machine_run_graph(Machine *m, Graph *g, const Tensor *const *arguments, Tensor **results)
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

void machine_open(Machine *m, Ir *ir, const EvalOptions *options, Heap *heap, Arena *scratch)
{
    *m = (Machine){ .ir = ir, .options = options, .heap = heap, .scratch = scratch ? scratch : &m->own };
    arena_open(&m->arena, ir->memory);
    if (!scratch)
        arena_open(&m->own, ir->memory);
    map_open(&m->expansions, &m->arena);
}

void machine_close(Machine *m)
{
    if (m->scratch == &m->own)
        arena_close(&m->own);
    arena_close(&m->arena);
}

Status evaluate(Graph *g, const EvalOptions *options, Heap *heap, const Tensor *const *inputs, Tensor **results)
{
    static const EvalOptions defaults = { 0 };
    EvalOptions used = options ? *options : defaults;
    if (!used.kernels)
        used.kernels = kernels_best();
    Machine m;
    machine_open(&m, g->ir, &used, heap, NULL);
    const Status status = machine_run_graph(&m, g, inputs, results);
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
    machine_open(&e->machine, g->ir, &e->options, heap, NULL);
    frame_open(&e->frame, g);
    arena_reuse(e->machine.scratch);
    e->empty = arena_mark(e->machine.scratch);
    return e;
}

void evaluation_keep(Evaluation *e)
{
    arena_keep(&e->machine.arena);
    arena_keep(e->machine.scratch);
    arena_keep(&e->frame.arena);
}

void evaluation_begin(Evaluation *e, uint64_t step, const Tensor *const *inputs)
{
    frame_drop_all(&e->machine, &e->frame);
    e->options.step = step;
    e->machine.turns = 0;
    e->machine.depth = 1; /* as evaluate() counts */
    arena_reset(e->machine.scratch, e->empty);
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
