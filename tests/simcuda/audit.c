/* What tests ask the simulated driver, and what it asks a program that ends: whether everything was given back. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "simcuda/world.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT SimCountsFn simcuda_counts;
EXPORT SimReportFn simcuda_report;
EXPORT SimForgetFn simcuda_forget;
EXPORT SimLeftFn simcuda_left;

void simcuda_counts(SimCounts *c)
{
    *c = world.counts;
}

const char *simcuda_report(void)
{
    return world.report;
}

void simcuda_forget(void)
{
    queue_drop(NULL);
    world.sticky = CUDA_OK;
    world.asked = false;
    world.counts.reports = 0;
    world.report[0] = '\0';
}

/* Things of a kind that live and that the program has to give up: functions go with their modules, the legacy stream with
 * its context. */
static uint64_t living(ThingKind kind)
{
    uint64_t n = 0;
    for (const Thing *t = world.things; t; t = t->next)
        n += t->kind == kind && t->live && !(kind == STREAM && (const CudaStream *)t == t->context->legacy);
    return n;
}

static const ThingKind owned[] = { CONTEXT, MODULE, STREAM, EVENT, GRAPH, MADE_GRAPH, OF_LIBRARY };

uint64_t simcuda_left(void)
{
    size_t bytes;
    uint64_t n = dram_left(NULL, false, &bytes) + dram_left(NULL, true, &bytes);
    for (size_t i = 0; i < COUNT(owned); i++)
        n += living(owned[i]);
    return n;
}

static void say(FILE *f, uint64_t reports)
{
    const SimCounts *c = &world.counts;
    size_t bytes, n;
    fprintf(
        f,
        "calls %llu, launches %llu, blocks %llu, graphs %llu, beside %llu, copies %llu, waits %llu, drains %llu, reports "
        "%llu\n",
        (unsigned long long)c->calls, (unsigned long long)c->launches, (unsigned long long)c->blocks,
        (unsigned long long)c->graphs, (unsigned long long)c->beside, (unsigned long long)c->copies,
        (unsigned long long)c->waits, (unsigned long long)c->drains, (unsigned long long)reports);
    if (reports)
        fprintf(f, "report: %s\n", world.report);
    for (size_t i = 0; i < COUNT(owned); i++)
        if (living(owned[i]))
            fprintf(f, "left: %llu of kind %s\n", (unsigned long long)living(owned[i]), thing_word(owned[i]));
    for (int host = 0; host < 2; host++)
        if ((n = dram_left(NULL, host, &bytes)) != 0)
            fprintf(f, "left: %zu blocks of %s, %zu bytes\n", n, host ? "pinned memory" : "a device", bytes);
}

/* QCC_SIM_AUDIT names a file that gets a line of counts, and one for each report and each kind of what is left; without one,
 * a program that left something, or that a report was made of, ends with 98. */
__attribute__((destructor)) static void audit(void)
{
    enum { DIRTY = 98 };
    const char *path = getenv("QCC_SIM_AUDIT");
    if (!world.begun || world.begun_by != getpid())
        return;
    FILE *f = path && *path ? fopen(path, "a") : NULL;
    if (f) {
        say(f, world.counts.reports);
        fclose(f);
        return;
    }
    if (!simcuda_left() && !world.counts.reports)
        return;
    fprintf(stderr, "simcuda, at the end: ");
    say(stderr, world.counts.reports);
    fflush(NULL);
    _exit(DIRTY);
}
