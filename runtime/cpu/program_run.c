#include "runtime/cpu/program_run.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "ops/machine/caller.h"
#include "runtime/cpu/program_scratch.h"

/* A value as a launch reads or writes it. */
typedef struct Slot {
    Tensor tensor;
    struct Slot *next; /* of the same input, or the same late result */
} Slot;

typedef struct LaunchRun {
    const Launch *launch;
    TapeRunner *tape;  /* of a region, and of a contract */
    const Tensor **in; /* behind them, of a contract, its product, */
    Tensor **out;
    Tensor *product;        /* which is this, */
    const Tensor **factors; /* made of these */
} LaunchRun;

typedef struct ProgramRunner {
    GraphRunner runner;
    const Program *program;
    int n_parts;
    Ir *ir;
    Heap *heap;
    RunnerRoom *room;
    Parallel *pool;
    const _Atomic int *stop, *stop_too;
    const LaunchWatch *watch;
    Caller *caller;
    LaunchRun *launches;
    TapeRunner **tapes;            /* of a wave under way, */
    const Tensor *const **wave_in; /* its operands, */
    Tensor *const **wave_out;      /* and its results */
    Slot **of_input, **of_next;    /* lists */
    Slot *of_result;               /* by result, in the arena or elsewhere */
    int *made_next;                /* by late result, the launch */
    const Tensor **constants;
    const Tensor **operands;            /* of the run under way */
    char *arena, *scratch;              /* in the room, when it was last looked; null: not yet */
    size_t scratch_bytes, worker_bytes; /* of a wave; of each worker */
    Tensor **beside;                    /* by late result: what nobody asked for, but a launch makes */
    bool *wanted;                       /* by launch */
    int at;                             /* the launch to come */
    bool began;
} ProgramRunner;

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

static size_t scratch_of(const ProgramRunner *p, int launch)
{
    enum { LINE = 64 };
    return (tape_scratch(p->launches[launch].tape) + LINE - 1) / LINE * LINE;
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

static void open_launch(ProgramRunner *p, const Launch *l, LaunchRun *run, const EngineOptions *o, Arena *arena)
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
    run->tape = launch_tape(l, p->ir->ops, o->kernels, parallel_threads(o->pool), arena);
}

/* Those that run side by side have a scratch each; a worker runs one at a time. */
static void measure_scratch(ProgramRunner *p)
{
    size_t wave = 0;
    for (int k = 0; k < p->program->n_launches; k++) {
        wave = p->program->launches[k].beside ? wave : 0;
        if (!p->launches[k].tape)
            continue;
        const size_t worker = tape_worker_scratch(p->launches[k].tape);
        p->worker_bytes = worker > p->worker_bytes ? worker : p->worker_bytes;
        wave += scratch_of(p, k);
        p->scratch_bytes = wave > p->scratch_bytes ? wave : p->scratch_bytes;
    }
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
    caller_keep(of(r)->caller);
}

static void close(GraphRunner *r)
{
    caller_close(of(r)->caller); /* the heap has the rest */
}

/* ---- memory ---- */

static void let_slots_lie(ProgramRunner *p, const ProgramValue *v, Tensor *t)
{
    if (v->home == HOME_ARENA)
        t->data = p->arena + v->at;
    else if (v->home == HOME_CONSTANT)
        t->data = p->constants[v->at]->data;
}

static Status read_constants(ProgramRunner *p)
{
    for (int i = 0; i < p->program->n_constants && !p->scratch; i++) {
        const Node *n = p->program->constants[i];
        Payload *payload = node_payload(n);
        const MemoryWork before = memory_work(p->ir->memory, caller_tell, n);
        p->constants[i] = payload ? payload_cached(payload, p->ir->diag) : NULL;
        p->ir->memory->work = before;
        if (!p->constants[i])
            return payload_failed(payload, p->ir->diag, node_place(n));
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
    const size_t workers = (size_t)parallel_threads(p->pool) * p->worker_bytes;
    char *own = scratch;
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
        own = l->beside ? own : scratch + workers;
        if (run->tape) {
            tape_place(run->tape, own, scratch, p->worker_bytes);
            own += scratch_of(p, i);
        }
    }
    for (int i = 0; i < program->n_results; i++)
        let_slots_lie(p, &program->results[i], &p->of_result[i].tensor);
    p->scratch = scratch;
}

