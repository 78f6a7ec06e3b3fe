#include "ops/machine/caller.h"

#include "ops/machine/machine.h"

struct Caller {
    Machine machine;
    EvalOptions options;
};

bool caller_knows_types(const Node *n, Arena *scratch)
{
    enum { MOST_BYTES = 1 << 16 }; /* of a constant that says where elements go */
    Ir *ir = n->graph->ir;
    const OpDef *def = op_of(n);
    const Type **types = NEWS(scratch, const Type *, n->n_in + 1);
    const Tensor **values = NEWS(scratch, const Tensor *, n->n_in + 1);
    bool is_open = n->n_regions > 0;
    for (int i = 0; i < n->n_in; i++) {
        types[i] = in(n, i) ? in(n, i)->type : NULL;
        values[i] = in(n, i) ? node_constant(in(n, i), MOST_BYTES) : NULL;
        is_open = is_open || (in(n, i) && !values[i] && def->access.steer >> (i < 31 ? i : 31) & 1);
    }
    if (!is_open) /* the graph was verified: nothing else steers it */
        return true;
    Infer q = { .ir = ir,
                .types = &ir->types,
                .def = def,
                .attr = n->attr,
                .n_in = n->n_in,
                .in = types,
                .value = values,
                .n_out = type_results(n->type),
                .regions = n->regions,
                .n_regions = n->n_regions,
                .scratch = scratch };
    return def->infer(&q) == n->type;
}

Caller *caller_open(Ir *ir, const EvalOptions *options, Arena *arena, Heap *heap, Arena *scratch)
{
    Caller *c = NEW(arena, Caller);
    c->options = *options;
    if (!c->options.kernels)
        c->options.kernels = kernels_best();
    machine_open(&c->machine, ir, &c->options, heap, scratch);
    return c;
}

void caller_keep(Caller *c)
{
    arena_keep(&c->machine.arena);
}

void caller_expect(Caller *c, size_t bytes)
{
    enum { LITTLE = 1 << 16 }; /* tables of operands, and what aligns the rest */
    if (bytes > LITTLE)
        arena_expect(c->machine.scratch, bytes + LITTLE);
}

/* Nobody else runs, whatever a jump may have left there. */
static void empty(Caller *c)
{
    arena_reset(c->machine.scratch, (ArenaMark){ .chunk = NULL });
}

void caller_begin(Caller *c, uint64_t seed, uint64_t step)
{
    c->options.seed = seed;
    c->options.step = step;
    c->machine.turns = 0;
    c->machine.depth = 1; /* as evaluate() counts */
    empty(c);
}

/* What a call that was stopped has filled in part is filled again. */
static void settle_kept(Status status, int n, const CallBeside *calls)
{
    for (int i = 0; i < n; i++)
        if (calls[i].kept) {
            calls[i].kept->made = calls[i].kept->made || (status == OK && calls[i].kept->filled);
            calls[i].kept->filled = false;
        }
}

Status caller_call_one(Caller *c, const CallBeside *call)
{
    c->machine.iteration = call->turn;
    const Status status = machine_call_into(&c->machine, call);
    c->machine.iteration = 0;
    settle_kept(status, 1, call);
    empty(c);
    return status;
}

Status caller_call_beside(Caller *c, int n, const CallBeside *calls)
{
    const Status status = machine_call_beside(&c->machine, n, calls);
    settle_kept(status, n, calls);
    empty(c);
    return status;
}

Status caller_call(Caller *c, const Node *n, uint32_t turn, const Tensor *const *in, Tensor **out)
{
    return caller_call_one(c, &(CallBeside){ .node = n, .in = in, .out = out, .turn = turn });
}

/* What is narrower than the arithmetic is widened before it is computed with, and rounded behind it. */
static size_t widened(const Type *t)
{
    return t->kind == TYPE_TENSOR && dtype_is_float(t->dtype) && dtype_bits(t->dtype) < 32 && type_known(t)
               ? (size_t)type_elements(t) * sizeof(f32)
               : 0;
}

size_t caller_room(const Node *n)
{
    const OpDef *def = op_of(n);
    size_t bytes = def->room ? def->room(n) : 0;
    const bool widens =
        def->access.kind == ACCESS_CONTRACT || def->access.kind == ACCESS_WINDOW || def->access.served_whole;
    if (!widens)
        return bytes;
    for (int i = 0; i < n->n_in; i++)
        bytes += in(n, i) ? widened(in(n, i)->type) : 0;
    for (int i = 0; i < type_results(n->type); i++)
        bytes += widened(type_result(n->type, i));
    return bytes;
}

void caller_tell(char *out, size_t n, const void *node)
{
    const Node *call = node;
    machine_tell_node(out, n, call, call->type);
}

void caller_close(Caller *c)
{
    if (c)
        machine_close(&c->machine);
}
