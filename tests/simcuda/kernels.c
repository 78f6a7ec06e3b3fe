/* Kernels run here: block after block, the threads of a block in turns, each until it waits for others. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/run.h"

Run run;

/* ---- reports ---- */

void blame(int code, const Thread *t, int line, const char *format, ...)
{
    char text[320], where[64] = "";
    const SimIndex b = *run.module->block;
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (line)
        snprintf(where, sizeof where, " at line %d", line);
    run.failed = code;
    report("%s: block (%u,%u,%u), thread (%u,%u,%u)%s: %s", run.kernel->name, b.x, b.y, b.z, t->index.x, t->index.y,
           t->index.z, where, text);
}

void end_thread(void)
{
    void *never;
    fiber_switch(&never, run.scheduler);
}

/* ---- what threads call ---- */

static void pause_thread(State state, int line)
{
    Thread *t = run.now;
    t->state = state;
    t->line = line;
    run.waiting[READY]--;
    run.waiting[state]++;
    fiber_switch(&t->at, run.scheduler);
}

static int call_barrier(int line, int predicate)
{
    run.now->predicate = predicate;
    pause_thread(AT_BARRIER, line);
    return run.now->sum;
}

static int lane_of(const Thread *t)
{
    return (int)(t - run.threads) % SIM_LANES;
}

static void call_exchange(unsigned mask, const void *mine, size_t bytes, char (*all)[SIM_SLOT], int line)
{
    Thread *t = run.now;
    if (!(mask >> lane_of(t) & 1)) {
        blame(E_LAUNCH_FAILED, t, line, "lane %d is not in the mask 0x%08x that it passes", lane_of(t), mask);
        end_thread();
    }
    memcpy(t->slot, mine, bytes);
    t->mask = mask;
    pause_thread(AT_EXCHANGE, line);
    memcpy(all, t->seen, sizeof t->seen);
}

static char *call_dynamic(void)
{
    return run.dynamic;
}

static void call_stop(const char *what, int line)
{
    blame(E_LAUNCH_FAILED, run.now, line, "%s", what);
    end_thread();
}

const SimCalls *kernel_calls(void)
{
    static const SimCalls calls = {
        call_barrier, call_exchange, call_dynamic, check_touch, call_stop, check_misaligned
    };
    return &calls;
}

/* ---- faults ---- */

static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };

enum { FAULTS = sizeof faults / sizeof *faults, SIGNAL_STACK = 1 << 16 };

static struct sigaction old_actions[FAULTS];
static stack_t old_stack;
static char signal_stack[SIGNAL_STACK];

static void on_fault(int number, siginfo_t *info, void *context)
{
    char text[160];
    sigset_t set;
    (void)context;
    if (!run.now) { /* not a kernel's: what would have come comes when the instruction runs anew */
        for (int i = 0; i < FAULTS; i++)
            sigaction(faults[i], &old_actions[i], NULL);
        return;
    }
    if (number == SIGFPE)
        blame(E_LAUNCH_FAILED, run.now, 0, "an integer is divided by zero, or by -1 where that overflows");
    else if (number == SIGILL)
        blame(E_LAUNCH_FAILED, run.now, 0, "an instruction that there is not");
    else if (fiber_is_guard(run.now->stack, info->si_addr))
        blame(E_LAUNCH_FAILED, run.now, 0, "its stack is full");
    else
        blame(E_ILLEGAL_ADDRESS, run.now, 0, "touches %s", dram_say(info->si_addr, text, sizeof text));
    sigemptyset(&set);
    for (int i = 0; i < FAULTS; i++)
        sigaddset(&set, faults[i]);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    end_thread();
}

static void watch(bool begins)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    const stack_t own = { .ss_sp = signal_stack, .ss_size = SIGNAL_STACK };
    if (begins)
        sigaltstack(&own, &old_stack);
    for (int i = 0; i < FAULTS; i++)
        sigaction(faults[i], begins ? &action : &old_actions[i], begins ? &old_actions[i] : NULL);
    if (!begins)
        sigaltstack(&old_stack, NULL);
}

/* ---- turns ---- */

static uint64_t draw(void)
{
    run.random ^= run.random << 13;
    run.random ^= run.random >> 7;
    return run.random ^= run.random << 17;
}

/* How the environment wants threads and blocks to take turns: "ascending", "descending", "random" or "random:SEED". */
static void read_order(void)
{
    const char *word = getenv("QCC_SIM_ORDER");
    run.order = !word || !*word || strcmp(word, "ascending") == 0 ? ASCENDING
                : strcmp(word, "descending") == 0                 ? DESCENDING
                                                                  : RANDOM;
    const char *seed = word ? strchr(word, ':') : NULL;
    run.random = ((seed ? strtoull(seed + 1, NULL, 10) : 1) + world.counts.launches) * 0x9e3779b97f4a7c15u | 1;
}

