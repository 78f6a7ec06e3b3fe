#include "runtime/host/program_runner.h"

#include "ops/machine/caller.h"

static ProgramRunner *of(const GraphRunner *r)
{
    return (ProgramRunner *)(uintptr_t)r;
}

/* ---- opening ---- */

static void link_slot(Slot **list, Slot *s)
{
    s->next = *list;
    *list = s;
}

static void open_slot(ProgramRunner *p, const ProgramValue *v, Slot *s)
{
    size_t bytes = 0;
    if (v->home == HOME_NONE)
        return;
    BUG_IF(p->ir->memory, !type_bytes(v->type, &bytes));
    s->tensor = (Tensor){ .type = v->type, .bytes = bytes, .refs = LENT };
    if (v->home == HOME_INPUT)
        link_slot(&p->of_input[v->at], s);
    else if (v->home == HOME_NEXT)
        link_slot(&p->of_next[v->at], s);
}

/* What a product reads are arguments of its body. */
static void open_product(ProgramRunner *p, LaunchRun *run, Slot *slot, Arena *arena)
{
    const Node *product = run->launch->contraction;
    const Graph *body = run->launch->node->regions[0];
    open_slot(p, &run->launch->product, slot);
    run->in[run->launch->n_in] = run->product = &slot->tensor;
    run->factors = NEWS(arena, const Tensor *, product->n_in + 1);
    for (int i = 0; i < product->n_in; i++)
        for (size_t k = 0; k < body->n_inputs; k++)
            if (in(product, i) == body->inputs[k])
                run->factors[i] = run->in[k];
}

static void open_launch(ProgramRunner *p, const Launch *l, LaunchRun *run, Arena *arena)
{
    Slot *slots = NEWS(arena, Slot, l->n_in + l->n_out + 2);
    *run = (LaunchRun){ .launch = l,
                        .in = NEWS(arena, const Tensor *, l->n_in + 2),
                        .out = NEWS(arena, Tensor *, l->n_out + 1) };
    for (int i = 0; i < l->n_in; i++) {
        open_slot(p, &l->in[i], &slots[i]);
        run->in[i] = l->in[i].home == HOME_NONE ? NULL : &slots[i].tensor;
    }
    for (int i = 0; i < l->n_out; i++) {
        open_slot(p, &l->out[i], &slots[l->n_in + i]);
        run->out[i] = &slots[l->n_in + i].tensor;
    }
    if (l->contraction)
        open_product(p, run, &slots[l->n_in + l->n_out], arena);
}

static void find_made_next(ProgramRunner *p)
{
    const Program *program = p->program;
    for (int k = program->first[STEP_LATE]; k < program->n_launches; k++)
        for (int i = 0; i < program->launches[k].n_out; i++)
            if (program->launches[k].out[i].home == HOME_NEXT)
                p->made_next[program->launches[k].out[i].at] = k;
}

static void keep(GraphRunner *r)
{
    of(r)->does->keep(of(r));
}

static void close(GraphRunner *r)
{
    ProgramRunner *p = of(r);
    Space *space = p->room->space;
    program_close_apart(p);
    for (int i = 0; i < p->program->n_constants && space; i++)
        if (p->constants[i])
            space->does->give(space, p->constants[i]);
    p->does->close(p); /* the heap has the rest */
}

/* ---- memory ---- */

static void let_slots_lie(ProgramRunner *p, const ProgramValue *v, Tensor *t)
{
    if (v->home == HOME_ARENA)
        t->data = p->arena + v->at;
    else if (v->home == HOME_CONSTANT)
        t->data = p->constants[v->at];
}

/* A constant's data, copied into the space once if values lie in one. */
static void *constant_data(ProgramRunner *p, const Tensor *t)
{
    Space *space = p->room->space;
    if (!space)
        return t->data;
    void *data = space->does->take(space, t->bytes ? t->bytes : 1);
    space_write(space, data, t->data, t->bytes);
    return data;
}

static Status read_constants(ProgramRunner *p)
{
    for (int i = 0; i < p->program->n_constants; i++) {
        const Node *n = p->program->constants[i];
        Payload *payload = node_payload(n);
        if (p->constants[i])
            continue;
        const MemoryWork before = memory_work(p->ir->memory, caller_tell, n);
        const Tensor *t = payload ? payload_cached(payload, p->ir->diag) : NULL;
        p->ir->memory->work = before;
        if (!t)
            return payload_failed(payload, p->ir->diag, node_place(n));
        p->constants[i] = constant_data(p, t);
    }
    return OK;
}

/* The call that makes the largest value: what people know of all that lives with it. */
static const Node *largest_call(const Program *program)
{
    const Node *of = NULL;
    size_t most = 0;
    for (int k = 0; k < program->n_launches; k++)
        for (int i = 0; i < program->launches[k].n_out; i++) {
            size_t bytes = 0;
            if (type_bytes(program->launches[k].out[i].type, &bytes) && bytes > most) {
                most = bytes;
                of = program->launches[k].node;
            }
        }
    return of;
}

