/* The times of launches, added up, and where they went. */
#ifndef API_VERBS_BENCH_LAUNCHES_H
#define API_VERBS_BENCH_LAUNCHES_H

#include "api/bench/bench_rates.h"
#include "base/text.h"
#include "ir/program.h"
#include "runtime/engine.h"

/* A launch and how it went. */
typedef struct TimedLaunch {
    const Program *program;
    int launch, n; /* the first of so many that ran side by side */
    int64_t runs;
    double seconds, least; /* of all runs, and of the shortest */
    double bytes, flops;   /* what one run moves and computes, */
    double codes;          /* of that by products of codes of 8 bits */
    double narrow;         /* and of that by products of bf16 that may be made as they lie */
} TimedLaunch;

/* One run of a launch, for a timeline. */
typedef struct LaunchSpan {
    const Program *program;
    int launch, n;
    double began, ended;
} LaunchSpan;

typedef struct LaunchTimes {
    Arena *arena;
    LaunchWatch watch; /* for a context */
    Map of;            /* program and launch to their number */
    TimedLaunch *list;
    size_t n, cap;
    bool keeps_spans; /* of launches from now on, which are not added up */
    LaunchSpan *spans;
    size_t n_spans, cap_spans;
} LaunchTimes;

void launch_times_open(LaunchTimes *t, Arena *arena);

/* Forgets the times so far. */
void launch_times_clear(LaunchTimes *t);

/* The launches by the time they took, longest first. */
TimedLaunch *launch_times_sorted(const LaunchTimes *t, Arena *arena);

/* The least time that a run of a launch can take on such a machine. */
double launch_bound(const TimedLaunch *l, const MachineRates *r);

/* The spans as a timeline, in the JSON that Perfetto and Chrome read. */
void launch_trace(Text *to, const LaunchTimes *t, Arena *arena);

#endif