static void set_turns(void)
{
    for (int i = 0; i < run.n; i++)
        run.turn[i] = run.order == DESCENDING ? run.n - 1 - i : i;
    for (int i = run.n - 1; run.order == RANDOM && i > 0; i--) {
        const int k = (int)(draw() % (uint64_t)(i + 1)), other = run.turn[i];
        run.turn[i] = run.turn[k];
        run.turn[k] = other;
    }
}

static void enter(void)
{
    run.kernel->run(run.arguments);
    run.now->state = LEFT;
    run.waiting[READY]--;
    run.waiting[LEFT]++;
    end_thread();
}

/* Goes on with a thread until it waits or leaves. */
static void resume(Thread *t)
{
    if (!t->stack)
        t->stack = fiber_take(enter, &t->at);
    *run.module->thread = t->index;
    run.now = t;
    fiber_switch(&run.scheduler, t->at);
    run.now = NULL;
    if (t->state == LEFT) {
        fiber_give(t->stack);
        t->stack = NULL;
    }
}

/* ---- what threads wait for ---- */

static void go_on(Thread *t)
{
    run.waiting[t->state]--;
    run.waiting[READY]++;
    t->state = READY;
}

static bool release_block(void)
{
    int sum = 0;
    if (run.waiting[AT_BARRIER] != run.n)
        return false;
    for (int i = 0; i < run.n; i++) {
        sum += run.threads[i].predicate;
        if (run.threads[i].line == run.threads[0].line)
            continue;
        blame(E_LAUNCH_FAILED, &run.threads[i], run.threads[i].line,
              "it waits at another barrier than thread 0, which waits at line %d", run.threads[0].line);
        return true;
    }
    for (int i = 0; i < run.n; i++) {
        run.threads[i].sum = sum;
        run.threads[i].barriers++;
        go_on(&run.threads[i]);
    }
    return true;
}

/* The lane that an exchange still waits for; below 0: all are there. */
static int missing_lane(const Thread *warp, int n, const Thread *t)
{
    for (int lane = 0; lane < SIM_LANES; lane++) {
        const Thread *other = warp + lane;
        if (t->mask >> lane & 1 &&
            (lane >= n || other->state != AT_EXCHANGE || other->mask != t->mask || other->line != t->line))
            return lane;
    }
    return -1;
}

static void exchange(Thread *warp, unsigned mask)
{
    char seen[SIM_LANES][SIM_SLOT];
    memset(seen, 0xff, sizeof seen);
    for (int lane = 0; lane < SIM_LANES; lane++)
        if (mask >> lane & 1)
            memcpy(seen[lane], warp[lane].slot, SIM_SLOT);
    for (int lane = 0; lane < SIM_LANES; lane++)
        if (mask >> lane & 1) {
            memcpy(warp[lane].seen, seen, sizeof seen);
            warp[lane].exchanges++;
            go_on(&warp[lane]);
        }
}

static int lanes_of(int warp)
{
    return run.n - warp < SIM_LANES ? run.n - warp : SIM_LANES;
}

static bool release_warps(void)
{
    bool any = false;
    for (int w = 0; run.waiting[AT_EXCHANGE] && w < run.n; w += SIM_LANES)
        for (int lane = 0; lane < lanes_of(w); lane++) {
            const Thread *t = &run.threads[w + lane];
            if (t->state != AT_EXCHANGE || missing_lane(&run.threads[w], lanes_of(w), t) >= 0)
                continue;
            exchange(&run.threads[w], t->mask);
            any = true;
        }
    return any;
}

/* Nobody can go on: says who waits for whom. */
static void explain(void)
{
    const Thread *left = NULL, *barrier = NULL;
    for (int i = 0; i < run.n; i++) {
        const Thread *t = &run.threads[i];
        left = t->state == LEFT ? t : left;
        barrier = t->state == AT_BARRIER && !barrier ? t : barrier;
        if (t->state != AT_EXCHANGE)
            continue;
        const int w = i / SIM_LANES * SIM_LANES, lane = missing_lane(&run.threads[w], lanes_of(w), t);
        const Thread *other = &run.threads[w + lane];
        if (lane >= lanes_of(w))
            blame(E_LAUNCH_FAILED, t, t->line, "its mask 0x%08x names lane %d, which there is not", t->mask, lane);
        else if (other->state == LEFT)
            blame(E_LAUNCH_FAILED, t, t->line, "it waits for lane %d, which has left the kernel", lane);
        else
            blame(E_LAUNCH_FAILED, t, t->line, "it waits with mask 0x%08x for lane %d, which waits at line %d%s",
                  t->mask, lane, other->line, other->state == AT_BARRIER ? ", a barrier" : "");
        return;
    }
    blame(E_LAUNCH_FAILED, barrier, barrier->line, "it waits at a barrier for thread %d, which has left the kernel",
          (int)(left - run.threads));
}

