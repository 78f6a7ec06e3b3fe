/* What streams have to do.  Nothing runs before somebody waits for it: a copy reads memory of the host as late as it may. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "simcuda/world.h"

/* ---- ops ---- */

Op *queue_copy(const Op *op)
{
    Op *o = malloc(sizeof *o);
    if (!o)
        abort();
    *o = *op;
    o->next = NULL;
    if (op->kind == OP_LAUNCH) {
        const size_t bytes = (size_t)op->function->kernel->n * SIM_ARGUMENT;
        o->arguments = malloc(bytes + 1);
        memcpy(o->arguments, op->arguments, bytes);
    } else if (op->kind == OP_WORK) {
        o->arguments = malloc(op->bytes);
        memcpy(o->arguments, op->arguments, op->bytes);
    }
    return o;
}

static void free_op(Op *op)
{
    if (op->kind == OP_LAUNCH || op->kind == OP_WORK)
        free(op->arguments);
    free(op);
}

void queue_append(const Op *op, CudaStream *s)
{
    Op *o = queue_copy(op);
    if (!world.last)
        world.last = &world.first;
    o->stream = s;
    o->number = ++world.number;
    if (o->kind == OP_RECORD)
        o->event->recorded = o->number;
    *world.last = o;
    world.last = &o->next;
}

/* Whether a stream of this context captures that waits for the legacy one. */
static bool captures_beside(const CudaStream *s)
{
    for (const Thing *t = world.things; t; t = t->next) {
        const CudaStream *other = (const CudaStream *)t;
        if (t->kind == STREAM && t->live && t->context == s->thing.context && other->capture && !other->apart)
            return true;
    }
    return false;
}

int queue_add(const Op *op)
{
    CudaStream *s = op->stream;
    if (s->capture && s->captured->broken)
        return E_CAPTURE_INVALIDATED;
    if (s->capture == NO_CAPTURE) {
        if (s == s->thing.context->legacy && captures_beside(s))
            return E_CAPTURE_IMPLICIT;
        if (op->kind == OP_RECORD)
            op->event->captured = NULL;
        queue_append(op, s);
        return CUDA_OK;
    }
    if (op->kind != OP_RECORD)
        return capture_add(s, op);
    capture_record(op->event, s);
    return CUDA_OK;
}

/* ---- running ---- */

/* Milliseconds: those of a clock, or what a test has things take. */
static double now(void)
{
    struct timespec t;
    if (getenv("QCC_SIM_TIMES"))
        return world.spent;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int run_copy(const Op *op)
{
    char text[160];
    if (op->kind != OP_READ && !dram_holds(op->to, op->bytes)) {
        report("a copy writes %zu bytes at %s", op->bytes, dram_say((void *)(uintptr_t)op->to, text, sizeof text));
        return E_ILLEGAL_ADDRESS;
    }
    if ((op->kind == OP_READ || op->kind == OP_COPY) && !dram_holds(op->from, op->bytes)) {
        report("a copy reads %zu bytes at %s", op->bytes, dram_say((void *)(uintptr_t)op->from, text, sizeof text));
        return E_ILLEGAL_ADDRESS;
    }
    void *to = op->kind == OP_READ ? op->host : (void *)(uintptr_t)op->to;
    if (op->kind == OP_SET)
        memset(to, op->value, op->bytes);
    else
        memmove(to, op->kind == OP_WRITE ? op->host : (void *)(uintptr_t)op->from, op->bytes);
    if (op->kind == OP_COPY)
        check_copied(op->to, op->from, op->bytes);
    else if (op->kind != OP_READ)
        check_wrote(op->to, op->bytes);
    world.counts.copies++;
    world.counts.copied += op->bytes;
    return CUDA_OK;
}

/* What a kernel takes stands behind a semicolon. */
static void spend_kernel(void)
{
    const char *word = getenv("QCC_SIM_TIMES");
    word = word ? strchr(word, ';') : NULL;
    if (word)
        simcuda_spend(strtod(word + 1, NULL));
}

static int run_op(const Op *op)
{
    if (op->kind == OP_RECORD) {
        op->event->ran = op->number;
        op->event->at = now();
        return CUDA_OK;
    }
    if (op->kind == OP_WORK) {
        world.counts.works++;
        return op->work(op->arguments);
    }
    if (op->kind != OP_LAUNCH)
        return run_copy(op);
    if (!op->function->thing.live) {
        report("%s is launched, and its module was unloaded", op->function->kernel->name);
        return E_LAUNCH_FAILED;
    }
    spend_kernel();
    return kernel_run(op);
}

static bool waits_for(const CudaStream *s, const CudaStream *other)
{
    return s->thing.context == other->thing.context && (s == other || (!s->apart && !other->apart));
}

/* Takes an op out of the list. */
static Op *take(Op **at)
{
    Op *op = *at;
    *at = op->next;
    if (world.last == &op->next)
        world.last = at;
    return op;
}

static int run_list(const CudaContext *context, const CudaStream *stream, uint64_t number)
{
    bool open = false;
    for (Op **at = &world.first; *at && (*at)->number <= number && !world.sticky;) {
        if ((*at)->stream->thing.context != context || (stream && !waits_for(stream, (*at)->stream))) {
            at = &(*at)->next;
            continue;
        }
        Op *op = take(at);
        if (!open)
            dram_open(true);
        open = true;
        world.sticky = run_op(op);
        free_op(op);
    }
    if (open)
        dram_open(false);
    return world.sticky;
}

int queue_run(CudaStream *s, uint64_t number)
{
    return run_list(s->thing.context, s, number);
}

int queue_drain(CudaContext *c)
{
    return run_list(c, NULL, world.number);
}

void queue_drop(const CudaContext *c)
{
    for (Op **at = &world.first; *at;) {
        if (c && (*at)->stream->thing.context != c)
            at = &(*at)->next;
        else
            free_op(take(at));
    }
}

/* ---- capturing ---- */

int queue_refuses(CudaContext *c)
{
    enum { GLOBAL = 0, RELAXED = 2 };
    int code = CUDA_OK;
    for (Thing *t = world.things; t; t = t->next) {
        CudaStream *s = (CudaStream *)t;
        if (t->kind != STREAM || !t->live || t->context != c || !s->capture || s->captured->mode == RELAXED)
            continue;
        if (s->captured->mode != GLOBAL && !pthread_equal(s->captured->thread, pthread_self()))
            continue;
        s->captured->broken = true;
        code = E_CAPTURE_UNSUPPORTED;
    }
    return code;
}