/* Before the first run, and where others have used the room: from then on nothing is asked for. */
static Status take_memory(ProgramRunner *p)
{
    const size_t workers = (size_t)parallel_threads(p->pool) * p->worker_bytes, bytes = p->program->arena + 1;
    TRY(read_constants(p));
    const Node *largest = p->room->block[0].bytes < bytes ? largest_call(p->program) : NULL;
    const MemoryWork before = memory_work(p->ir->memory, largest ? caller_tell : NULL, largest);
    char *arena = runner_room(p->room, 0, bytes);
    char *scratch = runner_room(p->room, 1, workers + p->scratch_bytes + 1);
    p->ir->memory->work = before;
    if (arena != p->arena || scratch != p->scratch)
        settle(p, arena, scratch);
    return OK;
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
    caller_begin(p->caller, seed, step);
    for (int i = 0; i < p->program->n_launches; i++)
        if (p->launches[i].tape)
            tape_seed(p->launches[i].tape, seed, step);
    p->at = 0;
    p->began = true;
    return OK;
}

static bool is_stopped(const ProgramRunner *p)
{
    return (p->stop && *p->stop) || (p->stop_too && *p->stop_too);
}

static bool is_wanted(const ProgramRunner *p, int launch)
{
    return p->program->launches[launch].part != STEP_LATE || p->wanted[launch];
}

static void block_is_done(void *user, const EvalBlock *b, int worker)
{
    tape_run_block(user, b->at, b->rows, b->cols, b->pitch, worker);
}

/* Products of one operand, or a call alone; behind a product, where a block of it is done, its tape. */
static Status run_calls(ProgramRunner *p, int launch, int n)
{
    EvalWatch watch[PRODUCTS_BESIDE];
    CallBeside calls[PRODUCTS_BESIDE];
    for (int i = 0; i < n; i++) {
        LaunchRun *run = &p->launches[launch + i];
        calls[i] = (CallBeside){ run->launch->node, run->in, run->out, NULL };
        if (!run->product)
            continue;
        tape_begin(run->tape, run->in, run->out);
        watch[i] = (EvalWatch){ block_is_done, run->tape };
        calls[i] = (CallBeside){ run->launch->contraction, run->factors, &run->product, &watch[i] };
    }
    return n > 1 ? caller_call_beside(p->caller, n, calls)
                 : caller_call_watched(p->caller, calls[0].node, calls[0].in, calls[0].out, calls[0].watch);
}

/* Launches that run side by side, of late ones those that are wanted. */
static Status run_quietly(ProgramRunner *p, int launch, int n)
{
    int several = 0;
    for (int k = launch; k < launch + n; k++) {
        const LaunchRun *run = &p->launches[k];
        if (!is_wanted(p, k))
            continue;
        if (run->launch->kind != LAUNCH_REGION)
            return run_calls(p, launch, n);
        p->tapes[several] = run->tape;
        p->wave_in[several] = run->in;
        p->wave_out[several++] = run->out;
    }
    if (several == 1)
        tape_run(p->tapes[0], p->pool, p->wave_in[0], p->wave_out[0]);
    else if (several)
        tape_run_beside(p->tapes, several, p->pool, p->wave_in, p->wave_out);
    return OK;
}

static Status run_wave(ProgramRunner *p, int launch, int n)
{
    if (!p->watch)
        return run_quietly(p, launch, n);
    const double began = clock_seconds();
    const Status status = run_quietly(p, launch, n);
    p->watch->launched(p->watch->user, p->program, launch, n, began, clock_seconds());
    return status;
}

/* A program of one part runs all but what is late; that of a step its parts. */
static Status until(GraphRunner *r, int part)
{
    ProgramRunner *p = of(r);
    const int end = p->program->first[p->n_parts == 1 ? STEP_LATE : part + 1];
    for (;;) {
        if (is_stopped(p))
            return INTERRUPTED;
        if (p->at >= end)
            return OK;
        const int n = program_wave(p->program, p->at);
        TRY(run_wave(p, p->at, n));
        p->at += n;
    }
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
        bytes_copy((void *)(uintptr_t)t->data, value->data, t->bytes);
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

/* Which launches make what is wanted: from the last to the first, with those that make what they read. */
static void find_wanted(ProgramRunner *p, Tensor *const *into)
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
            tensor_drop(p->heap, p->beside[i]);
            p->beside[i] = NULL;
        }
}

