/* bench: how fast a step or a model runs, launch by launch. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "api/hall/words.h"
#include "api/make/launches.h"
#include "api/bench/bench_gains.h"
#include "api/verbs/verbs.h"
#include "base/clock.h"

enum { FIRST_RUNS = 2, LEAST_RUNS = 5, MOST_RUNS = 1000 };

static const double enough_seconds = 2;

typedef struct Measured {
    Bench of;
    MachineRates rates;
    double compile, first; /* seconds */
    double *runs;
    size_t n_runs;
    double processors; /* seconds of all threads in these runs */
    uint64_t resident; /* bytes, the most while it ran */
} Measured;

static bool is_enough(const Measured *m, int64_t asked, double since)
{
    if (asked)
        return m->n_runs >= (size_t)asked;
    return m->n_runs >= MOST_RUNS || (m->n_runs >= LEAST_RUNS && clock_seconds() - since >= enough_seconds);
}

/* What all threads of the process have taken of processors so far, user and system together. */
static double processor_seconds(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0 ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec : 0;
}

/* The most that the process held so far. */
static uint64_t resident_bytes(void)
{
    struct rusage use;
    return getrusage(RUSAGE_SELF, &use) == 0 ? (uint64_t)use.ru_maxrss * 1024 : 0;
}

static Status run_all(Measured *m)
{
    double took;
    const int64_t asked = option_count(&m->of.c->line, OPT_steps, 0);
    m->runs = NEWS(&m->of.m->arena, double, (asked ? asked : MOST_RUNS) + 1);
    TRY(bench_run(&m->of, RUN_STEP, &m->first));
    for (int i = 0; i < FIRST_RUNS; i++)
        TRY(bench_run(&m->of, RUN_STEP, &took));
    launch_times_clear(&m->of.times);
    m->of.skipped = 0;
    const double since = clock_seconds(), spent = processor_seconds();
    while (!is_enough(m, asked, since))
        TRY(bench_run(&m->of, RUN_STEP, &m->runs[m->n_runs++]));
    m->processors = processor_seconds() - spent;
    m->resident = resident_bytes();
    m->of.times.keeps_spans = option_given(&m->of.c->line, OPT_trace); /* what is drawn is a run of its own */
    if (m->of.times.keeps_spans)
        TRY(bench_run(&m->of, RUN_STEP, &took));
    m->of.times.keeps_spans = false;
    return OK;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double at_part(const Measured *m, double part)
{
    return m->runs[(size_t)((double)(m->n_runs - 1) * part + 0.5)];
}

/* ---- telling ---- */

/* The program that takes most of the time; null: none ran. */
static const Program *main_program(const TimedLaunch *list, size_t n)
{
    return n ? list[0].program : NULL;
}

static Status tell_json(Measured *m, const TimedLaunch *list)
{
    const Program *p = main_program(list, m->of.times.n);
    Arena *a = &m->of.c->cx->scratch;
    const LogExtra fields[] = {
        { "what", logged_text(m->of.step ? "step" : "model") },
        { "device", logged_text(m->of.c->cx->engine->name) },
        { "threads", logged_int(parallel_threads(context_pool(m->of.c->cx))) },
        { "runs", logged_int((int64_t)m->n_runs) },
        { "median_ms", logged_f64(1e3 * at_part(m, 0.5)) },
        { "p95_ms", logged_f64(1e3 * at_part(m, 0.95)) },
        { "processor_ms", logged_f64(1e3 * m->processors / (double)m->n_runs) },
        { "per_second", logged_f64(1 / at_part(m, 0.5)) },
        { "compile_s", logged_f64(m->compile) },
        { "first_ms", logged_f64(1e3 * m->first) },
        { "launches", logged_int(p ? p->n_launches : 0) },
        { "arena", logged_int(p ? (int64_t)p->arena : 0) },
        { "live", logged_int(p ? (int64_t)p->live : 0) },
        { "resident", logged_int((int64_t)m->resident) },
        { "copy_bytes_per_s", logged_f64(m->rates.bytes) },
        { "product_flops_per_s", logged_f64(m->rates.flops) },
        { "bf16_flops_per_s", logged_f64(m->rates.narrow_flops) },
        { "code_flops_per_s", logged_f64(m->rates.code_flops) },
        { "skipped", logged_int((int64_t)m->of.skipped) },
    };
    TRY(out_event(m->of.c->out, "bench", fields, COUNT(fields)));
    for (size_t i = 0; i < m->of.times.n; i++) {
        const TimedLaunch *l = &list[i];
        const double each = l->runs ? l->seconds / (double)l->runs : 0;
        const LogExtra one[] = {
            { "graph", logged_text(l->program->graph->name) },
            { "launch", logged_int(l->launch) },
            { "part", logged_text(step_part_name(l->program->launches[l->launch].part)) },
            { "what", logged_text(launch_words(a, l->program, l->launch, l->n)) },
            { "ms", logged_f64(1e3 * each) },
            { "bytes", logged_f64(l->bytes) },
            { "flops", logged_f64(l->flops) },
            { "roofline", logged_f64(each > 0 ? launch_bound(l, &m->rates) / each : 0) },
        };
        TRY(out_event(m->of.c->out, "launch", one, COUNT(one)));
    }
    return OK;
}

static void tell_head(const Measured *m, Text *t, const Program *p)
{
    Arena *a = &m->of.c->cx->scratch;
    const double median = at_part(m, 0.5);
    const char *what = m->of.step ? "step" : "run";
    text_label(t, what);
    text_printf(t, "%s, 95 %% below %s, %zu measured, %.4g a second, %s of processors each\n", seconds_text(a, median),
                seconds_text(a, at_part(m, 0.95)), m->n_runs, 1 / median,
                seconds_text(a, m->processors / (double)m->n_runs));
    text_bytes(t, m->of.data.p, m->of.data.n);
    text_label(t, "device");
    text_printf(t, "%s, %d thread%s; copies %.3g GB/s, products %.3g GFLOP/s", m->of.c->cx->engine->name,
                parallel_threads(context_pool(m->of.c->cx)),
                parallel_threads(context_pool(m->of.c->cx)) == 1 ? "" : "s", 1e-9 * m->rates.bytes,
                1e-9 * m->rates.flops);
    if (m->rates.narrow_flops > 0)
        text_printf(t, ", of bf16 %.3g", 1e-9 * m->rates.narrow_flops);
    text_printf(t, ", of codes %.3g\n", 1e-9 * m->rates.code_flops);
    text_label(t, "start");
    text_printf(t, "ready after %s, first %s %s\n", seconds_text(a, m->compile), what, seconds_text(a, m->first));
    text_label(t, "memory");
    if (p)
        text_printf(t, "arena %s (%s at once), ", bytes_text(a, p->arena), bytes_text(a, p->live));
    text_printf(t, "process %s\n", bytes_text(a, m->resident));
    if (m->of.skipped) {
        text_label(t, "skipped");
        text_printf(t, "%zu steps were not finite and changed nothing; --seed or --fill for other data\n",
                    m->of.skipped);
    }
}

static void tell_launches(const Measured *m, Text *t, const TimedLaunch *list)
{
    enum { MOST = 24 };
    double all = 0, told = 0;
    size_t ran = 0;
    for (size_t i = 0; i < m->of.times.n; i++) {
        all += list[i].seconds;
        ran += list[i].runs > 0;
    }
    if (!ran) {
        text_label(t, "launches");
        text_printf(t, "none: the evaluator runs it, node by node%s\n",
                    m->of.c->cx->engine->wants_programs ? "; -v says why" : "");
        return;
    }
    text_printf(t, "\n   share        time    GB/s  GFLOP/s  of bound  launch\n");
    const size_t most = option_given(&m->of.c->line, OPT_verbose) || ran <= MOST ? ran : MOST;
    for (size_t i = 0; i < most; i++) {
        const TimedLaunch *l = &list[i];
        const double each = l->seconds / (double)l->runs;
        told += l->seconds;
        text_printf(t, "  %5.1f %%  %10s  %6.3g  %7.3g    %4.0f %%  %3d %s\n", 100 * l->seconds / all,
                    seconds_text(&m->of.c->cx->scratch, each), 1e-9 * l->bytes / each, 1e-9 * l->flops / each,
                    100 * launch_bound(l, &m->rates) / each, l->launch,
                    launch_words(&m->of.c->cx->scratch, l->program, l->launch, l->n));
    }
    if (most < ran)
        text_printf(t, "  %5.1f %%  in %zu launches more (-v)\n", 100 * (all - told) / all, ran - most);
}

static Status tell(Measured *m)
{
    Text t;
    TimedLaunch *list = launch_times_sorted(&m->of.times, &m->of.c->cx->scratch);
    qsort(m->runs, m->n_runs, sizeof *m->runs, by_size);
    if (out_is_json(m->of.c->out))
        return tell_json(m, list);
    text_open(&t, &m->of.c->cx->scratch);
    tell_head(m, &t, main_program(list, m->of.times.n));
    tell_launches(m, &t, list);
    return out_bytes(m->of.c->out, t.p, t.n);
}

static Status write_trace(Measured *m, const char *path)
{
    Out o;
    Text t;
    qcc_sink sink = { .path = path };
    text_open(&t, &m->of.c->cx->scratch);
    launch_trace(&t, &m->of.times, &m->of.c->cx->scratch);
    TRY(out_open(&o, m->of.c->cx, &sink));
    return out_close(&o, out_bytes(&o, t.p, t.n));
}

static Status measure(Measured *m, Command *c)
{
    qcc_model *model;
    const double began = clock_seconds();
    TRY(command_model(c, 0, &model));
    TRY(bench_open(&m->of, c, model));
    TRY(gains_allowed(&m->of));
    m->compile = clock_seconds() - began;
    TRY(run_all(m));
    m->rates = machine_rates(c->cx);
    const char *trace = option_text(&c->line, OPT_trace);
    if (trace)
        TRY(write_trace(m, trace));
    return tell(m);
}

Status command_bench(Command *c)
{
    Measured m = { .n_runs = 0 };
    TRY(command_wants(c, 1));
    if (option_given(&c->line, OPT_json))
        out_speak_json(c->out);
    TRY(measure(&m, c));
    return option_given(&c->line, OPT_gains) ? gains_measure(&m.of) : OK;
}