/* ---- blocks ---- */

static void spoil(char *from, const char *end)
{
    if (from)
        memset(from, 0xff, (size_t)(end - from));
}

static void begin_block(void)
{
    const SimIndex dim = run.op->block;
    memset(run.waiting, 0, sizeof run.waiting);
    run.waiting[READY] = run.n;
    for (int i = 0; i < run.n; i++) {
        Thread *t = &run.threads[i];
        t->state = READY;
        t->barriers = t->exchanges = 0;
        t->index = (SimIndex){ (unsigned)i % dim.x, (unsigned)i / dim.x % dim.y, (unsigned)i / dim.x / dim.y };
    }
    spoil(run.kernel->shared, run.kernel->shared_end);
    spoil(run.module->shared, run.module->shared_end);
    spoil(run.dynamic, run.dynamic + run.op->shared);
    run.serial++;
    if (run.module->checked)
        check_block();
}

static void run_block(SimIndex at)
{
    *run.module->block = at;
    begin_block();
    for (bool any = true; any && !run.failed;) {
        any = run.waiting[READY] > 0;
        if (any)
            set_turns();
        for (int i = 0; i < run.n && run.waiting[READY] && !run.failed; i++)
            if (run.threads[run.turn[i]].state == READY)
                resume(&run.threads[run.turn[i]]);
        if (!run.failed && release_warps())
            any = true;
        if (!run.failed && release_block())
            any = true;
    }
    if (!run.failed && run.waiting[LEFT] != run.n)
        explain();
    for (int i = 0; i < run.n; i++)
        if (run.threads[i].stack) {
            fiber_give(run.threads[i].stack);
            run.threads[i].stack = NULL;
        }
    world.counts.blocks++;
}

/* ---- launches ---- */

/* What pointers point to must be there for a device. */
static bool check_pointers(const Op *op)
{
    char text[160];
    for (int i = 0; i < run.kernel->n; i++) {
        void *p;
        memcpy(&p, op->arguments + i * SIM_ARGUMENT, sizeof p);
        if (!run.kernel->parameters[i].pointer || !p || dram_holds((uintptr_t)p, 0) || dram_is_pinned(p))
            continue;
        report("%s: argument %d points to %s", run.kernel->name, i, dram_say(p, text, sizeof text));
        return false;
    }
    return true;
}

static void run_blocks(const Op *op)
{
    const uint64_t n = (uint64_t)op->grid.x * op->grid.y * op->grid.z;
    for (uint64_t i = 0; i < n && !run.failed; i++) {
        const uint64_t b = run.order == ASCENDING ? i : n - 1 - i;
        run.block_number = (unsigned)b;
        run_block((SimIndex){ (unsigned)(b % op->grid.x), (unsigned)(b / op->grid.x % op->grid.y),
                              (unsigned)(b / op->grid.x / op->grid.y) });
    }
}

int kernel_run(const Op *op)
{
    run.op = op;
    run.module = op->function->module->module;
    run.kernel = op->function->kernel;
    run.n = (int)(op->block.x * op->block.y * op->block.z);
    run.failed = 0;
    run.dynamic = op->shared ? malloc(op->shared) : NULL;
    read_order();
    world.counts.launches++;
    graph_begins(op, (unsigned)world.counts.launches);
    world.unwatched = world.unwatched || !run.module->checked;
    if (!check_pointers(op))
        return E_ILLEGAL_ADDRESS;
    for (int i = 0; i < run.kernel->n; i++)
        run.arguments[i] = op->arguments + i * SIM_ARGUMENT;
    *run.module->threads = op->block;
    *run.module->blocks = op->grid;
    watch(true);
    run_blocks(op);
    watch(false);
    if (run.kernel->refused >= 0) {
        const unsigned *flag;
        memcpy(&flag, run.arguments[run.kernel->refused], sizeof flag);
        check_refused(flag);
    }
    free(run.dynamic);
    if (!run.failed && dram_spoilt(run.kernel->name))
        run.failed = E_ILLEGAL_ADDRESS;
    return run.failed;
}
