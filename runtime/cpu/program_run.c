#include "runtime/cpu/program_run.h"

#include "base/clock.h"
#include "ops/machine/caller.h"
#include "runtime/cpu/program_scratch.h"
#include "runtime/host/program_runner.h"

/* What the CPU has beside a program. */
typedef struct CpuLaunches {
    Caller *caller;
    TapeRunner **tapes;                 /* of a wave under way, */
    const Tensor *const **wave_in;      /* its operands, */
    Tensor *const **wave_out;           /* and its results */
    size_t scratch_bytes, worker_bytes; /* of a wave; of each worker */
    EvalKeeper keeper;
    EvalKept *kept; /* of each launch */
} CpuLaunches;

static CpuLaunches *of(const ProgramRunner *p)
{
    return p->own;
}

/* The tape of a region, and of a contract; null: a call has none. */
static TapeRunner *tape_of(const ProgramRunner *p, int launch)
{
    return p->launches[launch].own;
}

/* ---- memory ---- */

static size_t scratch_of(const ProgramRunner *p, int launch)
{
    enum { LINE = 64 };
    return (tape_scratch(tape_of(p, launch)) + LINE - 1) / LINE * LINE;
}

/* Those that run side by side have a scratch each; a worker runs one at a time. */
static void measure_scratch(const ProgramRunner *p)
{
    CpuLaunches *c = of(p);
    size_t wave = 0;
    for (int k = 0; k < p->program->n_launches; k++) {
        wave = p->program->launches[k].beside ? wave : 0;
        if (!tape_of(p, k))
            continue;
        const size_t worker = tape_worker_scratch(tape_of(p, k));
        c->worker_bytes = worker > c->worker_bytes ? worker : c->worker_bytes;
        wave += scratch_of(p, k);
        c->scratch_bytes = wave > c->scratch_bytes ? wave : c->scratch_bytes;
    }
}

static size_t workers_scratch(const ProgramRunner *p)
{
    return (size_t)parallel_threads(p->pool) * of(p)->worker_bytes;
}

static size_t scratch(const ProgramRunner *p)
{
    return workers_scratch(p) + of(p)->scratch_bytes;
}

static void settle(ProgramRunner *p, char *scratch)
{
    const size_t workers = workers_scratch(p);
    char *own = scratch;
    for (int i = 0; i < p->program->n_launches; i++) {
        own = p->program->launches[i].beside ? own : scratch + workers;
        if (!tape_of(p, i))
            continue;
        tape_place(tape_of(p, i), own, scratch, of(p)->worker_bytes);
        own += scratch_of(p, i);
    }
}

static void keep(ProgramRunner *p)
{
    caller_keep(of(p)->caller);
}

/* What was kept the heap has; others may keep as much. */
static void close(ProgramRunner *p)
{
    for (int i = 0; i < p->program->n_launches; i++)
        p->room->keeps += of(p)->kept[i].at ? of(p)->kept[i].bytes : 0;
    caller_close(of(p)->caller);
}

/* ---- constants ---- */

static uint32_t bit_if(bool is, int i)
{
    return is && i < 32 ? (uint32_t)1 << i : 0;
}

/* Operands of a call, or of the product of a contract, that no run changes. */
static uint32_t constants_of(const Launch *l)
{
    const Node *product = l->contraction;
    const Graph *body = product ? l->node->regions[0] : NULL;
    uint32_t bits = 0;
    for (int i = 0; i < l->n_in && !product; i++)
        bits |= bit_if(l->in[i].home == HOME_CONSTANT, i);
    for (int i = 0; product && i < product->n_in; i++)
        for (size_t k = 0; k < body->n_inputs; k++)
            bits |= bit_if(in(product, i) == body->inputs[k] && l->in[k].home == HOME_CONSTANT, i);
    return bits;
}

static void open_kept(ProgramRunner *p, Arena *arena)
{
    CpuLaunches *c = of(p);
    c->keeper = (EvalKeeper){ p->heap, &p->room->keeps };
    c->kept = NEWS(arena, EvalKept, p->program->n_launches + 1);
    for (int i = 0; i < p->program->n_launches; i++)
        if (p->program->launches[i].kind != LAUNCH_REGION)
            c->kept[i] = (EvalKept){ .keeper = &c->keeper, .constants = constants_of(&p->program->launches[i]) };
}