/* Lets everything lie where the room is now. */
static void settle(ProgramRunner *p, char *arena, char *scratch)
{
    const Program *program = p->program;
    p->arena = arena;
    for (int i = 0; i < program->n_launches; i++) {
        const Launch *l = &program->launches[i];
        LaunchRun *run = &p->launches[i];
        for (int k = 0; k < l->n_in; k++)
            let_slots_lie(p, &l->in[k], (Tensor *)(uintptr_t)run->in[k]);
        for (int k = 0; k < l->n_out; k++)
            let_slots_lie(p, &l->out[k], run->out[k]);
        if (run->product)
            let_slots_lie(p, &l->product, run->product);
    }
    for (int i = 0; i < program->n_results; i++)
        let_slots_lie(p, &program->results[i], &p->of_result[i].tensor);
    p->scratch = scratch;
    p->does->settle(p, scratch);
}

/* Before the first run, and where others have used the room: from then on nothing is asked for. */
static Status take_memory(ProgramRunner *p)
{
    const size_t bytes = p->program->arena + 1;
    TRY(read_constants(p));
    const Node *largest = p->room->block[0].bytes < bytes ? largest_call(p->program) : NULL;
    const MemoryWork before = memory_work(p->ir->memory, largest ? caller_tell : NULL, largest);
    char *arena = runner_room(p->room, 0, bytes);
    char *scratch = runner_room(p->room, 1, p->does->scratch(p) + 1);
    p->ir->memory->work = before;
    if (arena != p->arena || scratch != p->scratch)
        settle(p, arena, scratch);
    return space_status(p->room->space);
}

static void let_lie(Slot *list, void *data)
{
    for (Slot *s = list; s; s = s->next)
        s->tensor.data = data;
}

/* ---- runs ---- */

static bool is_aligned(const Tensor *t)
{
    const int bytes = dtype_bits(t->type->dtype) / 8;
    return bytes < 2 || (uintptr_t)t->data % (size_t)bytes == 0;
}

static bool fits(const GraphRunner *r, const Tensor *const *operands)
{
    const Graph *g = of(r)->program->graph;
    for (size_t i = 0; i < g->n_inputs; i++)
        if (operands[i] && (operands[i]->type != g->inputs[i]->type || !is_aligned(operands[i])))
            return false;
    return true;
}

static bool reads(const GraphRunner *r, int input)
{
    return of(r)->of_input[input] != NULL;
}

static void reread(GraphRunner *r, int input, const Tensor *value)
{
    of(r)->operands[input] = value;
    let_lie(of(r)->of_input[input], value ? value->data : NULL);
}

static Status begin(GraphRunner *r, uint64_t seed, uint64_t step, const Tensor *const *operands)
{
    ProgramRunner *p = of(r);
    TRY(take_memory(p));
    for (size_t i = 0; i < p->program->graph->n_inputs; i++)
        reread(r, (int)i, operands[i]);
    p->does->begin(p, seed, step);
    p->at = 0;
    p->began = true;
    return OK;
}

bool program_stopped(const ProgramRunner *p)
{
    return !p->is_late && ((p->stop && *p->stop) || (p->stop_too && *p->stop_too));
}

/* A program of one part runs all but what is late; that of a step its parts. */
static Status until(GraphRunner *r, int part)
{
    ProgramRunner *p = of(r);
    p->is_late = false;
    return p->does->run(p, p->program->first[p->n_parts == 1 ? STEP_LATE : part + 1]);
}

static Status answer(GraphRunner *r)
{
    ProgramRunner *p = of(r);
    return p->does->answer ? p->does->answer(p) : OK;
}

static const Tensor *value_of_input(const ProgramRunner *p, const ProgramValue *v, Slot *s)
{
    const Tensor *t = p->operands[v->at];
    return t && t->type == v->type ? t : t ? &s->tensor : NULL;
}

static const Tensor *result(const GraphRunner *r, int i)
{
    const ProgramRunner *p = of(r);
    const ProgramValue *v = &p->program->results[i];
    const bool is_made = v->home != HOME_ARENA || v->maker < p->at;
    switch (p->began && is_made ? v->home : HOME_NONE) {
    case HOME_ARENA:
    case HOME_CONSTANT:
        return &p->of_result[i].tensor;
    case HOME_INPUT:
        return value_of_input(p, v, &p->of_result[i]);
    default:
        return NULL; /* it is not made before it is moved */
    }
}

static void put(GraphRunner *r, int i, const Tensor *value)
{
    const Tensor *t = result(r, i);
    if (value && t && t->bytes && of(r)->program->results[i].home == HOME_ARENA)
        space_copy(of(r)->room->space, (void *)(uintptr_t)t->data, value->data, t->bytes);
}

static void end(GraphRunner *r)
{
    of(r)->began = false;
}

/* ---- what is late ---- */

static int late(const GraphRunner *r, int i)
{
    const ProgramValue *v = &of(r)->program->results[i];
    return of(r)->began && v->home == HOME_NEXT ? (int)v->at : -1;
}

static int made_over(const GraphRunner *r, int i)
{
    const ProgramNext *next = &of(r)->program->next[i];
    return next->in_place ? next->state : NO_STATE;
}