static bool is_any_wanted(const ProgramRunner *p, int launch, int n)
{
    while (n > 0 && !p->wanted[launch + n - 1])
        n--;
    return n > 0;
}

static Status make_late(GraphRunner *r, Tensor *const *into)
{
    ProgramRunner *p = of(r);
    const Program *program = p->program;
    Status status = OK;
    find_wanted(p, into);
    for (int i = 0; i < program->n_results; i++)
        let_lie(p->of_next[i], into[i] ? into[i]->data : NULL);
    for (int k = program->first[STEP_LATE]; k < program->n_launches; k++)
        for (int i = 0; i < program->launches[k].n_out && p->wanted[k]; i++) {
            const ProgramValue *v = &program->launches[k].out[i];
            if (v->home != HOME_NEXT || into[v->at])
                continue;
            p->beside[v->at] = tensor_alloc(p->heap, v->type);
            let_lie(p->of_next[v->at], p->beside[v->at]->data);
        }
    for (int k = program->first[STEP_LATE], n; k < program->n_launches && status == OK; k += n) {
        n = program_wave(program, k);
        status = is_any_wanted(p, k, n) ? run_wave(p, k, n) : OK;
    }
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
    .result = result,
    .put = put,
    .copies = true,
    .end = end,
    .late = late,
    .made_over = made_over,
    .make_late = make_late,
};

static EvalOptions options_of_calls(const Executable *x, const EngineOptions *o)
{
    return (EvalOptions){ .kernels = o->kernels,
                          .pool = o->pool,
                          .stop = x->brief ? NULL : o->stop,
                          .stop_too = x->brief ? NULL : o->stop_too,
                          .narrow = o->narrow };
}

GraphRunner *program_runner(const Executable *x, const EngineOptions *o, RunnerRoom *room, Arena *arena, Heap *heap)
{
    const Program *program = x->program;
    if (!program || (o->rounding && !x->brief))
        return NULL;
    ProgramRunner *p = NEW(arena, ProgramRunner);
    const EvalOptions options = options_of_calls(x, o);
    *p = (ProgramRunner){ .runner = { &programmed },
                          .program = program,
                          .n_parts = x->n_parts,
                          .ir = x->graph->ir,
                          .heap = heap,
                          .room = room,
                          .pool = o->pool,
                          .stop = options.stop,
                          .stop_too = options.stop_too,
                          .watch = o->watch,
                          .caller = caller_open(x->graph->ir, &options, arena, heap, &room->calls),
                          .launches = NEWS(arena, LaunchRun, program->n_launches + 1),
                          .tapes = NEWS(arena, TapeRunner *, program->n_launches + 1),
                          .wave_in = NEWS(arena, const Tensor *const *, program->n_launches + 1),
                          .wave_out = NEWS(arena, Tensor *const *, program->n_launches + 1),
                          .of_input = NEWS(arena, Slot *, program->graph->n_inputs + 1),
                          .of_next = NEWS(arena, Slot *, program->n_results + 1),
                          .of_result = NEWS(arena, Slot, program->n_results + 1),
                          .made_next = NEWS(arena, int, program->n_results + 1),
                          .constants = NEWS(arena, const Tensor *, program->n_constants + 1),
                          .operands = NEWS(arena, const Tensor *, program->graph->n_inputs + 1),
                          .beside = NEWS(arena, Tensor *, program->n_results + 1),
                          .wanted = NEWS(arena, bool, program->n_launches + 1) };
    for (int i = 0; i < program->n_launches; i++)
        open_launch(p, &program->launches[i], &p->launches[i], o, arena);
    for (int i = 0; i < program->n_results; i++)
        open_slot(p, &program->results[i], &p->of_result[i]);
    measure_scratch(p);
    find_made_next(p);
    caller_expect(p->caller, program_calls_scratch(program));
    return &p->runner;
}