/* ---- runs ---- */

static void begin(ProgramRunner *p, uint64_t seed, uint64_t step)
{
    caller_begin(of(p)->caller, seed, step);
    for (int i = 0; i < p->program->n_launches; i++)
        if (tape_of(p, i))
            tape_seed(tape_of(p, i), seed, step, p->program->launches[i].turn);
}

static void block_is_done(void *user, const EvalBlock *b, int worker)
{
    const TapeBlock some = { b->at, b->rows, b->cols, b->pitch, b->values, b->apart };
    tape_run_block(user, &some, worker);
}

/* Products of one operand, or a call alone; behind a product, where a block of it is done, its tape. */
static Status run_calls(ProgramRunner *p, int launch, int n)
{
    EvalWatch watch[PRODUCTS_BESIDE];
    CallBeside calls[PRODUCTS_BESIDE];
    for (int i = 0; i < n; i++) {
        LaunchRun *run = &p->launches[launch + i];
        EvalKept *kept = &of(p)->kept[launch + i];
        calls[i] = (CallBeside){ run->launch->node, run->in, run->out, NULL, kept, run->launch->turn };
        if (!run->product)
            continue;
        tape_begin(run->own, run->in, run->out);
        watch[i] = (EvalWatch){ block_is_done, run->own, tape_takes_product(run->own) };
        calls[i] = (CallBeside){ run->launch->contraction, run->factors, &run->product, &watch[i], kept, 0 };
    }
    return n > 1 ? caller_call_beside(of(p)->caller, n, calls) : caller_call_one(of(p)->caller, calls);
}

/* Launches that run side by side, of late ones those that are wanted. */
static Status run_quietly(ProgramRunner *p, int launch, int n)
{
    CpuLaunches *c = of(p);
    int several = 0;
    for (int k = launch; k < launch + n; k++) {
        const LaunchRun *run = &p->launches[k];
        if (!program_wants(p, k))
            continue;
        if (run->launch->kind != LAUNCH_REGION)
            return run_calls(p, launch, n);
        c->tapes[several] = run->own;
        c->wave_in[several] = run->in;
        c->wave_out[several++] = run->out;
    }
    if (several == 1)
        tape_run(c->tapes[0], p->pool, c->wave_in[0], c->wave_out[0]);
    else if (several)
        tape_run_beside(c->tapes, several, p->pool, c->wave_in, c->wave_out);
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

static bool is_any_wanted(const ProgramRunner *p, int launch, int n)
{
    while (n > 0 && !program_wants(p, launch + n - 1))
        n--;
    return n > 0;
}

static Status run(ProgramRunner *p, int end)
{
    while (!program_stopped(p)) {
        if (p->at >= end)
            return OK;
        const int n = program_wave(p->program, p->at);
        if (is_any_wanted(p, p->at, n))
            TRY(run_wave(p, p->at, n));
        p->at += n;
    }
    return INTERRUPTED;
}

static const LaunchesClass launches = {
    .keep = keep, .close = close, .scratch = scratch, .settle = settle, .begin = begin, .run = run
};

GraphRunner *program_runner(const Executable *x, const EngineOptions *o, RunnerRoom *room, Arena *arena, Heap *heap)
{
    ProgramRunner *p = program_runner_open(&launches, x, o, room, arena, heap);
    if (!p)
        return NULL;
    const Program *program = p->program;
    const EvalOptions options = program_call_options(x, o);
    CpuLaunches *c = p->own = NEW(arena, CpuLaunches);
    *c = (CpuLaunches){ .caller = caller_open(p->ir, &options, arena, heap, &room->calls),
                        .tapes = NEWS(arena, TapeRunner *, program->n_launches + 1),
                        .wave_in = NEWS(arena, const Tensor *const *, program->n_launches + 1),
                        .wave_out = NEWS(arena, Tensor *const *, program->n_launches + 1) };
    for (int i = 0; i < program->n_launches; i++)
        p->launches[i].own =
            launch_tape(&program->launches[i], p->ir->ops, o->kernels, parallel_threads(o->pool), arena);
    measure_scratch(p);
    open_kept(p, arena);
    caller_expect(c->caller, program_calls_scratch(program));
    return &p->runner;
}