/* From the last to the first, with those that make what they read. */
void program_want(ProgramRunner *p, Tensor *const *into)
{
    const Program *program = p->program;
    const int first = program->first[STEP_LATE];
    for (int k = first; k < program->n_launches; k++) {
        const Launch *l = &program->launches[k];
        p->wanted[k] = false;
        for (int i = 0; i < l->n_out; i++)
            p->wanted[k] = p->wanted[k] || (l->out[i].home == HOME_NEXT && into[l->out[i].at]);
    }
    for (int k = program->n_launches - 1; k >= first; k--)
        for (int i = 0; i < program->launches[k].n_in && p->wanted[k]; i++) {
            const ProgramValue *v = &program->launches[k].in[i];
            if (v->home == HOME_NEXT)
                p->wanted[p->made_next[v->at]] = true;
            else if (v->home == HOME_ARENA && v->maker >= first)
                p->wanted[v->maker] = true;
        }
}

static void drop_beside(ProgramRunner *p)
{
    for (int i = 0; i < p->program->n_results; i++)
        if (p->beside[i]) {
            space_drop(p->room->space, p->heap, p->beside[i]);
            p->beside[i] = NULL;
        }
}

void program_let_lie(ProgramRunner *p, int result, void *data)
{
    let_lie(p->of_next[result], data);
}

static Status make_late(GraphRunner *r, Tensor *const *into)
{
    ProgramRunner *p = of(r);
    const Program *program = p->program;
    program_want(p, into);
    for (int i = 0; i < program->n_results; i++)
        let_lie(p->of_next[i], into[i] ? into[i]->data : NULL);
    for (int k = program->first[STEP_LATE]; k < program->n_launches; k++)
        for (int i = 0; i < program->launches[k].n_out && p->wanted[k]; i++) {
            const ProgramValue *v = &program->launches[k].out[i];
            if (v->home != HOME_NEXT || into[v->at])
                continue;
            p->beside[v->at] = space_tensor(p->room->space, p->heap, v->type);
            let_lie(p->of_next[v->at], p->beside[v->at]->data);
        }
    const int at = p->at; /* what has run of the rest stays so */
    p->at = program->first[STEP_LATE];
    p->is_late = true;
    Status status = p->does->run(p, program->n_launches);
    if (status == OK)
        status = answer(r);
    p->at = at;
    drop_beside(p);
    return status;
}

static const GraphRunnerClass programmed = {
    .keep = keep,
    .close = close,
    .fits = fits,
    .begin = begin,
    .reads = reads,
    .reread = reread,
    .until = until,
    .answer = answer,
    .result = result,
    .put = put,
    .copies = true,
    .end = end,
    .late = late,
    .made_over = made_over,
    .make_late = make_late,
    .decides = program_decides,
    .settled = program_settled,
    .apart = program_apart,
    .step = program_step,
    .told = program_told,
};

EvalOptions program_call_options(const Executable *x, const EngineOptions *o)
{
    return (EvalOptions){ .kernels = o->kernels,
                          .pool = o->pool,
                          .stop = x->brief ? NULL : o->stop,
                          .stop_too = x->brief ? NULL : o->stop_too,
                          .narrow = o->narrow };
}

ProgramRunner *program_runner_open(const LaunchesClass *does, const Executable *x, const EngineOptions *o,
                                   RunnerRoom *room, Arena *arena, Heap *heap)
{
    const Program *program = x->program;
    if (!program || (o->rounding && !x->brief))
        return NULL;
    ProgramRunner *p = NEW(arena, ProgramRunner);
    *p = (ProgramRunner){ .runner = { &programmed },
                          .does = does,
                          .program = program,
                          .n_parts = x->n_parts,
                          .ir = x->graph->ir,
                          .heap = heap,
                          .room = room,
                          .pool = o->pool,
                          .stop = x->brief ? NULL : o->stop,
                          .stop_too = x->brief ? NULL : o->stop_too,
                          .watch = o->watch,
                          .launches = NEWS(arena, LaunchRun, program->n_launches + 1),
                          .of_input = NEWS(arena, Slot *, program->graph->n_inputs + 1),
                          .of_next = NEWS(arena, Slot *, program->n_results + 1),
                          .of_result = NEWS(arena, Slot, program->n_results + 1),
                          .made_next = NEWS(arena, int, program->n_results + 1),
                          .constants = NEWS(arena, void *, program->n_constants + 1),
                          .operands = NEWS(arena, const Tensor *, program->graph->n_inputs + 1),
                          .beside = NEWS(arena, Tensor *, program->n_results + 1),
                          .apart = NEWS(arena, Tensor *, program->n_results + 1),
                          .wanted = NEWS(arena, bool, program->n_launches + 1) };
    for (int i = 0; i < program->n_launches; i++)
        open_launch(p, &program->launches[i], &p->launches[i], arena);
    for (int i = 0; i < program->n_results; i++)
        open_slot(p, &program->results[i], &p->of_result[i]);
    find_made_next(p);
    return p;
}
